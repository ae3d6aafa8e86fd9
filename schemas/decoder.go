package schemas

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/zeebo/xxh3" // XXH3-64 for payload hashes: the maintained pure-Go port with assembly

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

	record []byte // the value that is being decoded
	buf    []byte // scratch for ids, unescaped texts and payloads
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
	*e = meter.Event{
		Partition: r.Partition, Offset: r.Offset, Byte: r.Byte, LogTime: r.LogTime, HasLogTime: r.HasLogTime,
		Quantities: zeroed(e.Quantities, len(d.event.Quantities)), Attributes: zeroed(e.Attributes, len(d.event.Attributes)),
	}
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

// receive takes the log time of a plain event line from the meter's `received` field (R2).
func (d *Decoder) receive(e *meter.Event) {
	if d.fields.received < 0 {
		return
	}
	if t, reason := timeIn(d.event.TimeUnit, d.at(d.fields.received), d.record); reason == meter.ReasonNone {
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

// admit reads the fields of a record of a known kind in the order of R2's reasons; it stops at the first.
func (d *Decoder) admit(e *meter.Event) meter.Reason {
	if e.Kind == meter.KindTick {
		if reason := d.time(e); reason != meter.ReasonNone {
			return reason
		}
		e.Bucket = meter.BucketTick
		return meter.ReasonNone
	}
	if !d.id(e) {
		return meter.MissingID
	}
	opens := e.Kind == meter.KindStart || e.Kind == meter.KindEvent
	if opens {
		var ok bool
		if e.Account, ok = d.source(&d.event.Account, d.fields.account); !ok {
			return meter.MissingAccount
		}
		if e.SKU, ok = d.source(&d.event.SKU, d.fields.sku); !ok {
			return meter.MissingSKU
		}
	}
	if reason := d.time(e); reason != meter.ReasonNone {
		return reason
	}
	if reason := d.quantities(e); reason != meter.ReasonNone {
		return reason
	}
	if !d.status(e) {
		return meter.BadStatus
	}
	if opens {
		d.attributes(e)
	}
	if e.Kind.IsEnd() || e.Kind == meter.KindEvent {
		d.latency(e)
	}
	d.reference(e)
	e.PayloadHash = d.payload(e)
	e.Bucket = meter.BucketEvent
	return meter.ReasonNone
}

func (d *Decoder) id(e *meter.Event) bool {
	if d.event.Identity == nil {
		e.ID = meter.PositionID(e.Partition, e.Offset)
		e.IDHash = e.ID.Hash64()
		return true
	}
	d.buf = d.buf[:0]
	for _, field := range d.fields.identity {
		part, ok := d.text(field)
		if !ok {
			return false
		}
		d.part(part)
	}
	e.ID = meter.ID(d.buf)
	e.IDHash = xxh3.Hash(d.buf)
	return true
}

// part appends a part to the id in buf, after its length.
func (d *Decoder) part(part []byte) {
	d.buf = binary.LittleEndian.AppendUint32(d.buf, uint32(len(part)))
	d.buf = append(d.buf, part...)
}

func (d *Decoder) reference(e *meter.Event) {
	if d.fields.sameReference {
		e.Reference = e.ID
		return
	}
	d.buf = d.buf[:0]
	for _, field := range d.fields.reference {
		part, ok := d.text(field)
		if !ok {
			part = nil
		}
		d.part(part)
	}
	e.Reference = meter.ID(d.buf)
}

func (d *Decoder) source(s *meter.Source, field int) (string, bool) {
	if s.IsConst {
		return s.Const, true
	}
	b, ok := d.text(field)
	if !ok {
		return "", false
	}
	return d.texts.text(b), true
}

func (d *Decoder) time(e *meter.Event) meter.Reason {
	t, reason := timeIn(d.event.TimeUnit, d.at(d.fields.time), d.record)
	switch {
	case reason != meter.ReasonNone:
		return reason
	case t < d.event.MinTime || t >= year2200:
		return meter.ImplausibleTime
	case e.HasLogTime && t-d.event.MaxAhead > e.LogTime: // in this order nothing can wrap
		return meter.FutureTime
	}
	e.Time = t
	return meter.ReasonNone
}

// reads reports whether a quantity is read on a kind.
func reads(q *meter.Quantity, k meter.Kind) bool {
	switch k {
	case meter.KindStart:
		return !q.OnEnd
	case meter.KindProgress, meter.KindComplete, meter.KindError:
		return q.OnEnd
	}
	return k == meter.KindEvent
}

func (d *Decoder) quantities(e *meter.Event) meter.Reason {
	for i := range d.event.Quantities {
		q := &d.event.Quantities[i]
		if !reads(q, e.Kind) {
			continue
		}
		v, present, ok := d.quantity(q, d.fields.quantities[i], e.Kind)
		if !ok {
			return meter.BadQuantity
		}
		if present {
			e.Quantities[i] = v
			e.Present |= 1 << i
		}
	}
	return d.parts(e)
}

// quantity is what the record says of q. Not ok is a bad quantity; a progress record may say nothing.
func (d *Decoder) quantity(q *meter.Quantity, field int, k meter.Kind) (v int64, present, ok bool) {
	if q.IsConst {
		return q.Const, true, true
	}
	s := d.at(field)
	switch s.token {
	case absent, null:
		if k == meter.KindProgress {
			return 0, false, true
		}
		return q.Default, q.HasDefault, q.HasDefault
	case number:
		v, size := s.whole(d.record)
		return v, true, size == fits && v >= 0 && v <= maxQuantity
	}
	return 0, false, false
}

// parts checks that the parts of each whole do not exceed it; a part without its whole does (R2).
func (d *Decoder) parts(e *meter.Event) meter.Reason {
	for i := range d.event.Quantities {
		w := d.event.Quantities[i].PartOf
		if w < 0 || e.Present&(1<<i) == 0 {
			continue
		}
		if e.Present&(1<<w) == 0 {
			return meter.BadUsage
		}
		var sum int64 // of at most 64 parts of at most 1e12
		for k := range d.event.Quantities {
			if d.event.Quantities[k].PartOf == w {
				sum += e.Quantities[k]
			}
		}
		if sum > e.Quantities[w] {
			return meter.BadUsage
		}
	}
	return meter.ReasonNone
}

// status is read on completes and events; that of an error is "error" (R7). Missing and null are ok; an empty
// string is a status like any other.
func (d *Decoder) status(e *meter.Event) bool {
	switch e.Kind {
	case meter.KindError:
		e.Status = "error"
	case meter.KindComplete, meter.KindEvent:
		s := d.at(d.fields.status)
		switch s.token {
		case absent, null:
			e.Status = "ok"
		case text:
			b := d.raw(s)
			if len(b) > maxText || s.escaped && bytes.IndexByte(b, 0) >= 0 {
				return false
			}
			e.Status = d.texts.text(b)
		default:
			return false
		}
	}
	return true
}

func (d *Decoder) attributes(e *meter.Event) {
	for i, field := range d.fields.attributes {
		if b, ok := d.text(field); ok {
			e.Attributes[i] = d.tags.text(b)
		}
	}
}

func (d *Decoder) latency(e *meter.Event) {
	s := d.at(d.fields.latency)
	if s.token != number {
		return
	}
	if v, size := s.whole(d.record); size == fits {
		e.Latency, e.HasLatency = v, true
	}
}

// payload hashes the fields that R3 compares on the event's kind: each text after its length, each number in 8
// bytes, in a fixed order. What can be absent is preceded by whether it is there, or is empty only then.
func (d *Decoder) payload(e *meter.Event) uint64 {
	if e.Kind == meter.KindProgress {
		return 0
	}
	d.buf = binary.LittleEndian.AppendUint64(d.buf[:0], uint64(e.Time))
	for i := range d.event.Quantities {
		if reads(&d.event.Quantities[i], e.Kind) {
			d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(e.Quantities[i]))
		}
	}
	if e.Kind == meter.KindStart || e.Kind == meter.KindEvent {
		d.word(e.Account)
		d.word(e.SKU)
		for _, a := range e.Attributes {
			d.word(a)
		}
	}
	if e.Kind != meter.KindStart {
		d.word(e.Status)
		if e.HasLatency {
			d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(e.Latency))
		}
	}
	return xxh3.Hash(d.buf)
}

func (d *Decoder) word(s string) {
	d.buf = binary.LittleEndian.AppendUint16(d.buf, uint16(len(s))) // at most maxText
	d.buf = append(d.buf, s...)
}
