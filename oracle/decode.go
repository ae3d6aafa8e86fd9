package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Decode judges one record at the door (R2): its bucket, a dead letter's reason, and if it is admitted what the
// meter reads from it. Every known kind has Kind, also where the record is a dead letter. Quantities and
// Attributes of an admitted event are as long as the meter's lists, whatever its kind. PayloadHash stays 0: the
// oracle compares the fields themselves.
//
// The log time of plain event lines (Record.Received) is read from every record that is an object without
// duplicate names, dead letter or not; any other has none.
func Decode(m *meter.Meter, r *meter.Record) meter.Event {
	e := meter.Event{Partition: r.Partition, Offset: r.Offset, Byte: r.Byte}
	if r.HasLogTime && !r.Received {
		e.LogTime, e.HasLogTime = r.LogTime, true
	}
	if r.Null {
		e.Bucket = meter.BucketTombstone
		return e
	}
	object, reason := readObject(r.Value, m.Event.MaxBytes)
	if reason == meter.ReasonNone {
		if r.Received && m.Event.Received != nil {
			e.LogTime, e.HasLogTime = readLogTime(m.Event.TimeUnit, find(object, m.Event.Received))
		}
		e.Kind = kindOf(m, object)
		if e.Kind == meter.KindNone {
			e.Bucket = meter.BucketIgnored
			return e
		}
		d := decoding{m: m, object: object, e: &e}
		reason = d.fields()
	}
	if reason != meter.ReasonNone {
		return meter.Event{Partition: e.Partition, Offset: e.Offset, Byte: e.Byte, LogTime: e.LogTime, HasLogTime: e.HasLogTime,
			Kind: e.Kind, Bucket: meter.BucketDeadLetter, Reason: reason}
	}
	e.Bucket = meter.BucketEvent
	if e.Kind == meter.KindTick {
		e.Bucket = meter.BucketTick
	}
	return e
}

// readObject judges the bytes by the first five reasons of R2.
func readObject(raw []byte, maxBytes int64) (map[string]any, meter.Reason) {
	switch {
	case int64(len(raw)) > maxBytes:
		return nil, meter.TooLarge
	case len(raw) == 0:
		return nil, meter.Empty
	case !utf8.Valid(raw):
		return nil, meter.BadUTF8
	case !json.Valid(raw) || unpairedSurrogate(raw):
		return nil, meter.BadJSON
	}
	w := newWalk(raw)
	object, ok := w.value(0).(map[string]any)
	switch {
	case !ok || w.tooDeep:
		return nil, meter.BadJSON
	case w.duplicate:
		return nil, meter.DuplicateKey
	}
	return object, meter.ReasonNone
}

// kindOf is the record's kind, KindNone for one that is not this meter's.
func kindOf(m *meter.Meter, object map[string]any) meter.Kind {
	if m.Event.KindPath == nil {
		return meter.KindEvent
	}
	word, ok := find(object, m.Event.KindPath).(string)
	if !ok {
		return meter.KindNone
	}
	return m.Event.Kinds[word]
}

// find follows a path of exact names; nil for what is missing or null.
func find(object map[string]any, path meter.FieldPath) any {
	var v any = object
	for _, name := range path {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// A decoding reads the fields of a record of a known kind, reason by reason in the order of R2.
type decoding struct {
	m      *meter.Meter
	object map[string]any
	e      *meter.Event
}

func (d *decoding) fields() meter.Reason {
	k := d.e.Kind
	opens := k == meter.KindStart || k == meter.KindEvent
	if k != meter.KindTick {
		if !d.identity() {
			return meter.MissingID
		}
		if opens {
			if d.e.Account = d.source(d.m.Event.Account); d.e.Account == "" {
				return meter.MissingAccount
			}
			if d.e.SKU = d.source(d.m.Event.SKU); d.e.SKU == "" {
				return meter.MissingSKU
			}
		}
	}
	if reason := d.time(); reason != meter.ReasonNone || k == meter.KindTick {
		return reason
	}
	if !d.quantities() {
		return meter.BadQuantity
	}
	if !d.usage() {
		return meter.BadUsage
	}
	if !d.status() {
		return meter.BadStatus
	}
	d.attributes(opens)
	if k.IsEnd() || k == meter.KindEvent {
		d.latency()
	}
	return meter.ReasonNone
}

// text is an identity part, account, sku or attribute (R2): a text, or a whole number in plain digits; "" for
// anything else.
func text(v any) string {
	switch v := v.(type) {
	case string:
		if !keepable(v) {
			return ""
		}
		return v
	case json.Number:
		if digits := strings.TrimPrefix(v.String(), "-"); strings.Trim(digits, "0123456789") == "" && keepable(v.String()) {
			return v.String()
		}
	}
	return ""
}

// keepable reports whether a database's key holds the text (R2).
func keepable(s string) bool { return len(s) <= 512 && !strings.ContainsRune(s, 0) }

func (d *decoding) source(s meter.Source) string {
	if s.IsConst {
		return s.Const
	}
	return text(find(d.object, s.Path))
}

// identity reads the id and the reference; false if a part of the id is missing.
func (d *decoding) identity() bool {
	if d.m.Event.Identity == nil {
		d.e.ID = meter.PositionID(d.e.Partition, d.e.Offset)
	} else {
		parts := d.texts(d.m.Event.Identity)
		if slices.Contains(parts, "") {
			return false
		}
		d.e.ID = meter.NewID(parts...)
	}
	d.e.IDHash = d.e.ID.Hash64()
	if d.e.Reference = d.e.ID; d.m.Event.Reference != nil {
		d.e.Reference = meter.NewID(d.texts(d.m.Event.Reference)...)
	}
	return true
}

func (d *decoding) texts(paths []meter.FieldPath) []string {
	parts := make([]string, len(paths))
	for i, path := range paths {
		parts[i] = text(find(d.object, path))
	}
	return parts
}

// beyondTime is 2200-01-01, the first time that is not plausible (R2).
const beyondTime = 7258118400000

func (d *decoding) time() meter.Reason {
	t := readTime(d.m.Event.TimeUnit, find(d.object, d.m.Event.Time))
	switch {
	case !t.ok:
		return meter.BadTime
	case t.huge || t.ms < d.m.Event.MinTime || t.ms >= beyondTime:
		return meter.ImplausibleTime
	case d.e.HasLogTime && t.ms > d.e.LogTime && uint64(t.ms-d.e.LogTime) > uint64(d.m.Event.MaxAhead):
		return meter.FutureTime
	}
	d.e.Time = t.ms
	return meter.ReasonNone
}

// maxQuantity is the greatest quantity of a record (R2).
const maxQuantity = 1_000_000_000_000

// reads reports whether the quantity is read on the record's kind.
func (d *decoding) reads(q *meter.Quantity) bool {
	if d.e.Kind == meter.KindEvent {
		return true
	}
	return q.OnEnd == (d.e.Kind != meter.KindStart)
}

func (d *decoding) quantities() bool {
	d.e.Quantities = make([]int64, len(d.m.Event.Quantities))
	for i := range d.m.Event.Quantities {
		q := &d.m.Event.Quantities[i]
		if !d.reads(q) {
			continue
		}
		value, present := q.Const, q.IsConst
		if !q.IsConst {
			v := find(d.object, q.Path)
			switch number, isNumber := v.(json.Number); {
			case isNumber:
				var ok bool
				if value, ok = parseDecimal(number.String()).int64(); !ok || value < 0 || value > maxQuantity {
					return false
				}
				present = true
			case v != nil:
				return false
			case d.e.Kind == meter.KindProgress:
				// It says nothing about the quantity.
			case !q.HasDefault:
				return false
			default:
				value, present = q.Default, true
			}
		}
		if present {
			d.e.Quantities[i] = value
			d.e.Present |= 1 << i
		}
	}
	return true
}

// usage requires of every whole at least the sum of its parts; a part without its whole exceeds it.
func (d *decoding) usage() bool {
	for i := range d.m.Event.Quantities {
		var parts int64
		some := false
		for j, q := range d.m.Event.Quantities {
			if q.PartOf == i && d.e.Present&(1<<j) != 0 {
				parts += d.e.Quantities[j]
				some = true
			}
		}
		if some && (d.e.Present&(1<<i) == 0 || parts > d.e.Quantities[i]) {
			return false
		}
	}
	return true
}

// status is ok where it is missing, and error on errors.
func (d *decoding) status() bool {
	switch d.e.Kind {
	case meter.KindError:
		d.e.Status = "error"
	case meter.KindComplete, meter.KindEvent:
		d.e.Status = "ok"
		if d.m.Event.Status == nil {
			return true
		}
		v := find(d.object, d.m.Event.Status)
		if v == nil {
			return true
		}
		s, ok := v.(string)
		if !ok || !keepable(s) {
			return false
		}
		d.e.Status = s
	}
	return true
}

func (d *decoding) attributes(opens bool) {
	d.e.Attributes = make([]string, len(d.m.Event.Attributes))
	if !opens {
		return
	}
	for i, a := range d.m.Event.Attributes {
		d.e.Attributes[i] = text(find(d.object, a.Path))
	}
}

func (d *decoding) latency() {
	if d.m.Event.Latency == nil {
		return
	}
	if number, ok := find(d.object, d.m.Event.Latency).(json.Number); ok {
		d.e.Latency, d.e.HasLatency = parseDecimal(number.String()).int64()
	}
}
