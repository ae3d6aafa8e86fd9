package trace

import (
	"io"
	"slices"
	"strconv"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

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
		for n, k := 1+m.dice.below(int64(m.ProgressMost)), int64(1); k <= n; k++ {
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
