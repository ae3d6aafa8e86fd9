package oracle

import (
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A ruling is what is decided so far about a log: verdicts, and their effects on cells.
type ruling struct {
	m        *meter.Meter
	book     *logbook
	drain    bool
	complete bool // the truth without door, lateness and forgetting (R15)
	// neverForgets makes one life of all door-passing records of an id: the other side of theorem 1 (R8).
	neverForgets bool

	items                 []meter.Item
	effects               []effect
	abandoned, superseded int64
}

// An effect is a billable record counted in its cell, or withdrawn from it, at a line of the log (R9).
// Draining is the line after the last.
type effect struct {
	step     int
	cell     meter.CellKey
	usage    meter.Usage
	withdraw bool
}

// A record is a billable one (R7).
type record struct {
	start, end *entry // end nil: abandoned, or of an events meter
	quantities []int64
	time       int64
	status     string
	judged     int64
	step       int // the line at which it came to be
}

// abandonedStatus is the status of an abandoned request (R7).
const abandonedStatus = "abandoned"

// windowEnd is end(t) (R5): the first multiple of Z above t.
func (r *ruling) windowEnd(t int64) int64 {
	z := r.m.Window.Size
	into := t % z
	if into < 0 {
		into += z
	}
	return t - into + z
}

// verdict says what becomes of a billable record: filtered before late, else counted (R9, R6).
func (r *ruling) verdict(b *record) (meter.Verdict, string) {
	for i := range r.m.Filters {
		if r.matches(&r.m.Filters[i], b) {
			return meter.VerdictFiltered, r.m.Filters[i].Name
		}
	}
	if !r.complete && b.judged >= r.windowEnd(b.time)+r.m.Window.AllowedLateness {
		return meter.VerdictLate, ""
	}
	return meter.VerdictCounted, ""
}

// matches reports whether the filter keeps the record out (R9). Attributes, account and sku are the start's.
func (r *ruling) matches(f *meter.Filter, b *record) bool {
	var text string
	switch f.Field {
	case meter.FilterQuantity:
		q := b.quantities[f.Index]
		switch f.Op {
		case meter.OpAbove:
			return q > f.Ints[0]
		case meter.OpBelow:
			return q < f.Ints[0]
		}
		return slices.Contains(f.Ints, q)
	case meter.FilterAttribute:
		text = b.start.Attributes[f.Index]
		if text == "" {
			return false // a missing attribute never matches
		}
	case meter.FilterAccount:
		text = b.start.Account
	case meter.FilterSKU:
		text = b.start.SKU
	case meter.FilterStatus:
		text = b.status
	}
	if f.Op == meter.OpPrefix {
		return slices.ContainsFunc(f.Values, func(v string) bool { return strings.HasPrefix(text, v) })
	}
	return slices.Contains(f.Values, text)
}

// tier is the number of thresholds that the tier quantity exceeds (R9).
func (r *ruling) tier(quantities []int64) int32 {
	var tier int32
	if r.m.Event.TierOn >= 0 {
		for _, above := range r.m.Event.TierAbove {
			if quantities[r.m.Event.TierOn] > above {
				tier++
			}
		}
	}
	return tier
}

// change adds the record to its cell at the line, or takes it back (R9).
func (r *ruling) change(b *record, step int, withdraw bool) {
	r.effects = append(r.effects, effect{
		step: step,
		cell: meter.CellKey{Account: b.start.Account, WindowEnd: r.windowEnd(b.time), SKU: b.start.SKU,
			Tier: r.tier(b.quantities)},
		usage:    meter.Usage{Requests: 1, Quantities: b.quantities, SetHash: b.start.ID.Hash64()},
		withdraw: withdraw,
	})
}

// whole is the item of a billable record with the records it takes with it. Judged is 0 where nothing judges, under
// the complete truth.
func (r *ruling) whole(v meter.Verdict, filter string, b *record) meter.Item {
	s := b.start
	it := meter.Item{
		Verdict: v, Filter: filter, Partition: s.Partition, Offsets: []int64{s.Offset}, ID: s.ID, Reference: s.Reference,
		Kind: s.Kind, Account: s.Account, SKU: s.SKU, Tier: r.tier(b.quantities), Time: b.time, WindowEnd: r.windowEnd(b.time),
		Status: b.status, Usage: meter.Usage{Requests: 1, Quantities: b.quantities, SetHash: s.ID.Hash64()}, Judged: b.judged,
		Abandoned: b.end == nil && s.Kind == meter.KindStart,
	}
	if r.complete {
		it.Judged = 0
	}
	if x := b.end; x != nil {
		it.Kind = x.Kind
		if x.Partition == s.Partition {
			it.Offsets = append(it.Offsets, x.Offset)
			slices.Sort(it.Offsets)
		} else {
			it.Elsewhere = []meter.LogPosition{{Partition: x.Partition, Offset: x.Offset}}
		}
	}
	return it
}

// lone is the item of a record that is not part of a billable one. start is the one known to an end, or nil:
// then nobody knows the end's account and sku (R3).
func (r *ruling) lone(v meter.Verdict, e, start *entry) {
	it := meter.Item{
		Verdict: v, Partition: e.Partition, Offsets: []int64{e.Offset}, ID: e.ID, Reference: e.Reference, Kind: e.Kind,
		Account: e.Account, SKU: e.SKU, Time: e.Time, WindowEnd: r.windowEnd(e.Time), Status: e.Status,
		Usage: meter.Usage{Quantities: e.Quantities}, Judged: e.w,
	}
	if start != nil && e.Kind.IsEnd() {
		it.Account, it.SKU, it.Reference = start.Account, start.SKU, start.Reference
	}
	switch {
	case r.complete:
		it.Judged = 0
	case v == meter.VerdictOpen:
		it.Judged = r.partitionOf(e).last
	}
	it.Tier = r.tier(e.Quantities)
	if e.Kind == meter.KindEvent {
		it.Usage.Requests, it.Usage.SetHash = 1, e.ID.Hash64()
	}
	r.items = append(r.items, it)
}

func (r *ruling) partitionOf(e *entry) *partition {
	i := slices.IndexFunc(r.book.partitions, func(p *partition) bool { return p.number == e.Partition })
	return r.book.partitions[i]
}

// copyOf gives a record after the first of its kind in a life its verdict (R3). start is the one known to an end.
func (r *ruling) copyOf(first, e, start *entry) {
	if e.Kind == first.Kind && r.sameFields(first, e) {
		r.lone(meter.VerdictDuplicate, e, start)
		return
	}
	r.lone(meter.VerdictConflict, e, start)
}

// sameFields compares all mapped fields that are read on the kind of a and b (R3).
func (r *ruling) sameFields(a, b *entry) bool {
	return a.Account == b.Account && a.SKU == b.SKU && a.Time == b.Time && a.Status == b.Status &&
		slices.Equal(a.Quantities, b.Quantities) && a.Present == b.Present && slices.Equal(a.Attributes, b.Attributes) &&
		a.HasLatency == b.HasLatency && a.Latency == b.Latency
}
