package archive

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"pgregory.net/rapid"
)

// The levels of a page are what a Parquet reader makes of them, however many rows were added at once.
func TestLevelsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l levels
		var want []byte
		there := 0
		for range rapid.IntRange(1, 60).Draw(t, "batches") {
			n := rapid.IntRange(1, batchRows).Draw(t, "rows")
			mask := rapid.OneOf(rapid.Just(uint64(0)), rapid.Just(^uint64(0)), rapid.Uint64()).Draw(t, "there") & firstRows(n)
			l.add(mask, n)
			there += bits.OnesCount64(mask)
			for i := range n {
				want = append(want, byte(mask>>i&1))
			}
		}
		got, err := (&rle.Encoding{BitWidth: 1}).DecodeLevels(nil, l.encode(nil, there))
		if err != nil {
			t.Fatal(err)
		}
		// Packed bits end with a byte: what is behind the rows is no level.
		if len(got) < len(want) || len(got) >= len(want)+8 || !slices.Equal(got[:len(want)], want) {
			t.Fatalf("read %v, was %v", got, want)
		}
		if again, err := (&rle.Encoding{BitWidth: 1}).DecodeLevels(nil, l.encode(nil, there)); err != nil || !slices.Equal(again, got) {
			t.Fatalf("encoded twice: %v, was %v (%v)", again, got, err)
		}
	})
}
