package stream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid" // property tests with shrinking: the maintained one for Go

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// judged is what the oracle says of a case.
func judged(t *rapid.T, c *tracetest.Case) *oracle.Result {
	want, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, c.Drain)
	if err != nil {
		t.Fatalf("oracle: %v", err)
	}
	return want
}

// sameAsOracle compares a run that has ended with the oracle: bill, journal, side outputs, summary.
func sameAsOracle(t *rapid.T, r *fileRun, want *oracle.Result) {
	t.Helper()
	if d := tracetest.DiffRows(r.c.Meter, want.Bill, r.bill()); d != "" {
		t.Errorf("bill (- oracle, + stream):\n%s", d)
	}
	same(t, "journal", lines(want.Journal), lines(r.ledger.journal))
	same(t, "items", lines(sideOutputs(want.Items)), lines(sideOutputs(r.ledger.items)))
	sum := r.summary()
	same(t, "summary", tracetest.RenderSummary(&want.Summary), tracetest.RenderSummary(&sum))
	if err := sum.Check(); err != nil {
		t.Errorf("conservation: %v", err)
	}
}

func same(t *rapid.T, what string, want, got []string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	for i := range max(len(want), len(got)) {
		var w, g string
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			t.Errorf("%s: line %d of %d and %d\nwant %s\ngot  %s", what, i, len(want), len(got), w, g)
			return
		}
	}
}

func lines[T any](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprintf("%+v", v)
	}
	return out
}

// sideOutputs are the items that the stream puts out, in the exam's order.
func sideOutputs(items []meter.Item) []meter.Item {
	var out []meter.Item
	for _, it := range items {
		switch it.Verdict {
		case meter.VerdictFiltered, meter.VerdictLate, meter.VerdictConflict, meter.VerdictOrphan, meter.VerdictLateCompletion:
			out = append(out, it)
		}
	}
	slices.SortStableFunc(out, func(a, b meter.Item) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offsets[0], b.Offsets[0]),
			cmp.Compare(a.Offsets[len(a.Offsets)-1], b.Offsets[len(b.Offsets)-1]))
	})
	return out
}

// TestOracle: the stream says what the oracle says, in one go.
func TestOracle(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		r, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		sameAsOracle(t, r, judged(t, c))
	})
}

// TestCommitsAndKills: commits at any moment, with and without carried lives, and kills at any moment change
// nothing of what is durable in the end: not even the journal (R11).
func TestCommitsAndKills(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		r := newFileRun(c)
		r.markEvery = int64(rapid.IntRange(1, 5).Draw(t, "mark every"))
		must(t, r.start())
		kills := 0
		for !r.ended() {
			must(t, r.next())
			switch rapid.IntRange(0, 9).Draw(t, "then") {
			case 1, 2:
				must(t, r.commit(rapid.Bool().Draw(t, "carry")))
			case 3:
				if kills++; kills < 20 {
					must(t, r.start())
				}
			}
		}
		must(t, r.end())
		sameAsOracle(t, r, judged(t, c))
	})
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheorem2: at every offset of every partition a fresh counter that begins at the checkpoint and replays up to
// the offset is in the same live state, and says the same of what follows (R8). So does one that begins at a
// checkpoint of such a counter.
func TestTheorem2(t *testing.T) {
	gen.Check(t, gen.Options{MinRecords: 10, MaxRecords: 80}, func(t *rapid.T, c *tracetest.Case) {
		every := int64(rapid.IntRange(1, 4).Draw(t, "mark every"))
		renew := rapid.IntRange(1, 9).Draw(t, "renew")
		for _, events := range newFileRun(c).byPartition() {
			carry := rapid.Bool().Draw(t, "carry")
			old := fresh(t, c.Meter, events[0].Partition, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{}, every)
			for i := range events {
				again := recovered(t, old, events[:i], carry)
				must(t, old.Apply(&events[i]))
				must(t, again.Apply(&events[i]))
				saySame(t, old, again)
				if i%renew == 0 {
					old = again
				}
			}
			again := recovered(t, old, events, carry)
			must(t, old.Drain())
			must(t, again.Drain())
			saySame(t, old, again)
			if n := old.lives.n + len(old.cells.windows) + len(old.lives.extras); n > 0 {
				t.Errorf("%d lives, windows and extras remain after draining", n)
			}
		}
	})
}

// recovered is a fresh counter that begins at a checkpoint of c and has replayed what c has read. What c has to say
// is taken.
func recovered(t *rapid.T, c *Counter, read []meter.Event, carry bool) *Counter {
	t.Helper()
	c.TakeItems()
	c.TakeChanges()
	cp, err := c.Checkpoint(carry)
	must(t, err)
	again := fresh(t, c.m, c.partition, cp, c.Summary(), c.marks.every)
	again.Resume(c.commitNo)
	for i := range read {
		if read[i].Offset >= cp.Restart {
			must(t, again.Replay(&read[i]))
		}
	}
	if a, b := dump(c), dump(again); a != b {
		t.Fatalf("after %d records, carry %v, checkpoint %s: live state differs\nis     %s\nreplay %s", len(read), carry, fmt.Sprintf("%+v", cp), a, b)
	}
	if items, changes := again.TakeItems(), again.cells.take(); len(items)+len(changes) > 0 || again.Summary() != c.Summary() {
		t.Fatalf("the replay was not silent: %v %v %v", items, changes, again.Summary())
	}
	return again
}

// saySame requires two counters to have the same live state and to say the same since they were made.
func saySame(t *rapid.T, a, b *Counter) {
	t.Helper()
	if dump(a) != dump(b) {
		t.Fatalf("live state differs\n%s\n%s", dump(a), dump(b))
	}
	same(t, "items", lines(a.TakeItems()), lines(b.TakeItems()))
	n, was := a.TakeChanges()
	m, now := b.TakeChanges()
	same(t, "changes", lines(was), lines(now))
	if n != m || a.Summary() != b.Summary() {
		t.Fatalf("commit %d, %+v; recovered: commit %d, %+v", n, a.Summary(), m, b.Summary())
	}
}

func (r *fileRun) byPartition() [][]meter.Event {
	by := map[int32][]meter.Event{}
	for i := range r.events {
		if r.isRecord(i) {
			by[r.events[i].Partition] = append(by[r.events[i].Partition], r.events[i])
		}
	}
	var out [][]meter.Event
	for _, p := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[p])
	}
	return out
}

func fresh(t *rapid.T, m *meter.Meter, partition int32, from meter.Checkpoint, sum meter.Summary, every int64) *Counter {
	c, err := NewCounter(m, partition, cloneJSON(from), sum)
	must(t, err)
	c.marks.every = every
	return c
}

// dump is the live state (R8): watermark, remembered ids, windows that are not final.
func dump(c *Counter) string {
	var out []string
	for _, shard := range c.lives.table {
		for _, s := range shard.slots {
			if s.ref == 0 || c.horizon(s.ref) <= c.watermark {
				continue
			}
			l := c.lives.at(s.ref)
			x := c.carryLife(s.ref)
			_, waits := c.waitsFor(l)
			out = append(out, fmt.Sprintf("%v %s first=%d horizon=%d %s/%s start=%v end=%v failed=%v %v %v startAt=%d ref=%v waits=%v",
				x.ID, x.Phase, x.First, x.Horizon, x.Account, x.SKU, x.Start, x.End, x.Failed, x.Quantities, x.Marks, x.StartAt, x.Reference, waits))
		}
	}
	for end, w := range c.cells.windows {
		if c.watermark >= end+c.lateness {
			continue
		}
		for _, cell := range w.cells {
			for ; cell != nil; cell = cell.next {
				if cell.value.Requests != 0 {
					out = append(out, fmt.Sprintf("%d %s/%s/%d %v", end, c.names.text(cell.account), c.names.text(cell.sku), cell.tier, cell.value))
				}
			}
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("W=%d M=%d open=%d\n%s\n", c.watermark, c.maxReach, c.open, strings.Join(out, "\n"))
}

// TestInterleaving: partitions may interleave in any way, and be taken and added at any moment: the totals are the
// same (R11).
func TestInterleaving(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		parts := newFileRun(c).byPartition()
		merger := NewMerger(c.Meter, NewPricer(c.Meter, c.Card, c.List), MergeState{G: meter.MinusInfinity})
		counters := map[int32]*Counter{}
		for _, p := range parts {
			counters[p[0].Partition] = fresh(t, c.Meter, p[0].Partition, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{}, 3)
		}
		stored := map[meter.RowKey]meter.StoredRow{}
		var journal []meter.Firing
		take := func(p int32) {
			no, changes := counters[p].TakeChanges()
			var found []meter.StoredRow
			for _, k := range merger.Missing(changes) {
				if s, ok := stored[k]; ok {
					found = append(found, s)
				}
			}
			merger.Restore(found)
			must(t, merger.Add(p, no, changes))
		}
		publish := func() {
			fired, err := merger.Publish()
			must(t, err)
			journal = append(journal, fired...)
		}
		save := func() {
			rows, err := merger.Dirty()
			must(t, err)
			for _, s := range rows {
				stored[s.RowKey] = s
			}
		}
		for len(parts) > 0 {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "partition")
			p := parts[i][0].Partition
			must(t, counters[p].Apply(&parts[i][0]))
			if parts[i] = parts[i][1:]; len(parts[i]) == 0 {
				parts = slices.Delete(parts, i, i+1)
			}
			switch rapid.IntRange(0, 6).Draw(t, "then") {
			case 0:
				take(p)
			case 1:
				take(p)
				merger.SetPartition(p, counters[p].Watermark(), rapid.Bool().Draw(t, "idle"))
				publish()
			case 2:
				save()
			}
		}
		for p, counter := range counters {
			if c.Drain {
				must(t, counter.Drain())
			}
			take(p)
			merger.SetPartition(p, counter.Watermark(), false)
		}
		publish()
		save()
		want := map[meter.RowKey]meter.Row{}
		for _, r := range judged(t, c).Rows {
			want[r.RowKey] = r
		}
		for k, s := range stored {
			w := want[k]
			if !s.Usage.Equal(w.Usage) || s.Total() != w.Amount {
				t.Errorf("%v: %v %v, the oracle says %v %v", k, s.Usage, s.Total(), w.Usage, w.Amount)
			}
			delete(want, k)
		}
		if len(want) > 0 {
			t.Errorf("rows that the merge does not have: %v", want)
		}
		journalAddsUp(t, journal, stored)
	})
}

// journalAddsUp: the deltas of a row's firings sum to what is stored as published, revisions rise by one, and a row's
// states come in their order (R11).
func journalAddsUp(t *rapid.T, journal []meter.Firing, stored map[meter.RowKey]meter.StoredRow) {
	type told struct {
		usage meter.Usage
		pico  meter.Int128
		rev   int64
		final bool
	}
	rows := map[meter.RowKey]*told{}
	for _, f := range journal {
		r := rows[f.RowKey]
		if r == nil {
			r = &told{}
			rows[f.RowKey] = r
			if f.Kind == meter.CorrectionFiring || f.Kind == meter.AdjustmentFiring {
				t.Errorf("%v begins with a %v", f.RowKey, f.Kind)
			}
		}
		var err error
		if r.usage, err = r.usage.Plus(f.Delta); err != nil {
			t.Fatal(err)
		}
		r.pico = r.pico.Add(f.DeltaPico)
		if !r.usage.Equal(f.Total) || r.pico != f.TotalPico {
			t.Errorf("%v: deltas sum to %v, total is %v", f.RowKey, r.usage, f.Total)
		}
		if f.Kind != meter.AdjustmentFiring {
			if r.rev++; r.final {
				t.Errorf("%v: a %v after the final row", f.RowKey, f.Kind)
			}
		}
		if f.Kind == meter.FinalFiring {
			r.final = true
		}
		if f.Revision != r.rev {
			t.Errorf("%v: %v has revision %d, want %d", f.RowKey, f.Kind, f.Revision, r.rev)
		}
	}
	for k, s := range stored {
		r := rows[k]
		if r == nil {
			r = &told{}
		}
		if !s.Published.Equal(r.usage) || s.PublishedPico != r.pico || s.Revision != r.rev || (s.State == meter.Final) != r.final {
			t.Errorf("%v: the journal comes to %+v, the row says %+v", k, r, s)
		}
	}
}

// TestTimerOrder: timers fire in (T, id) order: side outputs of one advance come in it (R4).
func TestTimerOrder(t *testing.T) {
	gen.Check(t, gen.Options{Kind: meter.Requests}, func(t *rapid.T, c *tracetest.Case) {
		for _, events := range newFileRun(c).byPartition() {
			counter := fresh(t, c.Meter, events[0].Partition, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{}, 3)
			for i := range events {
				must(t, counter.Apply(&events[i]))
				inTimerOrder(t, counter, counter.TakeItems())
			}
			must(t, counter.Drain())
			inTimerOrder(t, counter, counter.TakeItems())
		}
	})
}

func inTimerOrder(t *rapid.T, c *Counter, items []meter.Item) {
	deadline := func(it *meter.Item) (int64, bool) {
		switch {
		case it.Verdict == meter.VerdictOrphan:
			return it.Time + c.patience, true
		case it.Abandoned:
			return it.Time, true
		}
		return 0, false
	}
	for i := 1; i < len(items); i++ {
		a, fromA := deadline(&items[i-1])
		b, fromB := deadline(&items[i])
		if fromA && fromB && (a > b || a == b && items[i].ID.Less(items[i-1].ID)) {
			t.Errorf("%v fired before %v", items[i-1], items[i])
		}
		if fromA && !fromB {
			t.Errorf("a timer fired before its record was applied: %v, %v", items[i-1], items[i])
		}
	}
}
