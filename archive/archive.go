package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Source names a partition of a topic.
type Source struct {
	Topic     string
	Partition int32
}

// Compare orders sources by topic, then partition.
func (s Source) Compare(o Source) int {
	return cmp.Or(strings.Compare(s.Topic, o.Topic), cmp.Compare(s.Partition, o.Partition))
}

// String is topic/partition, as positions are printed; a topic that could harm a terminal is quoted.
func (s Source) String() string { return fmt.Sprintf("%s/%d", harmless(s.Topic), s.Partition) }

// Heads are the ends of chains as a ledger's positions, or `_meta/head`, state them.
type Heads map[Source]meter.ArchiveHead

// An Archive is the listing of an archive: every footer, no rows.
type Archive struct {
	FS         FS
	Partitions []*Partition // ordered by topic, partition
	// Faults are what the listing alone can see: files that cannot be read, files that are not the archive's,
	// broken chains. Notes are what is no fault: files in the making, files beyond the head.
	Faults, Notes []Fault
}

// A Partition is the part of an archive that holds one source partition.
type Partition struct {
	Source
	Files []*File // ordered by First; without faults they are one contiguous range
	// Head is the end that must be there: the given head, else that of `_meta/head`; nil without either.
	Head    *meter.ArchiveHead
	Drained bool // R13: `_meta/drained` says that its log has ended

	kept *meter.ArchiveHead // of `_meta/head`
}

// Open lists an archive. heads are those of a ledger's positions, nil without a ledger: then `_meta/head` counts.
// Faults of the archive are in the listing; an error means that the disk could not be read, or that there is no
// archive (fs.ErrNotExist).
func Open(fsys FS, heads Heads) (*Archive, error) {
	a := &Archive{FS: fsys}
	l := lister{archive: a, partitions: map[Source]*Partition{}, plans: planCache{}, unread: map[string]*Fault{}, gone: map[string]bool{}}
	if err := l.walk("."); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if err := l.meta(heads); err != nil {
		return nil, err
	}
	for _, p := range l.partitions {
		slices.SortFunc(p.Files, func(a, b *File) int {
			return cmp.Or(cmp.Compare(a.First, b.First), strings.Compare(a.Name, b.Name))
		})
		a.Partitions = append(a.Partitions, p)
	}
	slices.SortFunc(a.Partitions, func(p, q *Partition) int { return p.Compare(q.Source) })
	for _, p := range a.Partitions {
		l.chain(p)
	}
	sortFaults(a.Faults)
	sortFaults(a.Notes)
	return a, nil
}

// Partition finds a partition; nil if the archive has none such.
func (a *Archive) Partition(s Source) *Partition {
	i := slices.IndexFunc(a.Partitions, func(p *Partition) bool { return p.Source == s })
	if i < 0 {
		return nil
	}
	return a.Partitions[i]
}

// Topics lists the topics in order.
func (a *Archive) Topics() []string {
	var topics []string
	for _, p := range a.Partitions {
		if len(topics) == 0 || topics[len(topics)-1] != p.Topic {
			topics = append(topics, p.Topic)
		}
	}
	return topics
}

// Err is nil if the listing shows no fault; else an error with the first one and how many there are. A recompute
// over an archive with a gap would be wrong in silence, so it asks first.
func (a *Archive) Err() error {
	if len(a.Faults) == 0 {
		return nil
	}
	if len(a.Faults) == 1 {
		return fmt.Errorf("archive: %s", a.Faults[0])
	}
	return fmt.Errorf("archive: %d faults, the first: %s", len(a.Faults), a.Faults[0])
}

// Next is the offset behind the last file, 0 without files.
func (p *Partition) Next() int64 {
	if len(p.Files) == 0 {
		return 0
	}
	return p.Files[len(p.Files)-1].Next
}

// Rows counts the rows of the files.
func (p *Partition) Rows() int64 {
	var n int64
	for _, f := range p.Files {
		n += f.Rows
	}
	return n
}

// A lister builds an Archive.
type lister struct {
	archive    *Archive
	partitions map[Source]*Partition
	plans      planCache
	unread     map[string]*Fault // by name: there, but not readable
	gone       map[string]bool   // by name: reported as missing
}

func (l *lister) fault(f Fault) { l.archive.Faults = append(l.archive.Faults, f) }
func (l *lister) note(f Fault)  { l.archive.Notes = append(l.archive.Notes, f) }

func (l *lister) partition(s Source) *Partition {
	p := l.partitions[s]
	if p == nil {
		p = &Partition{Source: s}
		l.partitions[s] = p
	}
	return p
}

// walk goes through every folder but `_meta`.
func (l *lister) walk(dir string) error {
	entries, err := l.archive.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case name == metaDir:
		case e.IsDir():
			err = l.walk(name)
		default:
			err = l.file(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // an aside that was published, or swept, meanwhile
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) file(name string) error {
	if isTemporary(name) {
		l.note(Fault{Kind: Aside, File: name, Detail: "a file in the making, or what a crash left of one"})
		return nil
	}
	where, ok := parsePlace(name)
	if !ok {
		l.fault(Fault{Kind: Foreign, File: name, Detail: "no archive makes a file of this name"})
		return nil
	}
	f, err := readFile(l.archive.FS, name, l.plans)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		l.unread[name] = &Fault{Kind: Unreadable, File: name, Partition: where.partition, Offset: where.first, HasOffset: true, Detail: err.Error()}
		l.fault(*l.unread[name])
		return nil
	}
	p := l.partition(Source{f.Topic, f.Partition})
	p.Files = append(p.Files, f)
	if want := path.Join(where.dir(), fileName(f.Topic, f.Partition, f.First)); want != name || where.topic != escapeTo(f.Topic, maxTopicDir) || where.partition != f.Partition {
		l.fault(f.fault(Misplaced, f.First, "the file says it is %s", want))
	}
	return nil
}

// chain links the files of a partition, gives each the hash that its successor knows, and compares the end with
// the head.
func (l *lister) chain(p *Partition) {
	var prev *File
	for _, f := range p.Files {
		l.link(prev, f)
		prev = f
	}
	head := p.Head
	if head == nil {
		l.fault(Fault{Kind: NoHead, Topic: p.Topic, Partition: p.Partition, Offset: p.Next(), HasOffset: true, Detail: "neither a ledger nor _meta/head says where the archive ends: a missing tail cannot be seen"})
		return
	}
	last := l.end(p, head)
	if p.kept != nil && p.kept != head { // a ledger counts; what is kept here is a second witness
		l.end(p, p.kept)
	}
	for _, f := range p.Files[last+1:] {
		l.note(f.fault(Beyond, f.First, "published after the head was committed; the next start goes on behind it"))
	}
}

// end compares a partition with a head and gives the head's file the hash that the head knows. It returns the
// index of that file: -1 for a head before the first file, the last file's where it is missing.
func (l *lister) end(p *Partition, head *meter.ArchiveHead) int {
	if head.File == "" {
		return -1
	}
	i := slices.IndexFunc(p.Files, func(f *File) bool { return f.Name == head.File })
	if i < 0 {
		l.missing(Fault{Topic: p.Topic, Partition: p.Partition, File: head.File, Offset: p.Next(), HasOffset: true, Next: head.Next,
			Detail: fmt.Sprintf("the head ends with it: offsets [%d, %d) are not here", p.Next(), head.Next)})
		return len(p.Files) - 1
	}
	f := p.Files[i]
	if f.Next != head.Next || f.CumulativeRows != head.Rows {
		l.fault(f.fault(Chain, f.First, "the head says offset %d and %d rows, the file %d and %d", head.Next, head.Rows, f.Next, f.CumulativeRows))
	}
	if f.SHA256 != "" && f.SHA256 != head.SHA256 {
		l.fault(f.fault(Chain, f.First, "the head, the next file and _meta/head disagree about its sha256"))
	}
	f.SHA256 = cmp.Or(f.SHA256, head.SHA256)
	return i
}

// missing reports a file that is named and not there, once, unless it is there and cannot be read.
func (l *lister) missing(f Fault) {
	if l.unread[f.File] == nil && !l.gone[f.File] {
		l.gone[f.File] = true
		f.Kind = Missing
		l.fault(f)
	}
}

// link compares neighbours; prev is nil before the first file.
func (l *lister) link(prev, f *File) {
	if prev == nil {
		if f.PrevName != "" {
			before, named := parsePlace(f.PrevName)
			l.missing(Fault{Topic: f.Topic, Partition: f.Partition, File: f.PrevName, Offset: before.first, HasOffset: named, Next: f.First,
				Detail: fmt.Sprintf("%s follows it: offsets before %d are not here", f.Name, f.First)})
		}
		return
	}
	switch {
	case f.First < prev.Next:
		l.fault(f.fault(Overlap, f.First, "[%d, %d) overlaps %s, which ends at %d", f.First, f.Next, prev.Name, prev.Next))
	case f.PrevName != prev.Name && l.unread[f.PrevName] != nil:
	case f.PrevName != prev.Name && f.First > prev.Next:
		l.missing(Fault{Topic: f.Topic, Partition: f.Partition, File: f.PrevName, Offset: prev.Next, HasOffset: true, Next: f.First,
			Detail: fmt.Sprintf("%s follows it: offsets [%d, %d) are not here", f.Name, prev.Next, f.First)})
	case f.First > prev.Next:
		l.fault(f.fault(Gap, prev.Next, "offsets [%d, %d) between it and %s are not here", prev.Next, f.First, prev.Name))
	case f.PrevName != prev.Name:
		l.fault(f.fault(Chain, f.First, "it follows %q, not %s", f.PrevName, prev.Name))
	case f.CumulativeRows != prev.CumulativeRows+f.Rows:
		l.fault(f.fault(Chain, f.First, "%d rows so far after %d and its own %d", f.CumulativeRows, prev.CumulativeRows, f.Rows))
	}
	if f.PrevName == prev.Name {
		prev.SHA256 = f.PrevSHA256
	}
}

// meta reads heads and marks. A damaged document is a fault; the partition then has no head.
func (l *lister) meta(heads Heads) error {
	m := NewMeta(l.archive.FS)
	kept, err := m.Heads()
	if err := l.metaFault(err); err != nil {
		return err
	}
	for s, h := range kept {
		l.partition(s).Head, l.partition(s).kept = &h, &h
	}
	for s, h := range heads {
		l.partition(s).Head = &h
	}
	marks, err := m.Drained()
	if err := l.metaFault(err); err != nil {
		return err
	}
	for s := range marks {
		l.partition(s).Drained = true
	}
	faults, _, err := m.Check()
	for _, f := range faults {
		if isDrainedMark(f) { // a recompute would take the log for one that goes on
			l.fault(f)
		}
	}
	return err
}

func isDrainedMark(f Fault) bool { return strings.HasPrefix(f.File, path.Join(metaDir, "drained")+"/") }

// metaFault makes a fault of a damaged document, and lets trouble with the disk through.
func (l *lister) metaFault(err error) error {
	var disk *fs.PathError
	if err == nil || errors.As(err, &disk) {
		return err
	}
	l.fault(Fault{Kind: MetaFault, Detail: err.Error()})
	return nil
}
