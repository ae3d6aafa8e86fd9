package stream

import (
	"cmp"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// cells are what the partition has counted (R9), by window. A window is kept until it is final here and what
// changed in it was taken.
type cells struct {
	names   *names
	windows map[int64]*window // by end
	ends    queue[int64]      // ends of the windows that are not final
	final   []int64           // ends of final windows whose changes were not taken yet
	last    *window           // a cache of windows
	changed []*cell
}

type window struct {
	end   int64
	cells map[uint64]*cell // by account and sku: the cell of one tier, from which its next lead on
}

// A cellKey names a cell within its window, by interned names.
type cellKey struct {
	account, sku uint32
	tier         int32
}

func (k cellKey) names() uint64 { return uint64(k.account)<<32 | uint64(k.sku) }

type cell struct {
	cellKey
	end        int64
	next       *cell       // another tier of the same account and sku
	value, was meter.Usage // was is the value when the changes were last taken
	changed    bool        // Invariant: it stands in cells.changed.
}

func newCells(n *names) cells {
	return cells{names: n, windows: map[int64]*window{}, ends: queue[int64]{less: earlier}}
}

// at is the cell, made if there is none.
func (cs *cells) at(end int64, key cellKey, quantities int) *cell {
	if cs.last == nil || cs.last.end != end {
		cs.last = cs.windows[end]
	}
	if cs.last == nil {
		cs.last = &window{end: end, cells: map[uint64]*cell{}}
		cs.windows[end] = cs.last
		cs.ends.push(end)
	}
	first := cs.last.cells[key.names()]
	c := first
	for c != nil && c.tier != key.tier {
		c = c.next
	}
	if c == nil {
		both := make([]int64, 2*quantities)
		c = &cell{cellKey: key, end: end, next: first}
		c.value.Quantities, c.was.Quantities = both[:quantities:quantities], both[quantities:]
		cs.last.cells[key.names()] = c
		cs.names.share(key.account)
		cs.names.share(key.sku)
	}
	return c
}

// noteChange remembers that a cell changed. In a silent replay the value before is of no interest: it was taken
// before the checkpoint.
func (cs *cells) noteChange(c *cell, silent bool) {
	if silent {
		c.was.Requests, c.was.SetHash = c.value.Requests, c.value.SetHash
		copy(c.was.Quantities, c.value.Quantities)
		return
	}
	if !c.changed {
		c.changed = true
		cs.changed = append(cs.changed, c)
	}
}

// close makes windows final that the watermark has left behind (R6).
func (cs *cells) close(w, lateness int64) {
	for !cs.ends.empty() && w >= cs.ends.first()+lateness {
		cs.final = append(cs.final, cs.ends.pop())
	}
}

// take returns the changes since the last take, ordered, and drops the windows that are final.
func (cs *cells) take() []meter.CellChange {
	cs.sortChanged()
	var out []meter.CellChange
	var room []int64
	for _, c := range cs.changed {
		c.changed = false
		if c.value.Equal(c.was) {
			continue
		}
		if out == nil {
			out = make([]meter.CellChange, 0, len(cs.changed))
			room = make([]int64, 0, 2*len(c.value.Quantities)*len(cs.changed))
		}
		x := meter.CellChange{CellKey: cs.key(c), Value: c.value, Was: c.was}
		x.Value.Quantities, room = cut(room, c.value.Quantities)
		x.Was.Quantities, room = cut(room, c.was.Quantities)
		out = append(out, x)
		c.was.Requests, c.was.SetHash = c.value.Requests, c.value.SetHash
		copy(c.was.Quantities, c.value.Quantities)
	}
	clear(cs.changed)
	cs.changed = cs.changed[:0]
	cs.dropFinal()
	return out
}

// sortChanged orders what changed by key. To compare ranks is cheaper than texts, if it is not most of the work to make them.
func (cs *cells) sortChanged() {
	if len(cs.names.texts) > 2*len(cs.changed) && !cs.names.ranked {
		slices.SortFunc(cs.changed, func(a, b *cell) int { return cs.key(a).Compare(cs.key(b)) })
		return
	}
	cs.names.rank()
	ranks := cs.names.ranks
	slices.SortFunc(cs.changed, func(a, b *cell) int {
		if a.account != b.account {
			return cmp.Compare(ranks[a.account], ranks[b.account])
		}
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(ranks[a.sku], ranks[b.sku]), cmp.Compare(a.tier, b.tier))
	})
}

func (cs *cells) key(c *cell) meter.CellKey {
	return meter.CellKey{Account: cs.names.text(c.account), WindowEnd: c.end, SKU: cs.names.text(c.sku), Tier: c.tier}
}

// cut copies list to the free room behind what room holds.
func cut(room, list []int64) (copied, rest []int64) {
	n := len(room)
	room = append(room, list...)
	return room[n:len(room):len(room)], room
}

func (cs *cells) dropFinal() {
	for _, end := range cs.final {
		for _, c := range cs.windows[end].cells {
			for ; c != nil; c = c.next {
				cs.names.release(c.account)
				cs.names.release(c.sku)
			}
		}
		delete(cs.windows, end)
		if cs.last != nil && cs.last.end == end {
			cs.last = nil
		}
	}
	cs.final = cs.final[:0]
}

// add counts a billable record in its cell, or with sign -1 takes it back (R9).
func (c *cell) add(sign int64, quantities []int64, hash uint64) error {
	if c.value.Requests += sign; c.value.Requests < 0 {
		return errNegative
	}
	for i, q := range quantities {
		sum := c.value.Quantities[i] + sign*q
		if sign > 0 && sum < c.value.Quantities[i] {
			return errSum
		}
		c.value.Quantities[i] = sum
	}
	c.value.SetHash += uint64(sign) * hash
	return nil
}
