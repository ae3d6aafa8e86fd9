package stream

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func testMerger(g int64) *Merger {
	m := benchMeter(meter.Requests)
	return NewMerger(m, NewPricer(m, &meter.RateCard{Rates: []meter.Rate{{SKU: "s", Quantity: "prompt_tokens", Pico: 5}}}, nil), MergeState{G: g})
}

func change(account string, end, requests, was int64) meter.CellChange {
	u := func(n int64) meter.Usage {
		return meter.Usage{Requests: n, Quantities: []int64{n, 0, 0}, SetHash: uint64(n)}
	}
	return meter.CellChange{CellKey: meter.CellKey{Account: account, WindowEnd: end, SKU: "s"}, Value: u(requests), Was: u(was)}
}

// TestCommitsAreNumbered: a repeat or a gap stops the merge (R11).
func TestCommitsAreNumbered(t *testing.T) {
	for _, second := range []int64{1, 3} {
		m := testMerger(meter.MinusInfinity)
		if err := m.Add(2, 1, nil); err != nil {
			t.Fatal(err)
		}
		wantError(t, m.Add(2, second, nil), "commit 2 has to follow")
		wantError(t, m.Add(2, 2, nil), "R11")
		_, err := m.Publish()
		wantError(t, err, "R11")
		_, err = m.Dirty()
		wantError(t, err, "R11")
	}
	wantError(t, testMerger(0).Add(2, 2, nil), "commit 1 has to follow")
}

// TestMergedSumLeavesInt64 stops the merge (R9): in one cell, or over the cells of a row.
func TestMergedSumLeavesInt64(t *testing.T) {
	for _, sku := range []string{"s", "other"} {
		m := testMerger(meter.MinusInfinity)
		x := change("a", benchStart, math.MaxInt64, 0)
		if err := m.Add(0, 1, []meter.CellChange{x}); err != nil {
			t.Fatal(err)
		}
		x.SKU = sku
		err := m.Add(1, 1, []meter.CellChange{x})
		if sku == "s" {
			wantError(t, err, "R9")
			continue
		}
		_, err = m.Publish()
		wantError(t, err, "R9")
	}
}

// TestRowsLeave: a final row leaves once it was written, is missing when a change of it comes, and goes on as an
// adjustment when it was restored (R11).
func TestRowsLeave(t *testing.T) {
	m := testMerger(meter.MinusInfinity)
	end := int64(benchStart)
	publish := func(w int64) []meter.Firing {
		m.SetPartition(0, w, false)
		fired, err := m.Publish()
		if err != nil {
			t.Fatal(err)
		}
		return fired
	}
	dirty := func() []meter.StoredRow {
		rows, err := m.Dirty()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if err := m.Add(0, 1, []meter.CellChange{change("a", end, 7, 0)}); err != nil {
		t.Fatal(err)
	}
	if rows := dirty(); len(rows) != 1 || !rows[0].Live || rows[0].State != meter.Running || rows[0].Total() != meter.From64(35) {
		t.Errorf("%+v", rows)
	}
	if fired := publish(end); len(fired) != 1 || fired[0].Kind != meter.MainFiring {
		t.Errorf("%+v", fired)
	}
	if fired := publish(end + 120_000); len(fired) != 1 || fired[0].Kind != meter.FinalFiring {
		t.Errorf("%+v", fired)
	}
	rows := dirty()
	if len(rows) != 1 || rows[0].Live || rows[0].State != meter.Final {
		t.Fatalf("%+v", rows)
	}
	again := []meter.CellChange{change("a", end, 9, 7), change("b", end, 1, 0)}
	if missing := m.Missing(again); len(missing) != 1 { // a is in memory until the commit is durable
		t.Errorf("%v", missing)
	}
	if more := dirty(); len(more) != 0 || len(m.rows) != 0 {
		t.Errorf("%+v, %d rows stay", more, len(m.rows))
	}
	if missing := m.Missing(again); len(missing) != 2 {
		t.Errorf("%v", missing)
	}
	m.Restore(rows)
	if err := m.Add(0, 2, again); err != nil {
		t.Fatal(err)
	}
	fired := publish(end + 120_000)
	want := []meter.FiringKind{meter.AdjustmentFiring, meter.FinalFiring, meter.AdjustmentFiring}
	for i, f := range fired {
		if i >= len(want) || f.Kind != want[i] {
			t.Errorf("%+v", fired)
		}
	}
	rows = dirty()
	if len(rows) != 2 || rows[0].Amount != meter.From64(35) || rows[0].Adjustment != meter.From64(10) || rows[0].Revision != 2 ||
		rows[1].Amount != meter.From64(0) || rows[1].Adjustment != meter.From64(5) || rows[1].Revision != 1 {
		t.Errorf("%+v", rows)
	}
}

// TestRestoredAndUntouched: a row that was restored for nothing leaves again.
func TestRestoredAndUntouched(t *testing.T) {
	m := testMerger(benchStart + 600_000)
	m.Restore([]meter.StoredRow{{Row: meter.Row{RowKey: meter.RowKey{Account: "a", WindowEnd: benchStart}, State: meter.Final, Revision: 2}}})
	if fired, err := m.Publish(); err != nil || len(fired) > 0 {
		t.Errorf("%v %v", fired, err)
	}
	if rows, err := m.Dirty(); err != nil || len(rows) > 0 || len(m.rows) > 0 {
		t.Errorf("%v %v, %d stay", rows, err, len(m.rows))
	}
}

// TestIdleRules: G is the lowest watermark of those that are not idle, never goes back, and stays with all idle;
// an idle partition wakes when its watermark moves (R11).
func TestIdleRules(t *testing.T) {
	m := testMerger(meter.MinusInfinity)
	g := func(want int64) {
		t.Helper()
		if _, err := m.Publish(); err != nil || m.G() != want {
			t.Errorf("G is %d, want %d (%v)", m.G(), want, err)
		}
	}
	g(meter.MinusInfinity)
	m.SetPartition(0, 100, false)
	m.SetPartition(1, meter.MinusInfinity, false)
	g(meter.MinusInfinity)
	m.SetPartition(1, meter.MinusInfinity, true)
	g(100)
	m.SetPartition(1, meter.MinusInfinity, false)
	if !m.Idle(1) || m.Has(2) || m.Idle(2) {
		t.Error("an idle partition woke without a move, or one that is not there is")
	}
	m.SetPartition(1, 50, false)
	g(100)
	m.SetPartition(0, 300, false)
	g(100)
	m.SetPartition(1, 200, false)
	g(200)
	m.SetPartition(0, 0, true)
	m.SetPartition(1, 0, true)
	g(200)
	state, err := json.Marshal(m.State())
	if want := `{"g":200,"partitions":[{"partition":0,"watermark":300,"idle":true,"commit_no":0},{"partition":1,"watermark":200,"idle":true,"commit_no":0}]}`; err != nil || string(state) != want {
		t.Errorf("%s %v", state, err)
	}
}

// TestDue: a publication is due when G crosses a window's end or an end + L, and at no other time (R11).
func TestDue(t *testing.T) {
	m := testMerger(59_999)
	m.lateness = 90_000
	for _, c := range []struct {
		g   int64
		due bool
	}{{59_999, false}, {60_000, true}, {89_999, false}, {90_000, true}, {119_999, false}, {300_000, true}} {
		m.SetPartition(0, c.g, false)
		if m.Due() != c.due {
			t.Errorf("at %d due is %v", c.g, m.Due())
		}
		if _, err := m.Publish(); err != nil || m.Due() {
			t.Errorf("due after publishing at %d (%v)", c.g, err)
		}
	}
}
