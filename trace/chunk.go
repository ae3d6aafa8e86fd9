package trace

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/zeebo/xxh3" // XXH3-128 for the hash of a prefix: the maintained pure-Go port with assembly

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Chunk is a run of whole lines (the file's last one may lack its line end). It is self-contained: chunks may be parsed
// in parallel.
type Chunk struct {
	File   string
	Data   []byte
	Byte   int64 // where Data begins in the (decompressed) file
	Line   int64 // number of the first line, from 1
	end    int64 // Invariant: Byte + len(Data).
	format Format
	prefix xxh3.Hasher // over the bytes before Byte
	whole  xxh3.Hasher // over the bytes before end

	memory *memory // that Data is in
	spare  chan *memory
}

// End is where the next chunk begins.
func (c *Chunk) End() int64 { return c.end }

// Release gives the chunk's memory back to its reader, to be used for a later chunk: nothing may look at Data, or at
// what records alias of it, any more. It may be called once, from any goroutine. A chunk that is not released lasts as
// long as anything points into it.
func (c *Chunk) Release() { c.memory.release(c.spare) }

// memory holds what is read: several chunks may be in it. It is used again once the last of its users has released it.
type memory struct {
	bytes []byte
	users atomic.Int32 // the reader, and the chunks
}

// maxSpare bounds what is kept to be used again.
const maxSpare = 16

func newMemory(size int) *memory {
	m := &memory{bytes: make([]byte, size)}
	m.users.Store(1)
	return m
}

func (m *memory) release(spare chan<- *memory) {
	if m.users.Add(-1) > 0 || len(m.bytes) == 0 {
		return
	}
	select {
	case spare <- m:
	default:
	}
}

// Parse appends the chunk's lines. On an error, which is an [*Error], the lines before the one at fault are there.
// Records alias c.Data. It is a pure function of the chunk.
func (c *Chunk) Parse(lines []Line) ([]Line, error) { return c.Decode(lines, nil) }

// Decode is Parse for a caller that decodes every value strictly on the spot, and about twice as fast: decode is called
// for each record, as soon as its line is parsed, with the line's index, and reports whether the value is a sound JSON
// object. That spares Decode to look for the value's end: if all up to the line's end is one sound object, it is the
// value. Where decode reports that it is not, the line is parsed as Parse does, and decode is called again if
// the value turns out to be another one.
func (c *Chunk) Decode(lines []Line, decode func(i int, r *meter.Record) (sound bool)) ([]Line, error) {
	rest, at, number := c.Data, c.Byte, c.Line
	for len(rest) > 0 {
		text, size := firstLine(rest)
		i := len(lines)
		lines = slices.Grow(lines, 1)[:i+1]
		lines[i].Idle, lines[i].Number, lines[i].End = nil, number, at+int64(size)
		if err := c.line(text, at, &lines[i], i, decode); err != nil {
			return lines[:i], &Error{File: c.File, Line: number, Err: err}
		}
		rest, at, number = rest[size:], at+int64(size), number+1
	}
	return lines, nil
}

// line parses the i-th line, which begins at the byte at.
func (c *Chunk) line(text []byte, at int64, line *Line, i int, decode func(int, *meter.Record) bool) error {
	r := &line.Record
	if c.format == Values {
		*r = meter.Record{Offset: line.Number - 1, Received: true, Value: text, Byte: at}
		if decode != nil {
			decode(i, r)
		}
		return nil
	}
	guessed := quick(text, r)
	r.Byte = at
	switch {
	case guessed && decode != nil && decode(i, r):
		return nil
	case guessed && closing(r.Value, 0, '{', '}') == len(r.Value):
		return nil // the guess was right, and decode has said what there is to say
	}
	var err error
	if line.Idle, err = ParseLine(text, r); err != nil {
		return err
	}
	r.Byte = at
	if decode != nil && line.Idle == nil {
		decode(i, r)
	}
	return nil
}

// firstLine is the first line of b without its line end, and its length with it.
func firstLine(b []byte) (text []byte, size int) {
	text, size = b, len(b)
	if k := bytes.IndexByte(b, '\n'); k >= 0 {
		text, size = b[:k], k+1
	}
	return bytes.TrimSuffix(text, []byte{'\r'}), size
}

// PrefixHash is the hash of the file's bytes before end, which must lie in the chunk or at one of its ends:
// what a position keeps so that a restart finds out whether the file is the one that it was. At the chunk's own end it
// may be asked for after Release, too.
func (c *Chunk) PrefixHash(end int64) string {
	if end == c.end {
		return prefixHash(&c.whole)
	}
	h := c.prefix
	_, _ = h.Write(c.Data[:end-c.Byte]) // cannot fail
	return prefixHash(&h)
}

func prefixHash(h *xxh3.Hasher) string {
	sum := h.Sum128()
	return fmt.Sprintf("xxh3-128:%016x%016x", sum.Hi, sum.Lo)
}
