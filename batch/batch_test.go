package batch_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// tokens is a meter with cached tokens as a part of prompt tokens.
func tokens() *meter.Meter {
	return &meter.Meter{Kind: meter.Requests, Window: meter.Window{Size: 60_000, AllowedLateness: 120_000}, AbandonAfter: 300_000,
		Watermark: meter.Watermark{MaxOutOfOrderness: 20_000},
		Event: meter.EventMap{TierOn: -1, Identity: []meter.FieldPath{{"id"}}, Quantities: []meter.Quantity{
			{Name: "prompt", PartOf: -1}, {Name: "cached", PartOf: 0}, {Name: "completion", PartOf: -1, OnEnd: true}}}}
}

// TestCachedTokensOnce (K1.1): 1000 prompt tokens of which 900 cached, 10 completion tokens, at 3, 0.3 and 15 micro-dollars: 300 + 270 + 150.
func TestCachedTokensOnce(t *testing.T) {
	card := &meter.RateCard{Rates: []meter.Rate{
		{SKU: "m", Quantity: "prompt", Pico: 3_000_000}, {SKU: "m", Quantity: "cached", Pico: 300_000}, {SKU: "m", Quantity: "completion", Pico: 15_000_000}}}
	p, err := batch.NewPricer(tokens(), card, nil).Price(&meter.Cell{CellKey: meter.CellKey{SKU: "m", WindowEnd: 60_000}, Usage: meter.Usage{Quantities: []int64{1000, 900, 10}}})
	if err != nil || p.Amount.USD() != "0.000720000000" || p.Source != meter.PriceTable {
		t.Errorf("%s %s %v", p.Amount.USD(), p.Source, err)
	}
}

// TestPriceEqualsOracle (R10): any cell, any card, any list.
func TestPriceEqualsOracle(t *testing.T) {
	m := tokens()
	rates := func(t *rapid.T, name string) *meter.RateCard {
		if rapid.IntRange(0, 4).Draw(t, name) == 0 {
			return nil
		}
		card := &meter.RateCard{}
		seen := map[meter.Rate]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "rates") {
			r := meter.Rate{SKU: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "sku"), Tier: rapid.Int32Range(0, 1).Draw(t, "tier"),
				Quantity:      rapid.SampledFrom(m.QuantityNames()).Draw(t, "quantity"),
				EffectiveFrom: 60_000 * rapid.Int64Range(-2, 2).Draw(t, "from")}
			if !seen[r] { // R10: no two for one subject and time
				seen[r] = true
				r.Pico = rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1<<62)).Draw(t, "pico")
				card.Rates = append(card.Rates, r)
			}
		}
		return card
	}
	rapid.Check(t, func(t *rapid.T) {
		card, list := rates(t, "card"), rates(t, "list")
		pricer := batch.NewPricer(m, card, list)
		for range 5 {
			cached := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<61)).Draw(t, "cached")
			c := meter.Cell{CellKey: meter.CellKey{SKU: rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "sku"), Tier: rapid.Int32Range(0, 1).Draw(t, "tier"),
				WindowEnd: 60_000 * rapid.Int64Range(-3, 4).Draw(t, "end")},
				Usage: meter.Usage{Quantities: []int64{cached + rapid.Int64Range(0, 1<<61).Draw(t, "rest"), cached, rapid.Int64Range(0, 1<<62).Draw(t, "completion")}}}
			want, wantErr := oracle.Price(m, card, list, c)
			got, err := pricer.Price(&c)
			if (err == nil) != (wantErr == nil) && wantErr == nil {
				t.Fatalf("%+v: %v, the oracle has none", c, err)
			}
			if wantErr == nil && (got.Amount != want.Amount || got.Source != want.Source || strings.Join(got.Unpriced, " ") != strings.Join(want.Unpriced, " ")) {
				t.Fatalf("%+v: %+v, the oracle says %+v", c, got, want)
			}
		}
	})
}

// TestAmountsBeyond128Bits: an error, never a wrapped amount.
func TestAmountsBeyond128Bits(t *testing.T) {
	card := &meter.RateCard{Rates: []meter.Rate{{SKU: "m", Quantity: "prompt", Pico: 1<<63 - 1}, {SKU: "m", Quantity: "completion", Pico: 1<<63 - 1}}}
	pricer := batch.NewPricer(tokens(), card, nil)
	cell := meter.PricedCell{Cell: meter.Cell{CellKey: meter.CellKey{SKU: "m", WindowEnd: 60_000}, Usage: meter.Usage{Requests: 1, Quantities: []int64{1<<63 - 1, 0, 1<<63 - 1}}}}
	if p, err := pricer.Price(&cell.Cell); err != nil || p.Amount.Sign() < 0 || !p.Overflow() {
		t.Errorf("two times 2^126: %s, %v", p.Amount, err)
	}
	cell.Quantities = []int64{1<<63 - 1, 0, 0}
	if _, err := pricer.Row(meter.RowKey{}, []meter.PricedCell{cell, cell, cell}); err == nil {
		t.Error("a row of 3 * 2^126 pico-dollars, and 3 * 2^63 tokens, is no error")
	}
}

// TestPrune: by hand. A window that ends after from begins at the boundary before it, also below 1970.
func TestPrune(t *testing.T) {
	m := tokens()
	at := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		from, to       *int64
		minTime, reach int64
	}{
		{nil, nil, meter.MinusInfinity, meter.PlusInfinity},
		{at(600_000), at(720_000), 300_000, 860_000},
		{at(600_001), nil, 300_000, meter.PlusInfinity},
		{at(-1), at(-1), -60_000 - 300_000, 139_999},
	} {
		if minTime, reach := batch.Prune(m, c.from, c.to); minTime != c.minTime || reach != c.reach {
			t.Errorf("%v %v: %d %d, want %d %d", c.from, c.to, minTime, reach, c.minTime, c.reach)
		}
	}
}

// TestTextsHoldOnlyWhatTheyMay: the statements are portable: none of the constructs that DuckDB, Spark and Trino read differently.
func TestTextsHoldOnlyWhatTheyMay(t *testing.T) {
	for _, kind := range []meter.MeterKind{meter.Requests, meter.Events} {
		for _, truth := range []batch.Truth{batch.AsStreamed, batch.Complete} {
			m := tokens()
			m.Kind = kind
			text, err := batch.ItemTexts(&batch.Job{Meter: m, Truth: truth, Parts: []batch.Part{batch.Whole(0, true)}}, batch.ItemFilter{Progress: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{text.Tally, text.Last, text.Cells, text.Items} {
				for line := range strings.Lines(statement) {
					code, _, _ := strings.Cut(line, "--")
					for _, word := range []string{"//", "::", "QUALIFY", "GROUP BY ALL", "arg_min", "USING", "[", "{", "\\", "FILTER (", " / 6", "unnest", "list("} {
						if strings.Contains(code, word) {
							t.Errorf("%s %s: %q is not portable: %s", kind, truth, word, strings.TrimSpace(line))
						}
					}
				}
			}
		}
	}
}
