package diff

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func TestEqualSidesAgree(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 10, 2, 3), request("b", 1, []int64{0, 4}, "acme", 2, 5, 0, 1)}
	r := mustCompare(t, ownSide("ledger", items), ownSide("recompute", items), Options{})
	if !r.Agree() || r.Summary.Matched != 2 || len(r.Differences) != 0 {
		t.Fatalf("%+v", r.Summary)
	}
}

// Each case is one id that the two truths (or two meters) see differently, and what must be said of it.
func TestCauses(t *testing.T) {
	counted := func(id string, p int32, offs []int64, w int64) meter.Item {
		return request(id, p, offs, "acme", w, 10, 0, 5)
	}
	lone := func(it meter.Item) meter.Item { it.Usage.Requests, it.Usage.SetHash = 0, 0; return it }
	abandoned := func(it meter.Item) meter.Item {
		it.Abandoned, it.Kind, it.Status = true, meter.KindStart, "abandoned"
		it.Usage.Quantities = []int64{10, 0, 0}
		return it
	}
	unknown := func(it meter.Item) meter.Item { it.Account, it.SKU = "", ""; return lone(it) }
	other := func(it meter.Item) meter.Item { it.Usage.Quantities = []int64{7, 0, 5}; return it }
	across := func(it meter.Item, partition int32, offset int64) meter.Item {
		it.Elsewhere = []meter.LogPosition{{Partition: partition, Offset: offset}}
		return it
	}
	renamed := func(it meter.Item, n int64) meter.Item {
		it.ID = meter.PositionID(it.Partition, n)
		it.Usage.SetHash = it.ID.Hash64()
		return it
	}
	base := counted("base", 0, []int64{100, 101}, 1)
	base2 := counted("base2", 0, []int64{102, 103}, 2)
	cases := []struct {
		name        string
		left, right []meter.Item
		dead        []Dead // of the left
		prepare     func(l, r *Side)
		want        []string
	}{
		{name: "late",
			left:  []meter.Item{as(meter.VerdictLate, counted("x", 0, []int64{1, 2}, 1))},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1)},
			want:  []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "late start at the door, its end an orphan: late comes first",
			left:  []meter.Item{lone(as(meter.VerdictLate, counted("x", 0, []int64{1}, 1))), unknown(as(meter.VerdictOrphan, counted("x", 0, []int64{2}, 1)))},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1)},
			want:  []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "conflict: each truth bills another copy",
			left:  []meter.Item{counted("x", 0, []int64{1}, 1), as(meter.VerdictConflict, other(counted("x", 0, []int64{2}, 1)))},
			right: []meter.Item{as(meter.VerdictConflict, counted("x", 0, []int64{1}, 1)), other(counted("x", 0, []int64{2}, 1))},
			want:  []string{"acme 1 mismatched conflict requests=+0 q=[3 0 0] usd=0.000000000450 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "late completion: the abandoned one is billed",
			left:  []meter.Item{abandoned(counted("x", 0, []int64{1}, 2)), lone(as(meter.VerdictLateCompletion, counted("x", 0, []int64{9}, 1)))},
			right: []meter.Item{counted("x", 0, []int64{1, 9}, 1)},
			want: []string{"acme 1 mismatched abandoned_then_completed requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@9]",
				"acme 2 mismatched abandoned_then_completed requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@1 requests/0@9]"}},
		{name: "completion late at the door",
			left:  []meter.Item{abandoned(counted("x", 0, []int64{1}, 2)), unknown(as(meter.VerdictLate, counted("x", 0, []int64{9}, 1)))},
			right: []meter.Item{counted("x", 0, []int64{1, 9}, 1)},
			want: []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@9]",
				"acme 2 mismatched late requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@1 requests/0@9]"}},
		{name: "orphan: the start came after the end was given up",
			left:  []meter.Item{abandoned(counted("x", 0, []int64{9}, 2)), unknown(as(meter.VerdictOrphan, counted("x", 0, []int64{1}, 1)))},
			right: []meter.Item{counted("x", 0, []int64{1, 9}, 1)},
			want: []string{"acme 1 mismatched orphan requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@9]",
				"acme 2 mismatched orphan requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@1 requests/0@9]"}},
		{name: "a second life is billed again",
			left:  []meter.Item{counted("x", 0, []int64{1, 2}, 1), counted("x", 0, []int64{50, 51}, 2)},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1), lone(as(meter.VerdictConflict, counted("x", 0, []int64{50}, 2))), lone(as(meter.VerdictConflict, counted("x", 0, []int64{51}, 2)))},
			want:  []string{"acme 2 mismatched duplicate_beyond_horizon requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@50 requests/0@51]"}},
		{name: "one id in two partitions, billed twice",
			left:  []meter.Item{counted("x", 0, []int64{1, 2}, 1), counted("x", 1, []int64{1, 2}, 2)},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1), lone(as(meter.VerdictDuplicate, counted("x", 1, []int64{1}, 2))), lone(as(meter.VerdictDuplicate, counted("x", 1, []int64{2}, 2)))},
			want:  []string{"acme 2 mismatched split_across_partitions requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/1@1 requests/1@2]"}},
		{name: "start and end in two partitions",
			left:  []meter.Item{abandoned(counted("x", 0, []int64{1}, 2)), unknown(as(meter.VerdictOrphan, counted("x", 1, []int64{7}, 1)))},
			right: []meter.Item{across(counted("x", 0, []int64{1}, 1), 1, 7)},
			want: []string{"acme 1 mismatched split_across_partitions requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/1@7]",
				"acme 2 mismatched split_across_partitions requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@1 requests/1@7]"}},
		{name: "start and end in two partitions, the end late at its door",
			left:  []meter.Item{abandoned(counted("x", 0, []int64{1}, 2)), unknown(as(meter.VerdictLate, counted("x", 1, []int64{7}, 1)))},
			right: []meter.Item{across(counted("x", 0, []int64{1}, 1), 1, 7)},
			want: []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/1@7]",
				"acme 2 mismatched late requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@1 requests/1@7]"}},
		{name: "start and end in two partitions, the end still held",
			left:  []meter.Item{abandoned(counted("x", 0, []int64{1}, 2)), unknown(as(meter.VerdictOpen, counted("x", 1, []int64{7}, 1)))},
			right: []meter.Item{across(counted("x", 0, []int64{1}, 1), 1, 7)},
			want: []string{"acme 1 mismatched split_across_partitions requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/1@7]",
				"acme 2 mismatched split_across_partitions requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@1 requests/1@7]"}},
		{name: "the copy that the other truth bills came to an orphan",
			left: []meter.Item{abandoned(counted("x", 0, []int64{19}, 2)), unknown(as(meter.VerdictOrphan, counted("x", 0, []int64{2}, 1))),
				unknown(as(meter.VerdictDuplicate, counted("x", 0, []int64{8}, 1)))},
			right: []meter.Item{counted("x", 0, []int64{8, 19}, 1), lone(as(meter.VerdictDuplicate, counted("x", 0, []int64{2}, 1)))},
			want: []string{"acme 1 mismatched orphan requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@2 requests/0@8 requests/0@19]",
				"acme 2 mismatched orphan requests=+1 q=[10 0 0] usd=0.000000001500 ids=[x] log=[requests/0@2 requests/0@8 requests/0@19]"}},
		{name: "filtered on one side",
			left:  []meter.Item{as(meter.VerdictFiltered, counted("x", 0, []int64{1, 2}, 1))},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1)},
			want:  []string{"acme 1 mismatched filtered requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "a dead letter on one side", dead: []Dead{{Offset: 1, Reason: meter.BadQuantity}},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1)},
			want:  []string{"acme 1 mismatched dead_letter requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "another meter puts it elsewhere",
			left:    []meter.Item{counted("x", 0, []int64{1, 2}, 1)},
			right:   []meter.Item{counted("x", 0, []int64{1, 2}, 2)},
			prepare: func(l, r *Side) { r.Fingerprint = "g" },
			want: []string{"acme 1 mismatched meter_mismatch requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]",
				"acme 2 mismatched meter_mismatch requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "the same meter puts it elsewhere: nothing explains that",
			left:  []meter.Item{counted("x", 0, []int64{1, 2}, 1)},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 2)},
			want: []string{"acme 1 mismatched unexplained requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]",
				"acme 2 mismatched unexplained requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]"}},
		{name: "progress after the deadline",
			left: []meter.Item{abandoned(counted("x", 0, []int64{1}, 2))},
			right: []meter.Item{func() meter.Item {
				it := abandoned(counted("x", 0, []int64{1}, 2))
				it.Usage.Quantities = []int64{10, 0, 4}
				return it
			}()},
			want: []string{"acme 2 mismatched late requests=+0 q=[0 0 -4] usd=-0.000000002400 ids=[x] log=[requests/0@1]"}},
		{name: "a meter without identity bills the copy",
			left:    []meter.Item{renamed(counted("x", 0, []int64{1}, 1), 1), renamed(counted("x", 0, []int64{4}, 1), 4)},
			right:   []meter.Item{counted("x", 0, []int64{1}, 1), as(meter.VerdictDuplicate, counted("x", 0, []int64{4}, 1))},
			prepare: func(l, r *Side) { l.Identity, l.Fingerprint = "none", "n" },
			want:    []string{"acme 1 mismatched duplicate_counted requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@4]"}},
		{name: "two causes on one id: the first copy late, the second billed, and they cancel in the row",
			left:    []meter.Item{renamed(as(meter.VerdictLate, counted("x", 0, []int64{1}, 1)), 1), renamed(counted("x", 0, []int64{4}, 2), 4)},
			right:   []meter.Item{counted("x", 0, []int64{1}, 1), as(meter.VerdictConflict, counted("x", 0, []int64{4}, 2))},
			prepare: func(l, r *Side) { l.Identity, l.Fingerprint = "none", "n" },
			want: []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1]",
				"acme 2 mismatched conflict requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@4]"}},
		{name: "billed three times, twice in one partition",
			left: []meter.Item{counted("x", 0, []int64{1, 2}, 1), counted("x", 0, []int64{50, 51}, 2), counted("x", 1, []int64{1, 2}, 2)},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1), lone(as(meter.VerdictConflict, counted("x", 0, []int64{50}, 2))), lone(as(meter.VerdictConflict, counted("x", 0, []int64{51}, 2))),
				lone(as(meter.VerdictConflict, counted("x", 1, []int64{1}, 2))), lone(as(meter.VerdictConflict, counted("x", 1, []int64{2}, 2)))},
			want: []string{"acme 2 mismatched duplicate_beyond_horizon requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@50 requests/0@51]",
				"acme 2 mismatched split_across_partitions requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/1@1 requests/1@2]"}},
		{name: "the other side bills the second of two equal copies: the first is over",
			left:    []meter.Item{renamed(counted("x", 0, []int64{1}, 1), 1), renamed(counted("x", 0, []int64{4}, 1), 4)},
			right:   []meter.Item{as(meter.VerdictDuplicate, counted("x", 0, []int64{1}, 1)), counted("x", 0, []int64{4}, 1)},
			prepare: func(l, r *Side) { l.Identity, l.Fingerprint = "none", "n" },
			want:    []string{"acme 1 mismatched duplicate_counted requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@1]"}},
		{name: "each side bills another of two equal copies: no difference, beside one",
			left:  []meter.Item{counted("x", 0, []int64{1}, 1), as(meter.VerdictDuplicate, counted("x", 1, []int64{1}, 1)), as(meter.VerdictLate, counted("y", 0, []int64{8}, 1))},
			right: []meter.Item{as(meter.VerdictDuplicate, counted("x", 0, []int64{1}, 1)), counted("x", 1, []int64{1}, 1), counted("y", 0, []int64{8}, 1)},
			want:  []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[y] log=[requests/0@8]"}},
		{name: "the same, and a second life is billed besides",
			left: []meter.Item{counted("x", 0, []int64{1}, 1), counted("x", 0, []int64{50}, 2), as(meter.VerdictDuplicate, counted("x", 1, []int64{1}, 1))},
			right: []meter.Item{as(meter.VerdictDuplicate, counted("x", 0, []int64{1}, 1)), as(meter.VerdictConflict, counted("x", 0, []int64{50}, 2)),
				counted("x", 1, []int64{1}, 1), counted("y", 0, []int64{8}, 1)},
			dead: []Dead{{Offset: 8, Reason: meter.BadUsage}},
			want: []string{"acme 1 mismatched dead_letter requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[y] log=[requests/0@8]",
				"acme 2 mismatched duplicate_beyond_horizon requests=+1 q=[10 0 5] usd=0.000000004500 ids=[x] log=[requests/0@50]"}},
		{name: "composition differs, sums do not",
			left:  []meter.Item{as(meter.VerdictLate, counted("x", 0, []int64{1, 2}, 1)), counted("y", 0, []int64{3, 4}, 1), counted("y", 0, []int64{60, 61}, 1)},
			right: []meter.Item{counted("x", 0, []int64{1, 2}, 1), counted("y", 0, []int64{3, 4}, 1), as(meter.VerdictConflict, counted("y", 0, []int64{60}, 1))},
			want: []string{"acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]",
				"acme 1 mismatched duplicate_beyond_horizon requests=+1 q=[10 0 5] usd=0.000000004500 ids=[y] log=[requests/0@60 requests/0@61]"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sides := func() (*Side, *Side) {
				with := func(items []meter.Item, naive bool) []meter.Item {
					out := append([]meter.Item{base, base2}, items...)
					if naive {
						out[0], out[1] = renamed(base, 100), renamed(base2, 102)
					}
					return out
				}
				l, r := ownSide("left", nil), ownSide("right", nil)
				if c.prepare != nil {
					c.prepare(l, r)
				}
				left := ownSide("left", with(c.left, l.Identity == "none"), c.dead...)
				right := ownSide("right", with(c.right, false))
				if c.prepare != nil {
					c.prepare(left, right)
				}
				return left, right
			}
			l, r := sides()
			rep := mustCompare(t, l, r, Options{})
			wantOutline(t, rep, c.want...)
			if rep.Agree() {
				t.Error("agree")
			}
			// Turned round it is the same story with the signs turned.
			l, r = sides()
			back := mustCompare(t, r, l, Options{})
			back.mirror()
			wantOutline(t, back, c.want...)
		})
	}
}

func TestRates(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 100, 20, 10), request("b", 0, []int64{2, 3}, "beta", 1, 100, 0, 10)}
	items[1].SKU = "mini"
	dearer := labCard()
	dearer.Rates[2].Pico, dearer.Revision = 650, "r2" // completion tokens of gpt
	r := mustCompare(t, ownSide("ledger", items), pricedSide("recompute", items, dearer, labQuantities), Options{})
	// By hand: 10 tokens x (600 - 650) pico-dollars.
	wantOutline(t, r, "acme 1 mismatched rate_revision requests=+0 q=[0 0 0] usd=-0.000000000500 ids=[] log=[]")

	// One more record on the left, valued at the right's rate: 10 x 650; the left's 20 x (600 - 650) beside it.
	more := append(items[:len(items):len(items)], request("c", 0, []int64{8, 9}, "acme", 1, 0, 0, 10))
	late := append(items[:len(items):len(items)], as(meter.VerdictLate, request("c", 0, []int64{8, 9}, "acme", 1, 0, 0, 10)))
	r = mustCompare(t, ownSide("ledger", more), pricedSide("recompute", late, dearer, labQuantities), Options{})
	wantOutline(t, r, "acme 1 mismatched late requests=+1 q=[0 0 10] usd=0.000000006500 ids=[c] log=[requests/0@8 requests/0@9]",
		"acme 1 mismatched rate_revision requests=+0 q=[0 0 0] usd=-0.000000001000 ids=[] log=[]")

	// No price on the right.
	poor := labCard()
	poor.Rates = append(poor.Rates[:2:2], poor.Rates[3:]...)
	r = mustCompare(t, ownSide("ledger", items), pricedSide("recompute", items, poor, labQuantities), Options{})
	wantOutline(t, r, "acme 1 mismatched unpriced requests=+0 q=[0 0 0] usd=0.000000006000 ids=[] log=[]")

	// The right side knows that price from its list only, and it is another.
	listed := pricedSide("recompute", items, dearer, labQuantities)
	listed.Prices = NewPriceBook(poor, &meter.RateCard{Rates: []meter.Rate{rate("gpt", "completion_tokens", 650)}})
	r = mustCompare(t, ownSide("ledger", items), listed, Options{})
	wantOutline(t, r, "acme 1 mismatched list_price requests=+0 q=[0 0 0] usd=-0.000000000500 ids=[] log=[]")
}

// A side that never billed a sku wrote no rate of it down: a record of it is valued at the other's.
func TestRateOfNoCell(t *testing.T) {
	it := request("a", 0, []int64{0, 1}, "acme", 1, 100, 20, 10)
	l, r := ownSide("ledger", []meter.Item{as(meter.VerdictLate, it)}), ownSide("recompute", []meter.Item{it})
	l.Prices = NewUsedBook(nil)
	wantOutline(t, mustCompare(t, l, r, Options{}), "acme 1 missing late requests=-1 q=[-100 -20 -10] usd=-0.000000018300 ids=[a] log=[requests/0@0 requests/0@1]")
	l, r = ownSide("ledger", []meter.Item{as(meter.VerdictLate, it)}), ownSide("recompute", []meter.Item{it})
	l.Prices = NewUsedBook(nil)
	wantOutline(t, mustCompare(t, r, l, Options{}), "acme 1 extra late requests=+1 q=[100 20 10] usd=0.000000018300 ids=[a] log=[requests/0@0 requests/0@1]")
}

func TestLookup(t *testing.T) {
	at := func(pico, from int64) meter.Rate {
		return meter.Rate{SKU: "gpt", Quantity: "q", Pico: pico, EffectiveFrom: from}
	}
	b := NewPriceBook(&meter.RateCard{Rates: []meter.Rate{at(2, 200), at(1, 100)}}, &meter.RateCard{Rates: []meter.Rate{at(9, 0), at(8, 250)}})
	for start, want := range map[int64]UsedRate{99: {Rate: at(9, 0), Source: meter.PriceList}, 100: {Rate: at(1, 100), Source: meter.PriceTable}, 199: {Rate: at(1, 100), Source: meter.PriceTable},
		200: {Rate: at(2, 200), Source: meter.PriceTable}, 300: {Rate: at(2, 200), Source: meter.PriceTable}} {
		if got, ok := b.lookup("gpt", 0, "q", start, start+60_000); !ok || got != want {
			t.Errorf("%d: got %+v", start, got)
		}
	}
	if _, ok := b.lookup("gpt", 0, "q", -1, 60_000); ok {
		t.Error("a price before any is in force")
	}
	if _, ok := b.lookup("gpt", 1, "q", 300, 60_000); ok {
		t.Error("no falling back to another tier")
	}
}

// A price that was changed where the ledger keeps those it used moves no amount; it is found all the same.
func TestUsedBooksDisagree(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 100, 20, 10)}
	used := []UsedRate{{Rate: rate("gpt", "prompt_tokens", 150), Source: meter.PriceTable}}
	l, r := ownSide("ledger", items), ownSide("recompute", items)
	l.Kind = Ledger
	l.Prices = NewUsedBook([]UsedRate{{Rate: rate("gpt", "prompt_tokens", 151), Source: meter.PriceTable}})
	r.Prices = NewUsedBook(used)
	rep := mustCompare(t, l, r, Options{})
	if rep.Agree() || len(rep.Findings) != 1 || rep.Findings[0].Cause != RateRevision || !strings.Contains(rep.Findings[0].Text, "gpt") {
		t.Fatalf("%+v", rep.Findings)
	}
}

func TestSabotage(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 10, 2, 3), request("b", 0, []int64{2, 3}, "acme", 2, 5, 0, 1)}
	source := SliceItems(items, nil)
	sides := func() (*Side, *Side) {
		l, r := ownSide("ledger", items), ownSide("recompute", items)
		l.Items, r.Items = source, source
		return l, r
	}
	change := func(s *Side, f func(rows []meter.Row) []meter.Row) {
		s.Rows = SliceRows(f(labRows(items, labCard(), []string{"prompt_tokens", "cached_tokens", "completion_tokens"})))
	}
	t.Run("an amount", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { rows[1].Amount = rows[1].Amount.Add(meter.From64(1)); return rows })
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 2 mismatched unexplained requests=+0 q=[0 0 0] usd=0.000000000001 ids=[] log=[]")
	})
	t.Run("an amount without cells in the scan", func(t *testing.T) {
		l, r := sides()
		var cells []meter.Row
		change(l, func(rows []meter.Row) []meter.Row {
			cells = append(cells, rows...)
			rows[1].Amount = rows[1].Amount.Add(meter.From64(1))
			for i := range rows {
				rows[i].Cells = nil
			}
			return rows
		})
		l.Detail = func(_ context.Context, keys []meter.RowKey) ([]meter.Row, error) { return cells, nil }
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 2 mismatched unexplained requests=+0 q=[0 0 0] usd=0.000000000001 ids=[] log=[]")
		if why := rep.Differences[0].Shares[0].Why[0]; !strings.Contains(why, "ledger") {
			t.Error(why)
		}
	})
	t.Run("usage", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { rows[0].Usage.Requests++; rows[0].Cells = nil; return rows })
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 1 mismatched unexplained requests=+1 q=[0 0 0] usd=0.000000000000 ids=[] log=[]")
		why := strings.Join(rep.Differences[0].Shares[0].Why, "; ")
		if !strings.Contains(why, "ledger states 2 requests") || strings.Contains(why, "recompute states") {
			t.Error(why)
		}
	})
	t.Run("a row removed", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { return rows[1:] })
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 1 missing unexplained requests=-1 q=[-10 -2 -3] usd=-0.000000003030 ids=[] log=[]")
	})
	t.Run("set_hash", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { rows[0].Usage.SetHash++; rows[0].Cells = nil; return rows })
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 1 mismatched unexplained requests=+0 q=[0 0 0] usd=0.000000000000 ids=[] log=[]")
	})
	t.Run("a cell in both the row agrees with", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { rows[0].Cells[0].Requests++; return rows })
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 1 mismatched unexplained requests=+0 q=[0 0 0] usd=0.000000000000 ids=[] log=[]")
	})
	t.Run("a cell's sku, for one of equal price", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { rows[0].Cells[0].SKU = "gpt-twin"; return rows })
		rep := mustCompare(t, l, r, Options{})
		if len(rep.Differences) != 1 || rep.Agree() {
			t.Errorf("%v", outline(rep))
		}
	})
	t.Run("both sides wrong alike", func(t *testing.T) {
		l, r := sides()
		wrong := func(rows []meter.Row) []meter.Row { rows[1].Amount = meter.From64(5); return rows }
		change(l, wrong)
		change(r, wrong)
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 2 mismatched unexplained requests=+0 q=[0 0 0] usd=0.000000000000 ids=[] log=[]")
	})
	t.Run("a row that counts nothing is no row", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row {
			return append(rows, meter.Row{RowKey: meter.RowKey{Account: "zeta", WindowEnd: t0}, Revision: 3, Usage: meter.Usage{Quantities: []int64{0, 0, 0}}})
		})
		if rep := mustCompare(t, l, r, Options{}); !rep.Agree() || rep.Summary.Compared != 2 {
			t.Errorf("%v", outline(rep))
		}
	})
	t.Run("an archive file dropped", func(t *testing.T) {
		l, _ := sides()
		r := ownSide("recompute", items[:1])
		l.Items, r.Items = SliceItems(items[:1], nil), SliceItems(items[:1], nil) // the ledger's records come from the archive too
		r.MissingArchive = []Range{{Partition: 0, First: 2, Next: 5}}
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 2 extra missing_in_archive requests=+1 q=[5 0 1] usd=0.000000001350 ids=[] log=[requests/0@2-4]")
		if len(rep.Findings) != 1 || rep.Findings[0].Log[0] != "requests/0@2-4" {
			t.Errorf("%+v", rep.Findings)
		}
	})
	t.Run("an amount, and an archive file dropped: the file explains no money without usage", func(t *testing.T) {
		l, r := sides()
		change(l, func(rows []meter.Row) []meter.Row { rows[1].Amount = rows[1].Amount.Add(meter.From64(1)); return rows })
		r.MissingArchive = []Range{{Partition: 0, First: 9, Next: 10}}
		rep := mustCompare(t, l, r, Options{})
		wantOutline(t, rep, "acme 2 mismatched unexplained requests=+0 q=[0 0 0] usd=0.000000000001 ids=[] log=[]")
	})
	t.Run("an archive file of nothing dropped", func(t *testing.T) {
		l, r := sides()
		r.MissingArchive = []Range{{Partition: 0, First: 9, Next: 10}}
		if rep := mustCompare(t, l, r, Options{}); rep.Agree() || len(rep.Differences) != 0 {
			t.Errorf("%+v", rep)
		}
	})
	t.Run("amount wrapped", func(t *testing.T) {
		big := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 1_000_000_000_000, 0, 0)}
		dear := labCard()
		dear.Rates[0].Pico = 1_000_000_000_000
		l, r := pricedSide("ledger", big, dear, labQuantities), pricedSide("recompute", big, dear, labQuantities)
		if rep := mustCompare(t, l, r, Options{}); !rep.Agree() {
			t.Fatal("an overflowing row that is equal is equal")
		}
		l, r = pricedSide("ledger", big, dear, labQuantities), pricedSide("recompute", big, dear, labQuantities)
		rows := labRows(big, dear, []string{"prompt_tokens", "cached_tokens", "completion_tokens"})
		rows[0].Amount, rows[0].Cells = meter.From64(int64(rows[0].Amount.Lo)), nil
		l.Rows = SliceRows(rows)
		rep := mustCompare(t, l, r, Options{})
		if len(rep.Differences) != 1 || rep.Differences[0].Shares[0].Cause != Overflow || len(rep.Differences[0].Shares) != 1 {
			t.Fatalf("%v", outline(rep))
		}
	})
}

func TestLostRange(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 10, 2, 3), request("b", 0, []int64{7, 8}, "acme", 2, 5, 0, 1)}
	lossy := func() *Side {
		l := ownSide("ledger", items)
		rows := labRows(items, labCard(), []string{"prompt_tokens", "cached_tokens", "completion_tokens"})
		rows[1].State = meter.Incomplete
		l.Rows = SliceRows(rows)
		l.Lost = []Range{{Partition: 0, First: 3, Next: 6}}
		return l
	}
	rep := mustCompare(t, lossy(), ownSide("recompute", items), Options{})
	wantOutline(t, rep, "acme 2 incomplete lost_range requests=+0 q=[0 0 0] usd=0.000000000000 ids=[] log=[requests/0@3-5]")
	if rep.Agree() {
		t.Error("lost, and agreed")
	}
	if rep := mustCompare(t, lossy(), ownSide("recompute", items), Options{AllowLost: true}); !rep.Agree() || rep.Summary.Incomplete != 1 {
		t.Error("allowed, and not agreed")
	}
	// What the loss does not explain is not forgiven.
	late := []meter.Item{items[0], items[1], request("c", 0, []int64{9}, "acme", 2, 1, 0, 0)}
	l := lossy()
	l.Items = SliceItems([]meter.Item{items[0], items[1], as(meter.VerdictLate, late[2])}, nil)
	if rep := mustCompare(t, l, ownSide("recompute", late), Options{AllowLost: true}); rep.Agree() || rep.Differences[0].Shares[0].Cause != Late {
		t.Errorf("%v", outline(rep))
	}
}

func TestOpenAndRange(t *testing.T) {
	var items []meter.Item
	for w := int64(1); w <= 4; w++ {
		items = append(items, request("a", 0, []int64{w}, "acme", w, 1, 0, 0))
	}
	from, to := t0+minute, t0+4*minute
	opt := Options{From: &from, To: &to, Comparable: NewFinality(0, []Cut{{Offset: 5, Committed: 9, Watermark: t0 + 3*minute}}).Comparable}
	r := mustCompare(t, ownSide("ledger", items), ownSide("recompute", items[:1]), opt)
	// Window 1 is out of range, 4 is not final at the cut.
	if s := r.Summary; s.Compared != 2 || s.Open != 1 || s.Extra != 2 {
		t.Errorf("%+v", s)
	}
}

func TestFinality(t *testing.T) {
	f := NewFinality(2*minute, []Cut{{Partition: 0, Offset: 10, Committed: 10, Watermark: t0 + 5*minute}, {Partition: 1, Watermark: meter.MinusInfinity}})
	if !f.Comparable(t0 + 9*minute) {
		t.Error("all that was committed is in the cut")
	}
	if !f.Final(t0+3*minute) || f.Final(t0+3*minute+1) {
		t.Error("final at W >= end + L, exactly")
	}
	f = NewFinality(0, []Cut{{Offset: 9, Committed: 10, Watermark: t0}})
	if !f.Comparable(t0) || f.Comparable(t0+1) {
		t.Error("beyond the cut only final windows")
	}
}

func TestWindowEnd(t *testing.T) {
	for at, want := range map[int64]int64{0: 7, 6: 7, 7: 14, -1: 0, -7: 0, -8: -7} {
		if got := WindowEnd(at, 7); got != want {
			t.Errorf("%d: got %d, want %d", at, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0}, "acme", 1, 1, 0, 0), request("b", 0, []int64{1}, "acme", 2, 1, 0, 0)}
	l, r := ownSide("ledger", items), ownSide("recompute", items)
	r.WindowSize = 2 * minute
	if _, err := Compare(context.Background(), l, r, Options{}); err == nil || !strings.Contains(err.Error(), "windows") {
		t.Error(err)
	}
	l, r = ownSide("ledger", items), ownSide("recompute", items)
	rows := labRows(items, labCard(), []string{"prompt_tokens", "cached_tokens", "completion_tokens"})
	r.Rows = SliceRows([]meter.Row{rows[1], rows[0]})
	if _, err := Compare(context.Background(), l, r, Options{}); err == nil || !strings.Contains(err.Error(), "order") {
		t.Error(err)
	}
}

// The card was replaced while the log was counted: both revisions are in the books, and each cell tells which it used.
func TestTwoRevisions(t *testing.T) {
	old, now := labCard(), labCard()
	now.Rates[0].Pico, now.Rates[2].Pico, now.Revision = 170, 610, "r2"
	early, late := request("a", 0, []int64{0, 1}, "acme", 1, 100, 20, 10), as(meter.VerdictLate, request("b", 0, []int64{2, 3}, "acme", 1, 7, 0, 1))
	fresh := request("c", 0, []int64{4, 5}, "acme", 2, 50, 0, 5)
	names := []string{"prompt_tokens", "cached_tokens", "completion_tokens"}
	rows := func(first, second *meter.RateCard, items ...meter.Item) RowReader {
		return SliceRows(append(labRows(items[:len(items)-1], first, names), labRows(items[len(items)-1:], second, names)...))
	}
	var book []UsedRate
	for _, card := range []*meter.RateCard{now, old} {
		for _, r := range card.Rates {
			book = append(book, UsedRate{Rate: r, Source: meter.PriceTable})
		}
	}
	reversed := slices.Clone(book)
	slices.Reverse(reversed)
	counted := late
	counted.Verdict = meter.VerdictCounted
	l, r := ownSide("ledger", []meter.Item{early, late, fresh}), ownSide("recompute complete", []meter.Item{early, counted, fresh})
	l.Rows, r.Rows = rows(old, now, early, fresh), rows(old, now, early, counted, fresh)
	l.Prices, r.Prices = NewUsedBook(book), NewUsedBook(reversed)
	// By hand: 7 x 150 + 600, at the old prices, as the rest of that minute.
	wantOutline(t, mustCompare(t, l, r, Options{}), "acme 1 mismatched late requests=-1 q=[-7 0 -1] usd=-0.000000001650 ids=[b] log=[requests/0@2 requests/0@3]")

	// Nothing of that minute is on the right: its books do not say which revision it would have used, the left's cell does.
	l, r = ownSide("ledger", []meter.Item{early}), ownSide("recompute", []meter.Item{as(meter.VerdictFiltered, early)})
	l.Rows = SliceRows(labRows([]meter.Item{early}, old, names))
	l.Prices, r.Prices = NewUsedBook(book), NewUsedBook(reversed)
	wantOutline(t, mustCompare(t, l, r, Options{}), "acme 1 extra filtered requests=+1 q=[100 20 10] usd=0.000000018300 ids=[a] log=[requests/0@0 requests/0@1]")

	// The first revision had no price for completions, and the ledger's cell says so.
	poor := labCard()
	poor.Rates = append(poor.Rates[:2:2], poor.Rates[3:]...)
	unpriced := labRows([]meter.Item{early}, poor, names)
	unpriced[0].Cells[0].Unpriced = []string{"completion_tokens"}
	l, r = ownSide("ledger", []meter.Item{early}), ownSide("recompute", []meter.Item{early})
	l.Rows = SliceRows(unpriced)
	wantOutline(t, mustCompare(t, l, r, Options{}), "acme 1 mismatched unpriced requests=+0 q=[0 0 0] usd=-0.000000006000 ids=[] log=[]")

	// The recompute was asked for today's prices: the first minute differs by the revision, by 80 x 20 + 10 x 10.
	l, r = ownSide("ledger", []meter.Item{early, fresh}), ownSide("recompute", []meter.Item{early, fresh})
	l.Rows, r.Rows = rows(old, now, early, fresh), rows(now, now, early, fresh)
	l.Prices, r.Prices = NewUsedBook(book), NewPriceBook(now, nil)
	wantOutline(t, mustCompare(t, l, r, Options{}), "acme 1 mismatched rate_revision requests=+0 q=[0 0 0] usd=-0.000000001700 ids=[] log=[]")
}
