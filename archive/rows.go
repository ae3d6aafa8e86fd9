package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Row is one archived record: its bytes, and what the decoder of the meter that wrote the file made of them.
type Row struct {
	// Record is the record as it was read, but for Key and Byte, which an archive does not keep.
	Record meter.Record
	// Event has its quantities and attributes in the order of File.Quantities and File.Attributes. What is not
	// admitted has its bucket, reason and kind only. Byte is 0.
	Event meter.Event
	// PriorMaxReach is the highest reach of the admitted records before it; MinusInfinity without one.
	PriorMaxReach int64
}

// ErrDamaged marks errors of files whose bytes are not those that were published.
var ErrDamaged = errors.New("the file is damaged")

// Each calls fn with every row in offset order. The row and what it points to belong to fn only during the call.
// A file that the chain has a hash of is hashed first; nothing of a damaged file reaches fn.
func (f *File) Each(fn func(*Row) error) error {
	return f.read(func(*column) bool { return true }, fn)
}

// Records calls fn with every record in offset order, as Each does, and reads nothing else of the file.
func (f *File) Records(fn func(*meter.Record) error) error {
	wanted := func(c *column) bool {
		return c.role == roleOffset || c.role == roleLogTime || c.role == roleRaw
	}
	return f.read(wanted, func(r *Row) error { return fn(&r.Record) })
}

func (f *File) read(wanted func(*column) bool, fn func(*Row) error) error {
	if f.SHA256 != "" {
		sum, err := f.Hash()
		if err != nil {
			return fmt.Errorf("archive: read %s: %w", f.Name, err)
		}
		if sum != f.SHA256 {
			return fmt.Errorf("archive: read %s: %w: its sha256 is %s, the chain says %s", f.Name, ErrDamaged, sum, f.SHA256)
		}
	}
	return f.readRows(wanted, fn)
}

// callerError carries an error of fn through the reader unchanged.
type callerError struct{ error }

// readRows is read without the hash.
func (f *File) readRows(wanted func(*column) bool, fn func(*Row) error) error {
	err := f.scan(wanted, fn)
	var own callerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.error
	}
	return fmt.Errorf("archive: read %s: %w", f.Name, err)
}

func (f *File) scan(wanted func(*column) bool, fn func(*Row) error) (err error) {
	defer func() {
		var own callerError
		var disk *fs.PathError
		if err != nil && !errors.As(err, &own) && !errors.As(err, &disk) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}()
	pf, r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	rd := rowReader{file: f, words: map[string]string{}}
	rd.row.Event.Quantities = make([]int64, len(f.plan.quantities))
	rd.row.Event.Attributes = make([]string, len(f.plan.attributes))
	for g := range pf.RowGroups() {
		if err := f.checkPages(r, pf.Metadata(), g, wanted); err != nil {
			return err
		}
		if err := rd.group(pf.RowGroups()[g], wanted, fn); err != nil {
			return err
		}
	}
	return nil
}

// A rowReader puts columns together to rows.
type rowReader struct {
	file  *File
	row   Row
	words map[string]string // interned: few and often
	id    []byte
	last  int64
	begun bool
}

// group reads one row group. Only the Parquet library's part of it is guarded: fn's panics are fn's.
func (rd *rowReader) group(g parquet.RowGroup, wanted func(*column) bool, fn func(*Row) error) error {
	cursors, err := openCursors(g, rd.file.plan, wanted)
	defer closeCursors(cursors)
	if err != nil {
		return err
	}
	for left := g.NumRows(); left > 0; {
		n, err := fill(cursors, left)
		if err != nil {
			return err
		}
		for i := range n {
			if err := rd.assemble(cursors, i); err != nil {
				return err
			}
			if err := fn(&rd.row); err != nil {
				return callerError{err}
			}
		}
		for _, c := range cursors {
			if c != nil {
				c.take(n)
			}
		}
		left -= int64(n)
	}
	return nil
}

func openCursors(g parquet.RowGroup, p *plan, wanted func(*column) bool) (cursors []*cursor, err error) {
	cursors = make([]*cursor, len(p.columns))
	defer guard(&err)
	for i, chunk := range g.ColumnChunks() {
		if wanted(&p.columns[i]) {
			cursors[i] = &cursor{pages: chunk.Pages(), left: g.NumRows()}
		}
	}
	return cursors, nil
}

func closeCursors(cursors []*cursor) {
	for _, c := range cursors {
		if c != nil {
			c.close()
		}
	}
}

// fill makes sure that every cursor has values and returns how many rows all of them have.
func fill(cursors []*cursor, left int64) (n int, err error) {
	defer guard(&err)
	n = int(min(left, cursorValues))
	for i, c := range cursors {
		if c == nil {
			continue
		}
		if err := c.fill(); err != nil {
			return 0, fmt.Errorf("column %d: %w", i, err)
		}
		n = min(n, len(c.values))
	}
	return n, nil
}

// A cursor reads the values of one column chunk.
type cursor struct {
	pages  parquet.Pages
	page   parquet.ValueReader
	values []parquet.Value // not yet taken; they point into pages that are never handed back to the library's pool
	buf    [cursorValues]parquet.Value
	left   int64 // values that the chunk must still have
}

const cursorValues = 256

var errShort = errors.New("a column ends before its rows do")

func (c *cursor) fill() error {
	for len(c.values) == 0 {
		if c.page == nil {
			p, err := c.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return errShort
			}
			if err != nil {
				return err
			}
			c.page = p.Values()
		}
		n, err := c.page.ReadValues(c.buf[:min(int64(cursorValues), max(c.left, 1))])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || n == 0 {
			c.page = nil
		}
		if int64(n) > c.left {
			return errors.New("a column has more values than rows")
		}
		c.left -= int64(n)
		c.values = c.buf[:n]
	}
	return nil
}

func (c *cursor) take(n int) { c.values = c.values[n:] }

func (c *cursor) close() {
	defer func() { _ = recover() }() // the library may be in any state after a panic
	_ = c.pages.Close()
}

// assemble makes row i of the values at hand.
func (rd *rowReader) assemble(cursors []*cursor, i int) error {
	p, f := rd.file.plan, rd.file
	rd.row = Row{
		Record:        meter.Record{Partition: f.Partition, Received: f.LogTime == LogTimeReceived},
		Event:         meter.Event{Partition: f.Partition, Quantities: rd.row.Event.Quantities, Attributes: rd.row.Event.Attributes},
		PriorMaxReach: meter.MinusInfinity,
	}
	rd.id = rd.id[:0]
	clear(rd.row.Event.Quantities)
	clear(rd.row.Event.Attributes)
	for j, c := range cursors {
		if c == nil {
			continue
		}
		if err := rd.set(&p.columns[j], c.values[i]); err != nil {
			return fmt.Errorf("column %s: %w", p.columns[j].Name, err)
		}
	}
	r, e := &rd.row.Record, &rd.row.Event
	if r.Offset < f.First || r.Offset >= f.Next || rd.begun && r.Offset <= rd.last {
		return fmt.Errorf("offset %d is out of order or outside of [%d, %d)", r.Offset, f.First, f.Next)
	}
	rd.last, rd.begun = r.Offset, true
	e.Offset = r.Offset
	if !r.Received {
		r.LogTime, r.HasLogTime = e.LogTime, e.HasLogTime
	}
	switch {
	case p.refs == 0:
		e.Reference = e.ID
	case e.Bucket != meter.BucketEvent && emptyParts(e.Reference):
		e.Reference = ""
	}
	return nil
}

// set puts a column's value where it belongs.
func (rd *rowReader) set(c *column, v parquet.Value) error {
	r, e := &rd.row.Record, &rd.row.Event
	if v.IsNull() {
		switch c.role {
		case roleRaw:
			r.Null = true
		case roleReference:
			e.Reference = rd.appendPart(e.Reference, nil)
		}
		return nil
	}
	switch c.role {
	case roleOffset:
		r.Offset = v.Int64()
	case roleLogTime:
		e.LogTime, e.HasLogTime = v.Int64(), true
	case roleBucket:
		return name(&e.Bucket, v.ByteArray(), meter.BucketEvent, meter.BucketDeadLetter)
	case roleReason:
		return name(&e.Reason, v.ByteArray(), meter.TooLarge, meter.BadStatus)
	case roleKind:
		return name(&e.Kind, v.ByteArray(), meter.KindStart, meter.KindTick)
	case roleID:
		e.ID = rd.appendPart(e.ID, v.ByteArray())
	case roleIDHash:
		e.IDHash = uint64(v.Int64())
	case roleReference:
		e.Reference = rd.appendPart(e.Reference, v.ByteArray())
	case roleAccount:
		e.Account = rd.word(v.ByteArray())
	case roleSKU:
		e.SKU = rd.word(v.ByteArray())
	case roleTime:
		e.Time = v.Int64()
	case rolePrior:
		rd.row.PriorMaxReach = v.Int64()
	case roleQuantity:
		e.Quantities[c.index] = v.Int64()
		e.Present |= 1 << c.index
	case roleAttribute:
		e.Attributes[c.index] = rd.word(v.ByteArray())
	case roleStatus:
		e.Status = rd.word(v.ByteArray())
	case roleLatency:
		e.Latency, e.HasLatency = v.Int64(), true
	case rolePayload:
		e.PayloadHash = uint64(v.Int64())
	case roleRaw:
		r.Value = v.ByteArray()
	}
	return nil
}

// appendPart adds a part to an id.
func (rd *rowReader) appendPart(id meter.ID, part []byte) meter.ID {
	rd.id = meter.AppendID(append(rd.id[:0], id...), string(part))
	return meter.ID(rd.id)
}

// maxWords bounds the table of interned words.
const maxWords = 1 << 14

func (rd *rowReader) word(b []byte) string {
	if s, ok := rd.words[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(rd.words) < maxWords {
		rd.words[s] = s
	}
	return s
}

// name reads one of the names that a noun's String writes.
func name[T interface {
	~uint8
	String() string
}](to *T, text []byte, first, last T) error {
	for v := first; v <= last; v++ {
		if v.String() == string(text) {
			*to = v
			return nil
		}
	}
	return fmt.Errorf("%.40q is no such word", slices.Clone(text))
}
