package archive

import (
	"encoding/binary"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// add puts a record into the columns.
func (f *pageFile) add(p *plan, rec *meter.Record, e *meter.Event, prior int64) error {
	if err := checkEvent(p, e); err != nil {
		return err
	}
	id, ref := string(e.ID), string(e.Reference)
	admitted := e.Admitted()
	for i := range f.columns {
		c := &f.columns[i]
		var err error
		switch c.role {
		case roleOffset:
			c.int(rec.Offset)
		case roleLogTime:
			c.intIf(logTimeOf(rec, e))
		case roleBucket:
			err = c.word(e.Bucket.String(), &f.scratch)
		case roleReason:
			err = c.word(e.Reason.String(), &f.scratch)
		case roleKind:
			err = c.word(e.Kind.String(), &f.scratch)
		case roleRaw:
			if rec.Null {
				c.null()
			} else {
				c.bytes(rec.Value)
			}
		case rolePrior:
			c.intIf(prior, prior > meter.MinusInfinity)
		default:
			if admitted {
				err = c.addEvent(e, &id, &ref, &f.scratch)
			} else {
				c.null()
			}
		}
		if err != nil {
			return err
		}
	}
	return f.row(len(rec.Value))
}

// addEvent puts what only an admitted event has; id and ref are what is left of their parts.
func (c *chunk) addEvent(e *meter.Event, id, ref *string, sc *scratch) error {
	switch c.role {
	case roleID:
		part, _ := cutPart(id)
		return c.word(part, sc)
	case roleReference:
		part, _ := cutPart(ref)
		return c.word(part, sc)
	case roleIDHash:
		c.intIf(int64(e.IDHash), e.ID != "")
	case roleAccount:
		return c.word(e.Account, sc)
	case roleSKU:
		return c.word(e.SKU, sc)
	case roleTime:
		c.int(e.Time)
	case roleQuantity:
		c.intIf(quantity(e, c.column.index))
	case roleAttribute:
		return c.word(attribute(e, c.column.index), sc)
	case roleStatus:
		return c.word(e.Status, sc)
	case roleLatency:
		c.intIf(e.Latency, e.HasLatency)
	case rolePayload:
		c.intIf(int64(e.PayloadHash), hasPayload(e))
	}
	return nil
}

// hasPayload reports whether the event is one that is compared by its payload (R3).
func hasPayload(e *meter.Event) bool {
	return e.Bucket == meter.BucketEvent && e.Kind != meter.KindProgress
}

func quantity(e *meter.Event, i int) (int64, bool) {
	if i < len(e.Quantities) && e.Present>>i&1 == 1 {
		return e.Quantities[i], true
	}
	return 0, false
}

func attribute(e *meter.Event, i int) string {
	if i < len(e.Attributes) {
		return e.Attributes[i]
	}
	return ""
}

func checkEvent(p *plan, e *meter.Event) error {
	if e.Bucket < meter.BucketEvent || e.Bucket > meter.BucketDeadLetter {
		return fmt.Errorf("bucket %d", e.Bucket)
	}
	if e.Bucket != meter.BucketEvent {
		return nil
	}
	if n := countParts(string(e.ID)); n != p.idParts {
		return fmt.Errorf("the id has %d parts, the meter %d", n, p.idParts)
	}
	if n := countParts(string(e.Reference)); p.refs > 0 && n != p.refs {
		return fmt.Errorf("the reference has %d parts, the meter %d", n, p.refs)
	}
	return nil
}

// countParts counts the length-prefixed parts of an id; -1 if it is none.
func countParts(id string) int {
	n := 0
	for ; id != ""; n++ {
		if _, ok := cutPart(&id); !ok {
			return -1
		}
	}
	return n
}

// cutPart takes the first part off an id.
func cutPart(id *string) (string, bool) {
	s := *id
	if len(s) < 4 {
		return "", false
	}
	n := uint64(binary.LittleEndian.Uint32([]byte(s[:4])))
	if uint64(len(s)-4) < n {
		return "", false
	}
	*id = s[4+n:]
	return s[4 : 4+n], true
}
