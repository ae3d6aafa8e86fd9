package stream

import (
	"slices"
	"strings"
)

// names interns accounts, skus and statuses: lives and cells hold 4 bytes instead of a text. A name is kept
// while something refers to it, so that names come and go as ids do. 0 is the empty text, always there.
type names struct {
	ids   map[string]uint32
	texts []string
	refs  []int64 // Invariant: how many lives and cells hold the name; not kept for 0.
	free  []uint32
	// recent are numbers that were held lately, by a hash of the name: to look there is cheaper. What stands in a
	// place may be of another name, or of none any more.
	recent [1 << 10]uint32

	ranks  []uint32 // by number: the name's place in the order of all names, if ranked
	ranked bool     // no name has come since ranks was made
}

func newNames() names {
	return names{ids: map[string]uint32{"": 0}, texts: []string{""}, refs: []int64{0}}
}

// hold is the name's number, with one more reference to it.
func (n *names) hold(text string) uint32 {
	recent := &n.recent[placeOf(text)]
	id := *recent
	if n.texts[id] != text {
		var ok bool
		if id, ok = n.ids[text]; !ok {
			id = n.add(text)
		}
		*recent = id
	}
	n.refs[id]++
	return id
}

// placeOf is a place in names.recent: names that differ in their last four bytes, or in their length, mostly differ in it.
func placeOf(text string) uint32 {
	h := uint32(len(text))
	for i := max(0, len(text)-4); i < len(text); i++ {
		h = h<<8 ^ uint32(text[i])
	}
	return h * 0x9E3779B1 >> 22
}

func (n *names) add(text string) uint32 {
	var id uint32
	if last := len(n.free) - 1; last >= 0 {
		id, n.free = n.free[last], n.free[:last]
		n.texts[id] = text
	} else {
		id = uint32(len(n.texts))
		n.texts, n.refs = append(n.texts, text), append(n.refs, 0)
	}
	n.ids[text] = id
	n.ranked = false
	return id
}

// rank makes ranks, so that many names can be put into order by their numbers.
func (n *names) rank() {
	if n.ranked {
		return
	}
	order := make([]uint32, len(n.texts))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(n.texts[a], n.texts[b]) })
	n.ranks = slices.Grow(n.ranks[:0], len(order))[:len(order)]
	for rank, id := range order {
		n.ranks[id] = uint32(rank)
	}
	n.ranked = true
}

// share is one more reference to a name that is held.
func (n *names) share(id uint32) { n.refs[id]++ }

// release gives a reference back.
func (n *names) release(id uint32) {
	if id == 0 {
		return
	}
	n.refs[id]--
	if n.refs[id] == 0 {
		delete(n.ids, n.texts[id])
		n.texts[id] = ""
		n.free = append(n.free, id)
	}
}

func (n *names) text(id uint32) string { return n.texts[id] }
