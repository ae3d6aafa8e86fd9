package diff

import (
	"fmt"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// restShare names what records and rates leave over of a row's difference: log positions that one side lacks,
// an amount that was wrapped, adjustments, the other meter's arithmetic, or nothing we know.
func (c *comparison) restShare(p *pair, left, right, rest Value, shares *[]Share) {
	composition := rest.SetHash != 0
	if rest.isZero() && !composition {
		switch {
		case len(*shares) > 0:
		case p.incomplete():
			c.addRest(shares, LostRange, rest, c.lostNames(p), "the row may miss log positions that were lost")
		case c.odd(p):
			c.addRest(shares, Unexplained, rest, "", c.whyRest(p, rest))
		}
		return
	}
	records := !rest.usageZero() || composition
	missing, lost := strings.TrimSpace(c.missingNames(p)), c.lostNames(p)
	switch {
	case c.wrapped(left, right, rest):
		c.addRest(shares, Overflow, rest, "", "the amount leaves 64 bits of pico-dollars; one side wrapped or clamped it")
	case !records && c.otherRates():
		c.addRest(shares, RateRevision, rest, "", fmt.Sprintf("rates %s in %s, %s in %s", c.sides[0].RateRevision, c.sides[0].Name,
			c.sides[1].RateRevision, c.sides[1].Name))
	case records && missing != "":
		c.addRest(shares, MissingInArchive, rest, missing, "")
	case records && (lost != "" || p.incomplete()):
		c.addRest(shares, LostRange, rest, lost, "")
	case !records && !c.cols.samePart:
		c.addRest(shares, MeterMismatch, rest, "", "the meters disagree on what is a part of what")
	default:
		p.puzzling = records
		c.addRest(shares, Unexplained, rest, "", c.whyRest(p, rest))
	}
}

// otherRates reports whether the sides are known to have used other rates, and not which.
func (c *comparison) otherRates() bool {
	l, r := c.sides[0], c.sides[1]
	return r.Kind < Totals && l.RateRevision != "" && r.RateRevision != "" && l.RateRevision != r.RateRevision &&
		(l.Prices == nil || r.Prices == nil)
}

func (p *pair) incomplete() bool {
	return p.row[0] != nil && p.row[0].State == meter.Incomplete || p.row[1] != nil && p.row[1].State == meter.Incomplete
}

// odd reports whether a row is wrong in itself though the totals agree.
func (c *comparison) odd(p *pair) bool {
	l, r := p.row[0], p.row[1]
	return l == nil || r == nil || c.sides[1].Kind < Totals && !(sound(l) && sound(r) && sameCells(l, r))
}

func (c *comparison) addRest(shares *[]Share, cause Cause, rest Value, log, why string) {
	s := c.shareOf(shares, cause)
	s.Value = s.Value.plus(rest)
	if log != "" {
		for _, name := range strings.Fields(log) {
			s.Log = appendNew(s.Log, name)
		}
	}
	s.Why = appendNew(s.Why, why)
}

// missingNames names what the archive lacks and the row may have; "" for nothing.
func (c *comparison) missingNames(p *pair) string {
	return strings.Join([]string{c.rangeNames(c.sides[0].MissingArchive, p.key), c.rangeNames(c.sides[1].MissingArchive, p.key)}, " ")
}

// lostNames names the lost positions that the row may miss. A side says so itself of the rows it has.
func (c *comparison) lostNames(p *pair) string {
	var names []string
	for _, s := range c.sides {
		for _, r := range s.Lost {
			if r.touches(p.key) && (r.From < r.To || p.incomplete() || p.row[0] == nil || p.row[1] == nil) {
				names = append(names, c.rangeName(r))
			}
		}
	}
	return strings.Join(names, " ")
}

// wrapped reports whether the rest is what 64 bits could not hold.
func (c *comparison) wrapped(left, right, rest Value) bool {
	if !c.cols.money || !rest.usageZero() || rest.Pico.IsZero() {
		return false
	}
	return fitted(left.Pico, right.Pico) || fitted(right.Pico, left.Pico)
}

// fitted reports whether small is what an int64 makes of big.
func fitted(big, small meter.Int128) bool {
	if _, fits := big.Int64(); fits {
		return false
	}
	const most = 1<<63 - 1
	wrapped, clamped := meter.From64(int64(big.Lo)), meter.From64(most)
	if big.Sign() < 0 {
		clamped = meter.From64(-most - 1)
	}
	return small == wrapped || small == clamped
}

// whyRest says what is known of a difference that nothing explains.
func (c *comparison) whyRest(p *pair, rest Value) string {
	l, r := c.sides[0], c.sides[1]
	switch {
	case r.Kind == Totals:
		return c.whyTotals(p, rest)
	case p.row[0] == nil:
		return l.Name + " has no row, and no record says why"
	case p.row[1] == nil && r.Kind < Totals:
		return r.Name + " has no row, and no record says why"
	}
	for i, row := range p.row {
		if row != nil && !sound(row) {
			return c.whyUnsound(i, row)
		}
	}
	switch {
	case !rest.usageZero():
		return fmt.Sprintf("the records do not add up to what %s and %s state", l.Name, r.Name)
	case rest.SetHash != 0:
		return "equal sums of different records (set_hash)"
	case !rest.Pico.IsZero():
		return c.whyMoney(p)
	}
	return fmt.Sprintf("%s and %s have different cells that sum to the same", l.Name, r.Name)
}

// whyUnsound says how a row is not the sum of its cells.
func (c *comparison) whyUnsound(side int, row *meter.Row) string {
	cells := c.cols.zero()
	for i := range row.Cells {
		cell := c.cols.usage(side, &row.Cells[i].Usage)
		cell.Pico = row.Cells[i].Amount
		cells = cells.plus(cell)
	}
	states := c.cols.rowValue(side, row)
	return fmt.Sprintf("%s states %s, %s; its cells sum to %s, %s", c.sides[side].Name, c.usageText(true, states), states.Pico.Dollars(),
		c.usageText(true, cells), cells.Pico.Dollars())
}

// whyMoney looks for the side whose amount is not what its cells cost.
func (c *comparison) whyMoney(p *pair) string {
	for i, row := range p.row {
		if row == nil || c.sides[i].Prices == nil || len(row.Cells) == 0 {
			continue
		}
		if cost := c.cost(i, row); cost != row.Total() {
			return fmt.Sprintf("%s states %s, its cells cost %s at its prices", c.sides[i].Name, row.Total().Dollars(), cost.Dollars())
		}
	}
	return "the same usage, another amount"
}

// cost is what the cells of a row cost at its side's prices (R10).
func (c *comparison) cost(side int, row *meter.Row) meter.Int128 {
	var sum meter.Int128
	for i := range row.Cells {
		cell := &row.Cells[i]
		at := place{cell.Account, cell.WindowEnd, cell.SKU, cell.Tier}
		for q, billed := range c.cols.billed(c.cols.widen(side, cell.Quantities)) {
			if rate := c.rates(at)[side][q]; rate.priced {
				sum = sum.Add(meter.Mul64(billed, rate.Pico))
			}
		}
	}
	return sum
}

// mostSaid bounds how many unexplained rows are held against their records.
const mostSaid = 1000

// sayMore adds to unexplained rows which side is not what its records make.
func (c *comparison) sayMore(keys []meter.RowKey) error {
	keys = keys[:min(len(keys), mostSaid)]
	if len(keys) == 0 {
		return nil
	}
	for i, s := range c.sides {
		if s.Items == nil {
			continue
		}
		items, err := s.Items.Items(c.ctx, ItemQuery{Rows: keys})
		if err != nil {
			return fmt.Errorf("records of %s: %w", s.Name, err)
		}
		sums := map[meter.RowKey]Value{}
		for _, k := range keys {
			sums[k] = c.cols.zero()
		}
		for n := range items {
			it := &items[n]
			if sum, asked := sums[placeOf(it).row()]; asked && it.Verdict == meter.VerdictCounted {
				sums[placeOf(it).row()] = sum.plus(c.cols.usage(i, &it.Usage))
			}
		}
		for _, k := range keys {
			c.sayRow(i, k, sums[k])
		}
	}
	return nil
}

// sayRow says so if a side's row is not what its records make.
func (c *comparison) sayRow(side int, key meter.RowKey, records Value) {
	row := c.byKey[key].row[side]
	states := c.cols.rowValue(side, row)
	if row != nil && states.minus(records).usageZero() && (!c.cols.setHash || states.SetHash == records.SetHash) {
		return
	}
	d := c.report.find(key)
	if d == nil {
		return
	}
	why := fmt.Sprintf("%s states %s, its records make %s", c.sides[side].Name, c.usageText(row != nil, states), c.usageText(true, records))
	for i := range d.Shares {
		if s := &d.Shares[i]; s.Cause == Unexplained {
			s.Why = appendNew(s.Why, why)
		}
	}
}

func (c *comparison) usageText(there bool, v Value) string {
	if !there {
		return "no row"
	}
	words := []string{fmt.Sprintf("%d requests", v.Requests)}
	for i, q := range v.Quantities {
		words = append(words, fmt.Sprintf("%d %s", q, printable(c.cols.names[i])))
	}
	if c.cols.setHash {
		words = append(words, fmt.Sprintf("set_hash %016x", v.SetHash))
	}
	return strings.Join(words, ", ")
}
