package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip" // gzip, all members, faster than the standard library's
	"github.com/klauspost/compress/zstd" // zstd, which the standard library lacks
	"github.com/zeebo/xxh3"
)

// A source is a stream of decompressed bytes.
type source struct {
	io.Reader
	live    bool // more may come at any time: lines are yielded as soon as they are there
	file    *os.File
	plain   bool // file is read as it stands
	closers []func() error
}

// Close closes what the source opened.
func (s *source) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func compressed(name string) bool {
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".zst")
}

func openFile(path string, follow bool) (source, error) {
	if follow && compressed(path) {
		return source{}, errors.New("a compressed file cannot be followed; follow the plain one")
	}
	f, err := os.Open(path)
	if err != nil {
		var failed *fs.PathError
		if errors.As(err, &failed) {
			err = failed.Err // the path stands in Error.File
		}
		return source{}, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a folder")
	}
	if err != nil {
		return source{}, errors.Join(err, f.Close())
	}
	s, err := decompress(f, path)
	if err != nil {
		return source{}, errors.Join(err, f.Close())
	}
	s.file, s.plain = f, !compressed(path) && info.Mode().IsRegular()
	s.live = follow || !info.Mode().IsRegular()
	s.closers = append(s.closers, f.Close)
	return s, nil
}

// decompress reads r as the ending of its name says.
func decompress(r io.Reader, name string) (source, error) {
	switch {
	case strings.HasSuffix(name, ".gz"):
		return gunzip(r)
	case strings.HasSuffix(name, ".zst"):
		return unzstd(r)
	}
	return source{Reader: r}, nil
}

func sniff(f *os.File) (source, error) {
	b := bufio.NewReaderSize(f, 64<<10)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return source{}, err
	}
	switch {
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		return gunzip(b)
	case string(magic) == "\x28\xb5\x2f\xfd":
		return unzstd(b)
	}
	return source{Reader: b, live: true}, nil
}

func gunzip(r io.Reader) (source, error) {
	w := &wholeness{kind: "gzip"}
	z, err := gzip.NewReader(r)
	if err != nil {
		return source{}, w.explain(err)
	}
	w.r = z
	return source{Reader: w}, nil // nothing to close: a gzip reader holds nothing, and its Close would say again what reading has said
}

func unzstd(r io.Reader) (source, error) {
	counted := &counter{r: r}
	z, err := zstd.NewReader(counted, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return source{}, err
	}
	return source{Reader: &wholeness{kind: "zstd", r: &nonEmpty{z, counted}}, closers: []func() error{func() error { z.Close(); return nil }}}, nil
}

// wholeness turns the decompressors' words for a file that is not whole into what is wrong and what to do.
type wholeness struct {
	r     io.Reader
	kind  string // gzip or zstd
	begun bool   // something of it was one
}

func (w *wholeness) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.begun = w.begun || n > 0
	if err != nil && err != io.EOF {
		err = w.explain(err)
	}
	return n, err
}

func (w *wholeness) explain(err error) error {
	foreign := errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return ErrCutShort
	case foreign && w.begun:
		return fmt.Errorf("%w: bytes that are no %s stand behind its end", ErrDamaged, w.kind)
	case foreign:
		return fmt.Errorf("it is no %s file, whatever its name says: rename it, or compress it", w.kind)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// counter counts the bytes that a decompressor takes.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// nonEmpty makes a file of no bytes at all, which no compressor writes, a file that was cut short.
type nonEmpty struct {
	r  io.Reader
	in *counter
}

func (e *nonEmpty) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	if err == io.EOF && e.in.n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// unchanged reports, while a file is followed, that it is no longer the one under its name or is shorter than what
// was read of it.
func (s *source) unchanged(path string, read int64) error {
	if s.file == nil {
		return nil
	}
	open, err := s.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(open, named) || s.plain && open.Size() < read {
		return ErrReplaced
	}
	return nil
}

// verify hashes the bytes before next of a plain file ahead of reading it.
func (s *source) verify(next int64, hash string) error {
	if !s.plain {
		return nil
	}
	var h xxh3.Hasher
	n, err := io.Copy(&h, io.NewSectionReader(s.file, 0, next))
	if err != nil {
		return err
	}
	if n < next {
		return fmt.Errorf("%w: it ends at byte %d, before byte %d", ErrPrefix, n, next)
	}
	if got := prefixHash(&h); got != hash {
		return fmt.Errorf("%w: the hash of %d bytes is %s, not %s", ErrPrefix, next, got, hash)
	}
	return nil
}
