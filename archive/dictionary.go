package archive

import (
	"encoding/binary"
)

// Bounds of a dictionary, beyond which words are written as they are.
const (
	maxWordText  = 1 << 20
	maxWordCount = 1 << 15
)

// A dictionaryOf is the distinct words of a column in a row group, in the order in which they came.
type dictionaryOf struct {
	known  map[string]int32
	text   []byte    // the words as plain encoding has them
	recent []recent  // words found lately, by a rough hash: most columns have few words
	codes  [32]int32 // of a column of codes: 1 + the index of a code's name, 0 while it has none
	full   bool
}

type recent struct {
	word  string
	index int32
}

// recent has some four times as many places as there are words, between these bounds; powers of two.
const (
	minRecent = 1 << 6
	maxRecent = 1 << 12
)

func (d *dictionaryOf) clear() {
	clear(d.known)
	clear(d.recent)
	d.text, d.codes, d.full = d.text[:0], [32]int32{}, false
}

// find is the index of s, which is put in if it is new; false if there is no room for it.
func (d *dictionaryOf) find(s string) (int32, bool) {
	if len(d.recent) > 0 {
		if slot := d.slot(s); slot.word == s {
			return slot.index, true
		}
	}
	return d.lookUp(s)
}

func (d *dictionaryOf) slot(s string) *recent {
	h := uint32(len(s))
	if n := len(s); n >= 4 {
		h += uint32(s[n-4]) | uint32(s[n-3])<<8 | uint32(s[n-2])<<16 | uint32(s[n-1])<<24
	} else {
		for i := range n {
			h = h<<8 + uint32(s[i])
		}
	}
	return &d.recent[h*0x9E3779B1>>16&uint32(len(d.recent)-1)]
}

func (d *dictionaryOf) lookUp(s string) (int32, bool) {
	i, ok := d.known[s]
	if !ok {
		if len(d.known) >= maxWordCount || len(d.text)+len(s) > maxWordText {
			d.full = true
			return 0, false
		}
		if d.known == nil {
			d.known = map[string]int32{}
		}
		i = int32(len(d.known))
		d.known[s] = i
		d.text = binary.LittleEndian.AppendUint32(d.text, uint32(len(s)))
		d.text = append(d.text, s...)
	}
	if n := len(d.recent); n < minRecent || n < maxRecent && 4*len(d.known) > n {
		d.recent = make([]recent, max(minRecent, 2*n))
	}
	*d.slot(s) = recent{s, i}
	return i, true
}

// findCode is find by a small number that stands for the word.
func (d *dictionaryOf) findCode(code uint8, name string) int32 {
	i, _ := d.find(name) // there are fewer codes than places
	d.codes[code] = i + 1
	return i
}
