package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// Config configures a Writer. All fields but TopicID and Version are required.
type Config struct {
	FS        FS
	Meter     *meter.Meter
	Topic     string // UTF-8 without U+0000, not empty
	TopicID   string
	Partition int32
	// LogTime says where log times come from; every record must agree (Record.Received).
	LogTime string
	Version string // of the program
	// RowGroupRows and RowGroupBytes (of raw text) end a row group. A writer holds about a row group in memory.
	RowGroupRows  int
	RowGroupBytes int64
}

// DefaultRowGroupRows and DefaultRowGroupBytes suit readers that take row groups in parallel.
const (
	DefaultRowGroupRows  = 250_000
	DefaultRowGroupBytes = 128 << 20
)

func (c *Config) validate() error {
	switch {
	case c.FS == nil || c.Meter == nil:
		return errors.New("archive: a writer needs a folder and a meter")
	case c.Topic == "" || !utf8.ValidString(c.Topic) || containsNUL(c.Topic):
		return fmt.Errorf("archive: topic %q cannot be kept: want UTF-8 text without U+0000", c.Topic)
	case c.Partition < 0:
		return fmt.Errorf("archive: partition %d", c.Partition)
	case c.LogTime != LogTimeEnvelope && c.LogTime != LogTimeReceived:
		return fmt.Errorf("archive: log time %q is neither %s nor %s", c.LogTime, LogTimeEnvelope, LogTimeReceived)
	case c.RowGroupRows < 1 || c.RowGroupBytes < 1:
		return errors.New("archive: row groups need a bound in rows and in bytes")
	}
	return nil
}

func (c *Config) source() Source { return Source{c.Topic, c.Partition} }

// A TakenError says that another writer published a file at the same offset first. The loser goes on behind
// it: Resume, and a new Writer from the head that it returns.
type TakenError struct {
	Name        string
	First, Next int64 // of the winner's file
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("archive: publish %s: another writer has published [%d, %d) there", e.Name, e.First, e.Next)
}

// A Writer archives one partition. It is not safe for concurrent use. After an error that is not a TakenError's
// the rows since the published head are lost to it: stop, and start again from the head.
//
// The cycle: Append or AppendAll records; when the file is large or old enough, Seal it; at each commit Publish what is
// sealed and commit the head that it returns.
type Writer struct {
	config Config
	plan   *plan
	dirs   dirs

	published meter.ArchiveHead // as of Publish
	head      meter.ArchiveHead // as of Seal: the next file is built on it
	sealed    []sealedFile
	err       error // sticky

	pages *pageFile
	open  openFile
	one   [1]Entry // of Append
}

// openFile is the file in the making; zero when there is none.
type openFile struct {
	aside      string
	file       WriteFile
	sum        hash.Hash
	dir        string
	rows       int64
	raw        int64 // bytes of raw text
	groupRows  int
	groupBytes int64
	last       int64 // offset of the last row
}

type sealedFile struct {
	aside, final string
	head         meter.ArchiveHead // once it is published
}

// NewWriter makes a writer that goes on behind head: meter.ArchiveHead with MaxReach of MinusInfinity and Next of the
// first offset to consume for a partition that has no file yet, else what Resume returned.
func NewWriter(config Config, head meter.ArchiveHead) (*Writer, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if err := checkCheckpoint(head.Next, head.Checkpoint); err != nil {
		return nil, fmt.Errorf("archive: write %s: head: %w", config.source(), err)
	}
	plan, err := newPlan(schemas.ArchiveColumns(config.Meter))
	if err != nil {
		return nil, fmt.Errorf("archive: write %s: %w", config.source(), err)
	}
	w := &Writer{config: config, plan: plan, dirs: dirs{fs: config.FS}, published: head, head: head}
	w.pages = newPageFile(plan)
	return w, nil
}

// Append adds the record that was read at rec.Offset, decoded as e, with the highest reach of the admitted
// records of the partition before it (MinusInfinity without one). Offsets rise. It keeps nothing of rec and e.
func (w *Writer) Append(rec *meter.Record, e *meter.Event, priorMaxReach int64) error {
	w.one[0] = Entry{rec, e, priorMaxReach}
	err := w.AppendAll(w.one[:])
	w.one[0] = Entry{}
	return err
}

// AppendAll is Append for each of the list: faster, and the same file.
func (w *Writer) AppendAll(list []Entry) error {
	for len(list) > 0 {
		if w.err != nil {
			return w.err
		}
		n, err := w.append(list)
		if err != nil {
			return w.fail(fmt.Errorf("archive: append %s@%d: %w", w.config.source(), list[n].Record.Offset, err))
		}
		list = list[n:]
	}
	return nil
}

// append adds the first n records, at least one; an error is about record n.
func (w *Writer) append(list []Entry) (n int, err error) {
	fits, raw, err := w.check(list[:w.pages.fits(list)])
	if err != nil {
		return fits, err
	}
	list = list[:fits]
	if w.open.file == nil {
		if err := w.begin(list[0].Record, list[0].Event); err != nil {
			return 0, err
		}
	}
	if err := w.pages.add(list); err != nil {
		return 0, err
	}
	w.open.rows += int64(fits)
	w.open.groupRows += fits
	w.open.last = list[fits-1].Record.Offset
	w.open.raw += raw
	w.open.groupBytes += raw
	if w.open.groupRows >= w.config.RowGroupRows || w.open.groupBytes >= w.config.RowGroupBytes {
		w.open.groupRows, w.open.groupBytes = 0, 0
		if err := w.pages.endGroup(); err != nil {
			return 0, err
		}
	}
	return fits, nil
}

// check checks records up to the one that ends the row group: n of them, with so many bytes of raw text. An error is
// about record n.
func (w *Writer) check(list []Entry) (n int, raw int64, err error) {
	next := w.head.Next
	if w.open.rows > 0 {
		next = w.open.last + 1
	}
	for i := range list {
		rec, e := list[i].Record, list[i].Event
		if err := w.checkRecord(rec, e, next); err != nil {
			return i, raw, err
		}
		if err := checkEvent(w.plan, e); err != nil {
			return i, raw, err
		}
		next = rec.Offset + 1
		raw += int64(len(rec.Value))
		if w.open.groupRows+i+1 >= w.config.RowGroupRows || w.open.groupBytes+raw >= w.config.RowGroupBytes {
			return i + 1, raw, nil
		}
	}
	return len(list), raw, nil
}

// checkRecord checks a record that may have the offset next at the earliest.
func (w *Writer) checkRecord(rec *meter.Record, e *meter.Event, next int64) error {
	switch {
	case rec.Partition != w.config.Partition || e.Partition != rec.Partition || e.Offset != rec.Offset:
		return fmt.Errorf("partition %d: the record is %d@%d, the event %d@%d", w.config.Partition, rec.Partition, rec.Offset, e.Partition, e.Offset)
	case rec.Offset < next:
		return fmt.Errorf("offset %d is archived or not in order: next is %d", rec.Offset, next)
	case rec.Received != (w.config.LogTime == LogTimeReceived):
		return fmt.Errorf("its log time is not from the %s", w.config.LogTime)
	case rec.Null != (e.Bucket == meter.BucketTombstone):
		return fmt.Errorf("a null value is a tombstone and nothing else is; bucket %d", e.Bucket)
	}
	return nil
}

// begin opens the next file, aside.
func (w *Writer) begin(rec *meter.Record, e *meter.Event) error {
	if err := w.dirs.ensure(asideDir); err != nil {
		return err
	}
	name, file, err := createAside(w.config.FS, fmt.Sprintf("%s%020d", stem(w.config.Topic, w.config.Partition), w.head.Next))
	if err != nil {
		return err
	}
	logTime, hasLogTime := logTimeOf(rec, e)
	w.open = openFile{aside: name, file: file, sum: sha256.New(), dir: dirOf(w.config.Topic, w.config.Partition, logTime, hasLogTime)}
	return w.pages.begin(io.MultiWriter(file, w.open.sum))
}

// logTimeOf is the record's log time; of plain event lines the decoder has read it (Event.LogTime).
func logTimeOf(rec *meter.Record, e *meter.Event) (int64, bool) {
	if rec.Received {
		return e.LogTime, e.HasLogTime
	}
	return rec.LogTime, rec.HasLogTime
}

// Rows counts the rows of the open file.
func (w *Writer) Rows() int64 { return w.open.rows }

// RawBytes counts the bytes of raw text in the open file.
func (w *Writer) RawBytes() int64 { return w.open.raw }

// Head is the head as of the last Publish.
func (w *Writer) Head() meter.ArchiveHead { return w.published }

// Next is the offset behind everything that was sealed or published: where the open file begins.
func (w *Writer) Next() int64 { return w.head.Next }

// Seal ends the open file: it holds what was consumed up to next, and at is the checkpoint there (R8), with
// nothing carried. The file is whole and durable after it, but not visible before Publish. Without an open
// file nothing happens, and the next file will begin where this one would have.
func (w *Writer) Seal(next int64, at meter.Checkpoint) error {
	if w.err != nil || w.open.file == nil {
		return w.err
	}
	if err := w.seal(next, at); err != nil {
		return w.fail(fmt.Errorf("archive: close %s [%d, %d): %w", w.config.source(), w.head.Next, next, err))
	}
	return nil
}

func (w *Writer) seal(next int64, at meter.Checkpoint) error {
	if next <= w.open.last {
		return fmt.Errorf("offset %d was appended", w.open.last)
	}
	if err := checkCheckpoint(next, at); err != nil {
		return err
	}
	footer := w.footer(next)
	if err := w.pages.end(footer.pairs(), "gatewaymeter version "+cmp.Or(footer.Version, "0")+" (build archive)"); err != nil {
		return err
	}
	if err := errors.Join(w.open.file.Sync(), w.open.file.Close()); err != nil {
		return err
	}
	final := path.Join(w.open.dir, fileName(w.config.Topic, w.config.Partition, footer.First))
	w.head = meter.ArchiveHead{Next: next, Checkpoint: at, File: final, SHA256: hex.EncodeToString(w.open.sum.Sum(nil)), Rows: footer.CumulativeRows}
	w.sealed = append(w.sealed, sealedFile{aside: w.open.aside, final: final, head: w.head})
	w.open = openFile{}
	return nil
}

func (w *Writer) footer(next int64) *Footer {
	return &Footer{
		Topic: w.config.Topic, TopicID: w.config.TopicID, Partition: w.config.Partition,
		First: w.head.Next, Next: next, Rows: w.open.rows, CumulativeRows: w.head.Rows + w.open.rows,
		Fingerprint: w.config.Meter.Fingerprint, EventFingerprint: w.config.Meter.EventFingerprint,
		PrevName: w.head.File, PrevSHA256: w.head.SHA256,
		Checkpoint: w.head.Checkpoint, LogTime: w.config.LogTime, Version: w.config.Version,
	}
}

func checkCheckpoint(next int64, at meter.Checkpoint) error {
	switch {
	case at.Restart < 0 || at.Restart > next:
		return fmt.Errorf("checkpoint at %d: restart %d", next, at.Restart)
	case len(at.Carried) > 0:
		return errors.New("checkpoint carries lives: an archive has no place for them")
	}
	return nil
}

// Publish gives every sealed file its final name, never over an existing one, and makes the name durable.
// It returns the head that the caller may commit, also beside an error. A *TakenError means that the rest was
// thrown away because another owner was faster.
func (w *Writer) Publish() (meter.ArchiveHead, error) {
	if w.err != nil {
		return w.published, w.err
	}
	for len(w.sealed) > 0 {
		if err := w.publish(&w.sealed[0]); err != nil {
			return w.published, w.fail(err)
		}
		w.published = w.sealed[0].head
		aside := w.sealed[0].aside
		w.sealed = w.sealed[1:]
		if err := w.config.FS.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return w.published, w.fail(fmt.Errorf("archive: remove %s: %w", aside, err))
		}
	}
	return w.published, nil
}

func (w *Writer) publish(s *sealedFile) error {
	if err := w.dirs.ensure(path.Dir(s.final)); err != nil {
		return fmt.Errorf("archive: publish %s: %w", s.final, err)
	}
	err := w.config.FS.Link(s.aside, s.final)
	if errors.Is(err, fs.ErrExist) {
		err = w.taken(s)
	}
	if err == nil {
		err = w.config.FS.SyncDir(path.Dir(s.final))
	}
	var lost *TakenError
	if err == nil || errors.As(err, &lost) {
		return err
	}
	return fmt.Errorf("archive: publish %s: %w", s.final, err)
}

// taken looks at the file that has the name: ours after all (the same bytes), or the winner's.
func (w *Writer) taken(s *sealedFile) error {
	sum, err := hashFile(w.config.FS, s.final)
	if err != nil {
		return err
	}
	if sum == s.head.SHA256 {
		return nil
	}
	f, err := readFile(w.config.FS, s.final, nil)
	if err != nil {
		return err
	}
	return &TakenError{Name: s.final, First: f.First, Next: f.Next}
}

// Abort throws away what is not published. The writer cannot be used after it.
func (w *Writer) Abort() error {
	if w.err != nil {
		return nil
	}
	w.err = errors.New("archive: the writer was aborted")
	return w.clean()
}

// fail makes err the writer's last word and clears its files away as far as the disk allows.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
		_ = w.clean() // what stays is harmless: never named .parquet, and swept by Resume
	}
	return w.err
}

func (w *Writer) clean() error {
	var errs []error
	if w.open.file != nil {
		errs = append(errs, w.open.file.Close(), w.config.FS.Remove(w.open.aside))
	}
	for _, s := range w.sealed {
		errs = append(errs, w.config.FS.Remove(s.aside))
	}
	w.open, w.sealed = openFile{}, nil
	return errors.Join(errs...)
}

func containsNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}
