package stream

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// tap is an event of an events meter.
func tap(offset, t, quantity int64) *meter.Event {
	id := meter.PositionID(0, offset)
	return &meter.Event{Offset: offset, Bucket: meter.BucketEvent, Kind: meter.KindEvent, ID: id, IDHash: id.Hash64(), Account: "a", SKU: "s",
		Time: t, Status: "ok", Quantities: []int64{quantity, 0, 0}, PayloadHash: uint64(t)}
}

func newTestCounter(t *testing.T, kind meter.MeterKind) *Counter {
	t.Helper()
	c, err := NewCounter(benchMeter(kind), 0, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantError(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want an error with %q", err, words)
	}
}

// TestSumLeavesInt64 stops the partition for good (R9).
func TestSumLeavesInt64(t *testing.T) {
	for _, quantity := range []int64{1, 2} {
		c := newTestCounter(t, meter.Events)
		if err := c.Apply(tap(1, benchStart, math.MaxInt64-1)); err != nil {
			t.Fatal(err)
		}
		err := c.Apply(tap(2, benchStart, quantity))
		if quantity == 1 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantError(t, err, "stream: count 0@2: R9")
		wantError(t, c.Apply(tap(3, benchStart, 0)), "R9")
		wantError(t, c.Drain(), "R9")
		_, err = c.Checkpoint(true)
		wantError(t, err, "R9")
	}
}

// TestOffsetsRise (R1).
func TestOffsetsRise(t *testing.T) {
	for _, offset := range []int64{4, 5} {
		c := newTestCounter(t, meter.Events)
		if err := c.Apply(tap(5, benchStart, 1)); err != nil {
			t.Fatal(err)
		}
		wantError(t, c.Apply(tap(offset, benchStart, 1)), "R1")
	}
	c := newTestCounter(t, meter.Events)
	e := tap(1, benchStart, 1)
	e.Partition = 3
	wantError(t, c.Apply(e), "partition 3")
}

// TestDrainedIsTerminal (R13).
func TestDrainedIsTerminal(t *testing.T) {
	c := newTestCounter(t, meter.Events)
	if err := c.Drain(); err != nil || c.Watermark() != meter.PlusInfinity {
		t.Fatal(err, c.Watermark())
	}
	wantError(t, c.Apply(tap(1, benchStart, 1)), "R13")
	wantError(t, c.Drain(), "R13")
}

// TestReplayComesFirst: a replay after a record was applied would lose it.
func TestReplayComesFirst(t *testing.T) {
	c := newTestCounter(t, meter.Events)
	if err := c.Apply(tap(1, benchStart, 1)); err != nil {
		t.Fatal(err)
	}
	wantError(t, c.Replay(tap(2, benchStart, 1)), "replay")
}

// TestCheckpointAtTheEnds: without live state a fresh counter may begin at the next record; before any record at
// the checkpoint that it was given.
func TestCheckpointAtTheEnds(t *testing.T) {
	c := newTestCounter(t, meter.Events)
	if cp, err := c.Checkpoint(true); err != nil || cp.Restart != 0 || cp.MaxReach != meter.MinusInfinity || cp.Byte != 0 {
		t.Errorf("%+v %v", cp, err)
	}
	first := tap(7, benchStart, 1)
	first.Byte = 70
	if err := c.Apply(first); err != nil {
		t.Fatal(err)
	}
	if cp, err := c.Checkpoint(true); err != nil || cp.Restart != 7 || cp.Byte != 70 || cp.MaxReach != meter.MinusInfinity {
		t.Errorf("%+v %v", cp, err)
	}
	if err := c.Drain(); err != nil {
		t.Fatal(err)
	}
	cp, err := c.Checkpoint(true)
	if err != nil || cp.Restart != 8 || cp.Byte != ByteOfNext || cp.MaxReach != benchStart || c.MaxReach() != benchStart {
		t.Errorf("%+v %v", cp, err)
	}
}

// TestCarriedOfAnotherMeter is refused.
func TestCarriedOfAnotherMeter(t *testing.T) {
	for _, text := range []string{
		`{`,
		`[{"lives":[{"id":["a"],"phase":"nonsense","quantities":[0,0,0]}]}]`,
		`[{"lives":[{"id":["a"],"phase":"open","quantities":[0]}]}]`,
		`[{"lives":[{"id":["a"],"phase":"open","quantities":[0,0,0],"marks":[1]}]}]`,
	} {
		_, err := NewCounter(benchMeter(meter.Requests), 0, meter.Checkpoint{Carried: []byte(text)}, meter.Summary{})
		wantError(t, err, "carried")
	}
	m := benchMeter(meter.Events)
	m.Event.Identity = make([]meter.FieldPath, 200)
	_, err := NewCounter(m, 0, meter.Checkpoint{}, meter.Summary{})
	wantError(t, err, "200 fields")
}

// An id that is resent for ever, each time with a fresh time, is carried: the restart offset follows all the same
// (R8), and of such ids there may be too many.
func TestResentForEver(t *testing.T) {
	for _, ids := range []int64{1, 900, 1100} {
		c := newTestCounter(t, meter.Events)
		c.marks.every = 100
		offset := int64(0)
		apply := func(id string, at int64) {
			e := tap(offset, at, 1)
			e.ID = meter.NewID(id)
			e.IDHash = e.ID.Hash64()
			if err := c.Apply(e); err != nil {
				t.Fatal(err)
			}
			offset++
		}
		now := int64(benchStart)
		for range 30 {
			for i := range ids {
				apply("again-"+string(rune('a'+i)), now)
			}
			for i := range 300 {
				apply("once", now+int64(i)*100)
			}
			c.TakeChanges()
			now += 60_000
		}
		carried, err := c.Checkpoint(true)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := c.Checkpoint(false)
		if err != nil {
			t.Fatal(err)
		}
		if plain.Restart > 100 || plain.Carried != nil {
			t.Errorf("%d ids, nothing carried: restart at %d", ids, plain.Restart)
		}
		if held := carried.Restart < 2000; held != (ids > maxCarried) {
			t.Errorf("%d ids: restart at %d of %d", ids, carried.Restart, offset)
		}
		if n := len(c.marks.list); n > 150 {
			t.Errorf("%d ids: %d marks are kept", ids, n)
		}
	}
}

// TestCarriedBeforeItsStart: what the replay reads of a carried id was before the state that is carried: here a
// progress record that came before the start, and must not count for it (R7, R8).
func TestCarriedBeforeItsStart(t *testing.T) {
	record := func(offset int64, kind meter.Kind, id string, at, logTime int64) meter.Event {
		return meter.Event{Offset: offset, Bucket: meter.BucketEvent, Kind: kind, ID: meter.NewID(id), IDHash: meter.NewID(id).Hash64(), Account: "a", SKU: "s",
			Time: benchStart + at, LogTime: benchStart + logTime, HasLogTime: true, Quantities: []int64{0, 0, 50}, Present: 7, PayloadHash: uint64(at)}
	}
	log := []meter.Event{
		record(0, meter.KindComplete, "r", 0, 0),
		record(1, meter.KindComplete, "r", 600_000, 0),    // a conflicting copy: r is remembered until 900 s
		record(2, meter.KindStart, "x", 340_000, 340_000), // W = 320 s: r's end is an orphan
		record(3, meter.KindStart, "keeps the restart here", 340_000, 340_000),
		record(4, meter.KindProgress, "r", 340_000, 340_000),
		record(5, meter.KindStart, "r", 340_000, 340_000),
	}
	c := newTestCounter(t, meter.Requests)
	c.marks.every = 1
	for i := range log {
		if err := c.Apply(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	cp, err := c.Checkpoint(true)
	if err != nil || cp.Restart != 2 || cp.Carried == nil {
		t.Fatalf("%+v %v", cp, err)
	}
	again, err := NewCounter(c.m, 0, cp, c.Summary())
	if err != nil {
		t.Fatal(err)
	}
	for i := cp.Restart; i < int64(len(log)); i++ {
		if err := again.Replay(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := dump(c), dump(again); a != b {
		t.Errorf("is     %s\nreplay %s", a, b)
	}
	for _, c := range []*Counter{c, again} {
		if err := c.Drain(); err != nil {
			t.Fatal(err)
		}
		for _, x := range c.cells.take() {
			if x.Value.Requests != 3 || x.Value.Quantities[2] != 0 {
				t.Errorf("%+v", x)
			}
		}
	}
}

// TestEndOf: the window of a time, against plain division, at borders and at random (R5).
func TestEndOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		z := 1 + rng.Int64N(1<<(1+rng.IntN(45)))
		if rng.IntN(4) == 0 {
			z = 1 << rng.IntN(45)
		}
		c := Counter{window: z, perWindow: math.MaxUint64 / uint64(z)}
		at := rng.Int64N(1<<(1+rng.IntN(61))) / z * z
		for _, at := range []int64{at - 1, at, at + 1, at + z - 1, -at, -at - 1} {
			if got, want := c.endOf(at), floorDiv(at, z)*z+z; got != want {
				t.Fatalf("the end of %d in windows of %d is %d, want %d", at, z, got, want)
			}
		}
	}
}
