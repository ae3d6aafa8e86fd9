// Package story makes the logs of the two stories that gmctl tells: ad clicks, where a partner's count never matches
// the bill, and an LLM gateway, where one minute is billed twice over by a reader that adds corrections up. Both are
// the same bytes on every machine. No number of the stories is written down here but those of the world: what each side
// says of it comes out of the engines.
package story

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// arrival is a record on its way into the log.
type arrival struct {
	at        int64 // log time, ms
	partition int32
	key       string
	value     string
}

// write puts arrivals into the log in the order in which they came.
func write(w *trace.Writer, h trace.Header, all []arrival) error {
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	if err := w.Header(h); err != nil {
		return err
	}
	next := map[int32]int64{}
	for _, a := range all {
		r := meter.Record{Partition: a.partition, Offset: next[a.partition], LogTime: a.at, HasLogTime: true, Key: []byte(a.key), Value: []byte(a.value)}
		next[a.partition]++
		if err := w.Record(&r); err != nil {
			return err
		}
	}
	return w.Flush()
}

// dice is a seeded source: the same on every machine and version (PCG).
func dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// between is a number in [low, high).
func between(r *rand.Rand, low, high int64) int64 { return low + r.Int64N(high-low) }

func at(clock string) int64 {
	t, err := time.Parse(time.RFC3339, clock)
	if err != nil {
		panic(fmt.Sprintf("story: %v", err)) // cannot happen: the clocks are written in this package
	}
	return t.UnixMilli()
}

const (
	second = int64(1000)
	minute = 60 * second
)
