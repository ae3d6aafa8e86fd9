package schemas

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may nest (R2); the record's own object is depth 1.
const maxDepth = 1000

// token says what stands where a path leads.
type token uint8

const (
	absent token = iota // no such member, or the way there leads through something that is no object
	null
	text   // a string
	number // a number's literal
	other  // true, false, an object, an array
)

// A span is what stands at the end of one path: the bytes [start, end) of the record, of a string without
// its quotes. Escaped strings hold at least one backslash.
type span struct {
	token      token
	escaped    bool
	small      bool  // a number of 1 to 18 plain digits without a sign, which is value
	start, end int32 // a record is no longer than event.max_bytes, at most 1 GiB
	value      int64
}

// verdict is what a scan says of the whole text.
type verdict uint8

const (
	sound      verdict = iota
	broken             // not JSON as R2 wants it, or not UTF-8
	duplicated         // sound but for a name that stands twice in one object
)

// A scanner reads one JSON object strictly and, on the way, notes the spans that a trie of paths asks for.
// It goes through the text once, allocates nothing on ordinary records and calls itself at most maxDepth deep.
type scanner struct {
	text  []byte
	spans []span
	// names of the open objects that no path mentions, innermost last; a name is at [start, end) of text, or of
	// unescaped where it was escaped.
	names     []name
	unescaped []byte
	duplicate bool
}

type name struct {
	digest     uint64
	start, end int
	escaped    bool
}

// manyNames is from how many names on an object's names are kept in a map.
const manyNames = 48

// scan reads all of b and fills spans, which it clears first. The root is the trie's.
func (s *scanner) scan(b []byte, root *node, spans []span) verdict {
	clear(spans)
	s.text, s.spans = b, spans
	s.names, s.unescaped, s.duplicate = s.names[:0], s.unescaped[:0], false
	i := s.space(0)
	if i >= len(b) || b[i] != '{' {
		return broken
	}
	if i = s.object(i+1, root, 1); i < 0 || s.space(i) != len(b) {
		return broken
	}
	if s.duplicate {
		return duplicated
	}
	return sound
}

// The readers below begin at i and return the index after what they read, or -1 where the text is broken.

func (s *scanner) space(i int) int {
	b := s.text
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// object reads the members after '{'. Node n is nil where no path leads into the object.
func (s *scanner) object(i int, n *node, depth int) int {
	mark := len(s.names)
	var seen uint64              // members of n, by index
	var many map[string]struct{} // the names after mark, once there are many
	guess := n.begin()           // which member of n came here last time
	b := s.text
	if i = s.space(i); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		start := i + 1
		var child *node
		if k, end := n.match(b, start, *guess); k >= 0 {
			*guess = k
			child, guess, i = n.members[k].node, &n.members[k].follow, end
			bit := uint64(1) << k
			s.duplicate = s.duplicate || seen&bit != 0
			seen |= bit
		} else {
			end, escaped := s.string(start)
			if end < 0 {
				return -1
			}
			word := b[start:end]
			if escaped {
				from := len(s.unescaped)
				s.unescaped = appendUnescaped(s.unescaped, word)
				word = s.unescaped[from:]
			}
			if k := n.find(word); k >= 0 {
				child = n.members[k].node
				bit := uint64(1) << k
				s.duplicate = s.duplicate || seen&bit != 0
				seen |= bit
			} else {
				many = s.note(mark, many, word, start, escaped)
			}
			i = end + 1
		}
		if i >= len(b) || b[i] != ':' {
			if i = s.space(i); i >= len(b) || b[i] != ':' {
				return -1
			}
		}
		if i++; i < len(b) && b[i] <= ' ' {
			i = s.space(i)
		}
		if i = s.value(i, child, depth); i < 0 {
			return -1
		}
		if i < len(b) && b[i] == ',' {
			i++
		} else {
			if i = s.space(i); i >= len(b) {
				return -1
			}
			if b[i] == '}' {
				s.names = s.names[:mark]
				return i + 1
			}
			if b[i] != ',' {
				return -1
			}
			i++
		}
		if i < len(b) && b[i] <= ' ' {
			i = s.space(i)
		}
	}
}

// note remembers a name of the object whose names begin at mark and says whether it was there before.
func (s *scanner) note(mark int, many map[string]struct{}, word []byte, start int, escaped bool) map[string]struct{} {
	if many != nil {
		before := len(many)
		many[string(word)] = struct{}{}
		s.duplicate = s.duplicate || len(many) == before
		return many
	}
	digest := digestOf(word)
	for _, m := range s.names[mark:] {
		if m.digest == digest && bytes.Equal(s.word(m), word) {
			s.duplicate = true
			return nil
		}
	}
	m := name{digest: digest, start: start, end: start + len(word), escaped: escaped}
	if escaped {
		m.end = len(s.unescaped)
		m.start = m.end - len(word)
	}
	s.names = append(s.names, m)
	if len(s.names)-mark < manyNames {
		return nil
	}
	many = make(map[string]struct{}, 2*manyNames)
	for _, m := range s.names[mark:] {
		many[string(s.word(m))] = struct{}{}
	}
	return many
}

func (s *scanner) word(n name) []byte {
	if n.escaped {
		return s.unescaped[n.start:n.end]
	}
	return s.text[n.start:n.end]
}

// value reads any value inside an object or array of the given depth.
func (s *scanner) value(i int, n *node, depth int) int {
	b := s.text
	if i >= len(b) {
		return -1
	}
	wanted := n != nil && n.span >= 0
	found := token(other)
	end := -1
	switch c := b[i]; {
	case c == '"':
		end, escaped := s.string(i + 1)
		if end < 0 {
			return -1
		}
		if wanted {
			s.spans[n.span] = span{token: text, escaped: escaped, start: int32(i + 1), end: int32(end)}
		}
		return end + 1
	case c-'0' <= 9:
		end, v := small(b, i)
		if end < 0 || c == '0' && end > i+1 {
			if end = s.number(i); end < 0 {
				return -1
			}
			v = -1
		}
		if wanted {
			s.spans[n.span] = span{token: number, small: v >= 0, value: v, start: int32(i), end: int32(end)}
		}
		return end
	case c == '-':
		found, end = number, s.number(i)
	case c == '{':
		if depth == maxDepth {
			return -1
		}
		end = s.object(i+1, n, depth+1)
	case c == '[':
		if depth == maxDepth {
			return -1
		}
		end = s.array(i+1, depth+1)
	case c == 'n':
		found, end = null, s.literal(i, "null")
	case c == 't':
		end = s.literal(i, "true")
	case c == 'f':
		end = s.literal(i, "false")
	}
	if end >= 0 && wanted {
		s.spans[n.span] = span{token: found, start: int32(i), end: int32(end)}
	}
	return end
}

// small reads up to 18 plain digits; end is -1 where there are more or they are not all of the number.
func small(b []byte, i int) (end int, v int64) {
	for k := i; k < len(b); k++ {
		c := b[k] - '0'
		if c > 9 {
			if k-i > 18 || b[k] == '.' || b[k]|0x20 == 'e' {
				return -1, 0
			}
			return k, v
		}
		v = v*10 + int64(c)
	}
	return -1, 0 // nothing follows, so the object is not closed
}

// array reads the elements after '['. No path leads into an array.
func (s *scanner) array(i, depth int) int {
	b := s.text
	if i = s.space(i); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, nil, depth); i < 0 {
			return -1
		}
		if i = s.space(i); i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = s.space(i + 1)
	}
}

func (s *scanner) literal(i int, word string) int {
	if len(s.text)-i < len(word) || string(s.text[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number(i int) int {
	b := s.text
	if b[i] == '-' {
		i++
	}
	if i >= len(b) {
		return -1
	}
	if b[i] == '0' {
		i++
	} else if i = s.digits(i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return s.digits(i)
	}
	return i
}

// digits reads at least one digit.
func (s *scanner) digits(i int) int {
	b, from := s.text, i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// string reads to the closing quote and returns its index, and whether a backslash stands before it.
func (s *scanner) string(i int) (end int, escaped bool) {
	b := s.text
	for {
		for i+8 <= len(b) {
			hit := special(binary.LittleEndian.Uint64(b[i:]))
			if hit != 0 {
				i += bits.TrailingZeros64(hit) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1, escaped
		}
		switch c := b[i]; {
		case c == '"':
			return i, escaped
		case c == '\\':
			escaped = true
			if i = s.escape(i + 1); i < 0 {
				return -1, escaped
			}
		case c < ' ':
			return -1, escaped
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				return -1, escaped
			}
			i += size
		}
	}
}

// special marks, by its high bit, the first byte of w that is no plain character of a string: a control
// character, a quote, a backslash or a byte of a longer rune. Marks above the first may be false.
func special(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return (w | (w - ones*' ') | (quote - ones) | (slash - ones)) & highs
}

// escape reads what follows a backslash. A high surrogate must be followed by the escape of a low one.
func (s *scanner) escape(i int) int {
	b := s.text
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		first := hex4(b, i+1)
		if first < 0 || first>>10 == lowSurrogate {
			return -1
		}
		if first>>10 != highSurrogate {
			return i + 5
		}
		if i+6 >= len(b) || b[i+5] != '\\' || b[i+6] != 'u' || hex4(b, i+7)>>10 != lowSurrogate {
			return -1
		}
		return i + 11
	}
	return -1
}

// The upper six bits of UTF-16 surrogates.
const (
	highSurrogate = 0xD800 >> 10
	lowSurrogate  = 0xDC00 >> 10
)

// hex4 is the number that four hex digits at i write, or -1.
func hex4(b []byte, i int) int32 {
	if i+4 > len(b) {
		return -1
	}
	var v int32
	for _, c := range b[i : i+4] {
		switch {
		case c-'0' <= 9:
			v = v<<4 | int32(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | int32(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return v
}

// appendUnescaped appends the text of a sound string that stands between quotes as raw.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:k]...)
		c := raw[k+1]
		raw = raw[k+2:]
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := rune(hex4(raw, 0))
			raw = raw[4:]
			if r>>10 == highSurrogate {
				r = 0x10000 + (r&0x3FF)<<10 + rune(hex4(raw, 2)&0x3FF)
				raw = raw[6:]
			}
			dst = utf8.AppendRune(dst, r)
		default: // '"', '\\', '/'
			dst = append(dst, c)
		}
	}
}

// digestOf is a cheap fingerprint of a name: equal names have equal digests.
func digestOf(b []byte) uint64 {
	const mix = 0x9E3779B97F4A7C15
	n := len(b)
	switch {
	case n >= 8:
		return (binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 23)) + uint64(n)*mix
	case n >= 4:
		return (uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32) + uint64(n)*mix
	case n > 0:
		return (uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16) + uint64(n)*mix
	}
	return 0
}
