package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

const meterYAML = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: type, identity: [id, part], account: tenant, sku: model, time: ts, status: status}
  time_unit: ms
  kinds: {start: S, complete: C, error: E}
  quantities:
    prompt_tokens: {path: prompt, on: start}
    requests: {path: completion, on: end, default: 0}
  max_ahead: 5m
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
assembly: {abandon_after: 5m}
pricing: {rate_card: rates.yaml}
`

// testMeter has a quantity that is named as a column of ours is.
func testMeter(t testing.TB, yaml string) *meter.Meter {
	t.Helper()
	m, err := meter.Parse("gatewaymeter.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openLedger(t testing.TB, path string) *Ledger {
	t.Helper()
	l, err := Open(context.Background(), Options{Path: path, Meter: testMeter(t, meterYAML)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func openReader(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := OpenReader(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "gatewaymeter.db") }

// minute is the end of the first window of 2026, moved by n windows.
func minute(n int64) int64 { return 1767225660000 + 60_000*n }

var huge = meter.Mul64(1<<62, 1000) // leaves int64

func row(account string, window int64, requests int64, amount meter.Int128) meter.StoredRow {
	key := meter.RowKey{Account: account, WindowEnd: minute(window)}
	usage := meter.Usage{Requests: requests, Quantities: []int64{10 * requests, 3 * requests}, SetHash: 1<<63 + uint64(requests)}
	return meter.StoredRow{
		Row: meter.Row{RowKey: key, State: meter.Main, Revision: 1, Usage: usage, Amount: amount, Source: meter.PriceTable,
			Cells: []meter.PricedCell{{
				Cell:   meter.Cell{CellKey: meter.CellKey{Account: account, WindowEnd: key.WindowEnd, SKU: "gpt \"x\" <é>", Tier: 1}, Usage: usage},
				Priced: meter.Priced{Amount: amount, Source: meter.PriceMixed, Unpriced: []string{"requests"}},
			}}},
		Published: meter.Usage{Requests: 1, Quantities: []int64{1, 2}, SetHash: 7}, PublishedPico: meter.From64(5),
		Live: true, Card: "c1", List: "l1",
	}
}

func firing(account string, window int64, kind meter.FiringKind, revision, requests, total, delta int64) meter.Firing {
	return meter.Firing{
		RowKey: meter.RowKey{Account: account, WindowEnd: minute(window)}, Kind: kind, Revision: revision,
		Total: meter.Usage{Requests: requests, Quantities: []int64{requests, 0}, SetHash: uint64(requests)},
		Delta: meter.Usage{Requests: 1, Quantities: []int64{-1, 0}, SetHash: 1 << 63}, TotalPico: meter.From64(total), DeltaPico: meter.From64(delta),
		Source: meter.PriceTable, Unpriced: 2,
	}
}

func position(commit, committed int64) meter.Position {
	return meter.Position{V: 1, Topic: "requests", Partition: 3, PrefixHash: "h", NextByte: 9, Committed: committed, CommitNo: commit,
		Checkpoint: meter.Checkpoint{Restart: 2, Byte: 1, MaxReach: meter.MinusInfinity, Carried: []byte(`[1]`)},
		Watermark:  minute(0), Fingerprint: "f", Summary: meter.Summary{Read: committed, Tick: committed},
		Archive: meter.ArchiveHead{Next: 1, File: "x.parquet", SHA256: "ab"}}
}
