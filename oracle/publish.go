package oracle

import (
	"cmp"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A publisher walks the log once more, line by line, and publishes rows as a file run does (R11).
type publisher struct {
	m       *meter.Meter
	prices  *prices
	lists   map[int32]bool // partitions that count or have counted
	idle    map[int32]bool
	marks   map[int32]int64 // watermarks
	g       int64
	waiting []effect              // happened, not yet taken
	cells   cells                 // what was taken
	open    map[meter.RowKey]bool // rows taken that may yet be due
	posted  map[meter.RowKey]*posting
	journal []meter.Firing
}

// A posting is what the journal says so far of a row.
type posting struct {
	state    meter.State
	revision int64
	total    meter.Row // as of the last firing
	final    meter.Int128
}

// publish returns the journal of a file run and the bill after it.
func publish(r *ruling, prices *prices, log *meter.Log) (journal []meter.Firing, bill []meter.Row, err error) {
	p := &publisher{m: r.m, prices: prices, lists: map[int32]bool{}, idle: map[int32]bool{}, marks: map[int32]int64{},
		g: meter.MinusInfinity, cells: cells{}, open: map[meter.RowKey]bool{}, posted: map[meter.RowKey]*posting{}}
	for _, n := range log.Partitions {
		p.join(n)
	}
	happens := map[int][]effect{}
	for _, e := range r.effects {
		happens[e.step] = append(happens[e.step], e)
	}
	moves := map[int]int64{} // line -> watermark of its partition after it
	for _, part := range r.book.partitions {
		for i := range part.entries {
			moves[part.entries[i].step] = part.entries[i].after
		}
	}
	for i := range log.Steps {
		if idle := log.Steps[i].Idle; idle != nil {
			err = p.idleLine(idle)
		} else {
			after, admitted := moves[i]
			err = p.record(log.Steps[i].Record.Partition, happens[i], after, admitted)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	p.waiting = append(p.waiting, happens[len(log.Steps)]...)
	if r.drain {
		if err = p.drain(); err != nil {
			return nil, nil, err
		}
	}
	bill, err = p.bill()
	return p.journal, bill, err
}

// join lets a partition count from here on; its watermark is minus infinity until a record moves it.
func (p *publisher) join(n int32) {
	if !p.lists[n] {
		p.lists[n], p.marks[n] = true, meter.MinusInfinity
	}
}

// idleLine: take all, publish, mark idle, publish.
func (p *publisher) idleLine(partitions []int32) error {
	if err := p.publish(p.g); err != nil {
		return err
	}
	for _, n := range partitions {
		p.join(n)
		p.idle[n] = true
	}
	return p.publish(p.lowest())
}

// record applies one line. Before a record of an idle or new partition everything is taken and published; after
// any record it is where G crosses the end of a window or the end plus L.
func (p *publisher) record(n int32, effects []effect, after int64, admitted bool) error {
	if p.idle[n] || !p.lists[n] {
		if err := p.publish(p.g); err != nil {
			return err
		}
	}
	p.join(n)
	p.waiting = append(p.waiting, effects...)
	if admitted && after > p.marks[n] {
		p.marks[n] = after
		p.idle[n] = false // a watermark that moves wakes its partition
	}
	g := p.lowest()
	if p.crosses(p.g, g) {
		return p.publish(g)
	}
	p.g = g
	return nil
}

// drain moves every partition, idle ones too, to plus infinity (R13).
func (p *publisher) drain() error {
	for n := range p.lists {
		p.idle[n], p.marks[n] = false, meter.PlusInfinity
	}
	return p.publish(p.lowest())
}

// lowest is G as it would be now: the lowest watermark of the partitions that are not idle, never less than
// it was; with all idle it stays.
func (p *publisher) lowest() int64 {
	g, awake := meter.PlusInfinity, false
	for n := range p.lists {
		if !p.idle[n] {
			g, awake = min(g, p.marks[n]), true
		}
	}
	if !awake {
		return p.g
	}
	return max(p.g, g)
}

// crosses reports whether a window's end, or an end plus L, lies in (from, to].
func (p *publisher) crosses(from, to int64) bool {
	if to <= from {
		return false
	}
	z, l := p.m.Window.Size, p.m.Window.AllowedLateness
	return floor(from, z) != floor(to, z) || floor(from-l, z) != floor(to-l, z)
}

// floor is t/z rounded down.
func floor(t, z int64) int64 {
	q := t / z
	if t%z < 0 {
		q--
	}
	return q
}

// publish takes all changes, publishes them under the G before, moves G, and publishes what that makes due.
func (p *publisher) publish(g int64) error {
	changed := map[meter.RowKey]bool{}
	for _, e := range p.waiting {
		if err := p.cells.add(e); err != nil {
			return err
		}
		changed[e.cell.Row()] = true
		p.open[e.cell.Row()] = true
	}
	p.waiting = nil
	if err := p.corrections(changed); err != nil {
		return err
	}
	if p.g == g {
		return p.due(changed) // nothing has come for the others
	}
	p.g = g
	return p.due(p.open)
}

// corrections publishes the changed rows that were published, or final, under the G before: by window, account.
func (p *publisher) corrections(changed map[meter.RowKey]bool) error {
	keys := make([]meter.RowKey, 0, len(changed))
	for k := range changed {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b meter.RowKey) int {
		return cmp.Or(cmp.Compare(a.WindowEnd, b.WindowEnd), cmp.Compare(a.Account, b.Account))
	})
	for _, k := range keys {
		now, err := p.prices.row(k, p.cells[k])
		if err != nil {
			return err
		}
		post := p.at(k)
		closed := p.g >= k.WindowEnd+p.m.Window.AllowedLateness
		same := now.Usage.Equal(post.total.Usage) && now.Amount == post.total.Amount
		switch {
		case same || post.state == meter.Running && !closed:
			// Nothing to say, or its main will say it.
		case post.state == meter.Running:
			post.state, post.revision = meter.Final, 1
			p.fire(meter.FinalFiring, post, post.total) // of zero
			p.fire(meter.AdjustmentFiring, post, now)
		case post.state == meter.Final:
			p.fire(meter.AdjustmentFiring, post, now)
		default:
			post.state, post.revision = meter.Corrected, post.revision+1
			p.fire(meter.CorrectionFiring, post, now)
		}
	}
	return nil
}

// due publishes the mains and finals of rows for which G has come: in the order of the time that G has reached, mains
// before finals, then by account.
func (p *publisher) due(rows map[meter.RowKey]bool) error {
	type turn struct {
		at   int64
		kind meter.FiringKind
		key  meter.RowKey
	}
	var turns []turn
	for k := range rows {
		post := p.at(k)
		end, closing := k.WindowEnd, k.WindowEnd+p.m.Window.AllowedLateness
		if p.g >= closing {
			delete(p.open, k)
		}
		if post.state == meter.Running && p.g >= end {
			turns = append(turns, turn{end, meter.MainFiring, k})
		}
		if post.state != meter.Final && p.g >= closing {
			turns = append(turns, turn{closing, meter.FinalFiring, k})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key.Account, b.key.Account))
	})
	for _, t := range turns {
		now, err := p.prices.row(t.key, p.cells[t.key])
		if err != nil {
			return err
		}
		post := p.at(t.key)
		if post.state == meter.Running && now.Usage.Requests == 0 {
			continue // nothing is counted in it and it was never published
		}
		post.revision++
		if post.state = meter.Main; t.kind == meter.FinalFiring {
			post.state, post.final = meter.Final, now.Amount
		}
		p.fire(t.kind, post, now)
	}
	return nil
}

// at is the posting of a row; a new one is running, of zero.
func (p *publisher) at(k meter.RowKey) *posting {
	if p.posted[k] == nil {
		p.posted[k] = &posting{total: meter.Row{RowKey: k, Source: meter.PriceTable,
			Usage: meter.Usage{Quantities: make([]int64, len(p.m.Event.Quantities))}}}
	}
	return p.posted[k]
}

// fire appends to the journal that the row now stands at total.
func (p *publisher) fire(kind meter.FiringKind, post *posting, now meter.Row) {
	delta, err := now.Usage.Minus(post.total.Usage)
	if err != nil {
		panic("oracle: two int64 sums of counts at or above zero differ by more than int64")
	}
	p.journal = append(p.journal, meter.Firing{
		RowKey: now.RowKey, Kind: kind, Revision: post.revision, Total: now.Usage, Delta: delta,
		TotalPico: now.Amount, DeltaPico: now.Amount.Sub(post.total.Amount), Source: now.Source, Unpriced: now.Unpriced,
	})
	post.total = now
}

// bill is how the ledger shows the rows after the run: everything that happened is in the totals, published or not.
func (p *publisher) bill() ([]meter.Row, error) {
	for _, e := range p.waiting {
		if err := p.cells.add(e); err != nil {
			return nil, err
		}
	}
	var bill []meter.Row
	for k, c := range p.cells {
		row, err := p.prices.row(k, c)
		if err != nil {
			return nil, err
		}
		if row.Usage.Requests == 0 {
			continue
		}
		post := p.at(k)
		row.State, row.Revision = post.state, post.revision
		if post.state == meter.Final {
			row.Amount, row.Adjustment = post.final, row.Amount.Sub(post.final)
		}
		bill = append(bill, row)
	}
	sortRows(bill)
	return bill, nil
}
