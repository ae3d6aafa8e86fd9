package stream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A MergeState is what the merge keeps beside its rows, to be saved in the same act as they and the positions.
type MergeState struct {
	// G is the merge's watermark (R11) as of the last publication; meter.MinusInfinity at first.
	G          int64            `json:"g"`
	Partitions []PartitionState `json:"partitions,omitempty"` // by number
}

// A PartitionState is what the merge knows of a partition.
type PartitionState struct {
	Partition int32 `json:"partition"`
	Watermark int64 `json:"watermark"`
	Idle      bool  `json:"idle,omitempty"`
	CommitNo  int64 `json:"commit_no"` // of the last changes it took
}

// A Merger sums the partitions' cells to rows and publishes them (R11). See the package comment for its use.
type Merger struct {
	pricer     *Pricer
	window     int64 // Z
	lateness   int64 // L
	quantities int
	g          int64
	partitions []PartitionState // by number
	err        error

	rows    map[meter.RowKey]*row
	windows map[int64]*mergeWindow // by end: those that are not final at G
	mains   queue[int64]           // ends that G has not passed yet
	finals  queue[int64]           // ends whose window is not final at G yet
	touched []*row                 // rows whose total may differ from what is published
	unsaved []*row                 // rows to be written at the next commit
	leaving []*row                 // rows that need not stay once the commit under way is durable
}

// A mergeWindow holds the rows of a window that is not final at G.
type mergeWindow struct{ rows []*row }

// A row as the merge keeps it.
type row struct {
	meter.RowKey
	state         meter.State
	revision      int64
	cells         []*mergedCell // ordered by sku and tier; some may be back at zero requests
	published     meter.Usage
	publishedPico meter.Int128
	finalPico     meter.Int128 // the amount of a final row, which does not move
	now           total        // of the cells, if isSummed
	isSummed      bool
	isTouched     bool // Invariant: it stands in Merger.touched.
	isUnsaved     bool // Invariant: it stands in Merger.unsaved.
	isLeaving     bool // Invariant: it stands in Merger.leaving.
}

type mergedCell struct {
	meter.Cell
	priced meter.Priced
	stale  bool // priced is not that of the cell's usage
}

// NewMerger goes on from a state; MergeState{G: meter.MinusInfinity} begins. The rows that the ledger has marked live
// have to be restored before anything else ([Merger.Restore]).
func NewMerger(m *meter.Meter, pricer *Pricer, state MergeState) *Merger {
	return &Merger{
		pricer: pricer, window: m.Window.Size, lateness: m.Window.AllowedLateness, quantities: len(m.Event.Quantities),
		g: state.G, partitions: slices.Clone(state.Partitions), rows: map[meter.RowKey]*row{}, windows: map[int64]*mergeWindow{},
		mains: queue[int64]{less: earlier}, finals: queue[int64]{less: earlier},
	}
}

// State is what to save beside the rows of [Merger.Dirty].
func (m *Merger) State() MergeState {
	return MergeState{G: m.g, Partitions: slices.Clone(m.partitions)}
}

// G is the merge's watermark as of the last publication.
func (m *Merger) G() int64 { return m.g }

func (m *Merger) find(partition int32) (int, bool) {
	return slices.BinarySearchFunc(m.partitions, partition, func(s PartitionState, p int32) int { return cmp.Compare(s.Partition, p) })
}

// state is the partition's, made if there is none.
func (m *Merger) state(partition int32) *PartitionState {
	i, ok := m.find(partition)
	if !ok {
		m.partitions = slices.Insert(m.partitions, i, PartitionState{Partition: partition, Watermark: meter.MinusInfinity})
	}
	return &m.partitions[i]
}

// Has reports whether the partition counts already (R11): it was named by [Merger.SetPartition] or has sent changes.
func (m *Merger) Has(partition int32) bool {
	_, ok := m.find(partition)
	return ok
}

// Idle reports whether the partition is idle.
func (m *Merger) Idle(partition int32) bool {
	i, ok := m.find(partition)
	return ok && m.partitions[i].Idle
}

// SetPartition says how far a partition has come. G moves at the next [Merger.Publish]. An idle partition stays
// idle until its watermark moves: idle = false with the watermark that it has changes nothing.
func (m *Merger) SetPartition(partition int32, watermark int64, idle bool) {
	s := m.state(partition)
	if watermark > s.Watermark {
		s.Watermark, s.Idle = watermark, false
	}
	s.Idle = s.Idle || idle
}

// Due reports whether G has crossed a window's end, or an end + L, since the last publication.
func (m *Merger) Due() bool {
	g := m.reached()
	return floorDiv(g, m.window) > floorDiv(m.g, m.window) || floorDiv(g-m.lateness, m.window) > floorDiv(m.g-m.lateness, m.window)
}

// reached is what G becomes at the next publication: the lowest watermark of the partitions that are not idle. It
// never goes back, and stays with all of them idle (R11).
func (m *Merger) reached() int64 {
	low, any := meter.PlusInfinity, false
	for i := range m.partitions {
		if s := &m.partitions[i]; !s.Idle {
			low, any = min(low, s.Watermark), true
		}
	}
	if !any {
		return m.g
	}
	return max(m.g, low)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Missing lists the rows that the changes are of and that the merge may have had and let go, because they are
// final. The caller reads them from the ledger, as of its last commit, and restores those that are there before it
// adds the changes.
func (m *Merger) Missing(changes []meter.CellChange) []meter.RowKey {
	var keys []meter.RowKey
	for i := range changes {
		key := changes[i].Row()
		if m.isFinal(key.WindowEnd) && m.rows[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, meter.RowKey.Compare)
	return slices.Compact(keys)
}

func (m *Merger) isFinal(end int64) bool { return m.g >= end+m.lateness }

// Restore brings rows back as the ledger has them. A row that is in memory already stays as it is.
func (m *Merger) Restore(rows []meter.StoredRow) {
	for i := range rows {
		s := &rows[i]
		if m.rows[s.RowKey] != nil {
			continue
		}
		r := m.addRow(s.RowKey)
		r.state, r.revision = s.State, s.Revision
		r.published, r.publishedPico = s.Published.Clone(), s.PublishedPico
		if s.State == meter.Final {
			r.finalPico = s.Amount
		}
		for _, c := range s.Cells {
			cell := r.cell(c.CellKey, m.quantities)
			cell.Requests, cell.SetHash, cell.stale = c.Requests, c.SetHash, true
			copy(cell.Quantities, c.Quantities)
		}
		m.touch(r) // it may hold what was saved and not published
	}
}

// addRow makes an empty row.
func (m *Merger) addRow(key meter.RowKey) *row {
	r := &row{RowKey: key}
	m.rows[key] = r
	if m.isFinal(key.WindowEnd) {
		return r
	}
	w := m.windows[key.WindowEnd]
	if w == nil {
		w = &mergeWindow{}
		m.windows[key.WindowEnd] = w
		m.finals.push(key.WindowEnd)
		if m.g < key.WindowEnd {
			m.mains.push(key.WindowEnd)
		}
	}
	w.rows = append(w.rows, r)
	return r
}

func (m *Merger) touch(r *row) {
	r.isSummed = false
	if !r.isTouched {
		r.isTouched = true
		m.touched = append(m.touched, r)
	}
}

func (m *Merger) unsave(r *row) {
	if !r.isUnsaved {
		r.isUnsaved = true
		m.unsaved = append(m.unsaved, r)
	}
}

// Add adds a partition's changes to the rows, value - was of each (R11). It publishes nothing. Commits have to be
// numbered without a gap.
func (m *Merger) Add(partition int32, commitNo int64, changes []meter.CellChange) error {
	if m.err == nil {
		m.err = m.add(partition, commitNo, changes)
	}
	if m.err != nil {
		return fmt.Errorf("stream: merge commit %d of partition %d: %w", commitNo, partition, m.err)
	}
	return nil
}

func (m *Merger) add(partition int32, commitNo int64, changes []meter.CellChange) error {
	s := m.state(partition)
	if commitNo != s.CommitNo+1 {
		return fmt.Errorf("R11: commit %d has to follow", s.CommitNo+1)
	}
	s.CommitNo = commitNo
	var r *row // of the change before: changes come by row
	for i := range changes {
		x := &changes[i]
		if key := x.Row(); r == nil || r.RowKey != key {
			if r = m.rows[key]; r == nil {
				r = m.addRow(key)
			}
			m.touch(r)
			m.unsave(r)
		}
		if err := r.cell(x.CellKey, m.quantities).add(x); err != nil {
			return err
		}
	}
	return nil
}

// cell is the row's cell, made if there is none.
func (r *row) cell(key meter.CellKey, quantities int) *mergedCell {
	i, ok := slices.BinarySearchFunc(r.cells, key, func(c *mergedCell, k meter.CellKey) int {
		return cmp.Or(strings.Compare(c.SKU, k.SKU), cmp.Compare(c.Tier, k.Tier))
	})
	if !ok {
		c := &mergedCell{Cell: meter.Cell{CellKey: key, Usage: meter.Usage{Quantities: make([]int64, quantities)}}}
		r.cells = slices.Insert(r.cells, i, c)
	}
	return r.cells[i]
}

// add adds value - was to the cell: replacement, so that order does not matter (R11). Quantities never are below zero.
func (c *mergedCell) add(x *meter.CellChange) error {
	c.stale = true
	c.Requests += x.Value.Requests - x.Was.Requests
	c.SetHash += x.Value.SetHash - x.Was.SetHash
	for i := range c.Quantities {
		delta := x.Value.Quantities[i] - x.Was.Quantities[i]
		sum := c.Quantities[i] + delta
		if delta > 0 && sum < c.Quantities[i] {
			return errSum
		}
		c.Quantities[i] = sum
	}
	return nil
}
