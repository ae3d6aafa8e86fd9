package stream

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// A fileRun drives counters and a merger over a case as R11 says of a file run, with a ledger that survives it. It
// is what package run does, without goroutines and disks.
type fileRun struct {
	c         *tracetest.Case
	events    []meter.Event // by step; zero at idle lines
	markEvery int64

	counters map[int32]*Counter
	merger   *Merger
	step     int            // the next
	firings  []meter.Firing // since the last commit
	items    []meter.Item

	ledger ledger
}

// A ledger is what is durable.
type ledger struct {
	step      int
	rows      map[meter.RowKey]meter.StoredRow
	journal   []meter.Firing
	items     []meter.Item
	merge     MergeState
	positions map[int32]position
}

type position struct {
	meter.Checkpoint
	commitNo int64
	summary  meter.Summary
}

func newFileRun(c *tracetest.Case) *fileRun {
	r := &fileRun{c: c, markEvery: markEvery}
	d := schemas.NewDecoder(c.Meter)
	for i := range c.Log.Steps {
		var e meter.Event
		if c.Log.Steps[i].Idle == nil {
			d.Decode(&c.Log.Steps[i].Record, &e)
		}
		r.events = append(r.events, e)
	}
	r.ledger = ledger{rows: map[meter.RowKey]meter.StoredRow{}, merge: MergeState{G: meter.MinusInfinity}, positions: map[int32]position{}}
	return r
}

// start builds the state that the ledger stands for.
func (r *fileRun) start() error {
	r.merger = NewMerger(r.c.Meter, NewPricer(r.c.Meter, r.c.Card, r.c.List), cloneJSON(r.ledger.merge))
	var live []meter.StoredRow
	for _, s := range r.ledger.rows {
		if s.Live {
			live = append(live, s)
		}
	}
	r.merger.Restore(live)
	for _, p := range r.c.Log.Partitions {
		r.merger.SetPartition(p, meter.MinusInfinity, false)
	}
	r.step, r.firings, r.items, r.counters = r.ledger.step, nil, nil, map[int32]*Counter{}
	for p, pos := range r.ledger.positions {
		c, err := r.replay(p, pos)
		if err != nil {
			return err
		}
		r.counters[p] = c
	}
	return nil
}

func (r *fileRun) replay(p int32, pos position) (*Counter, error) {
	c, err := NewCounter(r.c.Meter, p, cloneJSON(pos.Checkpoint), pos.summary)
	if err != nil {
		return nil, err
	}
	c.marks.every = r.markEvery
	c.Resume(pos.commitNo)
	for i := range r.ledger.step {
		if e := &r.events[i]; r.isRecord(i) && e.Partition == p && e.Offset >= pos.Restart {
			if err := c.Replay(e); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func cloneJSON[T any](v T) T {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var w T
	if err := json.Unmarshal(text, &w); err != nil {
		panic(err)
	}
	return w
}

func (r *fileRun) isRecord(i int) bool { return r.c.Log.Steps[i].Idle == nil }

func (r *fileRun) ended() bool { return r.step == len(r.events) }

// next applies a line.
func (r *fileRun) next() error {
	i := r.step
	r.step++
	if !r.isRecord(i) {
		if err := r.publish(); err != nil {
			return err
		}
		for _, p := range r.c.Log.Steps[i].Idle {
			r.merger.SetPartition(p, meter.MinusInfinity, true)
		}
		return r.publish()
	}
	e := &r.events[i]
	if !r.merger.Has(e.Partition) || r.merger.Idle(e.Partition) {
		if err := r.publish(); err != nil {
			return err
		}
	}
	c, err := r.counter(e.Partition)
	if err != nil {
		return err
	}
	if err := c.Apply(e); err != nil {
		return err
	}
	r.merger.SetPartition(e.Partition, c.Watermark(), false)
	if r.merger.Due() {
		return r.publish()
	}
	return nil
}

func (r *fileRun) counter(p int32) (*Counter, error) {
	if c := r.counters[p]; c != nil {
		return c, nil
	}
	c, err := NewCounter(r.c.Meter, p, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{})
	if err != nil {
		return nil, err
	}
	c.marks.every = r.markEvery
	r.counters[p] = c
	return c, nil
}

// take adds all changes.
func (r *fileRun) take() error {
	for _, p := range slices.Sorted(maps.Keys(r.counters)) {
		c := r.counters[p]
		no, changes := c.TakeChanges()
		var found []meter.StoredRow
		for _, key := range r.merger.Missing(changes) {
			if s, ok := r.ledger.rows[key]; ok {
				found = append(found, s)
			}
		}
		r.merger.Restore(found)
		if err := r.merger.Add(p, no, changes); err != nil {
			return err
		}
		r.items = append(r.items, c.TakeItems()...)
	}
	return nil
}

func (r *fileRun) publish() error {
	if err := r.take(); err != nil {
		return err
	}
	fired, err := r.merger.Publish()
	r.firings = append(r.firings, fired...)
	return err
}

func (r *fileRun) drain() error {
	for p, c := range r.counters {
		if err := c.Drain(); err != nil {
			return err
		}
		r.merger.SetPartition(p, c.Watermark(), false)
	}
	for _, s := range r.merger.State().Partitions {
		r.merger.SetPartition(s.Partition, meter.PlusInfinity, false)
	}
	return r.publish()
}

// commit makes all durable.
func (r *fileRun) commit(carry bool) error {
	if err := r.take(); err != nil {
		return err
	}
	rows, err := r.merger.Dirty()
	if err != nil {
		return err
	}
	for _, s := range rows {
		r.ledger.rows[s.RowKey] = cloneJSON(s)
	}
	r.ledger.step, r.ledger.merge = r.step, cloneJSON(r.merger.State())
	r.ledger.journal = append(r.ledger.journal, r.firings...)
	r.ledger.items = append(r.ledger.items, r.items...)
	r.firings, r.items = nil, nil
	for p, c := range r.counters {
		cp, err := c.Checkpoint(carry)
		if err != nil {
			return err
		}
		r.ledger.positions[p] = position{Checkpoint: cp, commitNo: c.commitNo, summary: c.Summary()}
	}
	return nil
}

// finish runs to the end and commits.
func (r *fileRun) finish() error {
	for !r.ended() {
		if err := r.next(); err != nil {
			return err
		}
	}
	return r.end()
}

func (r *fileRun) end() error {
	if r.c.Drain {
		if err := r.drain(); err != nil {
			return err
		}
	}
	return r.commit(true)
}

func (r *fileRun) bill() []meter.Row {
	var rows []meter.Row
	for _, s := range r.ledger.rows {
		if s.Usage.Requests != 0 {
			rows = append(rows, s.Row)
		}
	}
	slices.SortFunc(rows, func(a, b meter.Row) int { return a.Compare(b.RowKey) })
	return rows
}

func (r *fileRun) summary() meter.Summary {
	var sum meter.Summary
	for _, c := range r.counters {
		s := c.Summary()
		sum.Add(&s)
	}
	return sum
}

// run is a case from start to end without a break.
func run(c *tracetest.Case) (*fileRun, error) {
	r := newFileRun(c)
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, r.finish()
}

func (r *fileRun) answer() (*tracetest.Answer, error) {
	a := &tracetest.Answer{Skip: []string{tracetest.Rows, tracetest.Complete}, Bill: r.bill(), Journal: r.ledger.journal, Items: r.ledger.items, Summary: r.summary()}
	p := NewPricer(r.c.Meter, r.c.Card, r.c.List)
	for i := range a.Items {
		it := &a.Items[i]
		a.Prices = append(a.Prices, p.Price(&meter.Cell{CellKey: meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}, Usage: it.Usage}))
	}
	for i := range r.events {
		if e := &r.events[i]; r.isRecord(i) && e.Bucket == meter.BucketDeadLetter {
			a.Dead = append(a.Dead, tracetest.DeadLetter{Partition: e.Partition, Offset: e.Offset, Reason: e.Reason})
		}
	}
	s := a.Summary
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("conservation: %w", err)
	}
	return a, nil
}

// TestTraces lets the stream sit the exam.
func TestTraces(t *testing.T) {
	tracetest.Run(t, "../testdata/traces", func(c *tracetest.Case) (*tracetest.Answer, error) {
		r, err := run(c)
		if err != nil {
			return nil, err
		}
		return r.answer()
	})
}
