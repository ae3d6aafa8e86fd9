package duckdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

const (
	storedBlockRows = 512
	storedGroupRows = 64 * storedBlockRows // rows of a row group: what the writer holds in memory
)

// storedTable is the schema of a stored recompute: parquet.Group alone would put the columns in the order of their names.
type storedTable struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (t storedTable) Fields() []parquet.Field { return t.fields }

func storedSchema(columns []storedColumn) *parquet.Schema {
	t := storedTable{Group: parquet.Group{}}
	place := map[string]int{}
	for i, c := range columns {
		t.Group[c.name], place[c.name] = c.node(), i
	}
	t.fields = make([]parquet.Field, len(columns))
	for _, f := range t.Group.Fields() {
		t.fields[place[f.Name()]] = f
	}
	return parquet.NewSchema("recompute", t)
}

// storeRows writes rows and, once their seal is known, the provenance. Rows are made on one core while another seals and writes those before.
func storeRows(ctx context.Context, path string, m *meter.Meter, rows []meter.Row, provenance map[string]string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s := newSeal(m)
	buffered := bufio.NewWriterSize(file, 1<<20)
	w := parquet.NewGenericWriter[any](buffered, storedSchema(s.columns), parquet.CreatedBy("gmctl", "", ""))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	written := 0
	for b := range storedBlocks(ctx, m, rows) {
		s.block(b)
		for i, column := range w.ColumnWriters() {
			if _, err := column.WriteRowValues(b.columns[i]); err != nil {
				return fmt.Errorf("column %s: %w", s.columns[i].name, err)
			}
		}
		if written += b.rows(); written%storedGroupRows == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	kept := maps.Clone(provenance)
	kept[sealKey] = s.sum(provenance)
	for key, value := range kept {
		w.SetKeyValueMetadata(key, value)
	}
	return errors.Join(w.Close(), buffered.Flush())
}

// storedBlocks makes blocks of rows in order until all are made or ctx ends.
func storedBlocks(ctx context.Context, m *meter.Meter, rows []meter.Row) <-chan *storedBlock {
	blocks := make(chan *storedBlock, 4)
	go func() {
		defer close(blocks)
		for len(rows) > 0 && ctx.Err() == nil {
			n := min(len(rows), storedBlockRows)
			select {
			case blocks <- newStoredBlock(m, rows[:n]):
			case <-ctx.Done():
			}
			rows = rows[n:]
		}
	}()
	return blocks
}

// A storedBlock is some rows column by column; what is text stands in one arena.
type storedBlock struct {
	columns [][]parquet.Value
	column  int // the next one of the row at hand
	arena   []byte
}

func (b *storedBlock) rows() int { return len(b.columns[0]) }

func newStoredBlock(m *meter.Meter, rows []meter.Row) *storedBlock {
	cells := 0
	for i := range rows {
		cells += len(rows[i].Cells)
	}
	b := &storedBlock{columns: make([][]parquet.Value, len(storedColumns(m))), arena: make([]byte, 0, 100*len(rows)+150*cells)}
	values := make([]parquet.Value, len(b.columns)*len(rows))
	for i := range b.columns {
		b.columns[i] = values[i*len(rows) : i*len(rows) : (i+1)*len(rows)]
	}
	for i := range rows {
		b.add(m, &rows[i])
	}
	return b
}

// add appends a row.
func (b *storedBlock) add(m *meter.Meter, r *meter.Row) {
	b.column = 0
	b.text(append(b.arena, r.Account...))
	b.whole(r.WindowEnd - m.Window.Size)
	b.whole(r.WindowEnd)
	b.whole(r.WindowEnd * 1000) // us
	b.text(append(b.arena, r.State.String()...))
	b.whole(r.Usage.Requests)
	for i := range m.Event.Quantities {
		b.whole(r.Usage.Quantities[i])
	}
	total := r.Total()
	pico, fits := total.Int64()
	if fits {
		b.put(parquet.Int64Value(pico).Level(0, 1, b.column))
	} else {
		b.put(parquet.NullValue().Level(0, 0, b.column))
	}
	b.text(append(b.arena, total.USD()...))
	b.put(parquet.BooleanValue(!fits))
	b.text(append(b.arena, r.Source...))
	b.whole(r.Unpriced)
	b.text(appendHash(b.arena, r.Usage.SetHash))
	b.text(appendCells(b.arena, r.Cells))
}

func (b *storedBlock) put(v parquet.Value) {
	b.columns[b.column] = append(b.columns[b.column], v)
	b.column++
}

func (b *storedBlock) whole(n int64) { b.put(parquet.Int64Value(n)) }

// text puts what longer has more than the arena.
func (b *storedBlock) text(longer []byte) {
	from := len(b.arena)
	b.arena = longer
	b.put(parquet.ByteArrayValue(longer[from:len(longer):len(longer)]))
}
