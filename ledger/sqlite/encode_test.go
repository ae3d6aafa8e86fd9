package sqlite

import (
	"slices"
	"testing"
)

// TestScanLists: a list is read as it was written, into a new slice or into one that is there; anything else is refused.
func TestScanLists(t *testing.T) {
	for _, want := range [][]int64{{}, {7}, {1, -2, 9223372036854775807}} {
		var list []int64
		there := make([]int64, len(want))
		if err := (scanInts{&list}).Scan(ints(want, 0)); err != nil || !slices.Equal(list, want) {
			t.Errorf("%v: %v, %v", want, list, err)
		}
		if err := (scanAll{there}).Scan(ints(want, 0)); err != nil || !slices.Equal(there, want) {
			t.Errorf("%v: %v, %v", want, there, err)
		}
	}
	for _, v := range []any{nil, int64(1), "", "[", "1,2", "[1,]", "[,1]", "[1,x]", "[1 ,2]", "[9223372036854775808]"} {
		list := []int64{5}
		if err := (scanInts{&list}).Scan(v); err == nil || !slices.Equal(list, []int64{5}) {
			t.Errorf("%v is read as %v", v, list)
		}
	}
	for _, v := range []string{"[]", "[1]", "[1,2,]", "[1,2,3]"} {
		if err := (scanAll{make([]int64, 2)}).Scan(v); err == nil {
			t.Errorf("%s is read as a list of two", v)
		}
	}
}
