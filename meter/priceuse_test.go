package meter

import (
	"slices"
	"testing"
)

func TestPriceUses(t *testing.T) {
	a, b, c := PriceUse{Card: "a", From: MinusInfinity}, PriceUse{Card: "b", From: 100}, PriceUse{Card: "c", From: 50}
	for _, test := range []struct {
		written []PriceUse
		want    PriceUses
	}{
		{nil, nil},
		{[]PriceUse{a, b}, PriceUses{a, b}},
		{[]PriceUse{a, b, c}, PriceUses{a, c}},
		{[]PriceUse{a, b, a}, PriceUses{a}},
		{[]PriceUse{a, b, {Card: "a", From: 100}}, PriceUses{a}},
		{[]PriceUse{a, b, {Card: "b", From: 200}}, PriceUses{a, b}},
		{[]PriceUse{a, b, {Card: "b", List: "l", From: 200}}, PriceUses{a, b, {Card: "b", List: "l", From: 200}}},
	} {
		if got := InForce(test.written); !slices.Equal(got, test.want) {
			t.Errorf("%v come to %v, want %v", test.written, got, test.want)
		}
	}
	u := PriceUses{a, b}
	for end, want := range map[int64]string{MinusInfinity: "a", 100: "a", 101: "b", PlusInfinity: "b"} {
		if got := u.At(end).Card; got != want {
			t.Errorf("a window that ends at %d is priced by %q, want %q", end, got, want)
		}
	}
}
