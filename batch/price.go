package batch

import (
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Pricer states R10 for the recompute: what a cell costs by a card, and by a list where the card has no rate. It is not safe for
// concurrent use.
type Pricer struct {
	m           *meter.Meter
	card, list  map[subject][]meter.Rate // each by effective_from
	tariffs     map[product]*tariff
	lastProduct product
	lastTariff  *tariff
}

type product struct {
	sku  string
	tier int32
}

type subject struct {
	product
	quantity string
}

// A tariff is the rates of a product, by quantity: those of the card and those of the list.
type tariff struct{ card, list [][]meter.Rate }

// NewPricer makes a pricer; card and list may be nil.
func NewPricer(m *meter.Meter, card, list *meter.RateCard) *Pricer {
	return &Pricer{m: m, card: subjects(card), list: subjects(list), tariffs: map[product]*tariff{}}
}

func subjects(card *meter.RateCard) map[subject][]meter.Rate {
	by := map[subject][]meter.Rate{}
	if card == nil {
		return by
	}
	for _, r := range card.Rates {
		s := subject{product{r.SKU, r.Tier}, r.Quantity}
		by[s] = append(by[s], r)
	}
	for _, rates := range by {
		slices.SortStableFunc(rates, func(a, b meter.Rate) int {
			if a.EffectiveFrom < b.EffectiveFrom {
				return -1
			}
			if a.EffectiveFrom > b.EffectiveFrom {
				return 1
			}
			return 0
		})
	}
	return by
}

// Price prices a cell (R10). An error means that the amount leaves 128 bits. An item that is not billed costs what a cell of its sku,
// tier, window and own quantities would (R3).
func (p *Pricer) Price(c *meter.Cell) (meter.Priced, error) {
	t := p.tariff(product{c.SKU, c.Tier})
	start := c.WindowEnd - p.m.Window.Size
	var priced meter.Priced
	for i, q := range p.m.Event.Quantities {
		units := p.units(i, c.Quantities)
		if units == 0 { // what is zero needs no rate
			continue
		}
		source := meter.PriceTable
		pico, ok := inForce(t.card[i], start)
		if !ok {
			source = meter.PriceList
			pico, ok = inForce(t.list[i], start)
		}
		if !ok {
			source = meter.PriceUnpriced
			priced.Unpriced = append(priced.Unpriced, q.Name)
		}
		priced.Source = joinSource(priced.Source, source)
		if priced.Amount, ok = addExactly(priced.Amount, meter.Mul64(units, pico)); !ok {
			return priced, fmt.Errorf("batch: price %s %s at window end %d: R10: the amount leaves 128 bits", c.Account, c.SKU, c.WindowEnd)
		}
	}
	if priced.Source == "" {
		priced.Source = meter.PriceTable
	}
	slices.Sort(priced.Unpriced)
	return priced, nil
}

// units is what is billed of quantity i: a whole less its parts (R9).
func (p *Pricer) units(i int, quantities []int64) int64 {
	if i >= len(quantities) {
		return 0
	}
	units := quantities[i]
	for j, q := range p.m.Event.Quantities {
		if q.PartOf == i && j < len(quantities) {
			units -= quantities[j]
		}
	}
	return units
}

func (p *Pricer) tariff(k product) *tariff {
	if p.lastTariff != nil && p.lastProduct == k {
		return p.lastTariff
	}
	t := p.tariffs[k]
	if t == nil {
		t = &tariff{}
		for _, q := range p.m.Event.Quantities {
			t.card = append(t.card, p.card[subject{k, q.Name}])
			t.list = append(t.list, p.list[subject{k, q.Name}])
		}
		p.tariffs[k] = t
	}
	p.lastProduct, p.lastTariff = k, t
	return t
}

// inForce is the rate in force at a window's start: the last that is effective from then or before. 0 and false without one.
func inForce(rates []meter.Rate, start int64) (int64, bool) {
	for i := len(rates) - 1; i >= 0; i-- {
		if rates[i].EffectiveFrom <= start {
			return rates[i].Pico, true
		}
	}
	return 0, false
}

// joinSource is the source of two prices together; "" is none yet.
func joinSource(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	}
	return meter.PriceMixed
}

// addExactly is a + b, false if it leaves 128 bits: both of one sign, the sum of the other.
func addExactly(a, b meter.Int128) (meter.Int128, bool) {
	c := a.Add(b)
	return c, (a.Hi < 0) != (b.Hi < 0) || (a.Hi < 0) == (c.Hi < 0)
}

// Row adds up the cells of one row and prices them; state and revision are the caller's. The cells are kept, in the order given.
func (p *Pricer) Row(key meter.RowKey, cells []meter.PricedCell) (meter.Row, error) {
	row := meter.Row{RowKey: key, Cells: cells, Usage: meter.Usage{Quantities: make([]int64, len(p.m.Event.Quantities))}}
	for i := range cells {
		c := &cells[i]
		var err error
		if c.Priced, err = p.Price(&c.Cell); err != nil {
			return row, err
		}
		if err := count(&row.Usage, &c.Usage); err != nil {
			return row, fmt.Errorf("batch: add up %s at window end %d: %w", key.Account, key.WindowEnd, err)
		}
		var ok bool
		if row.Amount, ok = addExactly(row.Amount, c.Amount); !ok {
			return row, fmt.Errorf("batch: price %s at window end %d: R10: the amount leaves 128 bits", key.Account, key.WindowEnd)
		}
		if len(c.Unpriced) > 0 {
			row.Unpriced += c.Requests
		}
		row.Source = joinSource(row.Source, c.Source)
	}
	return row, nil
}

// count adds v to sum in place; ErrSum if a sum leaves int64.
func count(sum, v *meter.Usage) error {
	add := func(to *int64, n int64) bool {
		old := *to
		*to += n
		return (n >= 0) == (*to >= old)
	}
	ok := add(&sum.Requests, v.Requests)
	for i, n := range v.Quantities {
		ok = add(&sum.Quantities[i], n) && ok
	}
	sum.SetHash += v.SetHash
	if !ok {
		return ErrSum
	}
	return nil
}
