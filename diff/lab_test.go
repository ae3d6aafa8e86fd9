package diff

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// The lab makes sides from items: rows are the sums of what the items say is counted, priced by a book. It states the
// sums and prices in its own way, so that a fault in the package's does not hide.

const (
	minute = int64(60_000)
	t0     = int64(1_767_225_600_000) // 2026-01-01T00:00:00Z
)

var labQuantities = []meter.Quantity{
	{Name: "prompt_tokens", PartOf: -1},
	{Name: "cached_tokens", PartOf: 0},
	{Name: "completion_tokens", PartOf: -1, OnEnd: true},
}

func rate(sku, quantity string, pico int64) meter.Rate {
	return meter.Rate{SKU: sku, Quantity: quantity, Pico: pico, EffectiveFrom: t0 - 60*minute}
}

func labCard() *meter.RateCard {
	return &meter.RateCard{Revision: "r1", Rates: []meter.Rate{
		rate("gpt", "prompt_tokens", 150), rate("gpt", "cached_tokens", 15), rate("gpt", "completion_tokens", 600),
		rate("mini", "prompt_tokens", 7), rate("mini", "cached_tokens", 1), rate("mini", "completion_tokens", 31),
		rate("tap", "taps", 10_000_000_000),
	}}
}

// labPrice is the cost of whole quantities, by hand: cached tokens are taken out of the prompt.
func labPrice(card *meter.RateCard, sku string, names []string, q []int64) meter.Int128 {
	pico := func(name string) int64 {
		for _, r := range card.Rates {
			if r.SKU == sku && r.Quantity == name {
				return r.Pico
			}
		}
		return 0
	}
	var sum meter.Int128
	for i, n := range names {
		billed := q[i]
		if n == "prompt_tokens" {
			billed -= q[slices.Index(names, "cached_tokens")]
		}
		sum = sum.Add(meter.Mul64(billed, pico(n)))
	}
	return sum
}

// labRows sums items into rows with cells.
func labRows(items []meter.Item, card *meter.RateCard, names []string) []meter.Row {
	cells := map[meter.CellKey]*meter.Cell{}
	for _, it := range items {
		if it.Verdict != meter.VerdictCounted {
			continue
		}
		k := meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}
		if cells[k] == nil {
			cells[k] = &meter.Cell{CellKey: k}
		}
		u, err := cells[k].Plus(it.Usage)
		if err != nil {
			panic(err)
		}
		cells[k].Usage = u
	}
	rows := map[meter.RowKey]*meter.Row{}
	for _, k := range slices.SortedFunc(maps.Keys(cells), meter.CellKey.Compare) {
		r := rows[k.Row()]
		if r == nil {
			r = &meter.Row{RowKey: k.Row(), State: meter.Final}
			rows[k.Row()] = r
		}
		cost := labPrice(card, k.SKU, names, cells[k].Quantities)
		r.Cells = append(r.Cells, meter.PricedCell{Cell: *cells[k], Priced: meter.Priced{Amount: cost, Source: meter.PriceTable}})
		r.Amount = r.Amount.Add(cost)
		r.Usage, _ = r.Usage.Plus(cells[k].Usage)
	}
	var out []meter.Row
	for _, k := range slices.SortedFunc(maps.Keys(rows), meter.RowKey.Compare) {
		out = append(out, *rows[k])
	}
	return out
}

// ownSide is a side of ours with these records.
func ownSide(name string, items []meter.Item, dead ...Dead) *Side {
	return pricedSide(name, items, labCard(), labQuantities, dead...)
}

func pricedSide(name string, items []meter.Item, card *meter.RateCard, quantities []meter.Quantity, dead ...Dead) *Side {
	var names []string
	for _, q := range quantities {
		names = append(names, q.Name)
	}
	return &Side{Name: name, Kind: Recompute, Fingerprint: "f", RateRevision: card.Revision, Topic: "requests", WindowSize: minute,
		Quantities: quantities, Identity: "id", Columns: AllColumns, Rows: SliceRows(labRows(items, card, names)),
		Items: SliceItems(items, dead), Prices: NewPriceBook(card, nil)}
}

// request is a counted request.
func request(id string, partition int32, offsets []int64, account string, window int64, q ...int64) meter.Item {
	end := t0 + window*minute
	return meter.Item{Verdict: meter.VerdictCounted, Partition: partition, Offsets: offsets, ID: meter.NewID(id),
		Reference: meter.NewID(id), Kind: meter.KindComplete, Account: account, SKU: "gpt", Time: end - 1, WindowEnd: end,
		Status: "ok", Usage: meter.Usage{Requests: 1, Quantities: q, SetHash: meter.NewID(id).Hash64()}}
}

// as gives an item another verdict.
func as(v meter.Verdict, it meter.Item) meter.Item {
	it.Verdict = v
	return it
}

func mustCompare(t testing.TB, l, r *Side, opt Options) *Report {
	t.Helper()
	rep, err := Compare(context.Background(), l, r, opt)
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, rep)
	return rep
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// checkSums holds a report to its promise: shares sum to deltas, row by row and in the summary, and the counts add up.
func checkSums(t fataler, r *Report) {
	t.Helper()
	s := &r.Summary
	if got := s.Matched + s.Mismatched + s.Missing + s.Extra + s.Incomplete; got != s.Compared {
		t.Fatalf("compared %d, states sum to %d", s.Compared, got)
	}
	zero := Value{Quantities: make([]int64, len(r.Quantities))}
	total := zero
	for _, d := range r.Differences {
		sum := zero
		for _, share := range d.Shares {
			sum = sum.plus(share.Value)
			if share.Cause == Unexplained && len(share.Why) == 0 {
				t.Fatalf("%v: unexplained without a word", d.RowKey)
			}
		}
		if len(d.Shares) == 0 {
			t.Fatalf("%v: a difference without a cause", d.RowKey)
		}
		if !sum.equal(d.Delta) {
			t.Fatalf("%v: shares sum to %v, delta is %v", d.RowKey, sum, d.Delta)
		}
		total = total.plus(d.Delta)
	}
	if !total.equal(s.Delta) {
		t.Fatalf("deltas sum to %v, summary says %v", total, s.Delta)
	}
	causes := zero
	for _, share := range s.Causes {
		causes = causes.plus(share.Value)
	}
	if !causes.equal(s.Delta) {
		t.Fatalf("causes sum to %v, summary says %v", causes, s.Delta)
	}
}

// outline is a report in words: one line per share.
func outline(r *Report) []string {
	var lines []string
	for _, d := range r.Differences {
		for _, s := range d.Shares {
			var ids []string
			for _, id := range s.IDs {
				ids = append(ids, refText(id))
			}
			lines = append(lines, fmt.Sprintf("%s %d %s %s requests=%+d q=%v usd=%s ids=%v log=%v", d.Account, (d.WindowEnd-t0)/minute,
				d.State, s.Cause, s.Requests, s.Quantities, s.Pico.USD(), ids, s.Log))
		}
	}
	return lines
}

func wantOutline(t *testing.T, r *Report, want ...string) {
	t.Helper()
	got := outline(r)
	if !slices.Equal(got, want) {
		t.Errorf("got:")
		for _, l := range got {
			t.Errorf("  %s", l)
		}
		t.Errorf("want:")
		for _, l := range want {
			t.Errorf("  %s", l)
		}
		for _, d := range r.Differences {
			for _, s := range d.Shares {
				if len(s.Why) > 0 {
					t.Logf("%s: %v", s.Cause, s.Why)
				}
			}
		}
	}
}
