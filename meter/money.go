package meter

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// Pico is an amount of US dollars in pico-dollars (1e-12 USD). It is the unit of rates
// (per one unit of a quantity) and of every amount that fits 64 bits (DESIGN: ±$9.22 M).
type Pico int64

// picoDigits is how many decimals a dollar text may have: 1e-12 USD is the finest amount (R10).
const picoDigits = 12

var (
	errNotMoney = errors.New("not an amount: want decimal dollars such as 0.15")
	errTooFine  = errors.New("finer than a pico-dollar (12 decimals)")
	errTooLarge = errors.New("does not fit 64 bits of pico-dollars")
)

// ParseUSD reads decimal dollars ("0.15", "-3", "12.000001") exactly. No exponent, no sign
// but '-', no digit finer than 1e-12 unless it is zero.
func ParseUSD(text string) (Pico, error) {
	v, err := ParseUSD128(text)
	if err != nil {
		return 0, err
	}
	p, ok := v.Int64()
	if !ok {
		return 0, fmt.Errorf("%q: %w", clip(text), errTooLarge)
	}
	return Pico(p), nil
}

// ParseUSD128 is ParseUSD for amounts of up to 128 bits.
func ParseUSD128(text string) (Int128, error) {
	digits, neg := strings.CutPrefix(text, "-")
	whole, frac, dotted := strings.Cut(digits, ".")
	if whole == "" || dotted && frac == "" || !plainDigits(whole) || !plainDigits(frac) {
		return Int128{}, fmt.Errorf("%q: %w", clip(text), errNotMoney)
	}
	if len(frac) > picoDigits {
		if strings.Trim(frac[picoDigits:], "0") != "" {
			return Int128{}, fmt.Errorf("%q: %w", clip(text), errTooFine)
		}
		frac = frac[:picoDigits]
	}
	v, ok := parseDigits(whole + frac + strings.Repeat("0", picoDigits-len(frac)))
	if !ok {
		return Int128{}, fmt.Errorf("%q: does not fit 128 bits of pico-dollars", clip(text))
	}
	if neg {
		v = v.Neg()
	}
	return v, nil
}

// USD is the exact amount in dollars with twelve decimals, the form of every machine format.
func (p Pico) USD() string { return From64(int64(p)).USD() }

func plainDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// Int128 is a signed 128-bit integer in two's complement: sums and products of money.
type Int128 struct {
	Hi int64
	Lo uint64
}

// From64 widens v.
func From64(v int64) Int128 { return Int128{Hi: v >> 63, Lo: uint64(v)} }

// Mul64 is the exact product of a and b.
func Mul64(a, b int64) Int128 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// The unsigned product counts a negative operand as 2^64 too much.
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	return Int128{Hi: int64(hi), Lo: lo}
}

// Add returns v + w. It wraps at 2^127, which no sum of amounts reaches: 2^63 rows of 2^63 each.
func (v Int128) Add(w Int128) Int128 {
	lo, carry := bits.Add64(v.Lo, w.Lo, 0)
	hi, _ := bits.Add64(uint64(v.Hi), uint64(w.Hi), carry)
	return Int128{Hi: int64(hi), Lo: lo}
}

// Neg returns -v.
func (v Int128) Neg() Int128 { return Int128{}.Sub(v) }

// Sub returns v - w.
func (v Int128) Sub(w Int128) Int128 {
	lo, borrow := bits.Sub64(v.Lo, w.Lo, 0)
	hi, _ := bits.Sub64(uint64(v.Hi), uint64(w.Hi), borrow)
	return Int128{Hi: int64(hi), Lo: lo}
}

// Sign is -1, 0 or +1.
func (v Int128) Sign() int {
	switch {
	case v.Hi < 0:
		return -1
	case v.Hi == 0 && v.Lo == 0:
		return 0
	}
	return 1
}

// Cmp orders v and w: -1, 0 or +1.
func (v Int128) Cmp(w Int128) int {
	switch {
	case v == w:
		return 0
	case v.Hi < w.Hi || v.Hi == w.Hi && v.Lo < w.Lo:
		return -1
	}
	return 1
}

// IsZero reports whether v is 0.
func (v Int128) IsZero() bool { return v == Int128{} }

// Int64 returns v if it fits.
func (v Int128) Int64() (int64, bool) {
	return int64(v.Lo), v.Hi == int64(v.Lo)>>63
}

// String is v in decimal.
func (v Int128) String() string {
	hi, lo, neg := uint64(v.Hi), v.Lo, v.Hi < 0
	if neg {
		n := v.Neg()
		hi, lo = uint64(n.Hi), n.Lo // -2^127 keeps its bits, read unsigned they are 2^127
	}
	var buf [40]byte
	i := len(buf)
	for {
		var r uint64
		hi, r = bits.Div64(0, hi, 10)
		lo, r = bits.Div64(r, lo, 10)
		i--
		buf[i] = byte('0' + r)
		if hi == 0 && lo == 0 {
			break
		}
	}
	if neg {
		i--
		buf[i] = '-'
	}
	return string(buf[i:])
}

// ParseInt128 reads what String writes.
func ParseInt128(text string) (Int128, error) {
	digits, neg := strings.CutPrefix(text, "-")
	if digits == "" || !plainDigits(digits) {
		return Int128{}, fmt.Errorf("%q: not a whole number", clip(text))
	}
	v, ok := parseDigits(digits)
	if !ok {
		return Int128{}, fmt.Errorf("%q: does not fit 128 bits", clip(text))
	}
	if neg {
		v = v.Neg()
	}
	return v, nil
}

// parseDigits reads plain digits; false if they do not fit 127 bits.
func parseDigits(digits string) (Int128, bool) {
	var hi, lo uint64
	for i := range len(digits) {
		over, h := bits.Mul64(hi, 10)
		carry, l := bits.Mul64(lo, 10)
		var c uint64
		lo, c = bits.Add64(l, uint64(digits[i]-'0'), 0)
		hi, c = bits.Add64(h, carry, c)
		if over != 0 || c != 0 || hi>>63 != 0 {
			return Int128{}, false
		}
	}
	return Int128{Hi: int64(hi), Lo: lo}, true
}

// USD is v pico-dollars as dollars with exactly twelve decimals.
func (v Int128) USD() string {
	s := v.String()
	digits, neg := strings.CutPrefix(s, "-")
	if len(digits) <= picoDigits {
		digits = strings.Repeat("0", picoDigits+1-len(digits)) + digits
	}
	cut := len(digits) - picoDigits
	s = digits[:cut] + "." + digits[cut:]
	if neg {
		s = "-" + s
	}
	return s
}

// Dollars is v pico-dollars for people: six decimals, and the rest where it is not zero.
func (v Int128) Dollars() string {
	s := v.USD()
	keep := len(s) - 6
	rest := strings.TrimRight(s[keep:], "0")
	s = s[:keep] + rest
	if neg := strings.HasPrefix(s, "-"); neg {
		return "-$" + s[1:]
	}
	return "$" + s
}
