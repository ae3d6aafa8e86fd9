package stream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A total is what a row comes to as it stands.
type total struct {
	usage    meter.Usage
	pico     meter.Int128
	source   string
	unpriced int64
}

// total is the sum of the row's cells. An error means that a sum left int64 (R9).
func (m *Merger) total(r *row) (*total, error) {
	if r.isSummed {
		return &r.now, nil
	}
	t := total{usage: meter.Usage{Quantities: make([]int64, m.quantities)}}
	var from sources
	for _, c := range r.cells {
		if c.stale {
			c.priced, c.stale = m.pricer.Price(&c.Cell), false
		}
		var err error
		if t.usage, err = t.usage.Plus(c.Usage); err != nil {
			return nil, err
		}
		t.pico = t.pico.Add(c.priced.Amount)
		if c.Requests == 0 {
			continue // no cell to a reader (R9)
		}
		from.add(c.priced.Source)
		if len(c.priced.Unpriced) > 0 {
			t.unpriced += c.Requests
		}
	}
	t.source = from.text()
	r.now, r.isSummed = t, true
	return &r.now, nil
}

// Publish writes the journal (R11): first corrections and adjustments of what was added, under the G before; then
// G moves, and mains and finals follow in the order of the time that it has reached.
func (m *Merger) Publish() ([]meter.Firing, error) {
	if m.err != nil {
		return nil, fmt.Errorf("stream: publish: %w", m.err)
	}
	p := publication{Merger: m}
	if m.err = p.run(); m.err != nil {
		return nil, fmt.Errorf("stream: publish: %w", m.err)
	}
	return p.fired, nil
}

// A publication is one call of Publish.
type publication struct {
	*Merger
	due   []dueRow // mains and finals to come
	fired []meter.Firing
}

// A dueRow is a row that G has passed the end of, or the end + L.
type dueRow struct {
	*row
	time  int64
	final bool
}

func (p *publication) run() error {
	touched := p.touched
	slices.SortFunc(touched, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.WindowEnd, b.WindowEnd), strings.Compare(a.Account, b.Account))
	})
	p.touched = nil
	for _, r := range touched {
		r.isTouched = false
		if err := p.correct(r); err != nil {
			return err
		}
		p.leave(r)
	}
	p.g = p.reached()
	p.collect()
	slices.SortFunc(p.due, func(a, b dueRow) int {
		return cmp.Or(cmp.Compare(a.time, b.time), compareBool(a.final, b.final), strings.Compare(a.Account, b.Account), cmp.Compare(a.WindowEnd, b.WindowEnd))
	})
	for _, d := range p.due {
		if err := p.complete(d); err != nil {
			return err
		}
	}
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// correct publishes what changed in a row that is out already, and what is first seen when it is final.
func (p *publication) correct(r *row) error {
	t, err := p.total(r)
	if err != nil {
		return err
	}
	if r.revision == 0 {
		switch {
		case t.usage.Requests == 0:
			return nil
		case p.isFinal(r.WindowEnd):
			r.state, r.revision = meter.Final, 1
			zero := total{usage: meter.Usage{Quantities: make([]int64, p.quantities)}, source: sources("").text()}
			p.fire(meter.FinalFiring, r, &zero)
		case p.g >= r.WindowEnd:
			p.due = append(p.due, dueRow{row: r, time: r.WindowEnd})
			return nil
		default:
			return nil
		}
	}
	if t.pico == r.publishedPico && t.usage.Equal(r.published) {
		return nil
	}
	if r.state == meter.Final {
		p.fire(meter.AdjustmentFiring, r, t)
		return nil
	}
	r.state, r.revision = meter.Corrected, r.revision+1
	p.fire(meter.CorrectionFiring, r, t)
	return nil
}

// collect lists the rows of the windows that G has passed since the last publication.
func (p *publication) collect() {
	for !p.mains.empty() && p.mains.first() <= p.g {
		end := p.mains.pop()
		for _, r := range p.windows[end].rows {
			p.due = append(p.due, dueRow{row: r, time: end})
		}
	}
	for !p.finals.empty() && p.isFinal(p.finals.first()) {
		end := p.finals.pop()
		for _, r := range p.windows[end].rows {
			p.due = append(p.due, dueRow{row: r, time: end + p.lateness, final: true})
		}
		delete(p.windows, end)
	}
}

// complete publishes a row as main, or makes it final. A row in which nothing is counted and that was never
// published is left out.
func (p *publication) complete(d dueRow) error {
	t, err := p.total(d.row)
	if err != nil {
		return err
	}
	switch {
	case !d.final && d.revision == 0 && t.usage.Requests != 0:
		d.state, d.revision = meter.Main, 1
		p.fire(meter.MainFiring, d.row, t)
	case d.final && d.revision > 0:
		d.state, d.revision, d.finalPico = meter.Final, d.revision+1, t.pico
		p.fire(meter.FinalFiring, d.row, t)
	}
	if d.final {
		p.leave(d.row)
	}
	return nil
}

// fire writes a journal entry: the total and its difference to what was published before.
func (p *publication) fire(kind meter.FiringKind, r *row, t *total) {
	delta := meter.Usage{Requests: t.usage.Requests - r.published.Requests, SetHash: t.usage.SetHash - r.published.SetHash}
	for i, q := range t.usage.Quantities {
		if i < len(r.published.Quantities) {
			q -= r.published.Quantities[i]
		}
		delta.Quantities = append(delta.Quantities, q)
	}
	p.fired = append(p.fired, meter.Firing{
		RowKey: r.RowKey, Kind: kind, Revision: r.revision, Total: t.usage.Clone(), Delta: delta,
		TotalPico: t.pico, DeltaPico: t.pico.Sub(r.publishedPico), Source: t.source, Unpriced: t.unpriced,
	})
	r.published, r.publishedPico = t.usage.Clone(), t.pico
	p.unsave(r)
}

// Reprice has the rows of windows that are not final written again: after Restore, where another card prices them than
// the one that they were written with (R10).
func (m *Merger) Reprice() {
	for _, w := range m.windows {
		for _, r := range w.rows {
			m.touch(r)
			m.unsave(r)
		}
	}
}

// Dirty takes the rows that changed since the last call, ordered, as they are to be written at this commit:
// absolute values, with every cell that counts something. A row that need not stay in memory is not Live, and
// leaves at the next call: by then this commit has to be durable.
func (m *Merger) Dirty() ([]meter.StoredRow, error) {
	if m.err != nil {
		return nil, fmt.Errorf("stream: save rows: %w", m.err)
	}
	for _, r := range m.leaving {
		if r.isLeaving = false; m.mayLeave(r) && !r.isUnsaved {
			delete(m.rows, r.RowKey)
		}
	}
	m.leaving = nil
	slices.SortFunc(m.unsaved, func(a, b *row) int { return a.Compare(b.RowKey) })
	out := make([]meter.StoredRow, 0, len(m.unsaved))
	for _, r := range m.unsaved {
		r.isUnsaved = false
		s, err := m.stored(r)
		if err != nil {
			m.err = err
			return nil, fmt.Errorf("stream: save rows: %w", err)
		}
		out = append(out, s)
		m.leave(r)
	}
	m.unsaved = nil
	return out, nil
}

// mayLeave reports whether a row can be read from the ledger again, if ever it is needed: nothing of it waits to be
// published.
func (m *Merger) mayLeave(r *row) bool {
	return !r.isTouched && m.isFinal(r.WindowEnd)
}

// leave lets a row go at the next commit but one.
func (m *Merger) leave(r *row) {
	if !r.isLeaving && !r.isUnsaved && m.mayLeave(r) {
		r.isLeaving = true
		m.leaving = append(m.leaving, r)
	}
}

// stored is the row as the ledger keeps it.
func (m *Merger) stored(r *row) (meter.StoredRow, error) {
	t, err := m.total(r)
	if err != nil {
		return meter.StoredRow{}, err
	}
	s := meter.StoredRow{Published: r.published.Clone(), PublishedPico: r.publishedPico, Live: !m.mayLeave(r)}
	s.Row = meter.Row{RowKey: r.RowKey, State: r.state, Revision: r.revision, Usage: t.usage.Clone(), Amount: t.pico, Source: t.source, Unpriced: t.unpriced}
	if r.state == meter.Final {
		s.Amount, s.Adjustment = r.finalPico, t.pico.Sub(r.finalPico)
	}
	for _, c := range r.cells {
		if c.Requests != 0 {
			s.Cells = append(s.Cells, meter.PricedCell{Cell: meter.Cell{CellKey: c.CellKey, Usage: c.Usage.Clone()}, Priced: c.priced})
		}
	}
	return s, nil
}
