package schemas

import (
	"encoding/binary"
	"math/bits"
)

// shapes are what a scanner has learnt of how records run. Most records of a log are written by the same few lines of code:
// what stands between their values (braces, names, colons, commas, spaces) is the same, byte for byte. Where that is
// so of a sound record before, only the values have to be read: that the rest is sound JSON, which name leads where and
// that no name stands twice is known from that one. Any other record is read in full, and learnt.
//
// Shapes that begin alike share their steps: they are a trie of texts.
type shapes struct {
	first  *step // the ways to begin
	tried  int   // records that were learnt, or could not be
	missed int   // records of unknown shape since there were enough of them
}

// Bounds of what is learnt, so that the world cannot make it grow, or learning cost more than it saves.
const (
	maxTried     = 64
	maxShape     = 16 << 10 // bytes of a record
	maxSteps     = 128      // values of a record
	maxBranches  = 8        // ways to go on after a value
	missedTillIn = 4096     // so many records of unknown shape later all is forgotten, to be learnt anew
)

// stepKind says what stands behind the text of a step.
type stepKind uint8

const (
	theEnd  stepKind = iota // nothing: the record ends
	aText                   // a string; its opening quote ends the text of the step
	aNumber                 // a number
	aWord                   // null, true, false or an array
)

// A step is the text up to a value, and the value.
type step struct {
	text  string
	words [4]uint64 // of the text: its first 8 bytes, the 8 after them, and the last 16; those that it is long enough for
	kind  stepKind
	node  *node // where the value stands; nil where no path leads
	span  int   // node's, or -1
	depth int   // of the object that the value stands in
	next  *step // the ways to go on
	other *step // another way instead of this one
}

func newStep(text string, kind stepKind, n *node, depth int) *step {
	x := &step{text: text, kind: kind, node: n, span: -1, depth: depth}
	if n != nil {
		x.span = n.span
	}
	b := []byte(text)
	if len(b) >= 8 {
		x.words[0], x.words[3] = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	}
	if len(b) >= 16 {
		x.words[1], x.words[2] = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[len(b)-16:])
	}
	return x
}

// fits reports whether the step's text stands at b[i:], and behind it what may begin the step's value.
func (x *step) fits(b []byte, i int) bool {
	n := len(x.text)
	end := i + n
	if end > len(b) {
		return false
	}
	t := b[i:end]
	switch {
	case n < 8:
		if string(t) != x.text {
			return false
		}
	case binary.LittleEndian.Uint64(t) != x.words[0] || binary.LittleEndian.Uint64(t[n-8:]) != x.words[3]:
		return false
	case n <= 16:
	case binary.LittleEndian.Uint64(t[8:]) != x.words[1] || binary.LittleEndian.Uint64(t[n-16:]) != x.words[2]:
		return false
	case n > 32 && string(t[16:n-16]) != x.text[16:n-16]:
		return false
	}
	if x.kind == aText {
		return true
	}
	if end == len(b) {
		return x.kind == theEnd
	}
	switch c := b[end]; x.kind {
	case aNumber:
		return c-'0' <= 9 || c == '-'
	case aWord:
		return c == 'n' || c == 't' || c == 'f' || c == '['
	}
	return false
}

// follow reads s.text along a known shape, and fills the spans. Not ok is no verdict: the text is to be read in full.
// Where it is ok the text is sound but for names that stand twice in an object inside an array (s.duplicate).
func (s *scanner) follow() (ok bool) {
	b, i := s.text, 0
	for x := s.shapes.first; ; x = x.next {
		for x != nil && !x.fits(b, i) {
			x = x.other
		}
		if x == nil {
			return false
		}
		i += len(x.text)
		switch x.kind {
		case aText:
			start, end, escaped := i, i, false
			for end+8 <= len(b) {
				if hit := special(binary.LittleEndian.Uint64(b[end:])); hit != 0 {
					end += bits.TrailingZeros64(hit) >> 3
					break
				}
				end += 8
			}
			if end >= len(b) || b[end] != '"' {
				if end, escaped = s.string(end); end < 0 {
					return false
				}
			}
			if x.span >= 0 {
				s.spans[x.span] = span{token: text, escaped: escaped, start: int32(start), end: int32(end)}
			}
			i = end + 1
		case aNumber:
			start := i
			end, v := small(b, i)
			if end < 0 || b[i] == '0' && end > i+1 || end == i {
				if end = s.number(i); end < 0 {
					return false
				}
				v = -1
			}
			if x.span >= 0 {
				s.spans[x.span] = span{token: number, small: v >= 0, value: v, start: int32(start), end: int32(end)}
			}
			i = end
		case aWord:
			if i = s.value(i, x.node, x.depth); i < 0 {
				return false
			}
		case theEnd:
			return true
		}
	}
}

// learn takes the shape of s.text, which is sound, if there is room for it.
func (s *scanner) learn(root *node) {
	h := &s.shapes
	if len(s.text) > maxShape {
		return
	}
	if h.tried >= maxTried {
		if h.missed++; h.missed < missedTillIn {
			return
		}
		*h = shapes{}
	}
	h.tried++
	l := lesson{scanner: s}
	if l.object(s.space(0)+1, root, 1); l.failed {
		return
	}
	l.add(len(s.text), theEnd, nil, 0)
	if len(l.steps) <= maxSteps {
		h.add(l.steps)
	}
}

// add puts a shape into the trie, unless too many go on in other ways from where it branches off.
func (h *shapes) add(steps []*step) {
	at := &h.first
	for _, x := range steps {
		branches := 0
		for *at != nil && ((*at).text != x.text || (*at).kind != x.kind) { // equal texts before lead to equal nodes
			at = &(*at).other
			branches++
		}
		if *at == nil {
			if branches >= maxBranches {
				return
			}
			*at = x
		}
		at = &(*at).next
	}
}

// A lesson goes through a sound text once more and notes its shape.
type lesson struct {
	*scanner
	steps  []*step
	from   int  // behind the last value
	failed bool // an object stands where a path ends: that is not learnt
}

func (l *lesson) add(start int, kind stepKind, n *node, depth int) {
	l.steps = append(l.steps, newStep(string(l.text[l.from:start]), kind, n, depth))
}

// object notes the members after '{' and returns the index after the closing brace.
func (l *lesson) object(i int, n *node, depth int) int {
	if i = l.space(i); l.text[i] == '}' {
		return i + 1
	}
	for {
		end, escaped := l.string(i + 1)
		word := l.text[i+1 : end]
		if escaped {
			word = appendUnescaped(nil, word)
		}
		var child *node
		if k := n.find(word); k >= 0 {
			child = n.members[k].node
		}
		i = l.space(end + 1)          // the colon
		i = l.space(i + 1)            // the value
		i = l.member(i, child, depth) // behind it
		if i = l.space(i); l.text[i] == '}' {
			return i + 1
		}
		i = l.space(i + 1)
	}
}

// member notes a value and returns the index after it.
func (l *lesson) member(i int, n *node, depth int) int {
	switch c := l.text[i]; {
	case c == '{':
		l.failed = l.failed || n != nil && n.span >= 0
		return l.object(i+1, n, depth+1)
	case c == '"':
		l.add(i+1, aText, n, depth)
		end, _ := l.string(i + 1)
		l.from = end + 1
	case c == '-' || c-'0' <= 9:
		l.add(i, aNumber, n, depth)
		l.from = l.number(i)
	default:
		l.add(i, aWord, n, depth)
		l.from = l.value(i, nil, depth)
	}
	return l.from
}
