package diff

import (
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A sideRate is the rate of one side for a quantity of a cell.
type sideRate struct {
	UsedRate
	priced bool // false: the side has no price for it, the rate is 0
	has    bool // the side can say
}

// rates are the rates of both sides for a cell, per report column (R10): zero pico-dollars where a side has the cell and
// no price for it; the other side's where it does not have the cell, or no prices.
func (c *comparison) rates(at place) *[2][]sideRate {
	if r := c.found[at]; r != nil {
		return r
	}
	r := &[2][]sideRate{}
	r[0], _ = c.sideRates(0, at)
	var choices [][]UsedRate
	r[1], choices = c.sideRates(1, at)
	for i := range c.cols.names {
		l, rt := &r[0][i], &r[1][i]
		switch {
		case !l.has:
			*l = *rt
		case !rt.has:
			*rt = *l
		case c.cell(1, at) == nil && offers(choices, i, l):
			*rt = *l // the right has no such cell to tell; had it one, it may have used the same
		}
	}
	c.found[at] = r
	return r
}

// offers reports whether a rate is one of those that a side may have used for a column.
func offers(choices [][]UsedRate, column int, r *sideRate) bool {
	return r.priced && slices.ContainsFunc(choices[column], func(u UsedRate) bool { return u.Pico == r.Pico && u.Source == r.Source })
}

// sideRates are the rates of one side for a cell: of those that may have been used, the ones that make up what the cell
// cost, or else the likeliest.
func (c *comparison) sideRates(side int, at place) ([]sideRate, [][]UsedRate) {
	rates, choices := make([]sideRate, len(c.cols.names)), make([][]UsedRate, len(c.cols.names))
	book := c.sides[side].Prices
	if book == nil {
		return rates, choices
	}
	cell := c.cell(side, at)
	for i, name := range c.cols.names {
		if cell != nil && slices.Contains(cell.Unpriced, name) {
			rates[i].has = true
			continue
		}
		choices[i] = book.candidates(at.sku, at.tier, name, at.windowEnd-c.window, at.windowEnd)
		rates[i].has = len(choices[i]) > 0 || cell != nil
		if len(choices[i]) > 0 {
			rates[i].UsedRate, rates[i].priced = choices[i][0], true
		}
	}
	if cell != nil {
		fitRates(rates, choices, c.cols.billed(c.cols.widen(side, cell.Quantities)), cell.Amount)
	}
	return rates, choices
}

// maxFits bounds how many sets of rates are tried for a cell.
const maxFits = 4096

// fitRates finds the first set of choices that makes the amount, if there is one, and puts it into rates.
func fitRates(rates []sideRate, choices [][]UsedRate, billed []int64, amount meter.Int128) {
	tries := 0
	pick := make([]int, len(choices))
	var try func(i int, rest meter.Int128) bool
	try = func(i int, rest meter.Int128) bool {
		if i == len(choices) {
			tries++
			return rest.IsZero()
		}
		if billed[i] == 0 || len(choices[i]) == 0 {
			return try(i+1, rest)
		}
		for n, u := range choices[i] {
			pick[i] = n
			if tries < maxFits && try(i+1, rest.Sub(meter.Mul64(billed[i], u.Pico))) {
				return true
			}
		}
		pick[i] = 0
		return false
	}
	if !try(0, amount) {
		return
	}
	for i, n := range pick {
		if n > 0 {
			rates[i].UsedRate = choices[i][n]
		}
	}
}

// cell is a side's cell, nil if it has none there.
func (c *comparison) cell(side int, at place) *meter.PricedCell {
	p := c.byKey[at.row()]
	if p == nil || p.row[side] == nil {
		return nil
	}
	for i := range p.row[side].Cells {
		if cell := &p.row[side].Cells[i]; cell.SKU == at.sku && cell.Tier == at.tier && cell.Requests != 0 {
			return cell
		}
	}
	return nil
}
