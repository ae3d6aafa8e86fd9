package stream

import (
	"encoding/binary"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A life is one remembered id (R8), laid out in words of 64 bits so that ten million of them hold no pointer and
// take some 130 bytes each:
//
//	start time | start hash | first offset | account, sku | id hash | status, flags, id length
//	in a requests meter: end time | end hash
//	quantities | one bit for each attribute filter | in a meter with references: length | id | reference
//
// In an events meter the event stands where a start does. The id is kept byte for byte (R3).
type life []uint64

// The words that every life has.
const (
	wordStartTime = iota
	wordStartHash // payload hash of the first start
	wordFirst     // offset of the life's first record: the first start or the first end
	wordNames     // account, sku
	wordIDHash
	wordState // status | phase, flags | id length
	wordEndTime
	wordEndHash
)

// A phase is how far a life has come (R7).
type phase uint8

const (
	dead      phase = iota // not in use
	held                   // an end without its start, before time(X)+A
	orphaned               // an end without its start, afterwards
	open                   // a start without its end, before D
	abandoned              // counted at D; withdrawn if an end supersedes
	counted                // the one billable record is in its cell
	done                   // the one billable record was filtered or late: nothing of it is in a cell
)

var phaseNames = [...]string{"dead", "held", "orphaned", "open", "abandoned", "counted", "done"}

// Flags of a life, above the phase.
const (
	hasStart  = 1 << (8 + iota) // the first start is known
	hasEnd                      // the first end is known
	endFailed                   // the first end is an E
	hasExtra                    // store.extras holds more
	prolonged                   // a copy's horizon is greater than the first start's and end's
	carried                     // restored from a checkpoint: the replay skips its records
)

// An extra is what few lives have.
type extra struct {
	horizon   int64 // of a prolonged life: the greatest of all copies
	startAt   int64 // offset of a start that came after its life's end had become an orphan
	reference meter.ID
	hasRef    bool // reference is the life's, not the inline one
}

// layout says where the words of variable place are.
type layout struct {
	quantities, marks, refLen, id int // word indices; refLen is 0 where references are not kept
	nQuantities, nMarks           int
}

func newLayout(m *meter.Meter, attributeFilters int) layout {
	at := wordEndTime
	if m.Kind == meter.Requests {
		at = wordEndHash + 1
	}
	l := layout{quantities: at, nQuantities: len(m.Event.Quantities), nMarks: (attributeFilters + 63) / 64}
	l.marks = l.quantities + l.nQuantities
	l.id = l.marks + l.nMarks
	if m.Kind == meter.Requests && m.Event.Reference != nil {
		l.refLen = l.id
		l.id++
	}
	return l
}

func (l life) startTime() int64     { return int64(l[wordStartTime]) }
func (l life) endTime() int64       { return int64(l[wordEndTime]) }
func (l life) first() int64         { return int64(l[wordFirst]) }
func (l life) account() uint32      { return uint32(l[wordNames]) }
func (l life) sku() uint32          { return uint32(l[wordNames] >> 32) }
func (l life) status() uint32       { return uint32(l[wordState]) }
func (l life) phase() phase         { return phase(l[wordState] >> 32) }
func (l life) idLen() int           { return int(l[wordState] >> 48) }
func (l life) has(flag uint64) bool { return l[wordState]>>32&flag != 0 }
func (l life) set(flag uint64)      { l[wordState] |= flag << 32 }

func (l life) setPhase(p phase) {
	l[wordState] = l[wordState]&^(0xff<<32) | uint64(p)<<32
}

func (l life) setStatus(id uint32) {
	l[wordState] = l[wordState]&^0xffffffff | uint64(id)
}

func (l life) setNames(account, sku uint32) {
	l[wordNames] = uint64(account) | uint64(sku)<<32
}

// putText packs text into words, padded with zeros, and returns the words used.
func putText(words []uint64, text string) int {
	n := 0
	for ; len(text) >= 8; text = text[8:] {
		words[n] = loadWord(text)
		n++
	}
	if len(text) > 0 {
		words[n] = loadTail(text)
		n++
	}
	return n
}

// sameText compares what putText wrote.
func sameText(words []uint64, text string) bool {
	n := 0
	for ; len(text) >= 8; text = text[8:] {
		if words[n] != loadWord(text) {
			return false
		}
		n++
	}
	return len(text) == 0 || words[n] == loadTail(text)
}

// appendText appends n bytes of what putText wrote.
func appendText(buf []byte, words []uint64, n int) []byte {
	for i := 0; n > 0; i++ {
		buf = binary.LittleEndian.AppendUint64(buf, words[i])
		if n < 8 {
			buf = buf[:len(buf)-8+n]
		}
		n -= 8
	}
	return buf
}

func loadWord(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func loadTail(s string) uint64 {
	var w uint64
	for i := range len(s) {
		w |= uint64(s[i]) << (8 * i)
	}
	return w
}

func wordsOf(bytes int) int { return (bytes + 7) / 8 }
