//go:build unix

package run

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
	"github.com/gatewaymeter/gatewaymeter/stream"
)

// TestNewCard: a card with other prices that comes between two runs prices the windows that were not final then; the
// others stay, and ledger and archive say which revision priced what (R10).
func TestNewCard(t *testing.T) {
	s := newSite(t, small(t))
	s.write(t, smallLog(0, 60))
	s.run(t, noDrain)
	text := strings.Replace(smallRates, `"0.01"`, `"0.02"`, 1)
	dearer, err := pricing.Parse(s.Meter, "rates.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, smallLog(0, 120))
	s.run(t, func(c *Config) { c.Card, c.CardText = dearer, []byte(text) })

	uses, err := archive.NewMeta(s.archive()).Prices()
	if err != nil || len(uses) != 2 || uses[0].Card != s.Card.Revision || uses[1].Card != dearer.Revision || uses[0].From != meter.MinusInfinity {
		t.Fatalf("the archive's prices: %+v %v", uses, err)
	}
	r := s.reader(t)
	rows, err := r.Stored(context.Background(), sqlite.Range{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i := range rows {
		row := &rows[i]
		price, card := int64(10_000_000_000), s.Card.Revision
		if row.WindowEnd > uses[1].From {
			price, card = 20_000_000_000, dearer.Revision
		}
		seen[card]++
		if want := meter.Mul64(price, row.Usage.Requests); row.Total() != want || row.Card != card {
			t.Errorf("%v: %s by card %s, want %s by %s", row.RowKey, row.Total().USD(), row.Card, want.USD(), card)
		}
	}
	if len(seen) != 2 {
		t.Errorf("rows by card: %v", seen)
	}
	used, err := r.PricesUsed(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var revisions []string
	for _, p := range used {
		revisions = append(revisions, p.Revision)
	}
	slices.Sort(revisions)
	if want := []string{s.Card.Revision, dearer.Revision}; !slices.Equal(revisions, slices.Sorted(slices.Values(want))) {
		t.Errorf("prices used: %+v", used)
	}
}

// TestPriceLog: each rate that a cell was priced with is noted once, from the card or the list, a part's and its whole's apart.
func TestPriceLog(t *testing.T) {
	m, err := meter.Parse("m.yaml", []byte(gatewayMeter))
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) *meter.RateCard {
		t.Helper()
		card, err := pricing.Parse(m, "rates.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return card
	}
	row := func(quantity, usd, from string) string {
		return "  - {sku: x, tier: 0, quantity: " + quantity + `, usd: "` + usd + `", per: 1000, effective_from: ` + from + "}\n"
	}
	card := parse("rates:\n" + row("prompt_tokens", "1", "2026-01-01T00:00:00Z") + row("prompt_tokens", "2", "2026-01-01T00:01:00Z") + row("completion_tokens", "7", "2026-01-01T00:05:00Z"))
	list := parse("rates:\n" + row("cached_tokens", "3", "2026-01-01T00:00:00Z") + row("prompt_tokens", "9", "2026-01-01T00:00:00Z"))
	log := newPriceLog(&Config{Meter: m, Card: card, List: list}, stream.NewPricer(m, card, list))
	cell := func(window int64, quantities ...int64) *meter.Cell {
		return &meter.Cell{CellKey: meter.CellKey{SKU: "x", WindowEnd: 1767225660000 + 60_000*window}, Usage: meter.Usage{Quantities: quantities}}
	}
	for _, c := range []*meter.Cell{cell(0, 5, 0, 0), cell(0, 5, 4, 1), cell(1, 5, 0, 0), cell(1, 5, 0, 0), cell(0, 9, 9, 9)} {
		if err := log.note(c); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, p := range log.take() {
		got = append(got, strings.Join([]string{p.Quantity, p.Source, meter.Pico(p.Pico).USD()}, " "))
	}
	want := []string{"prompt_tokens table 0.001000000000", "cached_tokens list 0.003000000000", "prompt_tokens table 0.002000000000"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := log.take(); again != nil {
		t.Errorf("taken twice: %v", again)
	}
}
