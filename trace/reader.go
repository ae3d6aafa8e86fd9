package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/xxh3"
)

// Options configure a Reader. The zero value reads a whole trace file.
type Options struct {
	// Format is Trace if empty.
	Format Format
	// Wait makes the reader follow a growing file: it is called at the end of the file and returns when it is
	// worth looking again, or with the context's error. A last line without its line end is then incomplete and waits.
	// Nil: the end of the file is the end, and such a line is a line.
	Wait func(ctx context.Context) error
	// Growing says that somebody still writes the file: a last line without its line end is then incomplete, too, and is
	// left unread at the end ([Reader.Unread]).
	Growing bool
	// ChunkBytes is about how large a chunk is; 256 KiB if 0. A longer line makes a longer chunk.
	ChunkBytes int
}

const (
	defaultChunk = 256 << 10
	// maxLine is the longest line that is read; beyond it the file is taken for no file of lines.
	maxLine = 512 << 20
)

// A Reader yields the lines of one file in chunks. It belongs to one goroutine.
type Reader struct {
	name    string
	options Options
	source  source

	rest   []byte  // read and not yet yielded
	memory *memory // that rest is in
	spare  chan *memory
	dry    int         // so many first bytes of rest hold no line end
	at     int64       // where rest begins
	line   int64       // number of the line that begins there
	hash   xxh3.Hasher // over the bytes before at
	final  bool        // the source has ended
	header *Header
	check  *prefixCheck
}

// prefixCheck is what a position says of the file: the hash of the bytes before next.
type prefixCheck struct {
	next int64
	hash string
}

// Open opens a file by name; `.gz` and `.zst` are decompressed. Positions count decompressed bytes.
func Open(path string, o Options) (*Reader, error) {
	s, err := openFile(path, o.Wait != nil)
	if err != nil {
		return nil, &Error{File: path, Err: err}
	}
	return newReader(path, s, o), nil
}

// NewReader reads from r; name is what errors call it, and without a header makes the topic. A name that ends in
// `.gz` or `.zst` is decompressed. The caller closes r.
func NewReader(r io.Reader, name string, o Options) (*Reader, error) {
	s, err := decompress(r, name)
	if err != nil {
		return nil, &Error{File: name, Err: err}
	}
	return newReader(name, s, o), nil
}

func newReader(name string, s source, o Options) *Reader {
	if o.Format == "" {
		o.Format = Trace
	}
	if o.ChunkBytes == 0 {
		o.ChunkBytes = defaultChunk
	}
	return &Reader{name: name, options: o, source: s, line: 1, memory: newMemory(0), spare: make(chan *memory, maxSpare)}
}

// Close closes the file.
func (r *Reader) Close() error { return r.source.Close() }

// Header is the file's header, or one made of its name. It must be known before lines are read: call it
// first, or let Next do it. When following, it waits for the first line.
func (r *Reader) Header(ctx context.Context) (Header, error) {
	if r.header != nil {
		return *r.header, nil
	}
	h := Header{Topic: TopicOf(r.name)}
	if r.options.Format == Values {
		h.Partitions = []int32{0}
	} else {
		line, err := r.firstLine(ctx)
		if err != nil {
			return Header{}, err
		}
		if stated, err := parseHeader(line); err != nil {
			return Header{}, &Error{File: r.name, Line: 1, Err: err}
		} else if stated != nil {
			if stated.Topic == "" {
				stated.Topic = h.Topic
			}
			h = *stated
			r.advance(len(line))
		}
	}
	r.header = &h
	return h, nil
}

// firstLine is the first line with its end, still in rest; empty for an empty file.
func (r *Reader) firstLine(ctx context.Context) ([]byte, error) {
	for {
		if k := bytes.IndexByte(r.rest[r.dry:], '\n'); k >= 0 {
			return r.rest[:r.dry+k+1], nil
		}
		if r.dry = len(r.rest); r.final {
			return r.rest[:r.lastLines()], nil
		}
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
}

// advance drops n bytes, which are whole lines, from rest.
func (r *Reader) advance(n int) {
	b := r.rest[:n]
	r.line += int64(bytes.Count(b, []byte{'\n'}))
	_, _ = r.hash.Write(b) // cannot fail
	r.at += int64(n)
	r.rest, r.dry = r.rest[n:], 0
}

// Preview parses the first lines without taking them, as far as they are there: a caller that is about to write something
// finds out first whether the file is one. It waits for nothing that Header does not wait for.
func (r *Reader) Preview(ctx context.Context) ([]Line, error) {
	if _, err := r.Header(ctx); err != nil {
		return nil, err
	}
	n := bytes.LastIndexByte(r.rest, '\n') + 1
	if !r.source.live {
		var err error
		if n, err = r.lines(ctx); err != nil {
			return nil, err
		}
	}
	c := &Chunk{File: r.name, Data: r.rest[:n:n], Byte: r.at, Line: r.line, format: r.options.Format}
	return c.Parse(nil)
}

// Next yields the next lines; io.EOF after the last. When following it ends only with ctx.
func (r *Reader) Next(ctx context.Context) (*Chunk, error) {
	if _, err := r.Header(ctx); err != nil {
		return nil, err
	}
	n, err := r.lines(ctx)
	if err != nil {
		return nil, err
	}
	c := &Chunk{File: r.name, Data: r.rest[:n:n], Byte: r.at, Line: r.line, format: r.options.Format, prefix: r.hash,
		memory: r.memory, spare: r.spare}
	r.advance(n)
	c.end, c.whole = r.at, r.hash
	if err := r.checkPrefix(c); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	c.memory.users.Add(1)
	return c, nil
}

// lines fills rest until whole lines are there and returns their length; 0 at the end.
func (r *Reader) lines(ctx context.Context) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if r.final {
			return r.lastLines(), nil
		}
		if len(r.rest) >= r.options.ChunkBytes || r.source.live && len(r.rest) > 0 {
			if k := bytes.LastIndexByte(r.rest[r.dry:], '\n'); k >= 0 {
				return r.dry + k + 1, nil
			}
			r.dry = len(r.rest)
		}
		if err := r.fill(ctx); err != nil {
			return 0, err
		}
	}
}

// lastLines is how much of rest, behind which nothing comes, are lines: all of it, or all but an incomplete last one. What
// was read before as a line is one.
func (r *Reader) lastLines() int {
	if !r.options.Growing {
		return len(r.rest)
	}
	n := bytes.LastIndexByte(r.rest, '\n') + 1
	if r.check != nil && r.check.next > r.at+int64(n) {
		return len(r.rest)
	}
	return n
}

// Unread is, behind the end of a growing file, the length of the incomplete last line that was left unread.
func (r *Reader) Unread() int64 {
	if !r.final || !r.options.Growing {
		return 0
	}
	return int64(len(r.rest))
}

// fill reads once more behind rest. It sets final at the end, or waits there when following.
func (r *Reader) fill(ctx context.Context) error {
	if len(r.rest) > maxLine {
		return &Error{File: r.name, Line: r.line, Err: fmt.Errorf("a line of over %d bytes", maxLine)}
	}
	if cap(r.rest)-len(r.rest) < max(1, r.options.ChunkBytes/2) {
		r.move(len(r.rest) + r.options.ChunkBytes)
	}
	n, err := r.source.Read(r.rest[len(r.rest):cap(r.rest)])
	r.rest = r.rest[:len(r.rest)+n]
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, io.EOF):
		lines := int64(bytes.Count(r.rest, []byte{'\n'}))
		return &Error{File: r.name, Line: r.line + lines, Err: err}
	case n > 0:
		return nil
	case r.options.Wait == nil:
		r.final = true
		return nil
	}
	if err := r.source.unchanged(r.name, r.at+int64(len(r.rest))); err != nil {
		return &Error{File: r.name, Err: err}
	}
	return r.options.Wait(ctx)
}

// move moves rest to other memory, of at least size bytes: what it is in may be a chunk's too.
func (r *Reader) move(size int) {
	var m *memory
	select {
	case m = <-r.spare:
	default:
	}
	if m == nil || len(m.bytes) < size {
		m = newMemory(size + size/8)
	}
	m.users.Store(1)
	r.rest = m.bytes[:copy(m.bytes, r.rest)]
	r.memory.release(r.spare)
	r.memory = m
}

// Resume makes Next begin at the byte restart, where a line begins, of a file of which the bytes before next
// (>= restart) had the hash when they were read. Call it before the first Next. A file that does not begin with
// these bytes is an error that wraps [ErrPrefix], here where the source is a file, else when Next comes to it.
func (r *Reader) Resume(ctx context.Context, restart, next int64, hash string) error {
	if restart < 0 || restart > next {
		return &Error{File: r.name, Err: fmt.Errorf("resume at byte %d of %d: not a place before it", restart, next)}
	}
	if err := r.source.verify(next, hash); err != nil {
		return &Error{File: r.name, Err: err}
	}
	if _, err := r.Header(ctx); err != nil {
		return err
	}
	if next == 0 {
		return nil
	}
	r.check = &prefixCheck{next, hash}
	last := byte('\n')
	for r.at < restart {
		if len(r.rest) == 0 && r.final {
			return &Error{File: r.name, Err: fmt.Errorf("%w: it ends at byte %d, before byte %d", ErrPrefix, r.at, restart)}
		}
		if len(r.rest) == 0 {
			if err := r.fill(ctx); err != nil {
				return err
			}
			continue
		}
		n := int(min(int64(len(r.rest)), restart-r.at))
		last = r.rest[n-1]
		r.advance(n)
	}
	switch {
	case r.at > next:
		return &Error{File: r.name, Err: fmt.Errorf("%w: its header ends at byte %d, behind byte %d", ErrPrefix, r.at, next)}
	case last == '\n':
		return nil
	case r.at < next:
		return &Error{File: r.name, Err: fmt.Errorf("%w: no line begins at byte %d", ErrPrefix, restart)}
	}
	return r.endLine(ctx)
}

// endLine comes after a line that had no line end when it was read, as the last one of its file: by now it may have one.
func (r *Reader) endLine(ctx context.Context) error {
	if err := r.checkPrefix(&Chunk{Byte: r.at, end: r.at, prefix: r.hash, whole: r.hash}); err != nil {
		return err
	}
	for len(r.rest) < 2 && !r.final && !bytes.HasPrefix(r.rest, []byte{'\n'}) {
		if err := r.fill(ctx); err != nil {
			return err
		}
	}
	switch {
	case len(r.rest) == 0: // still the last line
		r.line++
	case bytes.HasPrefix(r.rest, []byte("\n")):
		r.advance(1)
	case bytes.HasPrefix(r.rest, []byte("\r\n")):
		r.advance(2)
	default:
		return &Error{File: r.name, Line: r.line, Err: fmt.Errorf("%w: its last line was read and then continued", ErrPrefix)}
	}
	return nil
}

// checkPrefix compares the hash of the bytes before the checked position once c covers it. An empty chunk is the end.
func (r *Reader) checkPrefix(c *Chunk) error {
	if r.check == nil || c.End() < r.check.next && len(c.Data) > 0 {
		return nil
	}
	next, hash := r.check.next, r.check.hash
	r.check = nil
	if c.End() < next {
		return &Error{File: r.name, Err: fmt.Errorf("%w: it ends at byte %d, before byte %d", ErrPrefix, c.End(), next)}
	}
	if got := c.PrefixHash(next); got != hash {
		return &Error{File: r.name, Err: fmt.Errorf("%w: the hash of %d bytes is %s, not %s", ErrPrefix, next, got, hash)}
	}
	after := c.Data[next-c.Byte:]
	if next > c.Byte && c.Data[next-c.Byte-1] != '\n' && len(after) > 0 &&
		!bytes.HasPrefix(after, []byte("\n")) && !bytes.HasPrefix(after, []byte("\r\n")) {
		return &Error{File: r.name, Err: fmt.Errorf("%w: its last line was read and then continued", ErrPrefix)}
	}
	return nil
}

// Stdin is the name of standard input in errors.
const Stdin = "stdin"

// OpenStdin reads standard input; what a compressor wrote is recognised by its first bytes. Behind the end of a pipe
// nothing can come: it is not waited for.
func OpenStdin(o Options) (*Reader, error) {
	s, err := sniff(os.Stdin)
	if err != nil {
		return nil, &Error{File: Stdin, Err: err}
	}
	info, err := os.Stdin.Stat()
	if err != nil {
		return nil, &Error{File: Stdin, Err: err}
	}
	if o.Wait != nil && !info.Mode().IsRegular() {
		o.Wait, o.Growing = nil, true
	}
	return newReader(Stdin, s, o), nil
}
