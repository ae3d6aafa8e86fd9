package stream

import (
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A billable is a billable record on its way to a verdict (R7, R9).
type billable struct {
	id                 meter.ID
	hash               uint64
	cellNames          cellKey // tier to come
	account, sku       string
	status             string
	quantities         []int64
	marks              []uint64 // what attribute filters say
	time, judged       int64
	abandoned, replace bool // replace: it supersedes an abandoned one
}

// abandonedStatus is the status of an abandoned request (R7).
const abandonedStatus = "abandoned"

// ofLife is the billable record of a life, by what the life knows.
func (c *Counter) ofLife(ref uint32) *billable {
	l := c.lives.at(ref)
	b := &c.scratch
	*b = billable{quantities: b.quantities, hash: l[wordIDHash], marks: c.lives.marksOf(l), cellNames: cellKey{account: l.account(), sku: l.sku()},
		account: c.names.text(l.account()), sku: c.names.text(l.sku())}
	for i, q := range c.lives.quantitiesOf(l) {
		b.quantities[i] = int64(q)
	}
	return b
}

// ofAbandoned is the record of a request without an end, at time D.
func (c *Counter) ofAbandoned(ref uint32) *billable {
	b := c.ofLife(ref)
	b.time, b.status, b.abandoned = c.lives.at(ref).startTime()+c.patience, abandonedStatus, true
	for whole, parts := range c.partsOf {
		if parts == nil || !c.m.Event.Quantities[whole].OnEnd {
			continue
		}
		var sum int64 // a whole is at least the sum of its parts
		for _, part := range parts {
			sum += b.quantities[part]
		}
		b.quantities[whole] = max(b.quantities[whole], sum)
	}
	return b
}

// partsOf lists the parts of each quantity.
func partsOf(m *meter.Meter) [][]int {
	parts := make([][]int, len(m.Event.Quantities))
	for i, q := range m.Event.Quantities {
		if q.PartOf >= 0 {
			parts[q.PartOf] = append(parts[q.PartOf], i)
		}
	}
	return parts
}

// judge says what becomes of a billable record: filtered before late, else counted (R9, R6).
func (c *Counter) judge(b *billable) (meter.Verdict, string) {
	if name := c.filters.first(b); name != "" {
		return meter.VerdictFiltered, name
	}
	if b.judged >= c.endOf(b.time)+c.lateness {
		return meter.VerdictLate, ""
	}
	return meter.VerdictCounted, ""
}

// count adds the record to its cell, or with sign -1 takes it back (R9).
func (c *Counter) count(b *billable, sign int64) error {
	key := b.cellNames
	key.tier = c.tier(b.quantities)
	cell := c.cells.at(c.endOf(b.time), key, len(b.quantities))
	if err := cell.add(sign, b.quantities, b.hash); err != nil {
		return err
	}
	c.cells.noteChange(cell, c.silent)
	return nil
}

// tier is the number of thresholds that the tier quantity exceeds (R9).
func (c *Counter) tier(quantities []int64) int32 {
	var tier int32
	if on := c.m.Event.TierOn; on >= 0 {
		for _, above := range c.m.Event.TierAbove {
			if quantities[on] > above {
				tier++
			}
		}
	}
	return tier
}

// bucket is where the records of a verdict are counted (R14).
func (c *Counter) bucket(v meter.Verdict) *int64 {
	switch v {
	case meter.VerdictCounted:
		return &c.sum.Counted
	case meter.VerdictFiltered:
		return &c.sum.Filtered
	case meter.VerdictLate:
		return &c.sum.Late
	case meter.VerdictDuplicate:
		return &c.sum.Duplicate
	case meter.VerdictConflict:
		return &c.sum.Conflict
	case meter.VerdictOrphan:
		return &c.sum.Orphan
	}
	return &c.sum.LateCompletion
}

// whole is the item of a billable record that is not counted.
func (c *Counter) whole(v meter.Verdict, filter string, b *billable) meter.Item {
	return meter.Item{
		Verdict: v, Filter: filter, Abandoned: b.abandoned, Superseded: b.replace, Partition: c.partition, ID: b.id,
		Account: b.account, SKU: b.sku, Tier: c.tier(b.quantities), Time: b.time, WindowEnd: c.endOf(b.time), Status: b.status,
		Usage:  meter.Usage{Requests: 1, Quantities: slices.Clone(b.quantities), SetHash: b.hash},
		Judged: b.judged,
	}
}

// lone is the item of a record that is not part of a billable one (R3). An end takes its start's account, sku and
// reference if the start is known.
func (c *Counter) lone(v meter.Verdict, e *meter.Event, ref uint32) meter.Item {
	it := meter.Item{
		Verdict: v, Partition: c.partition, Offsets: []int64{e.Offset}, ID: e.ID, Reference: e.Reference, Kind: e.Kind,
		Account: e.Account, SKU: e.SKU, Tier: c.tier(e.Quantities), Time: e.Time, WindowEnd: c.endOf(e.Time), Status: e.Status,
		Usage: meter.Usage{Quantities: slices.Clone(e.Quantities)}, Judged: c.watermark,
	}
	if e.Kind == meter.KindEvent {
		it.Usage.Requests, it.Usage.SetHash = 1, e.IDHash
	}
	if e.Kind.IsEnd() && ref != 0 {
		if l := c.lives.at(ref); l.has(hasStart) {
			it.Account, it.SKU, it.Reference = c.names.text(l.account()), c.names.text(l.sku()), c.lives.reference(ref)
		}
	}
	return it
}

// tellLone counts a lone record and, but for a duplicate, puts it out.
func (c *Counter) tellLone(v meter.Verdict, e *meter.Event, ref uint32) {
	if c.silent {
		return
	}
	*c.bucket(v)++
	if v != meter.VerdictDuplicate {
		c.items = append(c.items, c.lone(v, e, ref))
	}
}
