package trace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Gen describes a log to make up: the same Gen gives the same bytes on every machine. The values are those of the two
// starter meters: requests of an LLM gateway (event_type, request_id, tenant_id, model, ts, payload.*), or taps
// (click_id, partner, phone_time, server_time, agent). Times are ms; shares are per mille.
type Gen struct {
	Kind   meter.MeterKind // Requests or Events
	Format Format          // Trace, or Values: plain event lines of an events meter
	Topic  string          // of the header; "" for none
	Seed   uint64

	Start      int64 // event time of the first request or tap
	Duration   int64 // over which they begin; their records may come later
	PerSecond  int64 // requests or taps
	Partitions int32
	Accounts   int
	HotShare   int // of requests that are of the first account ("acme"); the rest is spread evenly
	SKUs       int

	OutOfOrder int64 // records come at most so late in ordinary times
	Late       int   // share of requests or taps of which all comes LateBy late
	LateBy     int64
	// BurstEvery so often, for BurstFor, the retry buffer holds all that begins back for BurstDelay. 0: never.
	BurstEvery, BurstFor, BurstDelay int64

	Duplicate int // share of records that come twice
	Conflict  int // share of records that come again with other numbers
	Bots      int // share of requests or taps of an agent bot/...
	Broken    int // share of records that come as a copy that is no JSON, too
	// Of requests meters only:
	Abandoned int   // share of requests without an end
	Errors    int   // share of requests that end with ModelError
	Progress  int   // share of requests that stream one to three progress records
	TickEvery int64 // to every partition; 0: none
}

// NewGen is an ordinary minute of either kind, a little of everything in it.
func NewGen(kind meter.MeterKind) Gen {
	g := Gen{
		Kind: kind, Format: Trace, Topic: "requests", Seed: 1, Start: 1_767_225_600_000, // 2026-01-01
		Duration: 60_000, PerSecond: 20, Partitions: 3, Accounts: 6, HotShare: 400, SKUs: 4,
		OutOfOrder: 20_000, Late: 10, LateBy: 60_000, BurstEvery: 300_000, BurstFor: 10_000, BurstDelay: 30_000,
		Duplicate: 10, Conflict: 1, Bots: 20, Abandoned: 10, Errors: 20, Progress: 200, TickEvery: 10_000,
	}
	if kind == meter.Events {
		g.Topic, g.OutOfOrder = "taps", 5_000
		g.Abandoned, g.Errors, g.Progress, g.TickEvery = 0, 0, 0, 0
	}
	return g
}

// NewLab is the log of the rehearsal: 20 requests/s for four minutes, six tenants, 5 % of the requests 60 s late.
func NewLab() Gen {
	g := NewGen(meter.Requests)
	g.Seed, g.Duration, g.Late, g.BurstEvery = 2026, 240_000, 50, 0
	return g
}

// maxDelay bounds every delay, so that the queue stays small.
const maxDelay = 24 * 3_600_000

// Validate returns every fault at once.
func (g *Gen) Validate() error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(g.Kind == meter.Requests || g.Kind == meter.Events, "kind %q: want requests or events", g.Kind)
	want(g.Format == Trace || g.Format == Values && g.Kind == meter.Events, "format %q: want trace, or values for an events meter", g.Format)
	want(g.Topic == "" || IsTopic(g.Topic), "topic %q is no name", g.Topic)
	want(g.Start > minLogTime && g.Start < maxLogTime/2, "start %d is out of range", g.Start)
	want(g.Duration >= 0 && g.Duration <= 366*24*3_600_000, "duration %d ms: want 0 to 366 days", g.Duration)
	want(g.PerSecond >= 0 && g.PerSecond <= 1_000_000, "%d a second: want 0 to 1000000", g.PerSecond)
	want(g.Partitions >= 1 && g.Partitions <= 10_000, "%d partitions: want 1 to 10000", g.Partitions)
	want(g.Format != Values || g.Partitions == 1, "%d partitions: plain event lines have one", g.Partitions)
	want(g.Accounts >= 1 && g.Accounts <= 1_000_000, "%d accounts: want 1 to 1000000", g.Accounts)
	want(g.SKUs >= 1 && g.SKUs <= 10_000, "%d skus: want 1 to 10000", g.SKUs)
	for _, s := range []struct {
		name  string
		share int
	}{{"hot", g.HotShare}, {"late", g.Late}, {"duplicate", g.Duplicate}, {"conflict", g.Conflict}, {"bots", g.Bots},
		{"broken", g.Broken}, {"abandoned", g.Abandoned}, {"errors", g.Errors}, {"progress", g.Progress}} {
		want(s.share >= 0 && s.share <= 1000, "%s: a share of %d per mille: want 0 to 1000", s.name, s.share)
	}
	for _, d := range []struct {
		name  string
		delay int64
	}{{"out of order", g.OutOfOrder}, {"late by", g.LateBy}, {"burst every", g.BurstEvery}, {"burst for", g.BurstFor},
		{"burst delay", g.BurstDelay}, {"tick every", g.TickEvery}} {
		want(d.delay >= 0 && d.delay <= maxDelay, "%s: %d ms: want 0 to a day", d.name, d.delay)
	}
	if len(faults) > 0 {
		return fmt.Errorf("trace: generate: %w", errors.Join(faults...))
	}
	return nil
}

// AccountName is the name of the i-th account of a generated log of a kind; the first is the hot one.
func AccountName(kind meter.MeterKind, i int) string {
	switch {
	case kind == meter.Events:
		return fmt.Sprintf("kitchen-%02d", i+1)
	case i == 0:
		return "acme"
	}
	return fmt.Sprintf("tenant-%03d", i)
}

// SKUName is the name of the i-th model of a generated log of requests.
func SKUName(i int) string { return fmt.Sprintf("model-%02d", i+1) }

// Write makes the log up and returns the number of its records.
func (g *Gen) Write(w io.Writer) (int64, error) {
	if err := g.Validate(); err != nil {
		return 0, err
	}
	m := newMaker(g, w)
	if err := m.run(); err != nil {
		return 0, err
	}
	return m.seq, nil
}

// A maker works through the time in slices: all that begins in a slice is made up, then all that arrives in it is
// written in order of arrival. Nothing arrives before it begins, so no later slice can add to an earlier one.
type maker struct {
	*Gen
	dice     dice
	writer   *Writer
	accounts []string
	skus     []string
	queue    map[int64][]arrival // by slice
	free     [][]arrival
	queued   int
	made     int64 // requests or taps so far
	drawn    int64 // arrivals so far, to order those of one ms
	offsets  []int64
	seq      int64
	value    []byte
}

// slice is the length of a slice in ms.
const slice = 256

// An arrival is a record that is on its way.
type arrival struct {
	at, order int64 // log time, ms; order of being made up
	time      int64 // event time, ms
	id        uint64
	what      what
	account   int32
	sku       int32
	agent     int32
	a, b      int64 // prompt and cached tokens, or completion tokens and latency
}

type what uint8

const (
	aStart what = iota
	aProgress
	aComplete
	anError
	aTap
	aTick
	broken what = 1 << 7 // as a bit
)

func newMaker(g *Gen, w io.Writer) *maker {
	m := &maker{Gen: g, dice: dice(g.Seed), writer: NewWriter(w), queue: map[int64][]arrival{}, offsets: make([]int64, g.Partitions)}
	for i := range g.Accounts {
		m.accounts = append(m.accounts, AccountName(g.Kind, i))
	}
	for i := range g.SKUs {
		m.skus = append(m.skus, SKUName(i))
	}
	return m
}

func (m *maker) run() error {
	if m.Topic != "" && m.Format == Trace {
		h := Header{Topic: m.Topic, Seed: &m.Seed}
		for p := range m.Partitions {
			h.Partitions = append(h.Partitions, p)
		}
		if err := m.writer.Header(h); err != nil {
			return err
		}
	}
	for t := int64(0); t < m.Duration || m.queued > 0; t += slice {
		m.begin(t, min(t+slice, m.Duration))
		if err := m.emit(t / slice); err != nil {
			return err
		}
	}
	return m.writer.Flush()
}

// begin makes up what begins in [from, to) after Start.
func (m *maker) begin(from, to int64) {
	for n := m.PerSecond*to/1000 - m.PerSecond*from/1000; n > 0 && from < to; n-- {
		start := from + m.dice.below(to-from)
		if m.Kind == meter.Events {
			m.tap(start)
		} else {
			m.request(start)
		}
		m.made++
	}
	for t := from; m.TickEvery > 0 && m.Kind == meter.Requests && t < to; t++ {
		if t%m.TickEvery != 0 {
			continue
		}
		for p := range m.Partitions {
			m.send(arrival{at: t + m.dice.below(100), time: t, what: aTick, id: uint64(p)})
		}
	}
}

// first draws what all records of one request or tap share, and how late all of it comes.
func (m *maker) first(start int64) (arrival, int64) {
	r := arrival{id: mix(m.Seed ^ uint64(m.made)*0x9E3779B97F4A7C15), sku: int32(m.dice.below(int64(m.SKUs)))}
	if m.Accounts > 1 && !m.dice.share(m.HotShare) {
		r.account = 1 + int32(m.dice.below(int64(m.Accounts-1)))
	}
	if r.agent = int32(m.dice.below(int64(len(agents)))); m.dice.share(m.Bots) {
		r.agent = -1
	}
	var delay int64
	if m.dice.share(m.Late) {
		delay = m.LateBy
	}
	if m.BurstEvery > 0 && start%m.BurstEvery >= m.BurstEvery-min(m.BurstFor, m.BurstEvery) {
		delay += m.BurstDelay
	}
	return r, delay
}

func (m *maker) tap(start int64) {
	r, delay := m.first(start)
	r.what, r.time = aTap, start
	m.deliver(r, delay)
}

func (m *maker) request(start int64) {
	r, delay := m.first(start)
	prompt := 20 + m.dice.below(4000)
	if m.dice.share(5) {
		prompt = 150_000 + m.dice.below(150_000)
	}
	latency := 200 + m.dice.below(20_000)
	s := r
	s.what, s.time, s.a, s.b = aStart, start, prompt, m.dice.below(prompt+1)
	m.deliver(s, delay)

	completion := 1 + m.dice.below(1500)
	if m.dice.share(m.Progress) {
		for n, k := 1+m.dice.below(3), int64(1); k <= n; k++ {
			p := r
			p.what, p.time, p.a = aProgress, start+latency*k/(n+1), completion*k/(n+1)
			m.deliver(p, delay)
		}
	}
	if m.dice.share(m.Abandoned) {
		return
	}
	e := r
	e.what, e.time, e.a, e.b = aComplete, start+latency, completion, latency
	if m.dice.share(m.Errors) {
		e.what, e.a = anError, completion/3
	}
	m.deliver(e, delay)
}

// deliver sends a record and what else becomes of it.
func (m *maker) deliver(r arrival, delay int64) {
	r.at = r.time + delay + m.jitter()
	m.send(r)
	if m.dice.share(m.Duplicate) {
		c := r
		c.at += 1 + m.dice.below(60_000)
		m.send(c)
	}
	if m.dice.share(m.Conflict) {
		c := r
		c.at += 1 + m.dice.below(60_000)
		if c.a++; c.what == aTap {
			c.agent = (c.agent + 1) % int32(len(agents))
		}
		m.send(c)
	}
	if m.dice.share(m.Broken) {
		c := r
		c.what |= broken
		m.send(c)
	}
}

// jitter is the delay of ordinary times: most records come at once, a tenth anywhere up to OutOfOrder.
func (m *maker) jitter() int64 {
	if m.dice.share(100) {
		return m.dice.below(m.OutOfOrder + 1)
	}
	return m.dice.below(min(m.OutOfOrder, 200) + 1)
}

func (m *maker) send(r arrival) {
	r.order = m.drawn
	m.drawn++
	k := r.at / slice
	list, ok := m.queue[k]
	if n := len(m.free); !ok && n > 0 {
		list, m.free = m.free[n-1], m.free[:n-1]
	}
	m.queue[k] = append(list, r)
	m.queued++
}

// emit writes what arrives in the k-th slice.
func (m *maker) emit(k int64) error {
	list := m.queue[k]
	delete(m.queue, k)
	m.queued -= len(list)
	slices.SortFunc(list, func(a, b arrival) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.order - b.order)
	})
	for i := range list {
		if err := m.write(&list[i]); err != nil {
			return err
		}
	}
	if cap(list) > 0 {
		m.free = append(m.free, list[:0])
	}
	return nil
}

// write writes one record; it is keyed by its id, so all of an id are in one partition (R1).
func (m *maker) write(r *arrival) error {
	partition := int32(r.id % uint64(m.Partitions))
	w := m.writer
	if m.Format == Trace {
		w.buf = strconv.AppendInt(append(w.buf, `{"partition":`...), int64(partition), 10)
		w.buf = strconv.AppendInt(append(w.buf, `,"offset":`...), m.offsets[partition], 10)
		w.buf = strconv.AppendInt(append(w.buf, `,"log_time":`...), m.Start+r.at, 10)
		w.buf = append(w.buf, `,"key":"`...)
		w.buf = m.appendID(w.buf, r)
		w.buf = append(w.buf, `","value":`...)
	}
	m.value = m.appendValue(m.value[:0], r)
	switch {
	case r.what&broken == 0:
		w.buf = append(w.buf, m.value...)
	case m.Format == Trace:
		w.buf = appendString(w.buf, m.value[:len(m.value)/2])
	default:
		w.buf = append(w.buf, m.value[:len(m.value)/2]...)
	}
	if m.Format == Trace {
		w.buf = append(w.buf, '}')
	}
	w.buf = append(w.buf, '\n')
	m.offsets[partition]++
	m.seq++
	return w.full()
}

var agents = [...]string{"sdk-python/1.4", "sdk-go/0.9", "curl/8.5", "app-ios/3.1", "app-android/3.1"}

const bot = "bot/1.0"

func agent(i int32) string {
	if i < 0 {
		return bot
	}
	return agents[i]
}

func (m *maker) appendID(b []byte, r *arrival) []byte {
	switch r.what &^ broken {
	case aTick:
		return append(b, "tick"...)
	case aTap:
		return appendHex(append(b, "c-"...), r.id)
	}
	return appendHex(append(b, "req-"...), r.id)
}

func appendHex(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return b
}

func (m *maker) appendValue(b []byte, r *arrival) []byte {
	if r.what&^broken == aTap {
		return m.appendTap(b, r)
	}
	b = append(b, `{"event_type":"`...)
	b = append(b, [...]string{"RequestStarted", "TokensStreamed", "RequestCompleted", "ModelError", "", "Heartbeat"}[r.what&^broken]...)
	if r.what&^broken != aTick {
		b = m.appendID(append(b, `","request_id":"`...), r)
	}
	if r.what&^broken == aStart {
		b = append(append(b, `","tenant_id":"`...), m.accounts[r.account]...)
		b = append(append(b, `","model":"`...), m.skus[r.sku]...)
	}
	b = strconv.AppendInt(append(b, `","ts":`...), m.Start+r.time, 10)
	switch r.what &^ broken {
	case aStart:
		b = strconv.AppendInt(append(b, `,"payload":{"prompt_tokens":`...), r.a, 10)
		b = strconv.AppendInt(append(b, `,"cached_tokens":`...), r.b, 10)
		b = append(append(b, `,"agent":"`...), agent(r.agent)...)
		return append(b, `"}}`...)
	case aProgress:
		b = strconv.AppendInt(append(b, `,"payload":{"completion_tokens":`...), r.a, 10)
		return append(b, `}}`...)
	case aComplete:
		return m.appendEnd(b, r, "ok")
	case anError:
		return m.appendEnd(b, r, "upstream_error")
	}
	return append(b, '}')
}

func (m *maker) appendEnd(b []byte, r *arrival, status string) []byte {
	b = strconv.AppendInt(append(b, `,"payload":{"completion_tokens":`...), r.a, 10)
	b = strconv.AppendInt(append(b, `,"latency_ms":`...), r.b, 10)
	b = append(append(b, `,"status":"`...), status...)
	return append(b, `"}}`...)
}

func (m *maker) appendTap(b []byte, r *arrival) []byte {
	b = m.appendID(append(b, `{"click_id":"`...), r)
	b = append(append(b, `","partner":"`...), m.accounts[r.account]...)
	b = appendTime(append(b, `","phone_time":"`...), m.Start+r.time)
	b = appendTime(append(b, `","server_time":"`...), m.Start+r.at)
	b = append(append(b, `","agent":"`...), agent(r.agent)...)
	return append(b, `"}`...)
}

func appendTime(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
}

// dice is SplitMix64: its numbers are the same on every machine and in every version of Go.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9E3779B97F4A7C15
	return mix(uint64(*d))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below draws from [0, n); n is at least 1. The bias of n far below 2^64 does not matter here.
func (d *dice) below(n int64) int64 { return int64(d.next() % uint64(n)) }

// share draws whether it is one of so many in a thousand.
func (d *dice) share(perMille int) bool { return d.next()%1000 < uint64(perMille) }
