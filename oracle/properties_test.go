package oracle_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

func streamed(t *rapid.T, c *tracetest.Case) *oracle.Result {
	r, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, c.Drain)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func complete(t *rapid.T, c *tracetest.Case) *oracle.Result {
	r, err := oracle.Complete(c.Meter, c.Card, c.List, c.Log, oracle.Options{Drain: c.Drain})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestConservation (R9, R14): the rows are the counted items, no more and no less, under both truths. That every
// record has one verdict is checked by the oracle itself.
func TestConservation(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		for _, r := range []*oracle.Result{streamed(t, c), complete(t, c)} {
			cells := map[meter.CellKey]meter.Usage{}
			for i := range r.Items {
				it := &r.Items[i]
				if it.Verdict != meter.VerdictCounted {
					continue
				}
				k := meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}
				var err error
				if cells[k], err = cells[k].Plus(it.Usage); err != nil {
					t.Fatal(err)
				}
			}
			for i := range r.Rows {
				for _, cell := range r.Rows[i].Cells {
					if !cell.Usage.Equal(cells[cell.CellKey]) {
						t.Fatalf("%v: the row has %v, the items %v", cell.CellKey, cell.Usage, cells[cell.CellKey])
					}
					delete(cells, cell.CellKey)
				}
			}
			if len(cells) > 0 {
				t.Fatalf("counted and in no row: %v", cells)
			}
			if err := r.Summary.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestJournalAddsUp (R11): the deltas of a row sum to its last total; a drained bill is what was published; final
// row and adjustments are the sum of the cells, whatever the moments of publication.
func TestJournalAddsUp(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		r := streamed(t, c)
		last := map[meter.RowKey]*meter.Firing{}
		sum := map[meter.RowKey]meter.Int128{}
		usage := map[meter.RowKey]meter.Usage{}
		for i := range r.Journal {
			f := &r.Journal[i]
			checkFollows(t, last[f.RowKey], f)
			sum[f.RowKey] = sum[f.RowKey].Add(f.DeltaPico)
			var err error
			if usage[f.RowKey], err = usage[f.RowKey].Plus(f.Delta); err != nil {
				t.Fatal(err)
			}
			if sum[f.RowKey] != f.TotalPico || !usage[f.RowKey].Equal(f.Total) {
				t.Fatalf("firing %d of %v: the deltas so far sum to %s, it says %s", i, f.RowKey, sum[f.RowKey].USD(), f.TotalPico.USD())
			}
			last[f.RowKey] = f
		}
		if len(r.Bill) != len(r.Rows) {
			t.Fatalf("the bill has %d rows, the recompute %d", len(r.Bill), len(r.Rows))
		}
		for i := range r.Bill {
			b, row := &r.Bill[i], &r.Rows[i]
			if b.RowKey != row.RowKey || b.Total() != row.Amount || !b.Usage.Equal(row.Usage) || !row.Adjustment.IsZero() {
				t.Fatalf("bill %+v, recompute %+v", b, row)
			}
			if f := last[b.RowKey]; c.Drain && (f == nil || f.TotalPico != row.Amount || b.State != meter.Final) {
				t.Fatalf("drained, but %v is %v, last published %+v", b.RowKey, b.State, f)
			}
		}
	})
}

// checkFollows requires the order of a row's life: main, corrections, final, adjustments.
func checkFollows(t *rapid.T, before, f *meter.Firing) {
	ok := false
	switch {
	case before == nil:
		ok = f.Revision == 1 && (f.Kind == meter.MainFiring && f.Total.Requests > 0 || f.Kind == meter.FinalFiring && f.Total.IsZero())
	case f.Kind == meter.CorrectionFiring:
		ok = f.Revision == before.Revision+1 && before.Kind <= meter.CorrectionFiring && !f.Delta.IsZero()
	case f.Kind == meter.FinalFiring:
		ok = f.Revision == before.Revision+1 && before.Kind <= meter.CorrectionFiring && f.Delta.IsZero()
	case f.Kind == meter.AdjustmentFiring:
		ok = f.Revision == before.Revision && before.Kind >= meter.FinalFiring
	}
	if !ok {
		t.Fatalf("%+v follows %+v", f, before)
	}
}

// TestInterleaving (R1): nothing but the order within a partition orders records: rows, items and dead letters are
// those of any other interleaving, and so is the complete truth.
func TestInterleaving(t *testing.T) {
	gen.Check(t, gen.Options{NoIdle: true}, func(t *rapid.T, c *tracetest.Case) {
		one, all := streamed(t, c), complete(t, c)
		byPartition := *c.Log
		byPartition.Steps = slices.Clone(c.Log.Steps)
		slices.SortStableFunc(byPartition.Steps, func(a, b meter.LogStep) int { return int(b.Record.Partition - a.Record.Partition) })
		again := *c
		again.Log = &byPartition
		two, allAgain := streamed(t, &again), complete(t, &again)
		for _, r := range []*oracle.Result{one, all, two, allAgain} {
			r.Journal = nil
			forgetPublication(r.Bill)
		}
		if !reflect.DeepEqual(one, two) || !reflect.DeepEqual(all, allAgain) {
			t.Fatal("another interleaving, another answer")
		}
	})
}

// forgetPublication leaves of a bill what is no matter of moments: the totals.
func forgetPublication(bill []meter.Row) {
	for i := range bill {
		b := &bill[i]
		b.Amount, b.Adjustment = b.Total(), meter.Int128{}
		b.State, b.Revision = 0, 0
	}
}

// TestTheorem1 (R8): where copies carry equal times, forgetting changes no cell.
func TestTheorem1(t *testing.T) {
	lives := 0
	gen.Check(t, gen.Options{EqualCopies: true}, func(t *rapid.T, c *tracetest.Case) {
		r := streamed(t, c)
		never, err := oracle.NeverForgetting(c.Meter, c.Card, c.List, c.Log, c.Drain)
		if err != nil {
			t.Fatal(err)
		}
		if d := tracetest.DiffRows(c.Meter, never.Rows, r.Rows); d != "" {
			t.Fatalf("forgetting changes the rows (- remembered, + forgotten):\n%s", d)
		}
		if fmt.Sprint(r.Items) != fmt.Sprint(never.Items) {
			lives++
		}
	})
	t.Logf("in %d cases forgetting changed a verdict", lives)
}

// TestCompleteOfCalm (R15): where nothing is late, no end is an orphan or too late, no id has a second life or a second
// partition, and log times follow offsets, both truths say the same. (Progress aside: it counts after D too.)
func TestCompleteOfCalm(t *testing.T) {
	calm := 0
	gen.Check(t, gen.Options{OnePartition: true}, func(t *rapid.T, c *tracetest.Case) {
		r := streamed(t, c)
		never, err := oracle.NeverForgetting(c.Meter, c.Card, c.List, c.Log, c.Drain)
		if err != nil {
			t.Fatal(err)
		}
		s := &r.Summary
		if s.Late+s.Orphan+s.LateCompletion+s.Progress > 0 || !reflect.DeepEqual(never.Items, r.Items) || !inLogTimeOrder(c) {
			return
		}
		calm++
		all := complete(t, c)
		if d := tracetest.DiffRows(c.Meter, r.Rows, all.Rows); d != "" {
			t.Fatalf("the complete truth differs (- as streamed, + complete):\n%s", d)
		}
		all.Summary.Superseded, all.Summary.Abandoned = s.Superseded, all.Summary.Abandoned+s.Superseded
		if all.Summary != *s {
			t.Fatalf("as streamed %+v, complete %+v", *s, all.Summary)
		}
	})
	t.Logf("%d cases were calm", calm)
}

// inLogTimeOrder reports whether the order of R15 is that of the offsets for every id.
func inLogTimeOrder(c *tracetest.Case) bool {
	last := map[meter.ID]int64{}
	for i := range c.Log.Steps {
		if c.Log.Steps[i].Idle != nil {
			continue
		}
		e := oracle.Decode(c.Meter, &c.Log.Steps[i].Record)
		if before, ok := last[e.ID]; ok && e.LogTime < before {
			return false
		}
		last[e.ID] = e.LogTime
	}
	return true
}
