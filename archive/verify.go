package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// A Decode fills e with what the meter reads from r: schemas.Decoder.Decode.
type Decode func(r *meter.Record, e *meter.Event)

// VerifyOptions configures Verify.
type VerifyOptions struct {
	// Heads are those of a ledger's positions; nil without a ledger: `_meta/head` counts.
	Heads Heads
	// Decoder returns the meter with this fingerprint and a decoder for it: the one that is at hand, or one parsed
	// from Meta.Meter. An error makes the rows of such files a NoMeter fault: they stay unchecked. Partitions are checked
	// side by side: it is called from several goroutines, and every decoder it returns is used by one.
	Decoder func(fingerprint string) (*meter.Meter, Decode, error)
	// Fingerprint and Revision name a meter's and a rate card's text, so that a changed document of _meta is found.
	// nil: not checked.
	Fingerprint func(text []byte) (string, error)
	Revision    func(text []byte) (string, error)
	// MaxFaults bounds the row faults that are kept for a file; the rest is counted. At least 1.
	MaxFaults int
}

// A Report is what Verify found.
type Report struct {
	Files       int
	Rows, Bytes int64 // that were read and checked
	Faults      []Fault
	Notes       []Fault // no faults: files in the making, files behind the head
	Suppressed  int64   // row faults beyond MaxFaults
}

// Verify proves an archive, or says what is wrong with it and where: it reads every byte, hashes every file
// against the chain, decodes every record again and compares every column, and counts. The error is of the disk
// or the context; faults are in the report.
func Verify(ctx context.Context, fsys FS, o VerifyOptions) (*Report, error) {
	if o.MaxFaults < 1 || o.Decoder == nil {
		return nil, errors.New("archive: verify: MaxFaults and Decoder are required")
	}
	a, err := Open(fsys, o.Heads)
	if err != nil {
		return nil, err
	}
	v := newVerifier(ctx, &o, a)
	v.report.Faults, v.report.Notes = a.Faults, a.Notes
	if err := v.partitions(); err != nil {
		return nil, err
	}
	if err := v.meta(); err != nil {
		return nil, fmt.Errorf("archive: verify %s: %w", metaDir, err)
	}
	sortFaults(v.report.Faults)
	return v.report, nil
}

type verifier struct {
	ctx      context.Context
	o        *VerifyOptions
	archive  *Archive
	report   *Report
	decoders map[string]*decoder
}

func newVerifier(ctx context.Context, o *VerifyOptions, a *Archive) *verifier {
	return &verifier{ctx: ctx, o: o, archive: a, report: &Report{}, decoders: map[string]*decoder{}}
}

// partitions checks as many partitions at a time as there are cores, each with a report and decoders of its own.
func (v *verifier) partitions() error {
	group, ctx := errgroup.WithContext(v.ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	reports := make([]*Report, len(v.archive.Partitions))
	for i, p := range v.archive.Partitions {
		own := newVerifier(ctx, v.o, v.archive)
		reports[i] = own.report
		group.Go(func() error {
			if err := own.partition(p); err != nil {
				return fmt.Errorf("archive: verify %s: %w", p.Source, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, r := range reports {
		v.report.add(r)
	}
	return nil
}

func (r *Report) add(part *Report) {
	r.Files += part.Files
	r.Rows += part.Rows
	r.Bytes += part.Bytes
	r.Suppressed += part.Suppressed
	r.Faults = append(r.Faults, part.Faults...)
	r.Notes = append(r.Notes, part.Notes...)
}

// A decoder of one meter version.
type decoder struct {
	meter  *meter.Meter
	decode Decode
	event  meter.Event
	err    error
}

func (v *verifier) fault(f Fault) { v.report.Faults = append(v.report.Faults, f) }

// hashes compares every file with what the chain says of it. It returns the files whose bytes are not the
// published ones; of them nothing but the footer is believed, and that only as far as it goes.
func (v *verifier) hashes(p *Partition) (map[*File]bool, error) {
	changed := map[*File]bool{}
	for i := len(p.Files) - 1; i >= 0; i-- { // from the end: a changed file is no witness
		f := p.Files[i]
		if err := v.ctx.Err(); err != nil {
			return nil, err
		}
		v.report.Files++
		v.report.Bytes += f.Size
		if f.SHA256 == "" {
			continue
		}
		sum, err := f.Hash()
		if err != nil {
			return nil, err
		}
		if sum == f.SHA256 {
			continue
		}
		witness := "the head"
		if i+1 < len(p.Files) && p.Files[i+1].PrevName == f.Name {
			witness = p.Files[i+1].Name
			if changed[p.Files[i+1]] {
				witness += ", itself changed,"
			}
		}
		changed[f] = true
		fault := f.fault(Changed, f.First, "its sha256 is %s; %s says %s", sum, witness, f.SHA256)
		fault.Next = f.Next
		v.fault(fault)
	}
	return changed, nil
}

func (v *verifier) partition(p *Partition) error {
	changed, err := v.hashes(p)
	if err != nil {
		return err
	}
	reach := newReachState(p.Files)
	var prev *File
	for _, f := range p.Files {
		if prev != nil && prev.Next != f.First || prev == nil && f.PrevName != "" {
			reach.lost() // something is missing: the rows say where it goes on
		}
		if err := v.file(f, reach, changed[f]); err != nil {
			return err
		}
		prev = f
	}
	return nil
}

// A reachState is the highest reach of the partition's admitted records so far, if it is known, and what it was
// at the offsets that the files' checkpoints refer to.
type reachState struct {
	known bool
	max   int64
	marks []reachMark // by offset
	done  int         // marks that the rows have passed
}

type reachMark struct {
	offset, max int64
	known       bool
}

func newReachState(files []*File) *reachState {
	s := &reachState{known: true, max: meter.MinusInfinity}
	for _, f := range files {
		s.marks = append(s.marks, reachMark{offset: f.Checkpoint.Restart})
	}
	slices.SortFunc(s.marks, func(a, b reachMark) int { return cmp.Compare(a.offset, b.offset) })
	return s
}

// row is told of every row before its own reach counts. Where nothing is known the row's own word is taken.
func (s *reachState) row(offset, prior int64) {
	for ; s.done < len(s.marks) && s.marks[s.done].offset <= offset; s.done++ {
		m := &s.marks[s.done]
		switch {
		case s.known:
			m.max, m.known = s.max, true
		case m.offset == offset:
			m.max, m.known = prior, true
		}
	}
	if !s.known {
		s.known, s.max = true, prior
	}
}

// before is the highest reach before the restart offset of a file whose rows come next; false if it is not known.
func (s *reachState) before(restart int64) (int64, bool) {
	for _, m := range s.marks[:s.done] {
		if m.offset == restart {
			return m.max, m.known
		}
	}
	return s.max, s.known
}

// lost forgets what was known.
func (s *reachState) lost() { s.known = false }

func (v *verifier) decoder(f *File) *decoder {
	d := v.decoders[f.Fingerprint]
	if d != nil {
		return d
	}
	d = &decoder{}
	d.meter, d.decode, d.err = v.o.Decoder(f.Fingerprint)
	if d.err == nil && d.meter.EventFingerprint != f.EventFingerprint {
		d.err = errors.New("the meter's event part is not the file's")
	}
	v.decoders[f.Fingerprint] = d
	return d
}

// file checks every row of a file.
func (v *verifier) file(f *File, reach *reachState, changed bool) error {
	c := fileCheck{verifier: v, file: f, reach: reach}
	if before, ok := reach.before(f.Checkpoint.Restart); ok && before != f.Checkpoint.MaxReach {
		c.fault(Prior, f.First, "the footer says a highest reach of %s before offset %d, the rows say %s", reachText(f.Checkpoint.MaxReach), f.Checkpoint.Restart, reachText(before))
	}
	if c.decoder = v.decoder(f); c.decoder.err == nil {
		c.columns(f)
	}
	if err := c.decoder.err; err != nil {
		c.fault(NoMeter, f.First, "no decoder for meter %.16s: %v", f.Fingerprint, err)
		reach.lost()
		return nil
	}
	err := f.readRows(func(*column) bool { return true }, c.row)
	if errors.Is(err, ErrDamaged) {
		c.report(Unreadable, c.next(), "%v", err)
		reach.lost()
		err = nil
	}
	if err == nil && !changed && c.rows != f.Rows {
		c.report(Rows, f.First, "the footer says %d rows, %d are there", f.Rows, c.rows)
	}
	v.report.Rows += c.rows
	return err
}

// A fileCheck is the check of one file's rows.
type fileCheck struct {
	*verifier
	file    *File
	decoder *decoder
	reach   *reachState
	rows    int64
	last    int64
	found   int
}

func (c *fileCheck) next() int64 {
	if c.rows == 0 {
		return c.file.First
	}
	return c.last + 1
}

// report adds a fault of the file that is always kept.
func (c *fileCheck) report(kind FaultKind, offset int64, format string, args ...any) {
	c.verifier.fault(c.file.fault(kind, offset, format, args...))
}

// fault adds a fault of a row.
func (c *fileCheck) fault(kind FaultKind, offset int64, format string, args ...any) {
	if c.found++; c.found > c.o.MaxFaults {
		c.verifier.report.Suppressed++
		return
	}
	c.report(kind, offset, format, args...)
}

// columns checks that the file has the columns of its meter.
func (c *fileCheck) columns(f *File) {
	want := schemas.ArchiveColumns(c.decoder.meter)
	same := slices.EqualFunc(want, f.plan.columns, func(a schemas.Column, b column) bool { return a == b.Column })
	if !same {
		c.report(Column, f.First, "its columns are not those of its meter")
	}
}

func (c *fileCheck) row(r *Row) error {
	if c.rows%1024 == 0 && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	offset := r.Record.Offset
	if c.rows == 0 {
		c.first(r)
	}
	c.rows++
	c.last = offset
	c.decoder.decode(&r.Record, &c.decoder.event)
	e := &c.decoder.event
	for _, name := range c.file.plan.differ(r, e) {
		c.fault(Column, offset, "column %s is not what the record's bytes say", name)
	}
	c.reach.row(offset, r.PriorMaxReach)
	if r.PriorMaxReach != c.reach.max {
		c.fault(Prior, offset, "prior_max_reach is %s, the rows before say %s", reachText(r.PriorMaxReach), reachText(c.reach.max))
	}
	if e.Admitted() {
		c.reach.max = max(c.reach.max, e.Reach())
	}
	return nil
}

// first checks the file's place against its first record (hour of its log time).
func (c *fileCheck) first(r *Row) {
	if want := dirOf(c.file.Topic, c.file.Partition, r.Event.LogTime, r.Event.HasLogTime); want != path.Dir(c.file.Name) {
		c.report(Misplaced, r.Record.Offset, "its first record belongs to %s", want)
	}
}

func reachText(reach int64) string {
	if reach <= meter.MinusInfinity {
		return "null"
	}
	return fmt.Sprint(reach)
}

// meta checks the documents of _meta. Heads and marks were read by Open.
func (v *verifier) meta() error {
	m := NewMeta(v.archive.FS)
	if err := v.listed(m); err != nil {
		return err
	}
	note := func(err error) error {
		l := lister{archive: &Archive{}}
		err = l.metaFault(err)
		v.report.Faults = append(v.report.Faults, l.archive.Faults...)
		return err
	}
	uses, err := m.Prices()
	if err := note(err); err != nil {
		return err
	}
	if err := v.prices(m, uses); err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		of   func([]byte) (string, error)
	}{{"meters", v.o.Fingerprint}, {"rates", v.o.Revision}} {
		texts, err := m.texts(kind.name)
		if err := note(err); err != nil {
			return err
		}
		for _, t := range texts {
			v.text(kind.name, t, kind.of)
		}
	}
	return v.strangers(metaDir)
}

// listed holds the documents against their list; marks of drained ends were by Open. A partition with a file has a head.
func (v *verifier) listed(m *Meta) error {
	faults, notes, err := m.Check()
	if err != nil {
		return err
	}
	v.report.Notes = append(v.report.Notes, notes...)
	for _, f := range faults {
		if !isDrainedMark(f) {
			v.fault(f)
		}
	}
	for _, p := range v.archive.Partitions {
		if len(p.Files) > 0 && p.kept == nil && p.Head != nil {
			v.fault(Fault{Kind: MetaFault, Topic: p.Topic, Partition: p.Partition, File: path.Join(metaDir, "head", docBase(p.Source)+".json"),
				Detail: "it was written with the first file and is not here"})
		}
	}
	return nil
}

// prices checks that the revisions that priced something are kept.
func (v *verifier) prices(m *Meta, uses []PriceUse) error {
	for _, use := range uses {
		for _, revision := range []string{use.Card, use.List} {
			_, err := m.Rate(revision)
			if revision == "" || err == nil {
				continue
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			v.fault(Fault{Kind: MetaFault, File: path.Join(metaDir, "rates", escape(revision)+".yaml"), Detail: "it priced windows and is not here"})
		}
	}
	return nil
}

// text checks that a kept text is the one that its name promises.
func (v *verifier) text(kind string, t Text, of func([]byte) (string, error)) {
	if of == nil {
		return
	}
	if file := path.Join(metaDir, kind, escape(t.Name)+".yaml"); slices.ContainsFunc(v.report.Faults, func(f Fault) bool { return f.File == file }) {
		return // its bytes say it already
	}
	name, err := of(t.Text)
	switch {
	case err != nil:
		v.fault(Fault{Kind: MetaFault, File: path.Join(metaDir, kind, escape(t.Name)+".yaml"), Detail: err.Error()})
	case name != t.Name:
		v.fault(Fault{Kind: MetaFault, File: path.Join(metaDir, kind, escape(t.Name)+".yaml"), Detail: fmt.Sprintf("its text is that of %s: it was changed", name)})
	}
}

// metaKinds are the folders of _meta with the ending of their documents.
var metaKinds = map[string]string{"meters": ".yaml", "rates": ".yaml", "prices": ".json", "drained": ".json", "head": ".json"}

// strangers finds files of _meta that no one of ours makes.
func (v *verifier) strangers(dir string) error {
	entries, err := v.archive.FS.ReadDir(dir)
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case (name == lockName || name == listName) && !e.IsDir():
		case dir == metaDir && e.IsDir() && metaKinds[e.Name()] != "":
			if err := v.strangers(name); err != nil {
				return err
			}
		case dir != metaDir && !e.IsDir() && path.Ext(e.Name()) == metaKinds[path.Base(dir)]:
		default:
			v.fault(Fault{Kind: Foreign, File: name, Detail: "no archive makes a file of this name"})
		}
	}
	return nil
}
