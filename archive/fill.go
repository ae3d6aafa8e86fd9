package archive

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// An Entry is a record to append: as it was read at its offset, as the meter's decoder understood it, and the highest
// reach of the admitted records of the partition before it (MinusInfinity without one).
type Entry struct {
	Record        *meter.Record
	Event         *meter.Event
	PriorMaxReach int64
}

// batchRows is how many rows are put into the columns at once, column by column: that is several times as fast as row
// by row. Their NULLs are the bits of a word.
const batchRows = 64

// A batch is rows on their way into the columns.
type batch struct {
	rows     []Entry
	admitted uint64            // bit i: row i is
	ids      [batchRows]string // what is left of the rows' ids, part by part
	refs     [batchRows]string
	ints     [batchRows]int64
	words    [batchRows]string
}

// firstRows has the bits of the first n rows.
func firstRows(n int) uint64 { return 1<<n - 1 }

// fits is how many rows of the list make a batch. Batches end where rows are a multiple of batchRows, or after a large
// text, so that the rows alone decide where pages end, and not how they were handed over.
func (f *pageFile) fits(list []Entry) int {
	n := min(len(list), batchRows-f.rows%batchRows)
	for i := range n {
		if len(list[i].Record.Value) >= largeText {
			return i + 1
		}
	}
	return n
}

const largeText = pageText / 4

// add puts a batch into the columns. Its rows were checked.
func (f *pageFile) add(list []Entry) error {
	b := &f.batch
	b.load(list)
	for i := range f.columns {
		if err := f.columns[i].addBatch(b, &f.scratch); err != nil {
			return err
		}
	}
	b.clear()
	f.rows += len(list)
	if f.rows%batchRows == 0 || len(list[len(list)-1].Record.Value) >= largeText {
		return f.endPages()
	}
	return nil
}

func (b *batch) load(list []Entry) {
	b.rows, b.admitted = list, 0
	for i := range list {
		if e := list[i].Event; e.Admitted() {
			b.admitted |= 1 << i
			b.ids[i], b.refs[i] = string(e.ID), string(e.Reference)
		}
	}
}

// clear forgets the caller's rows.
func (b *batch) clear() {
	b.rows = nil
	clear(b.ids[:])
	clear(b.refs[:])
	clear(b.words[:])
}

// addBatch adds the rows of a batch to the column.
func (c *chunk) addBatch(b *batch, sc *scratch) error {
	switch c.typ() {
	case schemas.Int64:
		c.addInts(&b.ints, b.int64s(c.column), len(b.rows))
	case schemas.Bytes:
		c.addRaw(b.rows)
	default:
		switch c.role {
		case roleBucket, roleReason, roleKind:
			c.addCodes(b.rows)
		case roleID, roleReference:
			c.addTexts(b.words[:len(b.rows)], b.parts(c.role))
		default:
			return c.addWords(b.words[:len(b.rows)], b.texts(c.column), sc)
		}
	}
	return nil
}

// int64s reads a column of numbers into b.ints and returns which rows have one.
func (b *batch) int64s(c *column) (there uint64) {
	switch c.role {
	case roleOffset:
		for i := range b.rows {
			b.ints[i] = b.rows[i].Record.Offset
		}
		return firstRows(len(b.rows))
	case roleLogTime:
		for i := range b.rows {
			at, ok := logTimeOf(b.rows[i].Record, b.rows[i].Event)
			b.ints[i] = at
			there |= bit(ok) << i
		}
		return there
	case rolePrior:
		for i := range b.rows {
			b.ints[i] = b.rows[i].PriorMaxReach
			there |= bit(b.ints[i] > meter.MinusInfinity) << i
		}
		return there
	case roleTime:
		for i := range b.rows {
			b.ints[i] = b.rows[i].Event.Time
		}
		return b.admitted
	case roleIDHash:
		for i := range b.rows {
			e := b.rows[i].Event
			b.ints[i] = int64(e.IDHash)
			there |= bit(e.ID != "") << i
		}
	case roleQuantity:
		for i := range b.rows {
			v, ok := quantity(b.rows[i].Event, c.index)
			b.ints[i] = v
			there |= bit(ok) << i
		}
	case roleLatency:
		for i := range b.rows {
			e := b.rows[i].Event
			b.ints[i] = e.Latency
			there |= bit(e.HasLatency) << i
		}
	case rolePayload:
		for i := range b.rows {
			e := b.rows[i].Event
			b.ints[i] = int64(e.PayloadHash)
			there |= bit(hasPayload(e)) << i
		}
	}
	return there & b.admitted
}

// texts reads a column of words into b.words and returns which rows have one.
func (b *batch) texts(c *column) (there uint64) {
	for i := range b.rows {
		e := b.rows[i].Event
		var s string
		switch c.role {
		case roleAccount:
			s = e.Account
		case roleSKU:
			s = e.SKU
		case roleAttribute:
			s = attribute(e, c.index)
		case roleStatus:
			s = e.Status
		}
		b.words[i] = s
		there |= bit(s != "") << i
	}
	return there & b.admitted
}

// parts cuts the next part off each id, or reference, into b.words.
func (b *batch) parts(role role) (there uint64) {
	of := &b.ids
	if role == roleReference {
		of = &b.refs
	}
	for left := b.admitted; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		part, _ := cutPart(&of[i])
		b.words[i] = part
		there |= bit(part != "") << i
	}
	return there
}

// addCodes adds a column whose words are names of small numbers.
func (c *chunk) addCodes(rows []Entry) {
	var there uint64
	for i := range rows {
		e := rows[i].Event
		var code uint8
		switch c.role {
		case roleBucket:
			code = uint8(e.Bucket)
		case roleReason:
			code = uint8(e.Reason)
		default:
			code = uint8(e.Kind)
		}
		if code == 0 {
			continue
		}
		at := c.words.codes[code] - 1
		if at < 0 {
			at = c.words.findCode(code, c.codeName(code))
		}
		c.index = append(c.index, at)
		there |= 1 << i
	}
	c.mark(there, len(rows))
}

func (c *chunk) codeName(code uint8) string {
	switch c.role {
	case roleBucket:
		return meter.Bucket(code).String()
	case roleReason:
		return meter.Reason(code).String()
	}
	return meter.Kind(code).String()
}

func (c *chunk) addRaw(rows []Entry) {
	var there uint64
	for i := range rows {
		if r := rows[i].Record; !r.Null {
			there |= 1 << i
			c.text = binary.LittleEndian.AppendUint32(c.text, uint32(len(r.Value)))
			c.text = append(c.text, r.Value...)
		}
	}
	c.mark(there, len(rows))
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
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
