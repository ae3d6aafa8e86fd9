package pricing

import (
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

var minute = &meter.Meter{Window: meter.Window{Size: 60_000}, Event: meter.EventMap{Quantities: []meter.Quantity{{Name: "tokens"}}}}

func TestParse(t *testing.T) {
	card, err := Parse(minute, "r.yaml", []byte(`rates:
  - {sku: b, quantity: tokens, usd: "0.15", per: 1000000, effective_from: 2026-01-02}
  - {sku: b, quantity: tokens, usd: 15, per: 1000, effective_from: 2026-01-01T00:00:00Z}
  - {sku: a, tier: 1, quantity: tokens, usd: "0.000000000001", per: 1, effective_from: 2026-01-01T00:01:00+00:00}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(card.Rates) != 3 || card.Rates[0].Pico != 1 || card.Rates[0].Tier != 1 || card.Rates[1].Pico != 15_000_000_000 || card.Rates[2].Pico != 150_000 {
		t.Errorf("got %+v", card.Rates)
	}
	same, err := Parse(minute, "other.yaml", []byte(`# a comment and another order change nothing
rates:
  - {sku: a, tier: 1, quantity: tokens, usd: "0.000000000001", per: 1, effective_from: 2026-01-01T00:01:00Z}
  - {sku: b, quantity: tokens, usd: "15", per: 1000, effective_from: 2026-01-01}
  - {sku: b, quantity: tokens, usd: "0.15", per: 1000000, effective_from: 2026-01-02}
`))
	if err != nil || same.Revision != card.Revision {
		t.Errorf("revision %v and %v, %v", same, card.Revision, err)
	}
}

// One broken row refuses the whole card, and every fault is named (K2.3).
func TestRefused(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{`{sku: a, quantity: tokens, usd: "0.071", effective_from: 2026-01-01}`, `r.yaml:3: rates: "per" is missing`},
		{`{sku: a, quantity: tokens, usd: "-1", per: 1, effective_from: 2026-01-01}`, "is negative"},
		{`{sku: a, quantity: tokens, usd: "1", per: 1, effective_from: 2026-01-01T00:00:00.0000001Z}`, "is finer than a millisecond"},
		{`{sku: a, quantity: tokens, usd: "0.0000001", per: 1000000, effective_from: 2026-01-01}`, "finer than a pico-dollar"},
		{`{sku: a, quantity: tokens, usd: "1e-7", per: 1, effective_from: 2026-01-01}`, "not an amount"},
		{`{sku: a, quantity: tokens, usd: "1", per: 1, effective_from: 2026-01-01T00:00:30Z}`, "no start of a window"},
		{`{sku: ok, quantity: tokens, usd: "2", per: 1, effective_from: 2026-01-01}`, "already given for the same time on line 2"},
		{`{sku: a, quantity: tokens, usd: "1", per: 7, effective_from: 2026-01-01}`, "none of 1, 1000, 1000000"},
		{`{sku: a, tier: -1, quantity: tokens, usd: "1", per: 1, effective_from: 2026-01-01}`, "rates.tier"},
		{`{quantity: tokens, usd: "1", per: 1, effective_from: 2026-01-01}`, `"sku" is missing`},
		{`7`, "want a mapping"},
	} {
		_, err := Parse(minute, "r.yaml", []byte("rates:\n  - {sku: ok, quantity: tokens, usd: \"1\", per: 1, effective_from: 2026-01-01}\n  - "+c.row+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.row, err, c.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	card, err := Parse(minute, "r.yaml", []byte("rates:\n  - {sku: a, tier: 2, quantity: tokns, usd: \"1\", per: 1, effective_from: 2026-01-01}\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(Warnings(minute, &Card{RateCard: card, Path: "r.yaml"}), "\n")
	for _, want := range []string{"no such quantity", "no such tier", `sku "a" has no rate for tokens in tier 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings lack %q:\n%s", want, text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("rates:\n  - {sku: a, quantity: tokens, usd: \"0.15\", per: 1000000, effective_from: 2026-01-01}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		card, err := Parse(minute, "r.yaml", text)
		if (card == nil) == (err == nil) {
			t.Fatalf("card %v, error %v", card, err)
		}
		if err != nil {
			return
		}
		for _, r := range card.Rates {
			if r.Pico < 0 || r.EffectiveFrom%60_000 != 0 || r.SKU == "" || r.Quantity == "" {
				t.Errorf("accepted %+v", r)
			}
		}
	})
}
