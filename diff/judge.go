package diff

import (
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// judge turns every kept row into a verdict: matched, or a Difference whose shares sum to its delta. It returns the rows
// of which something stays unexplained that no record explains.
func (c *comparison) judge() []meter.RowKey {
	var unexplained []meter.RowKey
	slices.SortFunc(c.rows, func(a, b *pair) int { return a.key.Compare(b.key) })
	sum := &c.report.Summary
	for _, p := range c.rows {
		left, right := c.cols.rowValue(0, p.row[0]), c.rightValue(p)
		sum.Left, sum.Right = sum.Left.plus(left), sum.Right.plus(right)
		d := Difference{RowKey: p.key, Delta: c.cols.compared(left.minus(right))}
		d.Delta.SetHash = 0
		if p.row[0] != nil {
			d.Left = &left
		}
		if p.row[1] != nil {
			d.Right = &right
		}
		d.Shares = c.shares(p, left, right)
		if d.State = c.state(p, &d); d.State == Matched {
			sum.Matched++
			continue
		}
		c.count(&d)
		if p.puzzling {
			unexplained = append(unexplained, p.key)
		}
		c.report.Differences = append(c.report.Differences, d)
	}
	sum.Left, sum.Right = c.stated(sum.Left), c.stated(sum.Right)
	sum.Delta = c.cols.compared(sum.Left.minus(sum.Right))
	sum.Delta.SetHash = 0
	return unexplained
}

// rightValue is what the right side's row comes to; an Events side is valued event by event.
func (c *comparison) rightValue(p *pair) Value {
	if c.sides[1].Kind == Events && p.row[1] != nil {
		return p.events
	}
	return c.cols.rowValue(1, p.row[1])
}

func (c *comparison) stated(v Value) Value { v.SetHash = 0; return v }

// state of a row whose shares are known. A row that only a record speaks of is as good as there on no side.
func (c *comparison) state(p *pair, d *Difference) State {
	l, r := p.row[0], p.row[1]
	switch {
	case l != nil && l.State == meter.Incomplete, r != nil && r.State == meter.Incomplete:
		return Incomplete
	case len(d.Shares) == 0 && l != nil && r != nil:
		return Matched
	case l == nil && r != nil:
		return Missing
	case r == nil && l != nil:
		return Extra
	}
	return Mismatched
}

func (c *comparison) count(d *Difference) {
	sum := &c.report.Summary
	switch d.State {
	case Mismatched:
		sum.Mismatched++
	case Missing:
		sum.Missing++
	case Extra:
		sum.Extra++
	case Incomplete:
		sum.Incomplete++
	}
	for i := range d.Shares {
		s := &d.Shares[i]
		if s.Cause == Unexplained {
			sum.Unexplained++
		}
		total := c.shareOf(&sum.Causes, s.Cause)
		total.Value = total.Value.plus(s.Value)
	}
	sortShares(sum.Causes)
}

// shareOf finds or makes the share of a cause.
func (c *comparison) shareOf(shares *[]Share, cause Cause) *Share {
	i := slices.IndexFunc(*shares, func(s Share) bool { return s.Cause == cause })
	if i < 0 {
		i = len(*shares)
		*shares = append(*shares, Share{Cause: cause, Value: c.cols.zero()})
	}
	return &(*shares)[i]
}

func sortShares(shares []Share) {
	slices.SortFunc(shares, func(a, b Share) int { return int(a.Cause) - int(b.Cause) })
}

type causeID struct {
	cause Cause
	id    meter.ID
}

// shares are the causes of a row. Their sum is the delta: what records and rates do not explain is the rest.
func (c *comparison) shares(p *pair, left, right Value) []Share {
	var shares []Share
	rest := c.cols.compared(left.minus(right))
	slices.SortStableFunc(p.parts, func(a, b part) int { return slices.CompareFunc(a.log, b.log, position.compare) })
	logs := map[Cause][]position{}
	seen := map[causeID]bool{}
	for _, part := range p.parts {
		s := c.shareOf(&shares, part.cause)
		v := c.cols.compared(part.value)
		rest = rest.minus(v)
		s.Value = s.Value.plus(v)
		if id := (causeID{part.cause, part.ref}); part.ref != "" && !seen[id] {
			seen[id] = true
			s.IDs = append(s.IDs, part.ref)
		}
		logs[part.cause] = append(logs[part.cause], part.log...)
		s.Log = appendNew(s.Log, part.text)
		s.Why = appendNew(s.Why, part.why)
	}
	for i := range shares {
		ps := logs[shares[i].Cause]
		slices.SortFunc(ps, position.compare)
		var names []string
		for _, at := range slices.Compact(ps) {
			names = append(names, c.positionName(at))
		}
		shares[i].Log = append(names, shares[i].Log...)
	}
	rest.Pico = rest.Pico.Sub(c.rateShares(p, &shares))
	c.restShare(p, left, right, rest, &shares)
	sortShares(shares)
	for i := range shares {
		shares[i].SetHash = 0
	}
	return shares
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// rateShares adds left usage x rate difference for every cell of the left row, and returns the sum.
func (c *comparison) rateShares(p *pair, shares *[]Share) meter.Int128 {
	var sum meter.Int128
	if !c.cols.money || c.sides[1].Kind >= Totals || p.row[0] == nil {
		return sum
	}
	for i := range p.row[0].Cells {
		cell := &p.row[0].Cells[i]
		at := place{cell.Account, cell.WindowEnd, cell.SKU, cell.Tier}
		rates := c.rates(at)
		for q, billed := range c.cols.billed(c.cols.widen(0, cell.Quantities)) {
			r := [2]sideRate{rates[0][q], rates[1][q]}
			money := meter.Mul64(billed, r[0].Pico-r[1].Pico)
			if billed == 0 || r[0].Pico == r[1].Pico && r[0].priced == r[1].priced {
				continue
			}
			c.shown[[2]UsedRate{r[0].UsedRate, r[1].UsedRate}] = true
			s := c.shareOf(shares, rateCause(r))
			s.Pico = s.Pico.Add(money)
			s.Why = appendNew(s.Why, fmt.Sprintf("%s of %s: %s a unit in %s, %s in %s", printable(c.cols.names[q]), printable(cell.SKU),
				rateText(r[0]), c.sides[0].Name, rateText(r[1]), c.sides[1].Name))
			sum = sum.Add(money)
		}
	}
	return sum
}

func rateCause(r [2]sideRate) Cause {
	switch {
	case (r[0].Source == meter.PriceList) != (r[1].Source == meter.PriceList):
		return ListPrice
	case r[0].priced != r[1].priced:
		return Unpriced
	}
	return RateRevision
}

func rateText(r sideRate) string {
	if !r.priced {
		return "no price"
	}
	return meter.Int128.Dollars(meter.From64(r.Pico)) + " (" + r.Source + ")"
}
