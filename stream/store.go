package stream

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// The arena's chunks. The first one grows from small, so that a counter with few ids is small.
const (
	chunkBits  = 16
	chunkWords = 1 << chunkBits // 512 KiB
	firstWords = 1 << 8
	maxChunks  = 1 << (32 - chunkBits)
)

// errFull means that 32 GiB of remembered ids are in use.
var errFull = errors.New("more remembered ids than a partition can hold")

// store holds the lives of a partition by id: an arena of words and a table over it. A life is named by ref, the
// place of its first word; 0 is none.
type store struct {
	layout
	chunks [][]uint64
	used   int      // words in use of the last chunk
	free   []uint32 // by size in words: head of a list of freed places, linked through their first word
	table  table
	extras map[uint32]extra
	n      int // lives in the table
	a, b   []byte
}

func newStore(l layout) *store {
	return &store{layout: l, chunks: [][]uint64{make([]uint64, firstWords)}, used: 1, extras: map[uint32]extra{}}
}

func (s *store) at(ref uint32) life {
	return life(s.chunks[ref>>chunkBits][ref&(chunkWords-1):])
}

// find is the life of an id, 0 if the table has none.
func (s *store) find(id meter.ID, hash uint64) uint32 {
	shard := &s.table[hash>>shardShift]
	if shard.n == 0 {
		return 0
	}
	tag := uint32(hash)
	for i := shard.home(tag); ; i = shard.next(i) {
		x := shard.slots[i]
		if x.ref == 0 || x.tag == tag && s.isOf(x.ref, id, hash) {
			return x.ref
		}
	}
}

// look finds the life that a hash is likely to be of, 0 if none is, and reads what of it is far apart, so that it is at
// hand. Of an id that is remembered the answer is nearly always its own life.
func (s *store) look(hash uint64) (read uint64) {
	shard := &s.table[hash>>shardShift]
	if shard.n == 0 {
		return 0
	}
	tag := uint32(hash)
	for i := shard.home(tag); ; i = shard.next(i) {
		switch x := shard.slots[i]; {
		case x.ref == 0:
			return 0
		case x.tag == tag:
			l := s.at(x.ref)
			return l[0] + l[s.id]
		}
	}
}

// isOf compares ids byte for byte (R3), the hashes first because they are at hand.
func (s *store) isOf(ref uint32, id meter.ID, hash uint64) bool {
	l := s.at(ref)
	return l[wordIDHash] == hash && l.idLen() == len(id) && sameText(l[s.id:], string(id))
}

// add makes a life for an id that has none. All but its id is zero; the reference is kept if the layout has
// room for one.
func (s *store) add(id meter.ID, hash uint64, reference meter.ID) (uint32, error) {
	size := s.id + wordsOf(len(id))
	if s.refLen > 0 {
		size += wordsOf(len(reference))
	}
	ref, err := s.alloc(size)
	if err != nil {
		return 0, err
	}
	l := s.at(ref)
	clear(l[:s.id])
	l[wordIDHash] = hash
	l[wordState] = uint64(len(id)) << 48
	n := putText(l[s.id:], string(id))
	if s.refLen > 0 {
		l[s.refLen] = uint64(len(reference))
		putText(l[s.id+n:], string(reference))
	}
	s.table.insert(hash, ref)
	s.n++
	return ref, nil
}

// together is how many lives touch is given at a time.
const together = 32

// touch reads what removing these lives will need, all of it at once: a machine waits for many cache misses in
// little more time than for one. It changes nothing.
func (s *store) touch(refs []uint32) uint64 {
	var hashes [together]uint64
	var read uint64
	for i, ref := range refs {
		hashes[i] = s.at(ref)[wordIDHash]
	}
	for i := range refs {
		read += uint64(s.table.homeSlot(hashes[i]).ref)
	}
	return read
}

// remove forgets a life.
func (s *store) remove(ref uint32) {
	l := s.at(ref)
	s.table.remove(l[wordIDHash], ref)
	s.n--
	if l.has(hasExtra) {
		delete(s.extras, ref)
	}
	size := s.size(l)
	l[wordState] = 0 // dead
	l[0] = uint64(s.free[size])
	s.free[size] = ref
}

// blank takes all but the id away from a life, for another to begin in its place.
func (s *store) blank(ref uint32) {
	l := s.at(ref)
	if l.has(hasExtra) {
		delete(s.extras, ref)
	}
	hash, state := l[wordIDHash], l[wordState]
	clear(l[:s.marks+s.nMarks])
	l[wordIDHash], l[wordState] = hash, state&(0xffff<<48)
}

func (s *store) size(l life) int {
	size := s.id + wordsOf(l.idLen())
	if s.refLen > 0 {
		size += wordsOf(int(l[s.refLen]))
	}
	return size
}

// alloc finds room for size words. It may move the first chunk: a life looked at before is to be looked up again.
func (s *store) alloc(size int) (uint32, error) {
	for len(s.free) <= size {
		s.free = append(s.free, 0)
	}
	if ref := s.free[size]; ref != 0 {
		s.free[size] = uint32(s.at(ref)[0])
		return ref, nil
	}
	last := len(s.chunks) - 1
	if s.used+size > chunkWords {
		if len(s.chunks) == maxChunks {
			return 0, errFull
		}
		s.chunks = append(s.chunks, make([]uint64, chunkWords))
		last, s.used = last+1, 0
	}
	for s.used+size > len(s.chunks[last]) {
		s.chunks[last] = append(s.chunks[last], make([]uint64, len(s.chunks[last]))...)[:2*len(s.chunks[last])]
	}
	ref := uint32(last<<chunkBits | s.used)
	s.used += size
	return ref, nil
}

// idOf is the id of a life.
func (s *store) idOf(l life) meter.ID {
	s.a = appendText(s.a[:0], l[s.id:], l.idLen())
	return meter.ID(s.a)
}

// reference is what the outside calls the life's start, or its end as long as no start is known.
func (s *store) reference(ref uint32) meter.ID {
	l := s.at(ref)
	if l.has(hasExtra) {
		if x := s.extras[ref]; x.hasRef {
			return x.reference
		}
	}
	if s.refLen == 0 {
		return s.idOf(l)
	}
	s.a = appendText(s.a[:0], l[s.id+wordsOf(l.idLen()):], int(l[s.refLen]))
	return meter.ID(s.a)
}

// setReference replaces the reference, where the layout keeps them.
func (s *store) setReference(ref uint32, reference meter.ID) {
	if s.refLen == 0 || s.reference(ref) == reference {
		return
	}
	x := s.extras[ref]
	x.reference, x.hasRef = reference, true
	s.setExtra(ref, x)
}

func (s *store) setExtra(ref uint32, x extra) {
	s.extras[ref] = x
	s.at(ref).set(hasExtra)
}

func (s *store) quantitiesOf(l life) []uint64 { return l[s.quantities : s.quantities+s.nQuantities] }

func (s *store) marksOf(l life) []uint64 { return l[s.marks : s.marks+s.nMarks] }

// lessID orders two lives by id, part by part and byte for byte (R4).
func (s *store) lessID(p, q uint32) bool {
	lp, lq := s.at(p), s.at(q)
	s.a = appendText(s.a[:0], lp[s.id:], lp.idLen())
	s.b = appendText(s.b[:0], lq[s.id:], lq.idLen())
	for a, b := s.a, s.b; len(a) >= 4 && len(b) >= 4; {
		na, nb := 4+int(binary.LittleEndian.Uint32(a)), 4+int(binary.LittleEndian.Uint32(b))
		if c := bytes.Compare(a[4:na], b[4:nb]); c != 0 {
			return c < 0
		}
		a, b = a[na:], b[nb:]
	}
	return len(s.a) < len(s.b)
}
