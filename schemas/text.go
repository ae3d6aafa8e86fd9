package schemas

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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
