package oracle

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// cells are rows in the making: what each cell of each row counts (R9).
type cells map[meter.RowKey]map[meter.CellKey]meter.Usage

// add applies an effect to its cell.
func (c cells) add(e effect) error {
	row := c[e.cell.Row()]
	if row == nil {
		row = map[meter.CellKey]meter.Usage{}
		c[e.cell.Row()] = row
	}
	var err error
	if e.withdraw {
		row[e.cell], err = row[e.cell].Minus(e.usage)
	} else {
		row[e.cell], err = row[e.cell].Plus(e.usage)
	}
	if err != nil {
		return fmt.Errorf("oracle: count in %v: %w", e.cell, err)
	}
	return nil
}

// prices says what cells cost (R10).
type prices struct {
	m     *meter.Meter
	table map[rateKey][]meter.Rate
	list  map[rateKey][]meter.Rate
}

type rateKey struct {
	sku      string
	tier     int32
	quantity string
}

func newPrices(m *meter.Meter, card, list *meter.RateCard) *prices {
	return &prices{m: m, table: bySubject(card), list: bySubject(list)}
}

func bySubject(card *meter.RateCard) map[rateKey][]meter.Rate {
	rates := map[rateKey][]meter.Rate{}
	if card != nil {
		for _, r := range card.Rates {
			k := rateKey{r.SKU, r.Tier, r.Quantity}
			rates[k] = append(rates[k], r)
		}
	}
	return rates
}

// inForce is the rate for a window's start: the one with the latest effective_from not after it.
func inForce(rates []meter.Rate, start int64) *meter.Rate {
	var best *meter.Rate
	for i := range rates {
		if rates[i].EffectiveFrom <= start && (best == nil || rates[i].EffectiveFrom > best.EffectiveFrom) {
			best = &rates[i]
		}
	}
	return best
}

// Price is what a cell costs (R10): each quantity less its parts at the rate in force at the window's start, the
// card's or else the list's. What is zero needs no rate. The source is the one of all quantities that needed a
// rate, mixed where they differ, table where none did. An error means that the amount leaves 128 bits.
// list may be nil. The price of an item (R3) is that of a cell with its sku, tier, window and own quantities.
func Price(m *meter.Meter, card, list *meter.RateCard, c meter.Cell) (meter.Priced, error) {
	return newPrices(m, card, list).cell(c)
}

func (p *prices) cell(c meter.Cell) (meter.Priced, error) {
	var priced meter.Priced
	var sources []string
	sum := new(big.Int)
	for i, q := range p.m.Event.Quantities {
		units := p.billed(i, c.Quantities)
		if units.Sign() == 0 {
			continue
		}
		key, start := rateKey{c.SKU, c.Tier, q.Name}, c.WindowEnd-p.m.Window.Size
		rate, source := inForce(p.table[key], start), meter.PriceTable
		if rate == nil {
			rate, source = inForce(p.list[key], start), meter.PriceList
		}
		if rate == nil {
			sources = append(sources, meter.PriceUnpriced)
			priced.Unpriced = append(priced.Unpriced, q.Name)
			continue
		}
		sources = append(sources, source)
		sum.Add(sum, units.Mul(units, big.NewInt(rate.Pico)))
	}
	slices.Sort(priced.Unpriced)
	priced.Source = oneOrMixed(sources)
	var ok bool
	if priced.Amount, ok = toInt128(sum); !ok {
		return priced, fmt.Errorf("oracle: price %v: R10: %v pico-dollars do not fit 128 bits", c.CellKey, sum)
	}
	return priced, nil
}

// billed is quantity i less its parts (R9).
func (p *prices) billed(i int, quantities []int64) *big.Int {
	units := new(big.Int)
	if i >= len(quantities) {
		return units
	}
	units.SetInt64(quantities[i])
	for j, q := range p.m.Event.Quantities {
		if q.PartOf == i {
			units.Sub(units, big.NewInt(quantities[j]))
		}
	}
	return units
}

func oneOrMixed(sources []string) string {
	switch {
	case len(sources) == 0:
		return meter.PriceTable
	case slices.ContainsFunc(sources, func(s string) bool { return s != sources[0] }):
		return meter.PriceMixed
	}
	return sources[0]
}

// row adds up the cells of a row. A cell at zero requests is none (R9).
func (p *prices) row(key meter.RowKey, cells map[meter.CellKey]meter.Usage) (meter.Row, error) {
	row := meter.Row{RowKey: key, Usage: meter.Usage{Quantities: make([]int64, len(p.m.Event.Quantities))}}
	var sources []string
	for k, u := range cells {
		if u.Requests == 0 {
			continue
		}
		cell := meter.Cell{CellKey: k, Usage: u}
		priced, err := p.cell(cell)
		if err != nil {
			return row, err
		}
		if row.Usage, err = row.Usage.Plus(u); err != nil {
			return row, fmt.Errorf("oracle: add up %v: %w", key, err)
		}
		row.Amount = row.Amount.Add(priced.Amount)
		if len(priced.Unpriced) > 0 {
			row.Unpriced += u.Requests
		}
		sources = append(sources, priced.Source)
		row.Cells = append(row.Cells, meter.PricedCell{Cell: cell, Priced: priced})
	}
	row.Source = oneOrMixed(sources)
	slices.SortFunc(row.Cells, func(a, b meter.PricedCell) int { return a.CellKey.Compare(b.CellKey) })
	return row, nil
}

// toInt128 converts v if it fits.
func toInt128(v *big.Int) (meter.Int128, bool) {
	if v.BitLen() > 126 {
		return meter.Int128{}, false
	}
	abs := new(big.Int).Abs(v)
	out := meter.Int128{Hi: int64(new(big.Int).Rsh(abs, 64).Uint64()), Lo: new(big.Int).And(abs, maxUint64).Uint64()}
	if v.Sign() < 0 {
		out = out.Neg()
	}
	return out, true
}

var maxUint64 = new(big.Int).SetUint64(1<<64 - 1)
