package stream

import (
	"sort"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// markEvery is how many records lie between two restart marks.
const markEvery = 4096

// marks are the places in the log at which a fresh counter might begin (R8): one every few thousand records, each
// counting the lives that began from it on and before the next.
type marks struct {
	every int64
	since int64 // records since the last mark
	list  []mark
}

type mark struct {
	offset, byte int64
	reach        int64    // highest reach before it
	lives        int64    // Invariant: remembered lives whose first record is from this mark on and before the next
	until        int64    // without lives (identity none): what was counted here is final from this watermark on
	prolonged    []uint32 // lives of it that a copy has prolonged, and some that are no more
}

// before opens a mark where one is due. It is called before a record is applied.
func (ms *marks) before(offset, lineByte, reach, w int64) {
	if len(ms.list) > 0 && ms.since < ms.every {
		ms.since++
		return
	}
	ms.compact(w)
	ms.list = append(ms.list, mark{offset: offset, byte: lineByte, reach: reach, until: meter.MinusInfinity})
	ms.since = 1
}

// of is the mark that a record at offset belongs to.
func (ms *marks) of(offset int64) *mark {
	last := len(ms.list) - 1
	if ms.list[last].offset <= offset {
		return &ms.list[last]
	}
	return &ms.list[sort.Search(len(ms.list), func(i int) bool { return ms.list[i].offset > offset })-1]
}

func (ms *marks) born(first int64) { ms.of(first).lives++ }
func (ms *marks) gone(first int64) { ms.of(first).lives-- }

// compact drops the marks that hold nothing any more.
func (ms *marks) compact(w int64) {
	kept := ms.list[:0]
	for _, m := range ms.list {
		if m.holds(w) {
			kept = append(kept, m)
		}
	}
	clear(ms.list[len(kept):])
	ms.list = kept
}

// holds reports whether a replay has to begin at the mark or before it.
func (m *mark) holds(w int64) bool { return m.lives > 0 || m.until > w }
