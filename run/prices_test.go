//go:build unix

package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
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

// newCard is a card that differs, and its text.
func newCard(t *testing.T, m *meter.Meter, usd string) (*meter.RateCard, []byte) {
	t.Helper()
	text := []byte(strings.Replace(smallRates, `"0.01"`, `"`+usd+`"`, 1))
	card, err := pricing.Parse(m, "rates.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return card, text
}

// idleLog is a log of two partitions of which the second is idle, while the first goes on for so many minutes.
func idleLog(minutes int) string {
	b := strings.Builder{}
	b.WriteString(`{"trace":1,"topic":"taps","partitions":[0,1]}` + "\n" + `{"idle":[1]}` + "\n")
	for i := range minutes {
		at := 1767225600 + 60*i
		fmt.Fprintf(&b, `{"partition":0,"offset":%d,"log_time":%d,"value":{"id":"a%d","a":"k","t":%d}}`+"\n", i, at*1000, i, at)
	}
	return b.String()
}

// wakes is a record of the second partition for the log's first minute.
func wakes(offset int) string {
	return fmt.Sprintf(`{"partition":1,"offset":%d,"log_time":1767225601000,"value":{"id":"b%d","a":"k","t":1767225601}}`+"\n", offset, offset)
}

// TestLateAfterNewCard: what reaches a final window after a new card has come is priced by the card that made the window
// final; rows, journal, what the archive keeps and a restart after a kill agree on it (R10).
func TestLateAfterNewCard(t *testing.T) {
	for _, killed := range []string{"", "archive:after:rename", "ledger:before:commit", "ledger:after:commit"} {
		s := newSite(t, newCase(t, idleLog(10), "no-drain"))
		s.run(t, noDrain)
		dearer, text := newCard(t, s.Meter, "0.02")
		change := func(c *Config) { c.Card, c.CardText = dearer, text }
		s.write(t, idleLog(10)+wakes(0)+wakes(1)+`{"idle":[1]}`+"\n")
		if killed != "" {
			c := s.config(func(point string) error {
				if point == killed {
					return errors.New("killed")
				}
				return nil
			})
			change(c)
			if _, err := run(context.Background(), c, func() bool { return true }); err == nil {
				t.Fatalf("%s was not met", killed)
			}
		}
		s.run(t, change)
		want := meter.PriceUses{{Card: s.Card.Revision, From: meter.MinusInfinity}, {Card: dearer.Revision, From: 1767225600000 + 9*60_000 - 5_000 - 60_000}}
		s.wantPrices(t, want, map[string]int64{s.Card.Revision: 10_000_000_000, dearer.Revision: 20_000_000_000})
		journal, err := s.reader(t).Journal(context.Background(), sqlite.Range{})
		if err != nil {
			t.Fatal(err)
		}
		adjusted := 0
		for _, f := range journal {
			if f.Kind != meter.AdjustmentFiring {
				continue
			}
			adjusted++
			if f.Card != s.Card.Revision || f.DeltaPico != meter.From64(10_000_000_000*f.Delta.Requests) {
				t.Errorf("%s: an adjustment of %d requests by %s, by card %s", killed, f.Delta.Requests, f.DeltaPico.USD(), f.Card)
			}
		}
		if adjusted == 0 {
			t.Error("nothing was adjusted")
		}
	}
}

// wantPrices checks that ledger and archive say the same of which card priced what, and that each row has its card's price.
func (s *site) wantPrices(t *testing.T, want meter.PriceUses, pico map[string]int64) {
	t.Helper()
	written, err := archive.NewMeta(s.archive()).Prices()
	if err != nil || !slices.Equal(meter.InForce(written), want) {
		t.Errorf("the archive's prices come to %+v (%v), want %+v", meter.InForce(written), err, want)
	}
	r := s.reader(t)
	text, err := r.Driver(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if state, err := ParseState(text); err != nil || !slices.Equal(state.Prices, want) {
		t.Errorf("the ledger's prices are %+v (%v), want %+v", state.Prices, err, want)
	}
	rows, err := r.Stored(context.Background(), sqlite.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		row := &rows[i]
		card := want.At(row.WindowEnd).Card
		if total := meter.Mul64(pico[card], row.Usage.Requests); row.Total() != total || row.Card != card {
			t.Errorf("%v (%s): %s by card %.8s, want %s by %.8s", row.RowKey, row.State, row.Total().USD(), row.Card, total.USD(), card)
		}
	}
}

// TestCardToAndFro: cards that come and go, other ledgers over the same archive, a log that has nothing new or is drained:
// ledger and archive agree, and nothing that is final is priced again.
func TestCardToAndFro(t *testing.T) {
	s := newSite(t, newCase(t, idleLog(20), ""))
	cheap, cheapText := newCard(t, s.Meter, "0.001")
	dear, dearText := newCard(t, s.Meter, "0.02")
	pico := map[string]int64{s.Card.Revision: 10_000_000_000, cheap.Revision: 1_000_000_000, dear.Revision: 20_000_000_000}
	with := func(card *meter.RateCard, text []byte) func(*Config) {
		return func(c *Config) { c.Card, c.CardText, c.Drain = card, text, false }
	}
	from := func(minutes int64) int64 { return 1767225600000 + (minutes-1)*60_000 - 65_000 }
	first := meter.PriceUse{Card: s.Card.Revision, From: meter.MinusInfinity}

	s.write(t, idleLog(5))
	s.run(t, noDrain)
	out := s.run(t, with(dear, dearText)) // nothing new: what is open has new prices at once
	if out.Repriced == nil || out.Repriced.Nothing || out.Repriced.Now.From != from(5) {
		t.Errorf("a new card: %+v", out.Repriced)
	}
	s.wantPrices(t, meter.PriceUses{first, {Card: dear.Revision, From: from(5)}}, pico)
	s.run(t, with(cheap, cheapText)) // the dear one made nothing final
	s.wantPrices(t, meter.PriceUses{first, {Card: cheap.Revision, From: from(5)}}, pico)
	s.run(t, noDrain)
	s.wantPrices(t, meter.PriceUses{first}, pico)

	s.run(t, with(dear, dearText))
	s.run(t, func(c *Config) { with(cheap, cheapText)(c); s.ledgerAt("other.db")(c) })
	s.write(t, idleLog(12))
	s.run(t, with(dear, dearText)) // takes back what the other ledger wrote
	s.wantPrices(t, meter.PriceUses{first, {Card: dear.Revision, From: from(5)}}, pico)
	s.write(t, idleLog(20))
	s.run(t, func(c *Config) { c.Card, c.CardText = cheap, cheapText })
	all := meter.PriceUses{first, {Card: dear.Revision, From: from(5)}, {Card: cheap.Revision, From: from(12)}}
	s.wantPrices(t, all, pico)

	before := s.files(t)
	out = s.run(t, func(c *Config) { c.Card, c.CardText = dear, dearText })
	if out.Repriced == nil || !out.Repriced.Nothing || !out.Finished {
		t.Errorf("a new card on a drained log: %+v", out)
	}
	s.wantPrices(t, all, pico)
	if !maps.Equal(before, s.files(t)) {
		t.Error("a run that had nothing to do has changed the archive")
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
	log := newPriceLog(m, meter.PriceUses{{Card: card.Revision, List: list.Revision, From: meter.MinusInfinity}},
		map[string]*meter.RateCard{card.Revision: card, list.Revision: list})
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
