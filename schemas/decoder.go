package schemas

import (
	"bytes"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Decoder turns the records of one meter into events. It is not safe for concurrent use: one per goroutine.
type Decoder struct {
	event   *meter.EventMap
	root    *node
	spans   []span
	scanner scanner
	fields  fields
	kinds   []kindWord
	reads   [meter.KindTick + 1][]int // by kind: the quantities that are read on it
	wholes  []whole

	record []byte // the value that is being decoded
	buf    []byte // scratch for ids and payloads
	ids    arena
	texts  interner
	tags   interner // attributes, apart so that many values there do not push accounts out
}

// fields are indexes into spans, -1 for a path that the meter does not have.
type fields struct {
	kind, time, status, received, latency int
	identity, reference                   []int
	sameReference                         bool // the reference is the identity
	account, sku                          int
	quantities, attributes                []int
}

type kindWord struct {
	word string
	kind meter.Kind
}

// A whole is a quantity with the parts that it has, as indexes and as bits of meter.Event.Present.
type whole struct {
	index int
	parts []int
	bits  uint64
}

// maxText is the longest text of an identity part, account, sku, status, attribute or reference, in bytes (R2).
const maxText = 512

// maxQuantity is the greatest quantity of one event (R2).
const maxQuantity = 1_000_000_000_000

// NewDecoder compiles the paths of m.
func NewDecoder(m *meter.Meter) *Decoder {
	e := &m.Event
	p := newPaths()
	d := &Decoder{event: e}
	d.fields = fields{
		kind: p.add(e.KindPath), time: p.add(e.Time), status: p.add(e.Status), received: p.add(e.Received), latency: p.add(e.Latency),
		identity: p.addAll(e.Identity), account: p.add(e.Account.Path), sku: p.add(e.SKU.Path),
	}
	for i := range e.Quantities {
		d.fields.quantities = append(d.fields.quantities, p.add(e.Quantities[i].Path))
	}
	for i := range e.Attributes {
		d.fields.attributes = append(d.fields.attributes, p.add(e.Attributes[i].Path))
	}
	d.fields.reference = p.addAll(e.Reference)
	d.fields.sameReference = e.Reference == nil || equal(d.fields.reference, d.fields.identity)
	for word, kind := range e.Kinds {
		d.kinds = append(d.kinds, kindWord{word, kind})
	}
	d.root, d.spans = &p.root, make([]span, p.spans)
	for k := range d.reads {
		d.reads[k] = readOn(e.Quantities, meter.Kind(k))
	}
	d.wholes = wholesOf(e.Quantities)
	return d
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Decode fills *e completely from r (R2). It may reuse the memory of e.Quantities and e.Attributes and keeps
// nothing of r.Value.
func (d *Decoder) Decode(r *meter.Record, e *meter.Event) {
	quantities, attributes := zeroed(e.Quantities, len(d.event.Quantities)), zeroed(e.Attributes, len(d.event.Attributes))
	*e = meter.Event{} // and then field by field: a literal would be made elsewhere and copied here
	e.Partition, e.Offset, e.Byte, e.LogTime, e.HasLogTime = r.Partition, r.Offset, r.Byte, r.LogTime, r.HasLogTime
	e.Quantities, e.Attributes = quantities, attributes
	if r.Received {
		e.LogTime, e.HasLogTime = 0, false
	}
	if r.Null {
		e.Bucket = meter.BucketTombstone
		return
	}
	reason := d.read(r.Value)
	if reason == meter.ReasonNone {
		if r.Received {
			d.receive(e)
		}
		if e.Kind = d.kind(); e.Kind == meter.KindNone {
			e.Bucket = meter.BucketIgnored
			return
		}
		reason = d.admit(e)
	}
	if reason != meter.ReasonNone {
		d.bury(e, reason)
	}
}

// bury makes e a dead letter: all that is known of it are its position, log time and kind.
func (d *Decoder) bury(e *meter.Event, reason meter.Reason) {
	*e = meter.Event{
		Partition: e.Partition, Offset: e.Offset, Byte: e.Byte, LogTime: e.LogTime, HasLogTime: e.HasLogTime,
		Bucket: meter.BucketDeadLetter, Reason: reason, Kind: e.Kind,
		Quantities: zeroed(e.Quantities, len(e.Quantities)), Attributes: zeroed(e.Attributes, len(e.Attributes)),
	}
}

// zeroed is n zeros, in the memory of s where it is large enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// read scans the bytes: the reasons that need no meter, in the order of R2.
func (d *Decoder) read(value []byte) meter.Reason {
	d.record = value
	if int64(len(value)) > d.event.MaxBytes {
		return meter.TooLarge
	}
	if len(value) == 0 {
		return meter.Empty
	}
	switch d.scanner.scan(value, d.root, d.spans) {
	case broken:
		if !utf8.Valid(value) { // anywhere, also behind the place that is no JSON
			return meter.BadUTF8
		}
		return meter.BadJSON
	case duplicated:
		return meter.DuplicateKey
	}
	return meter.ReasonNone
}

// at is the span of a field; absent for a path that the meter does not have.
func (d *Decoder) at(field int) span {
	if field < 0 {
		return span{}
	}
	return d.spans[field]
}

// The range of log times: the years 0000 to 9999 (R2).
const minLogTime, maxLogTime = -62_167_219_200_000, 253_402_300_799_999

// receive takes the log time of a plain event line from the meter's `received` field (R2).
func (d *Decoder) receive(e *meter.Event) {
	if d.fields.received < 0 {
		return
	}
	if t, reason := timeIn(d.event.TimeUnit, d.at(d.fields.received), d.record); reason == meter.ReasonNone && t >= minLogTime && t <= maxLogTime {
		e.LogTime, e.HasLogTime = t, true
	}
}

func (d *Decoder) kind() meter.Kind {
	if d.fields.kind < 0 {
		return meter.KindEvent
	}
	s := d.at(d.fields.kind)
	if s.token != text {
		return meter.KindNone
	}
	word := d.raw(s)
	for i := range d.kinds {
		if d.kinds[i].word == string(word) {
			return d.kinds[i].kind
		}
	}
	return meter.KindNone
}

// raw is the text of a string or the literal of a number; it lasts until the next call.
func (d *Decoder) raw(s span) []byte {
	if !s.escaped {
		return d.record[s.start:s.end]
	}
	d.scanner.unescaped = appendUnescaped(d.scanner.unescaped[:0], d.record[s.start:s.end])
	return d.scanner.unescaped
}

// text is the text of an identity part, an account, a sku or an attribute: a non-empty string, or a whole number in
// plain digits, of at most 512 bytes and without U+0000 (R2). It lasts until the next call.
func (d *Decoder) text(field int) ([]byte, bool) {
	s := d.at(field)
	switch s.token {
	case text:
		b := d.raw(s)
		return b, len(b) > 0 && len(b) <= maxText && (!s.escaped || bytes.IndexByte(b, 0) < 0)
	case number:
		b := d.record[s.start:s.end]
		return b, len(b) <= maxText && (s.small || plainDigits(b))
	}
	return nil, false
}
