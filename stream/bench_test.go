package stream

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

var liveRequests = flag.Int("live", 1_000_000, "how many requests BenchmarkLiveMemory keeps open")

// benchMeter is the gateway's meter (requests), or the taps' (events).
func benchMeter(kind meter.MeterKind) *meter.Meter {
	m := &meter.Meter{
		Name: "bench", Kind: kind, Watermark: meter.Watermark{MaxOutOfOrderness: 20_000},
		Window: meter.Window{Size: 60_000, AllowedLateness: 120_000},
		Event:  meter.EventMap{Identity: []meter.FieldPath{{"id"}}, TierOn: -1},
	}
	names := []string{"prompt_tokens", "cached_tokens", "completion_tokens"}
	for i, name := range names {
		m.Event.Quantities = append(m.Event.Quantities, meter.Quantity{Name: name, PartOf: -1, OnEnd: kind == meter.Requests && i == 2})
	}
	m.Event.Quantities[1].PartOf = 0
	if kind == meter.Requests {
		m.AbandonAfter = 300_000
	}
	return m
}

// A feed makes events of a gateway at rate requests a second: 400 tenants, 30 models, an end 2 s after its start.
// One record in 32 is sent twice.
type feed struct {
	kind     meter.MeterKind
	rate     int64
	n        int64 // requests so far
	offset   int64
	accounts []string
	skus     []string
	lag      []int64 // requests whose end is to come
	lagAt    int
	noEnds   bool
}

const benchStart = 1_767_225_600_000 // 2026-01-01T00:00:00Z

func newFeed(kind meter.MeterKind, rate int64) *feed {
	f := &feed{kind: kind, rate: rate, lag: make([]int64, 2*rate)}
	for i := range f.lag {
		f.lag[i] = -1
	}
	for i := range 400 {
		f.accounts = append(f.accounts, "tenant-"+strconv.Itoa(i))
	}
	for i := range 30 {
		f.skus = append(f.skus, "model-"+strconv.Itoa(i))
	}
	return f
}

func requestID(n int64) meter.ID { return meter.NewID(fmt.Sprintf("req-%010d", n)) }

// fill makes the next events, at least len(out)-4 of them, and returns how many.
func (f *feed) fill(out []meter.Event) int {
	n := 0
	add := func(kind meter.Kind, request, t int64) {
		e := &out[n]
		id := requestID(request)
		*e = meter.Event{Offset: f.offset, LogTime: t, HasLogTime: true, Bucket: meter.BucketEvent, Kind: kind, ID: id, IDHash: id.Hash64(), Time: t,
			Quantities: append(e.Quantities[:0], 0, 0, 0), PayloadHash: uint64(request)*0x9e3779b97f4a7c15 + uint64(kind), Reference: id}
		if kind != meter.KindComplete {
			e.Account, e.SKU = f.accounts[request*request%400], f.skus[request%30]
			e.Quantities[0], e.Quantities[1] = 1000, 200
		}
		if kind != meter.KindStart {
			e.Quantities[2], e.Status = 300, "ok"
		}
		f.offset++
		n++
	}
	for n+4 <= len(out) {
		request, t := f.n, benchStart+f.n*1000/f.rate
		f.n++
		kind := meter.KindStart
		if f.kind == meter.Events {
			kind = meter.KindEvent
		}
		add(kind, request, t)
		if request%32 == 0 {
			add(kind, request, t)
		}
		if f.kind == meter.Events || f.noEnds {
			continue
		}
		ended := f.lag[f.lagAt]
		f.lag[f.lagAt] = request
		f.lagAt = (f.lagAt + 1) % len(f.lag)
		if ended >= 0 {
			add(meter.KindComplete, ended, t)
		}
	}
	return n
}

// BenchmarkCount counts what a feed makes, with over a million ids remembered: dedupe in an events meter,
// assembly too in a requests meter. The making is not in the time.
func BenchmarkCount(b *testing.B) {
	for _, kind := range []meter.MeterKind{meter.Events, meter.Requests} {
		b.Run(string(kind), func(b *testing.B) {
			rate := int64(3_000)
			if kind == meter.Events {
				rate = 6_000 // an event's id is remembered for a shorter time
			}
			if testing.Short() {
				rate /= 30
			}
			f := newFeed(kind, rate)
			c, err := NewCounter(benchMeter(kind), 0, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{})
			if err != nil {
				b.Fatal(err)
			}
			events := make([]meter.Event, 1024)
			var spent time.Duration
			var taken int64
			count := func() (n int) {
				n = f.fill(events)
				began := cpu()
				for i := range events[:n] {
					if i%32 == 0 {
						lookAhead(c, events[i:min(i+32, n)])
					}
					if err := c.Apply(&events[i]); err != nil {
						b.Fatal(err)
					}
				}
				if minute := c.Watermark() / 60_000; minute != taken { // R11: a window's end was crossed
					taken = minute
					c.TakeChanges()
				}
				spent += cpu() - began
				return n
			}
			for f.n < 400*rate { // until as many are forgotten as come
				count()
			}
			spent = 0
			n := 0
			for b.Loop() {
				n += count()
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "cpu-ns/event")
			b.ReportMetric(float64(n)/spent.Seconds(), "events/cpu-s")
			b.ReportMetric(float64(c.lives.n), "lives")
			checkCount(b, f, c)
		})
	}
}

// lookAhead is what a driver does before it applies a few dozen events.
func lookAhead(c *Counter, events []meter.Event) {
	for i := range events {
		c.Expect(&events[i])
	}
	for i := range events {
		c.Look(&events[i])
	}
}

// BenchmarkMap is the yardstick for BenchmarkCount: a Go map that does nothing but remember and forget a million
// ids of the same feed.
func BenchmarkMap(b *testing.B) {
	f := newFeed(meter.Events, 6_000)
	events := make([]meter.Event, 4096)
	ids := map[meter.ID]int64{}
	ring, at, copies := make([]meter.ID, 1_000_000), 0, 0
	var spent time.Duration
	count := func() (n int) {
		n = f.fill(events)
		began := cpu()
		for i := range events[:n] {
			e := &events[i]
			if _, known := ids[e.ID]; known {
				copies++
				continue
			}
			ids[e.ID] = e.Time
			delete(ids, ring[at])
			ring[at] = e.ID
			at = (at + 1) % len(ring)
		}
		spent += cpu() - began
		return n
	}
	for f.n < shorter(2_000_000) {
		count()
	}
	spent = 0
	n := 0
	for b.Loop() {
		n += count()
	}
	if want := int((f.n + 31) / 32); copies != want {
		b.Fatalf("%d copies, want %d", copies, want)
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "cpu-ns/event")
}

// shorter is less to do with -short, where benchmarks run only so that they do not rot.
func shorter(n int64) int64 {
	if testing.Short() {
		return n / 30
	}
	return n
}

// cpu is the CPU time of this process: on a shared machine the clock says little.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// checkCount requires every record in its bucket.
func checkCount(b *testing.B, f *feed, c *Counter) {
	s := c.Summary()
	if err := s.Check(); err != nil {
		b.Fatal(err)
	}
	twice := (f.n + 31) / 32
	counted, open := f.n, int64(0)
	if f.kind == meter.Requests {
		open = int64(len(f.lag))
		counted = 2 * (f.n - open)
	}
	if s.Duplicate != twice || s.Counted != counted || s.Open != open {
		b.Fatalf("counted %d, duplicate %d, open %d; want %d, %d, %d", s.Counted, s.Duplicate, s.Open, counted, twice, open)
	}
}

// BenchmarkCheckpoint is what the driver asks for every second.
func BenchmarkCheckpoint(b *testing.B) {
	f := newFeed(meter.Requests, 3_000)
	c, _ := NewCounter(benchMeter(meter.Requests), 0, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{})
	events := make([]meter.Event, 8192)
	for f.n < shorter(1_000_000) {
		n := f.fill(events)
		for i := range events[:n] {
			if err := c.Apply(&events[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		cp, err := c.Checkpoint(true)
		if err != nil || cp.Restart >= c.next || cp.Restart == 0 && c.watermark > benchStart+600_000 {
			b.Fatalf("%+v, %v", cp, err)
		}
	}
}

// BenchmarkLiveMemory keeps -live requests open and reports what one takes on the heap: id of 18 bytes, three
// quantities.
func BenchmarkLiveMemory(b *testing.B) {
	for b.Loop() {
		before := heap()
		c, err := NewCounter(benchMeter(meter.Requests), 0, meter.Checkpoint{MaxReach: meter.MinusInfinity}, meter.Summary{})
		if err != nil {
			b.Fatal(err)
		}
		n := shorter(int64(*liveRequests))
		f := newFeed(meter.Requests, 1)
		f.rate, f.noEnds = 10_000_000_000, true // no time passes
		events := make([]meter.Event, 4096)
		for f.n < n {
			for i := range events[:f.fill(events)] {
				if err := c.Apply(&events[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
		used := heap() - before
		if open := c.Summary().Open; open != f.n {
			b.Fatalf("%d open, want %d", open, f.n)
		}
		b.ReportMetric(float64(used)/float64(f.n), "B/live")
		b.ReportMetric(float64(used)/1e6, "MB")
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		b.ReportMetric(float64(ms.Sys)/1e6, "MB-sys")
		runtime.KeepAlive(c)
	}
}

func heap() int64 {
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return int64(ms.HeapAlloc)
}

// BenchmarkMerge adds the changes of 8 partitions, 12,000 cells each, and publishes, a minute at a time.
func BenchmarkMerge(b *testing.B) {
	m := benchMeter(meter.Requests)
	card := &meter.RateCard{}
	for sku := range 30 {
		for i, q := range m.Event.Quantities {
			card.Rates = append(card.Rates, meter.Rate{SKU: "model-" + strconv.Itoa(sku), Quantity: q.Name, Pico: int64(1000 * (i + 1))})
		}
	}
	merger := NewMerger(m, NewPricer(m, card, nil), MergeState{G: meter.MinusInfinity})
	const partitions, accounts = 8, 400
	changes := make([]meter.CellChange, 0, accounts*30)
	for a := range accounts {
		for s := range 30 {
			changes = append(changes, meter.CellChange{CellKey: meter.CellKey{Account: fmt.Sprintf("tenant-%03d", a), SKU: fmt.Sprintf("model-%d", s)},
				Value: meter.Usage{Requests: 7, Quantities: []int64{7000, 1400, 2100}, SetHash: 5}, Was: meter.Usage{Quantities: []int64{0, 0, 0}}})
		}
	}
	began := cpu()
	const cell = 5600*1000 + 1400*2000 + 2100*3000
	sum, n, end := meter.Int128{}, 0, int64(benchStart)
	for no := int64(1); b.Loop(); no++ {
		end += m.Window.Size
		for p := range int32(partitions) {
			for i := range changes {
				changes[i].WindowEnd = end
			}
			if err := merger.Add(p, no, changes); err != nil {
				b.Fatal(err)
			}
			merger.SetPartition(p, end, false)
		}
		fired, err := merger.Publish()
		if err != nil {
			b.Fatal(err)
		}
		for i := range fired {
			sum = sum.Add(fired[i].DeltaPico)
		}
		if _, err := merger.Dirty(); err != nil {
			b.Fatal(err)
		}
		n += partitions * len(changes)
	}
	if want := meter.Mul64(int64(n), cell); sum != want {
		b.Fatalf("published %v, want %v", sum, want)
	}
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(n), "cpu-ns/change")
	b.ReportMetric(float64(len(merger.rows)), "rows")
}
