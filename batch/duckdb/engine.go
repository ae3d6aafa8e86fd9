// Package duckdb runs the recompute of package batch on DuckDB in process, and keeps what came out of it in Parquet.
//
// Start with [New]. Every call opens a database in memory and closes it: an Engine keeps nothing and may be shared. DuckDB loads no
// extension, from disk or network, spills into a folder of its own beyond the memory limit, and knows no time zone. [Script] is the same SQL
// for a plain DuckDB. [Write] and [Read] keep a result as a file that says what it was made from.
//
// This is the only package that needs cgo.
package duckdb

import (
	"context"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Config bounds what an engine takes from the machine.
type Config struct {
	// MemoryLimit in bytes; 0 is DuckDB's own default (80% of the machine).
	MemoryLimit int64
	// TempDir takes what does not fit into memory; "" is a new folder under the system's, removed afterwards.
	TempDir string
	// Threads; 0 is one per core.
	Threads int
	// TurnRows is how many records partitions may have that are judged together as-streamed; a greater partition is judged alone. More takes more
	// memory, less more time. 0 is 2 million, with a memory limit at most one for every 500 bytes of it.
	TurnRows int64
}

// Engine is a batch.Engine.
type Engine struct{ config Config }

var _ batch.Engine = (*Engine)(nil)

// New returns an engine. It opens nothing.
func New(c Config) *Engine { return &Engine{config: c} }

// Recompute implements batch.Engine.
func (e *Engine) Recompute(ctx context.Context, job *batch.Job) (*batch.Result, error) {
	result, err := e.recompute(ctx, job)
	return result, e.blame(ctx, job, err)
}

func (e *Engine) recompute(ctx context.Context, job *batch.Job) (*batch.Result, error) {
	text, err := batch.Texts(job)
	if err != nil {
		return nil, err
	}
	s, err := e.prepare(ctx, job, text)
	if err != nil {
		return nil, err
	}
	defer s.close()
	result := &batch.Result{}
	logged, err := s.tally(ctx)
	if err != nil {
		return nil, err
	}
	result.Summary = logged.summary
	if err := checkRows(job, logged.rows); err != nil {
		return nil, err
	}
	marks, err := s.watermarks(ctx, text.Last)
	if err != nil {
		return nil, err
	}
	result.Watermarks = marks.last
	reader := newCellReader(job.Meter)
	for _, turn := range turns(job, e.config.turnRows()) {
		if err := s.turn(ctx, turn, reader, &result.Summary); err != nil {
			return nil, err
		}
	}
	cells, err := reader.cells()
	if err != nil {
		return nil, err
	}
	if err := result.Summary.Check(); err != nil {
		return nil, fmt.Errorf("duckdb: recompute: %w", err)
	}
	result.Rows, err = rowsOf(job, cells, marks.final(job))
	return result, err
}

// Items implements batch.Engine.
func (e *Engine) Items(ctx context.Context, job *batch.Job, filter batch.ItemFilter) ([]meter.Item, error) {
	items, err := e.items(ctx, job, filter)
	return items, e.blame(ctx, job, err)
}

func (e *Engine) items(ctx context.Context, job *batch.Job, filter batch.ItemFilter) ([]meter.Item, error) {
	text, err := batch.ItemTexts(job, filter)
	if err != nil {
		return nil, err
	}
	s, err := e.prepare(ctx, job, text)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.want(ctx, job.Meter, filter); err != nil {
		return nil, err
	}
	return s.items(ctx, job.Meter, text.Items)
}
