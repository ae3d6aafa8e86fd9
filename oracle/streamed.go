package oracle

import (
	"slices"
	"sort"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// partition judges one partition's log, as streamed: alone, whatever the others hold (R1).
func (r *ruling) partition(p *partition) {
	lives, progress := r.lives(p)
	for _, life := range lives {
		if r.m.Kind == meter.Events {
			r.eventLife(life)
			continue
		}
		r.requestLife(p, life, progress[life[0].ID])
	}
}

// horizon is until when a record keeps its id remembered (R8).
func (r *ruling) horizon(e *entry) int64 {
	switch {
	case e.Kind == meter.KindStart:
		return r.windowEnd(r.deadline(e)) + r.m.Window.AllowedLateness
	case e.Kind.IsEnd():
		return e.Time + r.m.AbandonAfter
	}
	return r.windowEnd(e.Time) + r.m.Window.AllowedLateness
}

// deadline is D(S) (R7).
func (r *ruling) deadline(s *entry) int64 { return s.Time + r.m.AbandonAfter }

// lives cuts the door-passing records of every id into lives (R8): a record begins a new one when the watermark
// it met has reached the horizons of all before it. What the door stops gets its verdict here; progress is
// listed by id, in order.
func (r *ruling) lives(p *partition) (lives [][]*entry, progress map[meter.ID][]*entry) {
	progress = map[meter.ID][]*entry{}
	passed := map[meter.ID][]*entry{}
	var ids []meter.ID // in order of their first record
	for i := range p.entries {
		e := &p.entries[i]
		switch {
		case e.Bucket != meter.BucketEvent:
		case e.Kind == meter.KindProgress:
			progress[e.ID] = append(progress[e.ID], e)
			r.lone(meter.VerdictProgress, e, nil)
		case e.Kind != meter.KindEvent && e.w >= r.horizon(e):
			// R7, the door. It is the same bound as the horizon's: what is admitted would not be remembered.
			r.lone(meter.VerdictLate, e, nil)
			r.items[len(r.items)-1].Door = true
		default:
			if passed[e.ID] == nil {
				ids = append(ids, e.ID)
			}
			passed[e.ID] = append(passed[e.ID], e)
		}
	}
	for _, id := range ids {
		remembered := int64(meter.MinusInfinity)
		for i, e := range passed[id] {
			if i == 0 || e.w >= remembered && !r.neverForgets {
				lives = append(lives, nil)
			}
			lives[len(lives)-1] = append(lives[len(lives)-1], e)
			remembered = max(remembered, r.horizon(e))
		}
	}
	return lives, progress
}

// eventLife judges a life in an events meter (R7): the first record is billable, the others are copies of it.
// A late first record is a life of one: its horizon has passed already.
func (r *ruling) eventLife(life []*entry) {
	b := r.ofEvent(life[0])
	r.bill(b)
	for _, e := range life[1:] {
		r.copyOf(life[0], e, nil)
	}
}

// ofEvent is the billable record of an event, judged at W of its record (R7).
func (r *ruling) ofEvent(e *entry) *record {
	return &record{start: e, quantities: e.Quantities, time: e.Time, status: e.Status, judged: e.w, step: e.step}
}

// bill gives a billable record its verdict and reports whether it was counted.
func (r *ruling) bill(b *record) bool {
	v, filter := r.verdict(b)
	r.items = append(r.items, r.whole(v, filter, b))
	if v == meter.VerdictCounted {
		r.change(b, b.step, false)
	}
	return v == meter.VerdictCounted
}

// requestLife judges a life in a requests meter, R7 from top to bottom. Its first start and its first end
// count, every other record of it is a copy (R3).
func (r *ruling) requestLife(p *partition, life []*entry, progress []*entry) {
	var s, x *entry
	for _, e := range life {
		if e.Kind == meter.KindStart && s == nil {
			s = e
		} else if e.Kind.IsEnd() && x == nil {
			x = e
		}
	}
	for _, e := range life {
		switch {
		case e.Kind == meter.KindStart && e != s:
			r.copyOf(s, e, s)
		case e.Kind.IsEnd() && e != x:
			r.copyOf(x, e, before(s, e))
		}
	}
	switch {
	case s == nil:
		r.orphanOrHeld(p, x)
	case x == nil:
		r.abandonedOrOpen(p, s, progress)
	case s.Offset < x.Offset && x.w < r.deadline(s):
		// S, then X while W(X) < D.
		r.bill(r.completed(s, x, x))
	case x.Offset < s.Offset && s.w < x.Time+r.m.AbandonAfter:
		// X before S, and S meets it while it is held.
		r.bill(r.completed(s, x, s))
	case x.Offset < s.Offset:
		// X was an orphan when S came. It stays the first end of the life: S has none.
		r.orphan(p, x)
		r.abandonedOrOpen(p, s, progress)
	default:
		r.endAfterDeadline(p, s, x, progress)
	}
}

// before is s if it comes before e in the log, else nil: what was known when e came.
func before(s, e *entry) *entry {
	if s != nil && s.Offset < e.Offset {
		return s
	}
	return nil
}

// orphanOrHeld judges an end whose life has no start: held until W >= time(X)+A (R7).
func (r *ruling) orphanOrHeld(p *partition, x *entry) {
	if _, _, ok := r.passing(p, x.Time+r.m.AbandonAfter); ok {
		r.orphan(p, x)
		return
	}
	r.lone(meter.VerdictOpen, x, nil)
}

func (r *ruling) orphan(p *partition, x *entry) {
	_, judged, _ := r.passing(p, x.Time+r.m.AbandonAfter)
	r.lone(meter.VerdictOrphan, x, nil)
	r.items[len(r.items)-1].Judged = judged
}

// passing finds the moment in which the partition's watermark passed t, which lay ahead of it when a timer was
// set (R4): the line whose record moved it, and the watermark before, which judges what the timer does. Draining
// passes every t, at the line after the last (R13). ok is false if t was not passed.
func (r *ruling) passing(p *partition, t int64) (step int, before int64, ok bool) {
	i := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].after >= t })
	switch {
	case i < len(p.entries):
		return p.entries[i].step, p.entries[i].w, true
	case r.drain:
		return r.book.lines, p.last, true
	}
	return 0, 0, false
}

// abandonedOrOpen judges a start whose life has no end for it (R7).
func (r *ruling) abandonedOrOpen(p *partition, s *entry, progress []*entry) {
	b := r.ofAbandoned(p, s, progress)
	if b == nil {
		r.lone(meter.VerdictOpen, s, nil)
		return
	}
	r.abandoned++
	r.bill(b)
}

// endAfterDeadline judges S, then the first X with W(X) >= D (R7): the request had been abandoned.
func (r *ruling) endAfterDeadline(p *partition, s, x *entry, progress []*entry) {
	b := r.ofAbandoned(p, s, progress)
	r.abandoned++
	v, filter := r.verdict(b)
	if v == meter.VerdictCounted {
		r.change(b, b.step, false)
	}
	end, lateness := r.windowEnd(r.deadline(s)), r.m.Window.AllowedLateness
	if v != meter.VerdictCounted || x.w >= end+lateness || x.w >= r.windowEnd(x.Time)+lateness {
		r.items = append(r.items, r.whole(v, filter, b))
		r.lone(meter.VerdictLateCompletion, x, s)
		return
	}
	r.superseded++
	r.change(b, x.step, true)
	now := r.completed(s, x, x)
	v, filter = r.verdict(now)
	it := r.whole(v, filter, now)
	it.Superseded = true
	r.items = append(r.items, it)
	if v == meter.VerdictCounted {
		r.change(now, x.step, false)
	}
}

// completed is the record of a request that ended: at time(X), judged at W of decider, the later of the two.
func (r *ruling) completed(s, x, decider *entry) *record {
	b := &record{start: s, end: x, time: x.Time, status: x.Status, judged: decider.w, step: decider.step}
	b.quantities = slices.Clone(s.Quantities)
	for i, q := range r.m.Event.Quantities {
		if q.OnEnd {
			b.quantities[i] = x.Quantities[i]
		}
	}
	return b
}

// ofAbandoned is the record of a request without an end at D, nil if W has not reached D (R7).
func (r *ruling) ofAbandoned(p *partition, s *entry, progress []*entry) *record {
	d := r.deadline(s)
	b := &record{start: s, time: d, status: abandonedStatus, judged: s.w, step: s.step}
	if s.w < d { // else judged at W(S), there and then
		var ok bool
		if b.step, b.judged, ok = r.passing(p, d); !ok {
			return nil
		}
	}
	told := slices.DeleteFunc(slices.Clone(progress), func(e *entry) bool { return e.Offset < s.Offset || e.w >= d })
	b.quantities = r.running(s, told)
	return b
}

// running is the quantities of S, and of each end quantity the greatest running total that the progress
// records tell, 0 without any; a whole is at least the sum of its parts (R7).
func (r *ruling) running(s *entry, progress []*entry) []int64 {
	q := slices.Clone(s.Quantities)
	for i := range r.m.Event.Quantities {
		for _, e := range progress {
			if r.m.Event.Quantities[i].OnEnd && e.Present&(1<<i) != 0 {
				q[i] = max(q[i], e.Quantities[i])
			}
		}
	}
	for i := range r.m.Event.Quantities {
		if r.m.Event.Quantities[i].OnEnd {
			q[i] = max(q[i], r.partsOf(i, q))
		}
	}
	return q
}

// partsOf is the sum of the parts of quantity whole.
func (r *ruling) partsOf(whole int, quantities []int64) int64 {
	var sum int64
	for i, q := range r.m.Event.Quantities {
		if q.PartOf == whole {
			sum += quantities[i]
		}
	}
	return sum
}
