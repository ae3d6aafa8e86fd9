package diff

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"pgregory.net/rapid"
)

// Planted faults: a clean log, into which K faults of each cause are planted with known ids and amounts, must come back
// with exactly those ids and amounts, per row and cause. What is planted is written down as it is planted, by hand.

// A plot is a world in the making: both sides' records and what a comparison of them has to say.
type plot struct {
	t           *rapid.T
	left, right []meter.Item
	dead        []Dead // of the left
	want        map[spot]*planted
	next        int64
	card        *meter.RateCard
}

type spot struct {
	row   meter.RowKey
	cause Cause
}

type planted struct {
	value Value
	ids   map[meter.ID]bool
}

// expect writes down that cause moves the row of it by sign times what it states.
func (p *plot) expect(cause Cause, it meter.Item, sign int64) {
	k := spot{meter.RowKey{Account: it.Account, WindowEnd: it.WindowEnd}, cause}
	if p.want[k] == nil {
		p.want[k] = &planted{Value{Quantities: make([]int64, 3)}, map[meter.ID]bool{}}
	}
	w := p.want[k]
	w.value.Requests += sign * it.Usage.Requests
	for i, q := range it.Usage.Quantities {
		w.value.Quantities[i] += sign * q
	}
	cost := labPrice(p.card, it.SKU, []string{"prompt_tokens", "cached_tokens", "completion_tokens"}, it.Usage.Quantities)
	if sign < 0 {
		cost = cost.Neg()
	}
	w.value.Pico = w.value.Pico.Add(cost)
	w.ids[it.Reference] = true
}

// fresh is a new counted request of two records, somewhere.
func (p *plot) fresh() meter.Item {
	id := fmt.Sprintf("r%d", p.next)
	p.next += 10
	prompt := rapid.Int64Range(0, 50).Draw(p.t, "prompt")
	it := request(id, int32(rapid.IntRange(0, 1).Draw(p.t, "partition")), []int64{p.next, p.next + 1},
		rapid.SampledFrom([]string{"acme", "beta"}).Draw(p.t, "account"), rapid.Int64Range(1, 4).Draw(p.t, "window"),
		prompt, rapid.Int64Range(0, prompt).Draw(p.t, "cached"), rapid.Int64Range(0, 20).Draw(p.t, "completion"))
	it.SKU = rapid.SampledFrom([]string{"gpt", "mini"}).Draw(p.t, "sku")
	return it
}

// half is one record of a request: its start or its end.
func half(v meter.Verdict, it meter.Item, n int) meter.Item {
	it.Verdict, it.Offsets = v, it.Offsets[n:n+1]
	it.Usage = meter.Usage{Quantities: slices.Clone(it.Usage.Quantities)}
	if n == 0 {
		it.Usage.Quantities[2] = 0
		it.Kind = meter.KindStart
	} else {
		it.Usage.Quantities[0], it.Usage.Quantities[1] = 0, 0
	}
	return it
}

// abandoned is a request whose end did not count, billed minutes later.
func (p *plot) abandoned(it meter.Item) meter.Item {
	a := half(meter.VerdictCounted, it, 0)
	a.Usage.Requests, a.Usage.SetHash, a.Abandoned = 1, it.Usage.SetHash, true
	a.WindowEnd += minute * rapid.Int64Range(1, 2).Draw(p.t, "later")
	return a
}

// elsewhere is a copy of all records of a request, with a fresh time.
func (p *plot) elsewhere(it meter.Item, partition int32) meter.Item {
	it.Partition, it.Offsets = partition, []int64{it.Offsets[0] + 5, it.Offsets[1] + 5}
	it.WindowEnd += minute
	it.Usage.Quantities = slices.Clone(it.Usage.Quantities)
	it.Usage.Quantities[2]++
	return it
}

// The plants: each adds one fault to both sides and writes it down. Left is as-streamed, right complete.
var plants = map[Cause]func(p *plot){
	Late: func(p *plot) {
		it := p.fresh()
		p.left, p.right = append(p.left, as(meter.VerdictLate, it)), append(p.right, it)
		p.expect(Late, it, -1)
	},
	Conflict: func(p *plot) {
		a := p.fresh()
		b := p.elsewhere(a, a.Partition)
		p.left = append(p.left, a, as(meter.VerdictConflict, b))
		p.right = append(p.right, as(meter.VerdictConflict, a), b)
		p.expect(Conflict, a, +1)
		p.expect(Conflict, b, -1)
	},
	DuplicateBeyondHorizon: func(p *plot) {
		a := p.fresh()
		b := p.elsewhere(a, a.Partition)
		p.left = append(p.left, a, b)
		p.right = append(p.right, a, half(meter.VerdictConflict, b, 0), half(meter.VerdictConflict, b, 1))
		p.expect(DuplicateBeyondHorizon, b, +1)
	},
	AbandonedThenCompleted: func(p *plot) {
		it := p.fresh()
		gone := p.abandoned(it)
		p.left, p.right = append(p.left, gone, half(meter.VerdictLateCompletion, it, 1)), append(p.right, it)
		p.expect(AbandonedThenCompleted, gone, +1)
		p.expect(AbandonedThenCompleted, it, -1)
	},
	Orphan: func(p *plot) {
		it := p.fresh()
		gone, end := p.abandoned(it), half(meter.VerdictOrphan, it, 1)
		end.Account, end.SKU = "", ""
		p.left, p.right = append(p.left, gone, end), append(p.right, it)
		p.expect(Orphan, gone, +1)
		p.expect(Orphan, it, -1)
	},
	SplitAcrossPartitions: func(p *plot) {
		a := p.fresh()
		if rapid.Bool().Draw(p.t, "twice") {
			b := p.elsewhere(a, 1-a.Partition)
			p.left = append(p.left, a, b)
			p.right = append(p.right, a, half(meter.VerdictDuplicate, b, 0), half(meter.VerdictConflict, b, 1))
			p.expect(SplitAcrossPartitions, b, +1)
			return
		}
		gone, end := p.abandoned(a), half(meter.VerdictOrphan, a, 1)
		end.Partition, end.Account, end.SKU = 1-a.Partition, "", ""
		a.Elsewhere, a.Offsets = []meter.LogPosition{{Partition: end.Partition, Offset: end.Offsets[0]}}, a.Offsets[:1]
		p.left, p.right = append(p.left, gone, end), append(p.right, a)
		p.expect(SplitAcrossPartitions, gone, +1)
		p.expect(SplitAcrossPartitions, a, -1)
	},
	Filtered: func(p *plot) {
		it := p.fresh()
		p.left, p.right = append(p.left, as(meter.VerdictFiltered, it)), append(p.right, it)
		p.expect(Filtered, it, -1)
	},
	DeadLetter: func(p *plot) {
		it := p.fresh()
		p.right = append(p.right, it)
		p.dead = append(p.dead, Dead{Partition: it.Partition, Offset: it.Offsets[0], Reason: meter.BadQuantity})
		p.expect(DeadLetter, it, -1)
	},
}

// two plants two causes on one id: a second life is billed again, and a third copy of it was late.
func two(p *plot) {
	a := p.fresh()
	b, c := p.elsewhere(a, a.Partition), p.elsewhere(a, a.Partition)
	c.Offsets = []int64{a.Offsets[0] + 7, a.Offsets[1] + 7}
	c.WindowEnd += minute
	p.left = append(p.left, a, b, as(meter.VerdictLate, c))
	p.right = append(p.right, a, as(meter.VerdictConflict, b), c) // a stranger right side: it bills the third
	p.expect(DuplicateBeyondHorizon, b, +1)
	p.expect(Late, c, -1)
}

func (p *plot) sides() (*Side, *Side) {
	return pricedSide("left", p.left, p.card, labQuantities, p.dead...), pricedSide("right", p.right, p.card, labQuantities)
}

func TestPlantedFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &plot{t: t, want: map[spot]*planted{}, card: labCard()}
		for range rapid.IntRange(0, 20).Draw(t, "clean") {
			it := p.fresh()
			p.left, p.right = append(p.left, it), append(p.right, it)
		}
		for _, cause := range slices.Sorted(maps.Keys(plants)) {
			for range rapid.IntRange(0, 3).Draw(t, cause.String()) {
				plants[cause](p)
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "two causes") {
			two(p)
		}
		l, r := p.sides()
		rep, err := Compare(context.Background(), l, r, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, rep)
		p.check(rep)

		// diff(x, x) is empty.
		l, _ = p.sides()
		same, _ := p.sides()
		if rep, err := Compare(context.Background(), l, same, Options{}); err != nil || !rep.Agree() {
			t.Fatalf("a side differs from itself: %v %v", err, outline(rep))
		}
		// diff(b, a) = -diff(a, b).
		l, r = p.sides()
		back, err := Compare(context.Background(), r, l, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, back)
		back.mirror()
		if a, b := outline(rep), outline(back); !slices.Equal(a, b) {
			t.Fatalf("turned round it says another thing:\n%q\n%q", a, b)
		}
	})
}

// check holds a report against what was planted: the same spots, values and ids, nothing else.
func (p *plot) check(rep *Report) {
	got := map[spot]bool{}
	for _, d := range rep.Differences {
		for _, s := range d.Shares {
			k := spot{d.RowKey, s.Cause}
			w := p.want[k]
			if w == nil {
				p.t.Fatalf("nobody planted %v: %v %v", k, s.IDs, s.Why)
			}
			got[k] = true
			if !s.Value.equal(w.value) {
				p.t.Fatalf("%v: got %v, planted %v", k, s.Value, w.value)
			}
			ids := map[meter.ID]bool{}
			for _, id := range s.IDs {
				ids[id] = true
			}
			if !maps.Equal(ids, w.ids) || len(ids) != len(s.IDs) {
				p.t.Fatalf("%v: got ids %q, planted %v", k, s.IDs, w.ids)
			}
		}
	}
	for k, w := range p.want {
		if !got[k] {
			p.t.Fatalf("planted and not found: %v %v", k, w)
		}
	}
}

// The same against a partner's log of single events, whose left side knows no ids.
func TestPlantedPartner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &plot{t: t, want: map[spot]*planted{}, card: labCard()}
		var items []meter.Item
		var events []Event
		var dead []Dead
		offset := int64(0)
		record := func(click string, account string, time int64, v meter.Verdict) meter.Item {
			it := as(v, tap(click, offset, account, time))
			offset++
			items = append(items, it)
			return it
		}
		note := func(cause Cause, it meter.Item, sign int64) {
			k := spot{meter.RowKey{Account: it.Account, WindowEnd: it.WindowEnd}, cause}
			if p.want[k] == nil {
				p.want[k] = &planted{Value{Quantities: make([]int64, 1)}, map[meter.ID]bool{}}
			}
			w := p.want[k]
			w.value.Requests += sign
			w.value.Quantities[0] += sign
			w.value.Pico = w.value.Pico.Add(meter.From64(sign * 10_000_000_000))
			w.ids[it.Reference] = true
		}
		for n := range rapid.IntRange(1, 40).Draw(t, "clicks") {
			name := fmt.Sprintf("c%d", n)
			account := rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "account")
			at := t0 + rapid.Int64Range(0, 3*minute-1).Draw(t, "time")
			theirs := true
			switch fate := rapid.IntRange(0, 9).Draw(t, "fate"); fate {
			case 0:
				note(Late, record(name, account, at, meter.VerdictLate), -1)
			case 1: // resent, the same time: the later position is the copy
				record(name, account, at, meter.VerdictCounted)
				note(DuplicateCounted, record(name, account, at, meter.VerdictCounted), +1)
			case 2: // late, and resent with a fresh time that was billed: two causes on one id
				note(Late, record(name, account, at, meter.VerdictLate), -1)
				note(DuplicateCounted, record(name, account, at+minute, meter.VerdictCounted), +1)
			case 3:
				note(Filtered, record(name, account, at, meter.VerdictFiltered), -1)
			case 4: // they have it, our log does not
				it := tap(name, offset, account, at)
				note(MissingInStream, it, -1)
			case 5:
				it := tap(name, offset, account, at)
				dead = append(dead, Dead{Offset: offset, Reason: meter.FutureTime, Reference: it.Reference})
				offset++
				note(DeadLetter, it, -1)
			case 6: // they do not have it
				note(Unexplained, record(name, account, at, meter.VerdictCounted), +1)
				theirs = false
			default:
				record(name, account, at, meter.VerdictCounted)
			}
			if theirs {
				events = append(events, click(name, account, at))
			}
		}
		opt := Options{AllAccounts: true}
		rep, err := Compare(context.Background(), naiveSide(items, dead...), partner(rapid.Permutation(events).Draw(t, "order")...), opt)
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, rep)
		p.check(rep)
		back, err := Compare(context.Background(), partner(events...), naiveSide(items, dead...), opt)
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, back)
		back.mirror()
		if a, b := outline(rep), outline(back); !slices.Equal(a, b) {
			t.Fatalf("turned round it says another thing:\n%q\n%q", a, b)
		}
	})
}

// Random sides, whatever they say: the shares of every row sum to its delta, both ways, and rates that differ too.
func TestSumsAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &plot{t: t, want: map[spot]*planted{}, card: labCard()}
		verdicts := []meter.Verdict{meter.VerdictCounted, meter.VerdictCounted, meter.VerdictCounted, meter.VerdictLate, meter.VerdictConflict,
			meter.VerdictDuplicate, meter.VerdictFiltered, meter.VerdictOrphan, meter.VerdictLateCompletion, meter.VerdictOpen}
		ids := rapid.IntRange(1, 4).Draw(t, "ids")
		make1 := func(label string) []meter.Item {
			var items []meter.Item
			for n := range rapid.IntRange(0, 12).Draw(t, label) {
				it := p.fresh()
				it.ID = meter.NewID(fmt.Sprint("x", rapid.IntRange(0, ids-1).Draw(t, "id")))
				it.Reference, it.Usage.SetHash = it.ID, it.ID.Hash64()
				it.Offsets = []int64{int64(10 * n)}
				it.Verdict = rapid.SampledFrom(verdicts).Draw(t, "verdict")
				it.Abandoned = rapid.Bool().Draw(t, "abandoned")
				items = append(items, it)
			}
			return items
		}
		left, right := make1("left"), make1("right")
		other := labCard()
		other.Revision = "r2"
		for i := range other.Rates {
			if rapid.Bool().Draw(t, "other rate") {
				other.Rates[i].Pico = rapid.Int64Range(0, 1000).Draw(t, "rate")
			}
		}
		if rapid.Bool().Draw(t, "one less") {
			other.Rates = other.Rates[1:]
		}
		sides := func() (*Side, *Side) {
			l, r := pricedSide("left", left, labCard(), labQuantities), pricedSide("right", right, other, labQuantities)
			if rapid.Bool().Draw(t, "by reference") {
				r.Identity = "other"
			}
			return l, r
		}
		l, r := sides()
		rep, err := Compare(context.Background(), l, r, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, rep)
		for _, d := range rep.Differences {
			for _, s := range d.Shares {
				if s.Cause == Unexplained && slices.Contains(s.Why, "the same usage, another amount") {
					t.Fatalf("money that neither usage nor rate explains: %v", outline(rep))
				}
			}
		}
		l, r = sides()
		back, err := Compare(context.Background(), r, l, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, back)
		if a, b := rep.Summary.Delta, back.Summary.Delta; !a.equal(b.neg()) {
			t.Fatalf("%v is not the negative of %v", a, b)
		}
	})
}
