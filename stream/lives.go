package stream

import (
	"math/bits"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// recall finds the life that a record of this id falls in (R8). known is false if the id is not remembered; ref may
// still name the place of a life that is over, for the next life of the id.
func (c *Counter) recall(e *meter.Event) (ref uint32, known bool) {
	ref = c.lives.find(e.ID, e.IDHash)
	if ref == 0 {
		return 0, false
	}
	if c.horizon(ref) > c.watermark {
		return ref, true
	}
	c.forgetAt(ref)
	return ref, false
}

// beginLife makes a life that e is the first record of, in the place of an earlier one or in a new one.
func (c *Counter) beginLife(ref uint32, e *meter.Event, horizon int64) (uint32, error) {
	if ref == 0 {
		var err error
		if ref, err = c.lives.add(e.ID, e.IDHash, e.Reference); err != nil {
			return 0, err
		}
		c.horizons.push(horizon, ref)
	} else {
		c.lives.setReference(ref, e.Reference)
	}
	c.lives.at(ref)[wordFirst] = uint64(e.Offset)
	c.marks.born(e.Offset)
	return ref, nil
}

// setStart writes the first start of a life, or in an events meter its event.
func (c *Counter) setStart(ref uint32, e *meter.Event) {
	l := c.lives.at(ref)
	l.set(hasStart)
	l[wordStartTime], l[wordStartHash] = uint64(e.Time), e.PayloadHash
	l.setNames(c.names.hold(e.Account), c.names.hold(e.SKU))
	c.filters.mark(c.lives.marksOf(l), e.Attributes)
	q := c.lives.quantitiesOf(l)
	for i := range q {
		if c.m.Event.Quantities[i].OnEnd {
			continue
		}
		q[i] = uint64(e.Quantities[i])
	}
}

// setEnd writes the first end of a life.
func (c *Counter) setEnd(ref uint32, e *meter.Event) {
	l := c.lives.at(ref)
	l.set(hasEnd)
	if e.Kind == meter.KindError {
		l.set(endFailed)
	}
	l[wordEndTime], l[wordEndHash] = uint64(e.Time), e.PayloadHash
}

// setEndQuantities writes the end's quantities into a life.
func (c *Counter) setEndQuantities(ref uint32, e *meter.Event) {
	q := c.lives.quantitiesOf(c.lives.at(ref))
	for i := range q {
		if c.m.Event.Quantities[i].OnEnd {
			q[i] = uint64(e.Quantities[i])
		}
	}
}

// horizon is until when the id is remembered: the greatest horizon of its copies (R8).
func (c *Counter) horizon(ref uint32) int64 {
	l := c.lives.at(ref)
	h := meter.MinusInfinity
	if l.has(hasStart) {
		h = c.startHorizon(l.startTime())
	}
	if l.has(hasEnd) {
		h = max(h, c.endHorizon(l.endTime()))
	}
	if l.has(prolonged) {
		h = max(h, c.lives.extras[ref].horizon)
	}
	return h
}

// startHorizon is end(D)+L, of an event end(time)+L: A is 0 in an events meter.
func (c *Counter) startHorizon(t int64) int64 { return c.endOf(t+c.patience) + c.lateness }

func (c *Counter) endHorizon(t int64) int64 { return t + c.patience }

// endOf is end(t), the end of the window that t is in (R5).
func (c *Counter) endOf(t int64) int64 {
	if t >= 0 { // dividing takes a machine longer than all the rest of a record's arithmetic
		windows, _ := bits.Mul64(uint64(t), c.perWindow) // t / window, or one less
		end := int64(windows+1) * c.window
		if end <= t {
			end += c.window
		}
		return end
	}
	in := t % c.window
	if in < 0 {
		in += c.window
	}
	return t - in + c.window
}

// prolong lets a copy lengthen the life (R8).
func (c *Counter) prolong(ref uint32, horizon int64) {
	if horizon > c.horizon(ref) {
		c.setProlonged(ref, horizon)
	}
}

func (c *Counter) setProlonged(ref uint32, horizon int64) {
	x := c.lives.extras[ref]
	x.horizon = horizon
	c.lives.setExtra(ref, x)
	if l := c.lives.at(ref); !l.has(prolonged) {
		l.set(prolonged)
		m := c.marks.of(l.first())
		m.prolonged = append(m.prolonged, ref)
	}
}

// forgetAt ends a life but leaves its place to the id: the bucket of its horizon still leads to it.
func (c *Counter) forgetAt(ref uint32) {
	l := c.lives.at(ref)
	if l.phase() == dead {
		return
	}
	c.marks.gone(l.first())
	c.names.release(l.account())
	c.names.release(l.sku())
	c.names.release(l.status())
	c.lives.blank(ref)
}

// bury removes a life that is over, with its place.
func (c *Counter) bury(ref uint32) {
	c.forgetAt(ref)
	c.lives.remove(ref)
}
