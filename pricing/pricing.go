// Package pricing reads rate cards into nouns (R10). Which rate is in force for a cell is a rule, and each
// engine states it by itself.
package pricing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Card is a rate card with the text it was read from, which archives keep beside its revision.
type Card struct {
	*meter.RateCard
	Path string
	Text []byte
}

// Load reads the meter's rate card and, where it names one, its list card (nil without).
func Load(m *meter.Meter) (card, list *Card, err error) {
	if card, err = LoadFile(m, m.Pricing.RateCard); err != nil {
		return nil, nil, named("pricing.rate_card", err)
	}
	if m.Pricing.List == "" {
		return card, nil, nil
	}
	list, err = LoadFile(m, m.Pricing.List)
	return card, list, named("pricing.list", err)
}

// named says which key names a file that cannot be read; faults name their file and line themselves.
func named(key string, err error) error {
	var faults meter.Faults
	if err == nil || errors.As(err, &faults) {
		return err
	}
	return fmt.Errorf("the meter's %s: %w", key, err)
}

// LoadFile reads one card; a relative path is relative to the meter file.
func LoadFile(m *meter.Meter, path string) (*Card, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(m.Path), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("pricing: %w", err)
	}
	card, err := Parse(m, path, text)
	if err != nil {
		return nil, err
	}
	return &Card{RateCard: card, Path: path, Text: text}, nil
}

// Parse checks a card whole: one fault refuses it, and all faults are reported at once. The meter gives the
// window size that effective_from has to meet.
func Parse(m *meter.Meter, path string, text []byte) (*meter.RateCard, error) {
	y := &meter.YAML{File: path}
	card := &meter.RateCard{}
	if root := y.Root(text); root != nil {
		parseCard(y, root, m.Window.Size, card)
	}
	if len(y.Faults) > 0 {
		slices.SortStableFunc(y.Faults, func(a, b meter.Fault) int { return a.Line - b.Line })
		return nil, y.Faults
	}
	slices.SortFunc(card.Rates, func(a, b meter.Rate) int {
		return cmp.Or(compareKey(a, b), cmp.Compare(a.EffectiveFrom, b.EffectiveFrom))
	})
	content, err := json.Marshal(card.Rates)
	if err != nil {
		return nil, fmt.Errorf("pricing: revision of %s: %w", path, err)
	}
	sum := sha256.Sum256(content)
	card.Revision = hex.EncodeToString(sum[:8])
	return card, nil
}

func compareKey(a, b meter.Rate) int {
	return cmp.Or(strings.Compare(a.SKU, b.SKU), cmp.Compare(a.Tier, b.Tier), strings.Compare(a.Quantity, b.Quantity))
}

func parseCard(y *meter.YAML, root *yaml.Node, window int64, card *meter.RateCard) {
	top := y.Mapping(root, "rate card", "rates")
	rows := top.Need("rates", "the list of rates")
	if rows == nil {
		return
	}
	if rows.Kind != yaml.SequenceNode {
		y.Faultf(rows, "rates: want a list of {sku, tier, quantity, usd, per, effective_from}")
		return
	}
	seen := map[meter.Rate]int{}
	for _, n := range rows.Content {
		rate := parseRate(y, n, window)
		key := rate
		key.Pico = 0
		if line, dup := seen[key]; dup {
			y.Faultf(n, "rates: %s was already given for the same time on line %d", name(rate), line)
		}
		seen[key] = n.Line
		card.Rates = append(card.Rates, rate)
	}
}

func parseRate(y *meter.YAML, n *yaml.Node, window int64) meter.Rate {
	keys := y.Mapping(n, "rates", "sku", "tier", "quantity", "usd", "per", "effective_from")
	rate := meter.Rate{
		SKU:      y.Text(keys.Need("sku", "what is used"), "rates.sku"),
		Quantity: y.Text(keys.Need("quantity", "a quantity of the meter"), "rates.quantity"),
	}
	if tier := keys.Get("tier"); tier != nil {
		rate.Tier = int32(y.Int(tier, "rates.tier", 0, 1000))
	}
	usd, per := keys.Need("usd", `the price as text, such as "0.15"`), keys.Need("per", "1, 1000 or 1000000 units")
	if word := y.Word(per, "rates.per", "1", "1000", "1000000"); word != "" && usd != nil {
		rate.Pico = perUnit(y, usd, word, name(rate))
	}
	from := keys.Need("effective_from", "the window start from which it is in force")
	rate.EffectiveFrom = y.Time(from, "rates.effective_from")
	if from != nil && window > 0 && rate.EffectiveFrom%window != 0 {
		y.Faultf(from, "rates: %s: effective_from %q is no start of a window", name(rate), from.Value)
	}
	return rate
}

// perUnit is the exact price of one unit in pico-dollars.
func perUnit(y *meter.YAML, usd *yaml.Node, per, what string) int64 {
	price, err := meter.ParseUSD(usd.Value)
	if err != nil || usd.Kind != yaml.ScalarNode {
		y.Faultf(usd, "rates: %s: usd %v", what, err)
		return 0
	}
	units := map[string]int64{"1": 1, "1000": 1000, "1000000": 1_000_000}[per]
	switch {
	case price < 0:
		y.Faultf(usd, "rates: %s: usd %q is negative", what, usd.Value)
	case int64(price)%units != 0:
		y.Faultf(usd, "rates: %s: usd %q per %s is finer than a pico-dollar a unit", what, usd.Value, per)
	}
	return int64(price) / units
}

func name(r meter.Rate) string { return fmt.Sprintf("%q tier %d %s", r.SKU, r.Tier, r.Quantity) }

// Warnings says what is legal and dangerous about a card for a meter: rates of no quantity, quantities of a
// sku without a rate, tiers that the meter never reaches.
func Warnings(m *meter.Meter, card *Card) []string {
	var warnings []string
	names := m.QuantityNames()
	skus := map[string]map[string]bool{}
	for _, r := range card.Rates {
		if !slices.Contains(names, r.Quantity) {
			warnings = append(warnings, fmt.Sprintf("%s: %s: the meter has no such quantity; this rate is never used", card.Path, name(r)))
		}
		if int(r.Tier) > len(m.Event.TierAbove) {
			warnings = append(warnings, fmt.Sprintf("%s: %s: the meter has no such tier; this rate is never used", card.Path, name(r)))
		}
		if skus[r.SKU] == nil {
			skus[r.SKU] = map[string]bool{}
		}
		skus[r.SKU][fmt.Sprint(r.Tier, r.Quantity)] = true
	}
	for _, sku := range sortedKeys(skus) {
		for tier := range len(m.Event.TierAbove) + 1 {
			for _, q := range names {
				if !skus[sku][fmt.Sprint(tier, q)] {
					warnings = append(warnings, fmt.Sprintf("%s: sku %q has no rate for %s in tier %d: what it uses of it is unpriced", card.Path, sku, q, tier))
				}
			}
		}
	}
	if m.Event.SKU.IsConst && skus[m.Event.SKU.Const] == nil {
		warnings = append(warnings, fmt.Sprintf("%s: no rate for sku %q, the only one of the meter", card.Path, m.Event.SKU.Const))
	}
	return warnings
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
