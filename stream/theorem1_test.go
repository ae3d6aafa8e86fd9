package stream

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// TestTheorem1: with copies that carry equal times, the billed cells equal those of an engine that forgets nothing
// (R8).
func TestTheorem1(t *testing.T) {
	gen.Check(t, gen.Options{EqualCopies: true}, func(t *rapid.T, c *tracetest.Case) {
		for _, events := range newFileRun(c).byPartition() {
			counter := fresh(t, c.Meter, events[0].Partition, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{}, 3)
			got := map[meter.CellKey]meter.Usage{}
			take := func() {
				_, changes := counter.TakeChanges()
				for _, x := range changes {
					delta, err := x.Value.Minus(x.Was)
					must(t, err)
					got[x.CellKey], err = got[x.CellKey].Plus(delta)
					must(t, err)
				}
			}
			for i := range events {
				must(t, counter.Apply(&events[i]))
				if i%5 == 0 {
					take()
				}
			}
			if c.Drain {
				must(t, counter.Drain())
			}
			take()
			want := newElephant(counter, events, c.Drain).cells()
			same(t, "cells", cellLines(want), cellLines(got))
		}
	})
}

func cellLines(cells map[meter.CellKey]meter.Usage) []string {
	text := map[string]bool{}
	for k, u := range cells {
		if u.Requests != 0 {
			text[fmt.Sprintf("%+v %+v", k, u)] = true
		}
	}
	return sorted(text)
}

// An elephant judges a partition's log by R7 and forgets nothing: one life an id. It borrows the counter's filters,
// tiers and windows, which have nothing to do with memory.
type elephant struct {
	*Counter
	events []meter.Event
	w      []int64 // W of each record, and after the last
	drain  bool
}

func newElephant(c *Counter, events []meter.Event, drain bool) *elephant {
	e := &elephant{Counter: c, events: events, drain: drain}
	reach := meter.MinusInfinity
	for i := range events {
		e.w = append(e.w, c.watermarkAt(reach))
		if events[i].Admitted() {
			reach = max(reach, events[i].Reach())
		}
	}
	e.w = append(e.w, c.watermarkAt(reach))
	return e
}

// pair is the first start (or event) and the first end of an id that pass the door, as indices; -1 is none.
type pair struct{ s, x int }

func (e *elephant) cells() map[meter.CellKey]meter.Usage {
	pairs := map[meter.ID]*pair{}
	for i := range e.events {
		r := &e.events[i]
		isStart, isEnd := r.Kind == meter.KindStart || r.Kind == meter.KindEvent, r.Kind.IsEnd()
		atDoor := isStart && e.w[i] >= e.startHorizon(r.Time) || isEnd && e.w[i] >= e.endHorizon(r.Time)
		if r.Bucket != meter.BucketEvent || !isStart && !isEnd || atDoor && r.Kind != meter.KindEvent {
			continue
		}
		p := pairs[r.ID]
		if p == nil {
			p = &pair{-1, -1}
			pairs[r.ID] = p
		}
		if isStart && p.s < 0 {
			p.s = i
		} else if isEnd && p.x < 0 {
			p.x = i
		}
	}
	cells := map[meter.CellKey]meter.Usage{}
	for _, p := range pairs {
		if b := e.fate(p); b != nil {
			if v, _ := e.judge(b); v == meter.VerdictCounted {
				key := meter.CellKey{Account: b.account, SKU: b.sku, WindowEnd: e.endOf(b.time), Tier: e.tier(b.quantities)}
				cells[key], _ = cells[key].Plus(meter.Usage{Requests: 1, Quantities: b.quantities, SetHash: b.hash})
			}
		}
	}
	return cells
}

// fate is the one billable record that an id comes to, nil if none.
func (e *elephant) fate(p *pair) *billable {
	if p.s < 0 {
		return nil
	}
	s := &e.events[p.s]
	b := &billable{account: s.Account, sku: s.SKU, hash: s.IDHash, quantities: append([]int64(nil), s.Quantities...), marks: make([]uint64, e.lives.nMarks)}
	e.filters.mark(b.marks, s.Attributes)
	d := s.Time + e.patience
	ended := func(judged int64) *billable {
		x := &e.events[p.x]
		b.time, b.status, b.judged = x.Time, x.Status, judged
		for i, q := range e.m.Event.Quantities {
			if q.OnEnd {
				b.quantities[i] = x.Quantities[i]
			}
		}
		return b
	}
	switch {
	case s.Kind == meter.KindEvent:
		b.time, b.status, b.judged = s.Time, s.Status, e.w[p.s]
		return b
	case p.x >= 0 && p.x < p.s && e.w[p.s] < e.endHorizon(e.events[p.x].Time):
		return ended(e.w[p.s])
	case p.x > p.s && e.w[p.x] < d:
		return ended(e.w[p.x])
	case e.w[len(e.events)] < d && !e.drain:
		return nil
	}
	b.time, b.status, b.judged = d, abandonedStatus, d-1 // never late (R7): judged below D, or by what the door let pass
	e.progressOf(b, p.s, d)
	if p.x > p.s {
		v, _ := e.judge(b)
		x := e.events[p.x].Time
		if v == meter.VerdictCounted && e.w[p.x] < e.endOf(d)+e.lateness && e.w[p.x] < e.endOf(x)+e.lateness {
			return ended(e.w[p.x])
		}
	}
	return b
}

func (e *elephant) progressOf(b *billable, s int, d int64) {
	for i := s; i < len(e.events); i++ {
		if p := &e.events[i]; p.Kind == meter.KindProgress && p.ID == e.events[s].ID && e.w[i] < d && p.Bucket == meter.BucketEvent {
			for q := range b.quantities {
				if e.m.Event.Quantities[q].OnEnd && p.Present>>q&1 == 1 {
					b.quantities[q] = max(b.quantities[q], p.Quantities[q])
				}
			}
		}
	}
	for whole, parts := range e.partsOf {
		var sum int64
		for _, part := range parts {
			sum += b.quantities[part]
		}
		if e.m.Event.Quantities[whole].OnEnd {
			b.quantities[whole] = max(b.quantities[whole], sum)
		}
	}
}
