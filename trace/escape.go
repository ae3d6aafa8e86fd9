package trace

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// unescape is the text that a string writes. Not ok: something behind a backslash is no escape, or a surrogate has
// no partner. The first then stands for itself, the second as the three bytes of its number, which are no UTF-8, so
// that nothing is replaced in silence.
func unescape(raw []byte) (text []byte, ok bool) {
	text, ok = make([]byte, 0, len(raw)), true
	for {
		k := bytes.IndexByte(raw, '\\')
		if k < 0 || k+1 == len(raw) {
			return append(text, raw...), ok && k < 0
		}
		text = append(text, raw[:k]...)
		escape := raw[k:]
		raw = raw[k+2:]
		switch c := escape[1]; c {
		case '"', '\\', '/':
			text = append(text, c)
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		default:
			r, size := codePoint(escape)
			if size == 0 {
				text, ok = append(text, '\\', c), false
				continue
			}
			if r >= 0xD800 && r < 0xE000 {
				ok = false
				text = append(text, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			} else {
				text = utf8.AppendRune(text, r)
			}
			raw = escape[size:]
		}
	}
}

// codePoint reads \uXXXX, and a second one where both are a pair; size 0 if it is neither.
func codePoint(b []byte) (r rune, size int) {
	high, ok := unit(b)
	if !ok {
		return 0, 0
	}
	if high>>10 == 0xD800>>10 {
		if low, ok := unit(b[6:]); ok && low>>10 == 0xDC00>>10 {
			return 0x10000 + (high&0x3FF)<<10 + low&0x3FF, 12
		}
	}
	return high, 6
}

func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// appendString appends the JSON string of a text in UTF-8.
func appendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	for {
		n := plainLength(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		switch c := text[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		text = text[n+1:]
	}
}

// plainLength is how many bytes of b may stand in a string as they are.
func plainLength(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if ((w-ones*' ')&^w|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}
