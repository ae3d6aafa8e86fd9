package schemas

import (
	"bytes"
	"encoding/binary"
	"math/bits"
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
	shapes    shapes
}

type name struct {
	digest     uint64
	start, end int
	escaped    bool
}

// manyNames is from how many names on an object's names are kept in a map.
const manyNames = 48

// scan reads all of b and fills spans, which it clears first. The root is the trie's, the same for all texts.
func (s *scanner) scan(b []byte, root *node, spans []span) verdict {
	s.begin(b, spans)
	if s.follow() {
		if s.duplicate {
			return duplicated
		}
		return sound
	}
	s.begin(b, spans)
	v := s.full(root)
	if v == sound {
		s.learn(root)
	}
	return v
}

func (s *scanner) begin(b []byte, spans []span) {
	clear(spans)
	s.text, s.spans = b, spans
	s.names, s.unescaped, s.duplicate = s.names[:0], s.unescaped[:0], false
}

// full reads the text name by name.
func (s *scanner) full(root *node) verdict {
	b := s.text
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

// small reads up to 18 plain digits; end is -1 where there are more or they are not all of the number. No digit at all is
// the number 0 that ends where it begins.
func small(b []byte, i int) (end int, v int64) {
	k := i
	for k+8 <= len(b) {
		digits := binary.LittleEndian.Uint64(b[k:]) ^ zeros
		n := bits.TrailingZeros64((digits+0x7676767676767676|digits)&0x8080808080808080) >> 3 // bytes above 9 carry into their high bit
		if n == 0 {
			break
		}
		v = v*powers[n] + eight(digits<<(64-8*n)) // leading zeros
		if k += n; n < 8 || k-i > 18 {
			break
		}
	}
	for ; k < len(b); k++ {
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

// zeros are eight digits 0.
const zeros = 0x3030303030303030

var powers = [9]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// eight is the number of eight digits, the first one in the lowest byte.
func eight(digits uint64) int64 {
	digits = digits*10 + digits>>8 // pairs, in every other byte
	const pairs = 0x000000FF000000FF
	return int64(uint32(((digits&pairs)*(100+1000000<<32) + (digits>>16&pairs)*(1+10000<<32)) >> 32))
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
