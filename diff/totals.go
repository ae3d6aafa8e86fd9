package diff

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A bundle is all that one of our verdicts took out of a row, or put into it: the other side may bill otherwise.
type bundle struct {
	cause Cause
	value Value // what the row's delta would be for it
	parts []part
}

// told is what the complete truth has said already.
type told struct {
	ref   meter.ID
	row   meter.RowKey
	cause Cause
}

// maxBundles bounds the search: 2^n sets of bundles are tried.
const maxBundles = 12

// explainTotals explains rows against totals without ids. Only our own records can say anything, and only as a
// whole: a set of our verdicts is offered where it is the difference of the row exactly, in all that is compared.
func (c *comparison) explainTotals() error {
	left := c.sides[0]
	if left.Items == nil {
		return nil
	}
	q := ItemQuery{}
	for _, p := range c.rows {
		q.Rows = append(q.Rows, p.key)
	}
	items, err := left.Items.Items(c.ctx, q)
	if err != nil {
		return fmt.Errorf("records of %s: %w", left.Name, err)
	}
	dead, err := c.deadOf(0)
	if err != nil {
		return err
	}
	bundles := map[meter.RowKey][]bundle{}
	seen := map[told]bool{}
	if left.Complete != nil {
		if err := c.completeBundles(q, bundles, seen); err != nil {
			return err
		}
	}
	for i := range items {
		c.itemBundle(&items[i], bundles, seen)
	}
	for i := range dead.all {
		c.deadBundle(&dead.all[i], bundles)
	}
	for _, p := range c.rows {
		c.adjustmentBundle(p, bundles)
		c.choose(p, bundles[p.key])
	}
	return nil
}

// completeBundles are what the complete truth bills otherwise, by cause (R15).
func (c *comparison) completeBundles(q ItemQuery, bundles map[meter.RowKey][]bundle, seen map[told]bool) error {
	left := *c.sides[0]
	left.Detail, left.Complete = nil, nil
	right := left
	right.Items, right.Prices = c.sides[0].Complete, nil
	right.Name, right.Rows, left.Rows = "complete", SliceRows(nil), SliceRows(nil)
	sub, err := newComparison(c.ctx, &left, &right, Options{})
	if err != nil {
		return err
	}
	for _, p := range c.rows {
		sub.rows = append(sub.rows, &pair{key: p.key, row: [2]*meter.Row{p.row[0], nil}})
		sub.byKey[p.key] = sub.rows[len(sub.rows)-1]
	}
	if err := sub.explainItems(); err != nil {
		return err
	}
	for _, p := range sub.rows {
		for _, part := range p.parts {
			part.value.SetHash = 0
			part.value.Quantities = c.cols.widen(0, part.value.Quantities)
			seen[told{part.ref, p.key, part.cause}] = true
			bundles[p.key] = addToBundle(bundles[p.key], c.cols.zero(), part)
		}
	}
	return nil
}

// itemBundle is for a record that we have and do not bill.
func (c *comparison) itemBundle(it *meter.Item, bundles map[meter.RowKey][]bundle, seen map[told]bool) {
	if it.Verdict == meter.VerdictCounted || it.Verdict == meter.VerdictProgress || it.Verdict == meter.VerdictOpen {
		return
	}
	at := placeOf(it)
	if it.Account == "" || seen[told{nameOf(it), at.row(), lostCause(it)}] {
		return
	}
	v := c.cols.usage(0, &it.Usage)
	v.SetHash, v.Pico = 0, c.worth(at, v.Quantities)
	bundles[at.row()] = addToBundle(bundles[at.row()], c.cols.zero(),
		part{cause: lostCause(it), value: v.neg(), ref: nameOf(it), log: positionsOf(it)})
}

// deadBundle is for a dead letter whose row could be read.
func (c *comparison) deadBundle(d *Dead, bundles map[meter.RowKey][]bundle) {
	if d.Account == "" || !d.HasTime || d.Kind == meter.KindProgress || c.window == 0 {
		return
	}
	at := place{d.Account, WindowEnd(d.Time, c.window), cmp.Or(d.SKU, c.sides[0].ConstSKU), 0}
	v := Value{Quantities: c.cols.widen(0, c.sides[0].known(d))}
	if !d.Kind.IsEnd() {
		v.Requests = 1
	}
	v.Pico = c.worth(at, v.Quantities)
	bundles[at.row()] = addToBundle(bundles[at.row()], c.cols.zero(), part{cause: DeadLetter, value: v.neg(),
		ref: d.Reference, log: []position{{d.Partition, d.Offset}}, why: d.Reason.String()})
}

// adjustmentBundle is for totals that are the final row without its adjustments (R11).
func (c *comparison) adjustmentBundle(p *pair, bundles map[meter.RowKey][]bundle) {
	if p.row[0] == nil {
		return
	}
	u := c.sides[0].Adjusted[p.key]
	v := c.cols.usage(0, &u)
	v.SetHash, v.Pico = 0, p.row[0].Adjustment
	if !v.isZero() {
		bundles[p.key] = addToBundle(bundles[p.key], c.cols.zero(), part{cause: Adjustment, value: v})
	}
}

func addToBundle(list []bundle, zero Value, p part) []bundle {
	i := slices.IndexFunc(list, func(b bundle) bool { return b.cause == p.cause })
	if i < 0 {
		i = len(list)
		list = append(list, bundle{cause: p.cause, value: zero})
	}
	list[i].value = list[i].value.plus(p.value)
	list[i].parts = append(list[i].parts, p)
	return list
}

// choose adds the smallest set of bundles, the first by the order of causes, that is the difference exactly.
func (c *comparison) choose(p *pair, list []bundle) {
	rest := c.cols.compared(c.cols.rowValue(0, p.row[0]).minus(c.cols.rowValue(1, p.row[1])))
	list = slices.DeleteFunc(list, func(b bundle) bool { return c.cols.compared(b.value).isZero() || b.cause == Unexplained })
	if rest.isZero() || len(list) == 0 || len(list) > maxBundles {
		return
	}
	slices.SortFunc(list, func(a, b bundle) int { return int(a.cause) - int(b.cause) })
	best, rivals := 0, []string(nil)
	for set := 1; set < 1<<len(list); set++ {
		if !c.cols.compared(sumOf(list, set, c.cols.zero())).equal(rest) {
			continue
		}
		switch {
		case best == 0 || before(set, best):
			if best != 0 {
				rivals = append(rivals, setText(list, best))
			}
			best = set
		default:
			rivals = append(rivals, setText(list, set))
		}
	}
	why := "our own records of this cause are the whole difference; " + c.sides[1].Name + " has no ids to check it by"
	if len(rivals) > 0 {
		why += "; as well could be " + strings.Join(rivals, " or ")
	}
	for i, b := range list {
		if best&(1<<i) == 0 {
			continue
		}
		for _, part := range b.parts {
			part.why = why
			p.parts = append(p.parts, part)
		}
	}
}

// before reports whether set a is to be preferred: fewer causes, then earlier ones.
func before(a, b int) bool {
	if n, m := bits.OnesCount(uint(a)), bits.OnesCount(uint(b)); n != m {
		return n < m
	}
	// The lowest differing bit is the earlier cause.
	low := (a ^ b) & -(a ^ b)
	return a&low != 0
}

func sumOf(list []bundle, set int, sum Value) Value {
	for i, b := range list {
		if set&(1<<i) != 0 {
			sum = sum.plus(b.value)
		}
	}
	return sum
}

func setText(list []bundle, set int) string {
	var names []string
	for i, b := range list {
		if set&(1<<i) != 0 {
			names = append(names, b.cause.String())
		}
	}
	return strings.Join(names, " and ")
}

// whyTotals says why a difference from totals stays unexplained.
func (c *comparison) whyTotals(p *pair, rest Value) string {
	left, right := c.sides[0], c.sides[1]
	switch {
	case left.Items == nil:
		return "neither side has records behind its totals"
	case p.row[1] == nil:
		return right.Name + " has no such row"
	case rest.usageZero():
		return right.Name + " has the same usage and another amount; it states no prices"
	}
	return right.Name + " has no ids, and no set of our own late, duplicate or other records is this difference exactly"
}
