package gen_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// TestDense requires that a few hundred cases hold every kind of coincidence that the generator is for: a property
// that never meets a superseded request proves nothing about one.
func TestDense(t *testing.T) {
	seen := map[string]int{}
	cases := rapid.Custom(func(t *rapid.T) *tracetest.Case { return gen.Draw(t, gen.Options{}) })
	const n = 300
	for seed := range n {
		here := map[string]bool{}
		look(t, cases.Example(seed), here)
		for k := range here {
			seen[k]++
		}
	}
	want := []string{"requests", "events", "idle line", "no log time", "drained", "not drained", "below 1970", "hole",
		"tombstone", "ignored", "tick", "progress", "counted", "filtered", "late", "duplicate", "conflict", "orphan",
		"late_completion", "open", "door", "abandoned", "superseded", "main", "correction", "final", "adjustment",
		"final of zero", "back at zero", "table", "list", "unpriced", "mixed", "second life", "abandoned after an orphan", "filtered and superseded",
		"judged exactly at a deadline", "split across partitions", "complete differs", "tier above 0", "watermark at a window's end"}
	for _, r := range meter.Reasons() {
		if r != meter.TooLarge {
			want = append(want, r.String())
		}
	}
	for _, k := range want {
		t.Logf("%-30s in %3d of %d", k, seen[k], n)
		if seen[k] == 0 {
			t.Errorf("%s: in none of %d cases", k, n)
		}
	}
}

// look marks what a case holds.
func look(t *testing.T, c *tracetest.Case, seen map[string]bool) {
	mark := func(yes bool, what string) {
		if yes {
			seen[what] = true
		}
	}
	r, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, c.Drain)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Text())
	}
	complete, err := oracle.Complete(c.Meter, c.Card, c.List, c.Log, oracle.Options{Drain: c.Drain})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Text())
	}
	mark(true, string(c.Meter.Kind))
	mark(c.Drain, "drained")
	mark(!c.Drain, "not drained")
	next := map[int32]int64{}
	for _, s := range c.Log.Steps {
		mark(s.Idle != nil, "idle line")
		if s.Idle != nil {
			continue
		}
		mark(!s.Record.HasLogTime, "no log time")
		mark(s.Record.Offset > next[s.Record.Partition], "hole")
		next[s.Record.Partition] = s.Record.Offset + 1
		e := oracle.Decode(c.Meter, &s.Record)
		mark(true, e.Bucket.String())
		mark(true, e.Reason.String())
		mark(e.Admitted() && e.Time < 0, "below 1970")
	}
	abandoned := map[meter.ID]bool{}
	opened := map[meter.ID]int{}
	for _, it := range r.Items {
		mark(true, it.Verdict.String())
		mark(it.Door, "door")
		mark(it.Abandoned, "abandoned")
		mark(it.Superseded, "superseded")
		mark(it.Superseded && it.Verdict == meter.VerdictFiltered, "filtered and superseded")
		mark(it.Tier > 0, "tier above 0")
		abandoned[it.ID] = abandoned[it.ID] || it.Abandoned
		if it.Usage.Requests == 1 && (it.Verdict == meter.VerdictCounted || it.Verdict == meter.VerdictFiltered) {
			opened[it.ID]++
			mark(opened[it.ID] > 1, "second life")
		}
		mark(it.Judged == it.WindowEnd+c.Meter.Window.AllowedLateness, "judged exactly at a deadline")
		mark(it.Judged == it.WindowEnd, "watermark at a window's end")
	}
	for _, it := range r.Items {
		mark(it.Verdict == meter.VerdictOrphan && abandoned[it.ID], "abandoned after an orphan")
	}
	published := map[meter.RowKey]bool{}
	for _, f := range r.Journal {
		mark(true, f.Kind.String())
		mark(f.Kind == meter.FinalFiring && f.Revision == 1, "final of zero")
		mark(published[f.RowKey] && f.Total.Requests == 0, "back at zero")
		published[f.RowKey] = true
	}
	for _, row := range r.Rows {
		mark(true, row.Source)
	}
	for _, it := range complete.Items {
		mark(len(it.Elsewhere) > 0, "split across partitions")
	}
	mark(tracetest.DiffRows(c.Meter, r.Rows, complete.Rows) != "", "complete differs")
}

// TestReplay: the text of a drawn case is the case.
func TestReplay(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		again, err := tracetest.Parse("again.txtar", []byte(c.Text()))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(again.Log.Steps), fmt.Sprint(c.Log.Steps); got != want {
			t.Fatalf("another log:\n%s\n%s", got, want)
		}
		if again.Meter.Fingerprint != c.Meter.Fingerprint || again.Drain != c.Drain || !slices.Equal(again.Card.Rates, c.Card.Rates) {
			t.Fatal("another meter, card or option")
		}
	})
}
