package duckdb_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go" // writes Parquet without DuckDB: the files are not of the engine that reads them

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// An archived log: files with the archive columns, cut into files of at most perFile rows.
type archived struct {
	m      *meter.Meter
	files  []batch.File
	parts  []int32
	events map[int32][]meter.Event // in offset order
	priors map[int32][]int64       // the highest reach before each event; meter.MinusInfinity if none
}

// decodeLog decodes the log's records by partition.
func decodeLog(m *meter.Meter, log *meter.Log) map[int32][]meter.Event {
	d := schemas.NewDecoder(m)
	events := map[int32][]meter.Event{}
	for i := range log.Steps {
		if log.Steps[i].Idle != nil {
			continue
		}
		var e meter.Event
		d.Decode(&log.Steps[i].Record, &e)
		events[e.Partition] = append(events[e.Partition], e)
	}
	return events
}

func archiveLog(tb testing.TB, dir string, m *meter.Meter, log *meter.Log, perFile int) *archived {
	tb.Helper()
	a, err := archiveEvents(dir, m, decodeLog(m, log), perFile)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func archiveEvents(dir string, m *meter.Meter, events map[int32][]meter.Event, perFile int) (*archived, error) {
	a := &archived{m: m, events: events, priors: map[int32][]int64{}}
	for p := range events {
		a.parts = append(a.parts, p)
	}
	slices.Sort(a.parts)
	for _, p := range a.parts {
		reach := meter.MinusInfinity
		for i := range events[p] {
			a.priors[p] = append(a.priors[p], reach)
			if e := &events[p][i]; e.Admitted() {
				reach = max(reach, e.Reach())
			}
		}
		for from := 0; from < len(events[p]); from += perFile {
			to := min(from+perFile, len(events[p]))
			f, err := a.file(dir, p, from, to)
			if err != nil {
				return nil, err
			}
			a.files = append(a.files, f)
		}
	}
	return a, nil
}

func (a *archived) file(dir string, p int32, from, to int) (batch.File, error) {
	events := a.events[p]
	f := batch.File{Partition: p, First: events[from].Offset, Next: events[to-1].Offset + 1, Rows: int64(to - from),
		Path: filepath.Join(dir, fmt.Sprintf("topic=t/date=1970-01-01/hour=00/part=%d/t+%d+%020d.parquet", p, p, events[from].Offset))}
	rows := make([]parquet.Row, 0, to-from)
	columns := schemas.ArchiveColumns(a.m)
	slices.SortFunc(columns, func(x, y schemas.Column) int { return bytes.Compare([]byte(x.Name), []byte(y.Name)) }) // as a parquet.Group has them
	for i := from; i < to; i++ {
		v := a.values(&events[i], a.priors[p][i])
		row := make(parquet.Row, len(columns))
		for c, col := range columns {
			level := 0
			if col.Optional && v[col.Name] != nil {
				level = 1
			}
			row[c] = parquet.ValueOf(v[col.Name]).Level(0, level, c)
		}
		rows = append(rows, row)
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return f, err
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[any](&b, parquetSchema(columns))
	if _, err := w.WriteRows(rows); err != nil {
		return f, err
	}
	if err := w.Close(); err != nil {
		return f, err
	}
	return f, os.WriteFile(f.Path, b.Bytes(), 0o644)
}

func parquetSchema(columns []schemas.Column) *parquet.Schema {
	g := parquet.Group{}
	for _, c := range columns {
		var n parquet.Node
		switch c.Type {
		case schemas.Int64:
			n = parquet.Leaf(parquet.Int64Type)
		case schemas.Bytes:
			n = parquet.Leaf(parquet.ByteArrayType)
		default:
			n = parquet.String()
		}
		if c.Optional {
			n = parquet.Optional(n)
		}
		g[c.Name] = n
	}
	return parquet.NewSchema("record", g)
}

// values is a row of the archive by column; nil is null.
func (a *archived) values(e *meter.Event, prior int64) map[string]any {
	v := map[string]any{"log_offset": e.Offset, "bucket": e.Bucket.String()}
	put := func(name string, there bool, value any) {
		if there {
			v[name] = value
		}
	}
	put("log_time", e.HasLogTime, e.LogTime)
	put("reason", e.Reason != meter.ReasonNone, e.Reason.String())
	put("kind", e.Kind != meter.KindNone, e.Kind.String())
	put("prior_max_reach", prior > meter.MinusInfinity, prior)
	put("event_time", e.Admitted(), e.Time)
	if e.Bucket != meter.BucketEvent {
		return v
	}
	for i, part := range e.ID.Parts() {
		v[fmt.Sprintf("id_%d", i+1)] = part
	}
	v["id_hash"] = int64(e.IDHash)
	if a.m.Event.Reference != nil {
		for i, part := range e.Reference.Parts() {
			v[fmt.Sprintf("ref_%d", i+1)] = part
		}
	}
	put("account", e.Account != "", e.Account)
	put("sku", e.SKU != "", e.SKU)
	for i, q := range a.m.Event.Quantities {
		put(q.Name, e.Present>>i&1 == 1, e.Quantities[i])
	}
	for i, t := range a.m.Event.Attributes {
		put("attr_"+t.Name, e.Attributes[i] != "", e.Attributes[i])
	}
	put("status", e.Status != "", e.Status)
	put("latency", e.HasLatency, e.Latency)
	put("payload_hash", e.PayloadHash != 0, int64(e.PayloadHash))
	return v
}

// job reads the archive whole.
func (a *archived) job(card, list *meter.RateCard, truth batch.Truth, drained bool) *batch.Job {
	job := &batch.Job{Meter: a.m, Card: card, List: list, Truth: truth, Files: a.files}
	for _, p := range a.parts {
		job.Parts = append(job.Parts, batch.Whole(p, drained))
	}
	return job
}
