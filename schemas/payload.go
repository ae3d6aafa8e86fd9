package schemas

import (
	"encoding/binary"

	"github.com/zeebo/xxh3" // XXH3-64 for payload hashes: the maintained pure-Go port with assembly

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// payload hashes the fields that R3 compares on the event's kind: each text after its length, each number in 8
// bytes, in a fixed order. What can be absent is preceded by whether it is there, or is empty only then.
func (d *Decoder) payload(e *meter.Event) uint64 {
	if e.Kind == meter.KindProgress {
		return 0
	}
	d.buf = binary.LittleEndian.AppendUint64(d.buf[:0], uint64(e.Time))
	for _, i := range d.reads[e.Kind] {
		d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(e.Quantities[i]))
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
