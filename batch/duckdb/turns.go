package duckdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// turnRows is how many records partitions may have that are judged together.
func (c *Config) turnRows() int64 {
	rows := c.TurnRows
	if rows == 0 {
		rows = 2_000_000
		if c.MemoryLimit > 0 {
			rows = min(rows, c.MemoryLimit/500)
		}
	}
	return rows
}

// turns cuts a job into jobs of few partitions, which take less memory one after the other. Only the as-streamed truth judges a partition alone (R1).
func turns(job *batch.Job, together int64) []*batch.Job {
	if job.Truth != batch.AsStreamed {
		return []*batch.Job{job}
	}
	rows := map[int32]int64{}
	for _, f := range job.Files {
		rows[f.Partition] += max(f.Rows, f.Next-f.First)
	}
	var list []*batch.Job
	room := int64(0)
	for _, p := range job.Parts {
		if room -= rows[p.Partition]; room < 0 || len(list) == 0 {
			turn := *job
			turn.Parts, turn.Files = nil, nil
			list = append(list, &turn)
			room = together - rows[p.Partition]
		}
		turn := list[len(list)-1]
		turn.Parts = append(turn.Parts, p)
	}
	for _, turn := range list {
		turn.Files = slices.DeleteFunc(slices.Clone(job.Files), func(f batch.File) bool {
			return !slices.ContainsFunc(turn.Parts, func(p batch.Part) bool { return p.Partition == f.Partition })
		})
	}
	return list
}

// turn recomputes the cells of a job's partitions.
func (s *session) turn(ctx context.Context, job *batch.Job, reader *cellReader, sum *meter.Summary) error {
	text, err := batch.Texts(job)
	if err != nil {
		return err
	}
	if err := s.exec(ctx, "CREATE OR REPLACE VIEW "+batch.Archive+" AS "+scan(job)); err != nil {
		return fmt.Errorf("duckdb: read the archive: %w", err)
	}
	return reader.readAll(ctx, s, text.Cells, sum)
}
