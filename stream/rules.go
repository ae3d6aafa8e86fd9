package stream

import "github.com/gatewaymeter/gatewaymeter/meter"

// event is R7 of an events meter: a record of a remembered id is a copy, any other is billable at its own time.
func (c *Counter) event(e *meter.Event) error {
	horizon := c.startHorizon(e.Time)
	var ref uint32
	if !c.none {
		var known bool
		if ref, known = c.recall(e); known {
			if !c.skips(ref) {
				c.copyOf(ref, e, e.PayloadHash == c.lives.at(ref)[wordStartHash])
				c.prolong(ref, horizon)
			}
			return nil
		}
		if horizon > c.watermark { // a late one is not remembered
			return c.rememberEvent(ref, e, horizon)
		}
	}
	return c.loneEvent(e, horizon)
}

func (c *Counter) rememberEvent(ref uint32, e *meter.Event, horizon int64) error {
	ref, err := c.beginLife(ref, e, horizon)
	if err != nil {
		return err
	}
	c.setStart(ref, e)
	b := c.ofLife(ref)
	v, err := c.billEvent(b, e)
	if v == meter.VerdictCounted {
		c.lives.at(ref).setPhase(counted)
	} else {
		c.lives.at(ref).setPhase(done)
	}
	return err
}

// loneEvent bills an event whose id is not remembered.
func (c *Counter) loneEvent(e *meter.Event, horizon int64) error {
	b := &c.scratch
	*b = billable{quantities: append(b.quantities[:0], e.Quantities...), hash: e.IDHash, account: e.Account, sku: e.SKU}
	b.marks = make([]uint64, c.lives.nMarks)
	c.filters.mark(b.marks, e.Attributes)
	b.cellNames = cellKey{account: c.names.hold(e.Account), sku: c.names.hold(e.SKU)}
	_, err := c.billEvent(b, e)
	c.names.release(b.cellNames.account)
	c.names.release(b.cellNames.sku)
	if m := c.marks.of(e.Offset); horizon > m.until {
		m.until = horizon
	}
	return err
}

func (c *Counter) billEvent(b *billable, e *meter.Event) (meter.Verdict, error) {
	b.id, b.time, b.status, b.judged = e.ID, e.Time, e.Status, c.watermark
	v, filter := c.judge(b)
	c.tell(c.bucket(v), 1)
	if v == meter.VerdictCounted {
		return v, c.count(b, 1)
	}
	if !c.silent {
		it := c.whole(v, filter, b)
		it.Offsets, it.Reference, it.Kind = []int64{e.Offset}, e.Reference, e.Kind
		c.items = append(c.items, it)
	}
	return v, nil
}

// skips reports whether a replayed record belongs to a life that the checkpoint carried whole (R8).
func (c *Counter) skips(ref uint32) bool { return c.silent && c.lives.at(ref).has(carried) }

// copyOf judges a record of a remembered id and kind (R3).
func (c *Counter) copyOf(ref uint32, e *meter.Event, same bool) {
	if same {
		c.tellLone(meter.VerdictDuplicate, e, ref)
	} else {
		c.tellLone(meter.VerdictConflict, e, ref)
	}
}

// start is R7 for a start.
func (c *Counter) start(e *meter.Event) error {
	horizon := c.startHorizon(e.Time)
	if c.watermark >= horizon {
		c.lateAtDoor(e)
		return nil
	}
	ref, known := c.recall(e)
	switch {
	case !known:
		return c.openRequest(ref, e, horizon)
	case c.skips(ref):
		return nil
	case c.lives.at(ref).has(hasStart):
		c.copyOf(ref, e, e.PayloadHash == c.lives.at(ref)[wordStartHash])
		c.prolong(ref, horizon)
		return nil
	}
	c.setStart(ref, e)
	if c.lives.at(ref).phase() == held {
		return c.meetHeld(ref, e)
	}
	return c.openAfterOrphan(ref, e)
}

func (c *Counter) openRequest(ref uint32, e *meter.Event, horizon int64) error {
	ref, err := c.beginLife(ref, e, horizon)
	if err != nil {
		return err
	}
	c.setStart(ref, e)
	c.wait(ref)
	return nil
}

// openAfterOrphan begins to wait for D, in vain: the life's first end is an orphan already.
func (c *Counter) openAfterOrphan(ref uint32, e *meter.Event) error {
	c.lives.setReference(ref, e.Reference)
	x := c.lives.extras[ref]
	x.startAt = e.Offset
	c.lives.setExtra(ref, x)
	l := c.lives.at(ref)
	for i, q := range c.m.Event.Quantities {
		if q.OnEnd { // from here on they hold what progress tells
			l[c.lives.quantities+i] = 0
		}
	}
	c.wait(ref)
	return nil
}

// wait opens a request until D.
func (c *Counter) wait(ref uint32) {
	l := c.lives.at(ref)
	l.setPhase(open)
	c.open++
	c.timers.add(l.startTime()+c.patience, ref)
}

// meetHeld completes a request whose end came first: at time(X), judged at W(S).
func (c *Counter) meetHeld(ref uint32, e *meter.Event) error {
	l := c.lives.at(ref)
	c.open--
	c.lives.setReference(ref, e.Reference)
	kind := meter.KindComplete
	if l.has(endFailed) {
		kind = meter.KindError
	}
	b := c.ofLife(ref)
	b.time, b.status = l.endTime(), c.names.text(l.status())
	return c.complete(ref, b, e, kind)
}

// end is R7 for a complete or an error.
func (c *Counter) end(e *meter.Event) error {
	if c.watermark >= c.endHorizon(e.Time) {
		c.lateAtDoor(e)
		return nil
	}
	ref, known := c.recall(e)
	if !known {
		return c.hold(ref, e)
	}
	if c.skips(ref) {
		return nil
	}
	l := c.lives.at(ref)
	if l.has(hasEnd) {
		sameKind := l.has(endFailed) == (e.Kind == meter.KindError)
		c.copyOf(ref, e, sameKind && e.PayloadHash == l[wordEndHash])
		c.prolong(ref, c.endHorizon(e.Time))
		return nil
	}
	switch l.phase() {
	case open:
		c.open--
		c.setEnd(ref, e)
		c.setEndQuantities(ref, e)
		b := c.ofLife(ref)
		b.time, b.status = e.Time, e.Status
		return c.complete(ref, b, e, e.Kind)
	case abandoned:
		if c.watermark < c.startHorizon(l.startTime()) && c.watermark < c.endOf(e.Time)+c.lateness {
			return c.supersede(ref, e)
		}
	}
	c.setEnd(ref, e)
	c.tellLone(meter.VerdictLateCompletion, e, ref)
	return nil
}

// hold keeps an end until its start comes or W >= time(X)+A.
func (c *Counter) hold(ref uint32, e *meter.Event) error {
	ref, err := c.beginLife(ref, e, c.endHorizon(e.Time))
	if err != nil {
		return err
	}
	c.setEnd(ref, e)
	c.setEndQuantities(ref, e)
	l := c.lives.at(ref)
	l.setStatus(c.names.hold(e.Status))
	l.setPhase(held)
	c.open++
	c.timers.add(c.endHorizon(e.Time), ref)
	return nil
}

// complete bills a request that has its start and its end, the later of which is e.
func (c *Counter) complete(ref uint32, b *billable, e *meter.Event, kind meter.Kind) error {
	b.id, b.judged = e.ID, c.watermark
	v, filter := c.judge(b)
	c.tell(c.bucket(v), 2)
	if v == meter.VerdictCounted {
		c.lives.at(ref).setPhase(counted)
		return c.count(b, 1)
	}
	c.lives.at(ref).setPhase(done)
	if !c.silent {
		it := c.whole(v, filter, b)
		it.Offsets, it.Reference, it.Kind = []int64{c.lives.at(ref).first(), e.Offset}, c.lives.reference(ref), kind
		c.items = append(c.items, it)
	}
	return nil
}

// supersede withdraws the abandoned record and bills the completed one.
func (c *Counter) supersede(ref uint32, e *meter.Event) error {
	if err := c.count(c.ofAbandoned(ref), -1); err != nil {
		return err
	}
	c.tell(&c.sum.Counted, -1)
	c.tell(&c.sum.Superseded, 1)
	c.setEnd(ref, e)
	c.setEndQuantities(ref, e)
	b := c.ofLife(ref)
	b.time, b.status, b.replace = e.Time, e.Status, true
	return c.complete(ref, b, e, e.Kind)
}

// lateAtDoor is the door of R7: the record can no longer change any open window.
func (c *Counter) lateAtDoor(e *meter.Event) {
	if c.silent {
		return
	}
	c.sum.Late++
	it := c.lone(meter.VerdictLate, e, 0)
	it.Door = true
	c.items = append(c.items, it)
}

// progress remembers the greatest running totals of an open request (R7).
func (c *Counter) progress(e *meter.Event) {
	c.tell(&c.sum.Progress, 1)
	ref, known := c.recall(e)
	if !known || c.skips(ref) || c.lives.at(ref).phase() != open {
		return
	}
	q := c.lives.quantitiesOf(c.lives.at(ref))
	for i := range q {
		if c.m.Event.Quantities[i].OnEnd && e.Present>>i&1 == 1 {
			q[i] = uint64(max(int64(q[i]), e.Quantities[i]))
		}
	}
}

// waitsFor is the time that a life's timer stands at, if it waits for one.
func (c *Counter) waitsFor(l life) (t int64, ok bool) {
	switch l.phase() {
	case held:
		return c.endHorizon(l.endTime()), true
	case open:
		return l.startTime() + c.patience, true
	}
	return 0, false
}

// fire is a timer: a held end becomes an orphan, an open request is abandoned (R7).
func (c *Counter) fire(ref uint32) error {
	c.open--
	if c.lives.at(ref).phase() == held {
		c.orphan(ref)
		return nil
	}
	return c.abandon(ref)
}

func (c *Counter) orphan(ref uint32) {
	l := c.lives.at(ref)
	l.setPhase(orphaned)
	if c.silent {
		return
	}
	c.sum.Orphan++
	b := c.ofLife(ref)
	it := c.whole(meter.VerdictOrphan, "", b)
	it.ID, it.Reference = c.lives.idOf(l), c.lives.reference(ref)
	it.Offsets, it.Kind, it.Status = []int64{l.first()}, meter.KindComplete, c.names.text(l.status())
	it.Time, it.WindowEnd = l.endTime(), c.endOf(l.endTime())
	it.Usage.Requests, it.Usage.SetHash = 0, 0
	if l.has(endFailed) {
		it.Kind = meter.KindError
	}
	it.Judged = c.watermark
	c.items = append(c.items, it)
}

func (c *Counter) abandon(ref uint32) error {
	c.tell(&c.sum.Abandoned, 1)
	b := c.ofAbandoned(ref)
	b.judged = c.watermark
	v, filter := c.judge(b)
	c.tell(c.bucket(v), 1)
	if v == meter.VerdictCounted {
		c.lives.at(ref).setPhase(abandoned)
		return c.count(b, 1)
	}
	c.lives.at(ref).setPhase(done)
	if !c.silent {
		b.id = c.lives.idOf(c.lives.at(ref))
		it := c.whole(v, filter, b)
		it.Offsets, it.Reference, it.Kind = []int64{c.startOffset(ref)}, c.lives.reference(ref), meter.KindStart
		c.items = append(c.items, it)
	}
	return nil
}

// startOffset is where the life's first start stands in the log.
func (c *Counter) startOffset(ref uint32) int64 {
	if l := c.lives.at(ref); !l.has(hasEnd) {
		return l.first()
	}
	return c.lives.extras[ref].startAt
}
