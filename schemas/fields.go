package schemas

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3" // XXH3-64 for payload hashes: the maintained pure-Go port with assembly

	"github.com/gatewaymeter/gatewaymeter/meter"
)

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
	e.ID = meter.ID(d.ids.text(d.buf))
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
	e.Reference = meter.ID(d.ids.text(d.buf))
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

// readOn lists the quantities that are read on a kind.
func readOn(quantities []meter.Quantity, k meter.Kind) []int {
	var list []int
	for i := range quantities {
		switch k {
		case meter.KindStart:
			if quantities[i].OnEnd {
				continue
			}
		case meter.KindProgress, meter.KindComplete, meter.KindError:
			if !quantities[i].OnEnd {
				continue
			}
		case meter.KindEvent:
		default:
			continue
		}
		list = append(list, i)
	}
	return list
}

func wholesOf(quantities []meter.Quantity) []whole {
	var list []whole
	for w := range quantities {
		x := whole{index: w}
		for i := range quantities {
			if quantities[i].PartOf == w {
				x.parts = append(x.parts, i)
				x.bits |= 1 << i
			}
		}
		if x.parts != nil {
			list = append(list, x)
		}
	}
	return list
}

func (d *Decoder) quantities(e *meter.Event) meter.Reason {
	for _, i := range d.reads[e.Kind] {
		v, present, ok := d.quantity(&d.event.Quantities[i], d.fields.quantities[i], e.Kind)
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
	for i := range d.wholes {
		w := &d.wholes[i]
		if e.Present&w.bits == 0 {
			continue
		}
		if e.Present&(1<<w.index) == 0 {
			return meter.BadUsage
		}
		var sum int64 // of at most 64 parts of at most 1e12
		for _, k := range w.parts {
			sum += e.Quantities[k]
		}
		if sum > e.Quantities[w.index] {
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
