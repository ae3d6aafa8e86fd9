package meter

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseUSD(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0.15": 150_000_000_000, "-3": -3_000_000_000_000, "0.000000000001": 1, "1.0000000000000": 1_000_000_000_000,
		"9223372.036854775807": math.MaxInt64, "-9223372.036854775808": math.MinInt64, "00.5": 500_000_000_000,
	} {
		if got, err := ParseUSD(text); err != nil || int64(got) != want {
			t.Errorf("ParseUSD(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", ".5", "5.", "1e3", "+1", "0x1", "1,5", " 1", "0.0000000000001", "9223372.036854775808", "NaN", "--1", "1.-5",
		strings.Repeat("9", 60)} {
		if got, err := ParseUSD(text); err == nil {
			t.Errorf("ParseUSD(%q) = %d, want an error", text, got)
		}
	}
}

func TestDollars(t *testing.T) {
	for pico, want := range map[int64]string{0: "$0.000000", 4_310_000_000: "$0.004310", 1: "$0.000000000001", -1_500_000_000_001: "-$1.500000000001"} {
		if got := From64(pico).Dollars(); got != want {
			t.Errorf("%d: %s, want %s", pico, got, want)
		}
	}
}

func toBig(v Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(v.Lo))
}

// 128-bit sums and products are those of math/big, and text goes out and in unchanged.
func TestInt128IsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		c, d := rapid.Int64().Draw(t, "c"), rapid.Int64().Draw(t, "d")
		v, w := Mul64(a, b), Mul64(c, d)
		bv, bw := new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), new(big.Int).Mul(big.NewInt(c), big.NewInt(d))
		for _, x := range []struct {
			got  Int128
			want *big.Int
		}{{v, bv}, {v.Add(w), new(big.Int).Add(bv, bw)}, {v.Sub(w), new(big.Int).Sub(bv, bw)}, {v.Neg(), new(big.Int).Neg(bv)}} {
			if toBig(x.got).Cmp(x.want) != 0 || x.got.String() != x.want.String() || x.got.Sign() != x.want.Sign() {
				t.Fatalf("got %v, want %v", x.got, x.want)
			}
			back, err := ParseInt128(x.got.String())
			if err != nil || back != x.got {
				t.Fatalf("%v comes back as %v, %v", x.got, back, err)
			}
			usd, err := ParseUSD128(x.got.USD())
			if err != nil || usd != x.got {
				t.Fatalf("%s comes back as %v, %v", x.got.USD(), usd, err)
			}
			if n, fits := x.got.Int64(); fits != x.want.IsInt64() || fits && n != x.want.Int64() {
				t.Fatalf("Int64 of %v: %d, %v", x.got, n, fits)
			}
		}
		if v.Cmp(w) != bv.Cmp(bw) {
			t.Fatalf("Cmp(%v, %v)", v, w)
		}
	})
}

func FuzzUSD(f *testing.F) {
	f.Add("0.15")
	f.Add("-9223372.036854775808")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseUSD(text)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		got, _ := new(big.Rat).SetString(p.USD())
		if !ok || want.Cmp(got) != 0 {
			t.Errorf("%q was read as %s", text, p.USD())
		}
	})
}
