package duckdb_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/stream"
)

// A footer is what an archive file says beside its rows.
type footer struct {
	at       meter.Checkpoint // at its first offset, nothing carried
	maxTime  int64            // greatest event time
	maxPrior int64            // greatest prior_max_reach
}

// footers runs a counter over a partition for the restarts of its files.
func (a *archived) footers(t *rapid.T, p int32) []footer {
	c, err := stream.NewCounter(a.m, p, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{})
	if err != nil {
		t.Fatal(err)
	}
	var all []footer
	i := 0
	for _, f := range a.files {
		if f.Partition != p {
			continue
		}
		var x footer
		if x.at, err = c.Checkpoint(false); err != nil {
			t.Fatal(err)
		}
		x.maxTime, x.maxPrior = meter.MinusInfinity, meter.MinusInfinity
		for ; i < len(a.events[p]) && a.events[p][i].Offset < f.Next; i++ {
			e := &a.events[p][i]
			if e.Admitted() {
				x.maxTime = max(x.maxTime, e.Time)
			}
			x.maxPrior = max(x.maxPrior, a.priors[p][i])
			if err := c.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, x)
	}
	return all
}

// prune cuts a job as the archive does.
func (a *archived) prune(t *rapid.T, job *batch.Job) *batch.Job {
	pruned := *job
	pruned.Parts = slices.Clone(job.Parts)
	minTime, untilReach := batch.Prune(a.m, job.From, job.To)
	for i := range pruned.Parts {
		p := &pruned.Parts[i]
		files := slices.DeleteFunc(slices.Clone(a.files), func(f batch.File) bool { return f.Partition != p.Partition })
		footers := a.footers(t, p.Partition)
		first := slices.IndexFunc(footers, func(f footer) bool { return f.maxTime >= minTime })
		if first < 0 {
			first = len(footers) - 1
		}
		if minTime > meter.MinusInfinity {
			p.Begin, p.MaxReach = footers[first].at.Restart, footers[first].at.MaxReach
		}
		if last := slices.IndexFunc(footers, func(f footer) bool { return f.maxPrior >= untilReach }); last >= 0 && last < len(footers)-1 {
			p.End, p.Drained = files[last].Next, false
		}
	}
	return &pruned
}

// TestPrunedEqualsWhole (R8, DESIGN section 8): for the windows of a range it makes no difference whether the log is read whole or from the restart
// of the file that its first relevant record is in up to where the range is final. Rows are the same, and so are the verdicts on what is read.
func TestPrunedEqualsWhole(t *testing.T) {
	read, left := 0, 0
	gen.Check(t, gen.Options{MinRecords: 150, MaxRecords: 500}, func(t *rapid.T, c *tracetest.Case) {
		a := archiveIn(t, c, rapid.SampledFrom([]int{10, 25, 60}).Draw(t, "rows per file"))
		whole := a.job(c.Card, c.List, batch.AsStreamed, c.Drain)
		first, last := eventTimes(a)
		from := first + rapid.Int64Range(0, 110).Draw(t, "from")*(last-first)/100
		to := from + rapid.Int64Range(0, 50).Draw(t, "width")*(last-first)/100
		whole.From, whole.To = &from, &to
		pruned := a.prune(t, whole)
		for i := range pruned.Parts {
			for _, e := range a.events[pruned.Parts[i].Partition] {
				read++
				if e.Offset < pruned.Parts[i].Begin || e.Offset >= pruned.Parts[i].End {
					left++
				}
			}
		}
		if d := tracetest.DiffRows(c.Meter, recompute(t, whole).Rows, recompute(t, pruned).Rows); d != "" {
			t.Fatalf("rows of (%d, %d] (- whole, + pruned to %+v):\n%s", from, to, pruned.Parts, d)
		}
		want, got := items(t, whole, batch.ItemFilter{}), items(t, pruned, batch.ItemFilter{})
		want, got = judgedInside(want, got, pruned.Parts), judgedInside(got, got, pruned.Parts)
		if d := diffItems(want, got); d != "" {
			t.Fatalf("verdicts of (%d, %d] (- whole, + pruned to %+v):\n%s", from, to, pruned.Parts, d)
		}
	})
	if left*20 < read {
		t.Errorf("of %d records only %d were left out: the property says little", read, left)
	}
}

// judgedInside leaves out what lies behind the end of the pruned job (late records of the range come there too), and what is still open at it.
func judgedInside(items, pruned []meter.Item, parts []batch.Part) []meter.Item {
	ends := map[int32]int64{}
	for _, p := range parts {
		ends[p.Partition] = p.End
	}
	open := map[meter.LogPosition]bool{}
	for _, it := range pruned {
		if it.Verdict == meter.VerdictOpen {
			open[meter.LogPosition{Partition: it.Partition, Offset: it.Offsets[0]}] = true
		}
	}
	var inside []meter.Item
	for _, it := range items {
		if it.Offsets[len(it.Offsets)-1] < ends[it.Partition] && !open[meter.LogPosition{Partition: it.Partition, Offset: it.Offsets[0]}] {
			inside = append(inside, it)
		}
	}
	return inside
}

// eventTimes is the least and the greatest event time.
func eventTimes(a *archived) (first, last int64) {
	first, last = meter.PlusInfinity, meter.MinusInfinity
	for _, events := range a.events {
		for i := range events {
			if events[i].Admitted() {
				first, last = min(first, events[i].Time), max(last, events[i].Time)
			}
		}
	}
	return min(first, last), last
}
