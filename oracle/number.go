package oracle

import (
	"math/big"
	"strconv"
	"strings"
)

// A decimal is a JSON number as it stands: digits times ten to the exp. No zero leads or ends the digits, so that
// the number is whole exactly if exp is not negative or there are none. Nothing is ever raised to exp before its
// size is known: 1e1000000000 stays eleven characters.
type decimal struct {
	neg    bool
	digits string // "" is zero
	exp    int64  // clamped to ±farExp, which is beyond every text
}

const farExp = int64(1) << 50

// parseDecimal reads a JSON number.
func parseDecimal(number string) decimal {
	var d decimal
	mantissa, exponent := number, ""
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], number[i+1:]
		d.exp = parseExponent(exponent)
	}
	mantissa, d.neg = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	d.digits = strings.TrimRight(all, "0")
	d.exp += int64(len(all)-len(d.digits)) - int64(len(fraction))
	d.digits = strings.TrimLeft(d.digits, "0")
	return d
}

func parseExponent(s string) int64 {
	s, neg := strings.CutPrefix(s, "-")
	s = strings.TrimLeft(strings.TrimPrefix(s, "+"), "0")
	if s == "" {
		return 0
	}
	exp := farExp
	if len(s) < 15 {
		exp, _ = strconv.ParseInt(s, 10, 64)
	}
	if neg {
		return -exp
	}
	return exp
}

// whole reports whether d has no fraction.
func (d decimal) whole() bool { return d.digits == "" || d.exp >= 0 }

// times10 is d * 10^n.
func (d decimal) times10(n int64) decimal {
	d.exp += n
	return d
}

// big is a whole d; false if it has more than 40 digits, far beyond everything that is counted here.
func (d decimal) big() (*big.Int, bool) {
	if d.digits == "" {
		return new(big.Int), true
	}
	if int64(len(d.digits))+d.exp > 40 {
		return nil, false
	}
	v, _ := new(big.Int).SetString(d.digits+strings.Repeat("0", int(d.exp)), 10)
	if d.neg {
		v.Neg(v)
	}
	return v, true
}

// int64 is d if it is whole and fits.
func (d decimal) int64() (int64, bool) {
	if !d.whole() {
		return 0, false
	}
	v, ok := d.big()
	if !ok || !v.IsInt64() {
		return 0, false
	}
	return v.Int64(), true
}
