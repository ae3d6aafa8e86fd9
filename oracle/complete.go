package oracle

import (
	"cmp"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// everything judges the whole log by the complete truth (R15): one life per id, in the order of log time,
// partition, offset.
func (r *ruling) everything() {
	byID := map[meter.ID][]*entry{}
	var ids []meter.ID
	for _, e := range r.inOrder() {
		if e.Kind == meter.KindProgress {
			r.lone(meter.VerdictProgress, e, nil)
		}
		if byID[e.ID] == nil {
			ids = append(ids, e.ID)
		}
		byID[e.ID] = append(byID[e.ID], e)
	}
	for _, id := range ids {
		if r.m.Kind == meter.Events {
			r.eventLife(byID[id])
			continue
		}
		r.request(byID[id])
	}
}

// inOrder lists the admitted events in the order of R15; a missing log time is 0.
func (r *ruling) inOrder() []*entry {
	var all []*entry
	for _, p := range r.book.partitions {
		for i := range p.entries {
			if p.entries[i].Bucket == meter.BucketEvent {
				all = append(all, &p.entries[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.logTime(), b.logTime()), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return all
}

func (e *entry) logTime() int64 {
	if !e.HasLogTime {
		return 0
	}
	return e.LogTime
}

// request judges all records of one id (R15): the first start and the first end count. With an end it is
// completed, however late; without one it is abandoned, with all progress after its start.
func (r *ruling) request(records []*entry) {
	var s, x *entry
	var progress []*entry // after the start
	for _, e := range records {
		switch {
		case e.Kind == meter.KindStart && s == nil:
			s = e
		case e.Kind.IsEnd() && x == nil:
			x = e
		case e.Kind == meter.KindProgress && s != nil:
			progress = append(progress, e)
		}
	}
	for _, e := range records {
		switch {
		case e.Kind == meter.KindStart && e != s:
			r.copyOf(s, e, s)
		case e.Kind.IsEnd() && e != x:
			r.copyOf(x, e, s)
		}
	}
	switch {
	case s == nil && x == nil: // progress alone
	case s == nil && r.reached(x, x.Time+r.m.AbandonAfter):
		r.lone(meter.VerdictOrphan, x, nil)
	case s == nil:
		r.lone(meter.VerdictOpen, x, nil)
	case x != nil:
		r.bill(r.completed(s, x, x))
	case r.reached(s, r.deadline(s)):
		r.abandoned++
		r.bill(&record{start: s, time: r.deadline(s), status: abandonedStatus, quantities: r.running(s, progress)})
	default:
		r.lone(meter.VerdictOpen, s, nil)
	}
}

// reached reports whether the last watermark of e's partition is at t, or the log has ended for good.
func (r *ruling) reached(e *entry, t int64) bool {
	return r.drain || r.partitionOf(e).last >= t
}
