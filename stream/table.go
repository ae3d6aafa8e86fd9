package stream

import "math/bits"

// The table is cut into shards by the top bits of the hash, so that growing pauses for one of them only.
const (
	shardShift = 64 - 8
	firstSlots = 4
)

// table maps hashes to lives: open addressing with linear probing, eight bytes a slot. The caller compares ids.
type table [1 << 8]shard

// A slot with ref 0 is empty.
type slot struct{ tag, ref uint32 }

// A shard is never full. Invariant: from a life's home on there is no empty slot before its own.
type shard struct {
	slots []slot
	n     uint32
}

// home is where a tag belongs: its share of the slots.
func (s *shard) home(tag uint32) uint32 {
	hi, _ := bits.Mul64(uint64(tag)<<32, uint64(len(s.slots)))
	return uint32(hi)
}

// homeSlot is the slot where a hash would stand if nothing were in its way; an empty one where the table is empty.
func (t *table) homeSlot(hash uint64) slot {
	s := &t[hash>>shardShift]
	if len(s.slots) == 0 {
		return slot{}
	}
	return s.slots[s.home(uint32(hash))]
}

func (s *shard) next(i uint32) uint32 {
	if i++; int(i) < len(s.slots) {
		return i
	}
	return 0
}

func (t *table) insert(hash uint64, ref uint32) {
	s := &t[hash>>shardShift]
	if 10*int(s.n+1) > 7*len(s.slots) {
		s.grow()
	}
	s.put(slot{uint32(hash), ref})
	s.n++
}

func (s *shard) put(x slot) {
	i := s.home(x.tag)
	for s.slots[i].ref != 0 {
		i = s.next(i)
	}
	s.slots[i] = x
}

func (s *shard) grow() {
	old := s.slots
	s.slots = make([]slot, max(firstSlots, len(old)+len(old)/2))
	for _, x := range old {
		if x.ref != 0 {
			s.put(x)
		}
	}
}

// remove takes a life out and moves those after it back, so that no mark of it is left.
func (t *table) remove(hash uint64, ref uint32) {
	s := &t[hash>>shardShift]
	i := s.home(uint32(hash))
	for s.slots[i].ref != ref {
		i = s.next(i)
	}
	for j := s.next(i); s.slots[j].ref != 0; j = s.next(j) {
		if s.between(s.home(s.slots[j].tag), i, j) {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
	s.n--
}

// between reports whether a life at slot j whose home is h may stand at the empty slot i: whether, going round
// from h, i comes before j.
func (s *shard) between(h, i, j uint32) bool {
	if i <= j {
		return h <= i || h > j
	}
	return h <= i && h > j
}
