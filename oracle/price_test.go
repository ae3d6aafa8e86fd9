package oracle_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// TestPrice: quantities in, cached (part of in), out; Z = 60 ms; windows start at WindowEnd - 60.
func TestPrice(t *testing.T) {
	m := &meter.Meter{Window: meter.Window{Size: 60}, Event: meter.EventMap{TierOn: -1, Quantities: []meter.Quantity{
		{Name: "in", PartOf: -1}, {Name: "cached", PartOf: 0}, {Name: "out", PartOf: -1}}}}
	rate := func(sku string, tier int32, quantity string, pico, from int64) meter.Rate {
		return meter.Rate{SKU: sku, Tier: tier, Quantity: quantity, Pico: pico, EffectiveFrom: from}
	}
	card := &meter.RateCard{Rates: []meter.Rate{
		rate("a", 0, "in", 3, 0), rate("a", 0, "in", 5, 120), rate("a", 0, "cached", 1, 0), rate("a", 0, "out", 7, 0),
		rate("b", 0, "in", 2, 60), rate("c", 0, "in", 0, 0), rate("d", 1, "in", 9, 0), rate("huge", 0, "in", math.MaxInt64, 0), rate("neg", 0, "in", -2, 0)}}
	list := &meter.RateCard{Rates: []meter.Rate{
		rate("a", 0, "in", 100, 0), rate("b", 0, "in", 20, 0), rate("b", 0, "out", 30, 0), rate("x", 0, "in", 40, 60)}}
	for _, c := range []struct {
		why        string
		sku        string
		tier       int32
		end        int64
		quantities []int64
		noList     bool
		want       string // decimal pico-dollars
		source     string
		unpriced   string
	}{
		{"the whole less its parts", "a", 0, 60, []int64{10, 4, 1}, false, "29", "table", ""},
		{"the rate in force at the window's start", "a", 0, 120, []int64{1, 0, 0}, false, "3", "table", ""},
		{"from its own boundary on", "a", 0, 180, []int64{1, 0, 0}, false, "5", "table", ""},
		{"before 1970 too", "a", 0, 0, []int64{1, 0, 0}, false, "0", "unpriced", "in"},
		{"zero needs no rate", "x", 0, 60, []int64{0, 0, 0}, false, "0", "table", ""},
		{"the whole that is all parts needs none", "z", 0, 60, []int64{5, 5, 0}, false, "0", "unpriced", "cached"},
		{"no rate in force yet: the list's", "b", 0, 60, []int64{1, 0, 0}, false, "20", "list", ""},
		{"the table's before the list's", "b", 0, 120, []int64{1, 0, 0}, false, "2", "table", ""},
		{"one from each is mixed", "b", 0, 120, []int64{1, 0, 1}, false, "32", "mixed", ""},
		{"without a list: that quantity is unpriced, the rest billed", "b", 0, 120, []int64{1, 0, 1}, true, "2", "mixed", "out"},
		{"the list's has its time too", "x", 0, 60, []int64{1, 0, 0}, false, "0", "unpriced", "in"},
		{"unpriced names are sorted", "z", 0, 60, []int64{7, 1, 1}, false, "0", "unpriced", "cached in out"},
		{"a price of zero is a price", "c", 0, 60, []int64{9, 0, 0}, false, "0", "table", ""},
		{"no falling back to another tier", "d", 0, 60, []int64{1, 0, 0}, false, "0", "unpriced", "in"},
		{"its own tier", "d", 1, 60, []int64{1, 0, 0}, false, "9", "table", ""},
		{"no sku: all is unpriced", "", 0, 60, []int64{0, 0, 3}, false, "0", "unpriced", "out"},
		{"beyond 64 bits", "huge", 0, 60, []int64{1_000_000_000_000, 0, 0}, false, "9223372036854775807000000000000", "table", ""},
		{"below zero", "neg", 0, 60, []int64{3, 0, 0}, false, "-6", "table", ""},
	} {
		l := list
		if c.noList {
			l = nil
		}
		cell := meter.Cell{CellKey: meter.CellKey{Account: "acme", WindowEnd: c.end, SKU: c.sku, Tier: c.tier}, Usage: meter.Usage{Requests: 1, Quantities: c.quantities}}
		got, err := oracle.Price(m, card, l, cell)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if got.Amount.String() != c.want || got.Source != c.source || !slices.Equal(got.Unpriced, strings.Fields(c.unpriced)) {
			t.Errorf("%s: got %s %s %v, want %s %s [%s]", c.why, got.Amount, got.Source, got.Unpriced, c.want, c.source, c.unpriced)
		}
	}
}

// TestOverflow: an amount beyond int64 is exact; a sum of quantities beyond int64 stops the judge (R9).
func TestOverflow(t *testing.T) {
	m := &meter.Meter{Kind: meter.Events, Window: meter.Window{Size: 60}, Event: meter.EventMap{TierOn: -1, TimeUnit: meter.UnitMs, MaxBytes: 1000,
		Account: meter.Source{Const: "acme", IsConst: true}, SKU: meter.Source{Const: "s", IsConst: true}, Time: meter.FieldPath{"t"},
		Quantities: []meter.Quantity{{Name: "n", IsConst: true, Const: math.MaxInt64/2 + 1, PartOf: -1}}}}
	card := &meter.RateCard{Rates: []meter.Rate{{SKU: "s", Quantity: "n", Pico: 10}}}
	log := &meter.Log{Steps: []meter.LogStep{{Record: meter.Record{Offset: 0, Value: []byte(`{"t":1}`)}}}}
	r, err := oracle.AsStreamed(m, card, nil, log, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Bill[0].Amount.String(); got != "46116860184273879040" {
		t.Errorf("got %s pico-dollars", got)
	}
	log.Steps = append(log.Steps, meter.LogStep{Record: meter.Record{Offset: 1, Value: []byte(`{"t":1}`)}})
	if _, err = oracle.AsStreamed(m, card, nil, log, true); err == nil || !strings.Contains(err.Error(), "R9") {
		t.Errorf("a sum beyond int64: %v", err)
	}
	log.Steps[1].Record.Offset = 0
	if _, err = oracle.AsStreamed(m, card, nil, log, true); err == nil || !strings.Contains(err.Error(), "R1") {
		t.Errorf("an offset twice: %v", err)
	}
}
