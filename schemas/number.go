package schemas

import (
	"bytes"
	"math"
)

// size says what the decimal text of a number means as a whole number.
type size uint8

const (
	fits     size = iota // a whole number of 64 bits
	tooLarge             // a whole number beyond 64 bits
	fraction             // no whole number
)

// whole is the number at s, a span of record (R2: 1e3 and 10.0 are whole, 1e400 is whole and too large).
func (s span) whole(record []byte) (int64, size) {
	if s.small {
		return s.value, fits
	}
	return parseDecimal(record[s.start:s.end]).whole()
}

// A decimal is a number as its text writes it, exactly: digits times 10^exponent. The digits neither begin nor end with a
// zero, so the number is whole if the exponent is not negative; zero has no digits and no sign. Reading and asking
// cost no more than the text is long, whatever the exponent.
type decimal struct {
	negative bool
	digits   []byte
	exponent int64
}

func parseDecimal(literal []byte) decimal {
	var d decimal
	if literal[0] == '-' {
		d.negative, literal = true, literal[1:]
	}
	if e := bytes.IndexAny(literal, "eE"); e >= 0 {
		d.exponent = exponentOf(literal[e+1:])
		literal = literal[:e]
	}
	before, after, _ := bytes.Cut(literal, []byte{'.'})
	if d.digits = before; len(after) > 0 {
		d.digits = append(append(make([]byte, 0, len(before)+len(after)), before...), after...)
		d.exponent -= int64(len(after))
	}
	d.digits = bytes.TrimLeft(d.digits, "0")
	n := len(d.digits)
	d.digits = bytes.TrimRight(d.digits, "0")
	d.exponent += int64(n - len(d.digits))
	if len(d.digits) == 0 {
		return decimal{}
	}
	return d
}

// exponentOf reads what follows the e. A greater exponent than any text could make up for is as good as farOut.
func exponentOf(b []byte) int64 {
	const farOut = 1 << 50
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	var v int64
	for _, c := range b {
		v = min(v*10+int64(c-'0'), farOut)
	}
	if negative {
		return -v
	}
	return v
}

// shifted is d times 10^places.
func (d decimal) shifted(places int64) decimal {
	d.exponent += places
	return d
}

// whole is d as a whole number.
func (d decimal) whole() (int64, size) {
	if len(d.digits) == 0 {
		return 0, fits
	}
	if d.exponent < 0 {
		return 0, fraction
	}
	if int64(len(d.digits))+d.exponent > 19 { // 10^19 > 2^63
		return 0, tooLarge
	}
	var v uint64
	for _, c := range d.digits {
		v = v*10 + uint64(c-'0')
	}
	for range d.exponent {
		v *= 10
	}
	switch {
	case !d.negative && v <= math.MaxInt64:
		return int64(v), fits
	case d.negative && v <= 1<<63:
		return int64(-v), fits
	}
	return 0, tooLarge
}

// floored is a whole d divided by 10^places, floored. It is exact also where d is beyond 64 bits and the result is not.
func (d decimal) floored(places int64) (int64, size) {
	if len(d.digits) == 0 || d.exponent < 0 {
		return d.whole()
	}
	if d = d.shifted(-places); d.exponent >= 0 {
		return d.whole()
	}
	// The last -exponent digits are dropped, and are not all zero: the digits do not end with one.
	kept := max(0, int64(len(d.digits))+d.exponent)
	v, size := decimal{negative: d.negative, digits: d.digits[:kept]}.whole()
	if d.negative && size == fits {
		if v == math.MinInt64 {
			return 0, tooLarge
		}
		v--
	}
	return v, size
}

// plainDigits reports whether a JSON number is a whole number in plain digits, which counts as a text (R2).
func plainDigits(literal []byte) bool { return !bytes.ContainsAny(literal, ".eE") }
