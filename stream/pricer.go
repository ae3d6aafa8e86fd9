package stream

import (
	"slices"
	"sort"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Pricer says what cells cost, from a rate card and a list (R10).
type Pricer struct {
	quantities []meter.Quantity
	window     int64 // Z
	card, list rates
	// earlier prices the windows that end at or before from; nil: this one prices all.
	earlier *Pricer
	from    int64
}

// rates are the rows of a card by what they are for, the oldest first.
type rates map[rateKey][]meter.Rate

type rateKey struct {
	sku      string
	tier     int32
	quantity string
}

// NewPricer reads the card, and the list if there is one, into a Pricer.
func NewPricer(m *meter.Meter, card, list *meter.RateCard) *Pricer {
	return &Pricer{quantities: m.Event.Quantities, window: m.Window.Size, card: newRates(card), list: newRates(list)}
}

// Then is p with another card and list for the windows that end after from (R10).
func (p *Pricer) Then(from int64, card, list *meter.RateCard) *Pricer {
	return &Pricer{quantities: p.quantities, window: p.window, card: newRates(card), list: newRates(list), earlier: p, from: from}
}

func newRates(card *meter.RateCard) rates {
	rs := rates{}
	if card == nil {
		return rs
	}
	for _, r := range card.Rates {
		key := rateKey{r.SKU, r.Tier, r.Quantity}
		rs[key] = append(rs[key], r)
	}
	for _, rows := range rs {
		slices.SortFunc(rows, func(a, b meter.Rate) int {
			if a.EffectiveFrom < b.EffectiveFrom {
				return -1
			}
			return 1
		})
	}
	return rs
}

// inForce is the row that applies to a window that starts at start.
func (rs rates) inForce(key rateKey, start int64) (meter.Rate, bool) {
	rows := rs[key]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].EffectiveFrom > start })
	if i == 0 {
		return meter.Rate{}, false
	}
	return rows[i-1], true
}

// Price is the cost of a cell: of each quantity, less its parts, at the rate in force at the window's start; on a
// miss at the list's; else unpriced. What is zero needs no rate.
func (p *Pricer) Price(c *meter.Cell) meter.Priced {
	if p.earlier != nil && c.WindowEnd <= p.from {
		return p.earlier.Price(c)
	}
	var out meter.Priced
	var from sources
	for i, q := range p.quantities {
		billed := p.billed(i, c.Quantities)
		if billed == 0 {
			continue
		}
		key, start := rateKey{c.SKU, c.Tier, q.Name}, c.WindowEnd-p.window
		rate, ok := p.card.inForce(key, start)
		source := meter.PriceTable
		if !ok {
			rate, ok = p.list.inForce(key, start)
			source = meter.PriceList
		}
		if !ok {
			source = meter.PriceUnpriced
			out.Unpriced = append(out.Unpriced, q.Name)
		} else {
			out.Amount = out.Amount.Add(meter.Mul64(billed, rate.Pico))
		}
		from.add(source)
	}
	slices.Sort(out.Unpriced)
	out.Source = from.text()
	return out
}

// billed is what of a quantity is billed as itself: a whole less its parts (R9).
func (p *Pricer) billed(i int, quantities []int64) int64 {
	if i >= len(quantities) {
		return 0
	}
	n := quantities[i]
	for j := range p.quantities {
		if p.quantities[j].PartOf == i {
			n -= quantities[j]
		}
	}
	return n
}

// sources is one price source, or mixed (R10).
type sources string

func (s *sources) add(source string) {
	if *s != "" && string(*s) != source {
		source = meter.PriceMixed
	}
	*s = sources(source)
}

// text is the source; nothing to price counts as priced from the table.
func (s sources) text() string {
	if s == "" {
		return meter.PriceTable
	}
	return string(s)
}
