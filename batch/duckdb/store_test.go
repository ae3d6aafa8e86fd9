package duckdb

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// TestStoredRows: rows come back as they were stored, whatever names and amounts there are, by both readers of cells.
func TestStoredRows(t *testing.T) {
	m := &meter.Meter{}
	m.Window.Size = 60_000
	m.Event.Quantities = []meter.Quantity{{Name: "a"}, {Name: "b"}}
	cell := func(account, sku string, tier int32, n int64) meter.PricedCell {
		return meter.PricedCell{Cell: meter.Cell{CellKey: meter.CellKey{Account: account, WindowEnd: 60_000, SKU: sku, Tier: tier},
			Usage: meter.Usage{Requests: n, Quantities: []int64{n, math.MaxInt64 - n}, SetHash: math.MaxUint64 - uint64(n)}}}
	}
	row := func(account string, state meter.State, amount meter.Int128, cells ...meter.PricedCell) meter.Row {
		r := meter.Row{RowKey: meter.RowKey{Account: account, WindowEnd: 60_000}, State: state, Amount: amount, Source: meter.PriceTable, Unpriced: 3, Cells: cells}
		r.Usage = meter.Usage{Requests: 7, Quantities: []int64{0, math.MaxInt64}, SetHash: 1}
		return r
	}
	rows := []meter.Row{
		row("", meter.Recomputed, meter.Int128{}, cell("", "", 0, 0)),
		row("a'b", meter.Open, meter.From64(math.MinInt64), cell("a'b", "x", 0, 1), cell("a'b", "x", 1, 2), cell("a'b", "y", math.MaxInt32, 3)),
		row("z\u00e9", meter.Recomputed, meter.Mul64(math.MaxInt64, math.MaxInt64), cell("z\u00e9", `quote " back \ tab`+"\t", 0, 4), cell("z\u00e9", "\u00e9]}", 0, 5)),
	}
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "rows.parquet")
	e := New(Config{})
	want := map[string]string{"gm.made": "now's the time"}
	if err := e.Store(ctx, path, m, rows, want); err != nil {
		t.Fatal(err)
	}
	got, provenance, err := e.Load(ctx, path, m, func(map[string]string) error { return nil })
	if err != nil || !reflect.DeepEqual(provenance, want) || !reflect.DeepEqual(got, rows) {
		t.Errorf("%v\n got %+v\nwant %+v\nprovenance %q", err, got, rows, provenance)
	}
	for i := range rows {
		text := string(appendCells(nil, rows[i].Cells))
		quick, ok := quickCells(rows[i].RowKey, 2, text, plainjson.Words{})
		if ok && !reflect.DeepEqual(quick, rows[i].Cells) || ok != (i < 2) {
			t.Errorf("%s: quick says %v %v", text, ok, quick)
		}
	}
	for _, bad := range []string{"", "[", `[{"sku":"x"}]`, `[{"sku":"x","tier":0,"requests":1,"quantities":[1],"set_hash":"00"}]`,
		`[{"sku":"x","tier":0,"requests":1,"quantities":[1,2],"set_hash":"00"}] `, `[{"sku":"x","tier":0,"requests":1,"quantities":[1,2,3],"set_hash":"00"}]`,
		`[{"sku":"x","tier":4294967296,"requests":1,"quantities":[1,2],"set_hash":"00"}]`, `[{"sku":"x","tier":0,"requests":1-1,"quantities":[1,2],"set_hash":"00"}]`} {
		if cells, ok := quickCells(rows[0].RowKey, 2, bad, plainjson.Words{}); ok {
			t.Errorf("%s: %v", bad, cells)
		}
	}
}
