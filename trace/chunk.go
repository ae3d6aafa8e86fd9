package trace

import (
	"bytes"
	"fmt"

	"github.com/zeebo/xxh3" // XXH3-128 for the hash of a prefix: the maintained pure-Go port with assembly
)

// A Chunk is a run of whole lines (the file's last one may lack its line end). It is self-contained: chunks may be parsed
// in parallel.
type Chunk struct {
	File   string
	Data   []byte
	Byte   int64 // where Data begins in the (decompressed) file
	Line   int64 // number of the first line, from 1
	format Format
	prefix xxh3.Hasher // over the bytes before Byte
}

// End is where the next chunk begins.
func (c *Chunk) End() int64 { return c.Byte + int64(len(c.Data)) }

// Parse appends the chunk's lines. On an error, which is an [*Error], the lines before the one at fault are there.
// Records alias c.Data.
func (c *Chunk) Parse(lines []Line) ([]Line, error) { return c.parse(lines, false) }

// ParseQuick is Parse for callers that decode every value strictly anyway: it does not look into the values of ordinary
// lines, which is the dear part of parsing one. Such a line is Unsure: that its value is all that is left of it holds
// only if the value is a sound JSON object. Where the decoder finds that it is not (the record becomes a dead letter),
// [Chunk.Settle] has to read the line again before anything is believed of it.
func (c *Chunk) ParseQuick(lines []Line) ([]Line, error) { return c.parse(lines, true) }

func (c *Chunk) parse(lines []Line, unsure bool) ([]Line, error) {
	rest, at, number := c.Data, c.Byte, c.Line
	for len(rest) > 0 {
		text, size := firstLine(rest)
		lines = append(lines, Line{Number: number, End: at + int64(size)})
		line := &lines[len(lines)-1]
		switch {
		case c.format == Values:
			line.Record.Offset, line.Record.Received, line.Record.Value = number-1, true, text
		case quick(text, &line.Record) && (unsure || closing(line.Record.Value, 0, '{', '}') == len(line.Record.Value)):
			line.Unsure = unsure
		default:
			var err error
			if line.Idle, err = ParseLine(text, &line.Record); err != nil {
				return lines[:len(lines)-1], &Error{File: c.File, Line: number, Err: err}
			}
		}
		line.Record.Byte = at
		rest, at, number = rest[size:], at+int64(size), number+1
	}
	return lines, nil
}

// firstLine is the first line of b without its line end, and its length with it.
func firstLine(b []byte) (text []byte, size int) {
	text, size = b, len(b)
	if k := bytes.IndexByte(b, '\n'); k >= 0 {
		text, size = b[:k], k+1
	}
	return bytes.TrimSuffix(text, []byte{'\r'}), size
}

// Settle reads a line again that ParseQuick was unsure of.
func (c *Chunk) Settle(l *Line) error {
	if !l.Unsure {
		return nil
	}
	text, _ := firstLine(c.Data[l.Record.Byte-c.Byte : l.End-c.Byte])
	at := l.Record.Byte
	idle, err := ParseLine(text, &l.Record)
	if err != nil {
		return &Error{File: c.File, Line: l.Number, Err: err}
	}
	l.Record.Byte, l.Idle, l.Unsure = at, idle, false
	return nil
}

// PrefixHash is the hash of the file's bytes before end, which must lie in the chunk or at one of its ends:
// what a position keeps so that a restart finds out whether the file is the one that it was.
func (c *Chunk) PrefixHash(end int64) string {
	h := c.prefix
	_, _ = h.Write(c.Data[:end-c.Byte]) // cannot fail
	return prefixHash(&h)
}

func prefixHash(h *xxh3.Hasher) string {
	sum := h.Sum128()
	return fmt.Sprintf("xxh3-128:%016x%016x", sum.Hi, sum.Lo)
}
