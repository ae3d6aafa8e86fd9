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

// ErrChain is an archive that does not end as the head says, so that nothing can follow it.
var ErrChain = errors.New("the archive cannot be continued")

// Resume prepares a partition for its one owner to go on writing behind head (the committed one; for a partition
// without a position what NewWriter says): it sweeps what a crash left in the making, and takes over files that
// were published and whose head was not committed. The head it returns is behind those; its checkpoint is still
// that of the given head, which is as good a place for an exact restart (R8: a replay may begin earlier).
// Nothing is taken over that is not the chain's: a file behind the head that does not follow it is an error.
func Resume(fsys FS, s Source, head meter.ArchiveHead) (meter.ArchiveHead, error) {
	next, err := resume(fsys, s, head)
	if err != nil {
		return head, fmt.Errorf("archive: resume %s@%d: %w", s, head.Next, err)
	}
	return next, nil
}

func resume(fsys FS, s Source, head meter.ArchiveHead) (meter.ArchiveHead, error) {
	if err := sweep(fsys, stem(s.Topic, s.Partition)); err != nil {
		return head, err
	}
	files, err := partitionFiles(fsys, s)
	if err != nil {
		return head, err
	}
	if err := isHead(fsys, files, head); err != nil {
		return head, err
	}
	d := dirs{fs: fsys}
	committed := head.Next
	for _, p := range files {
		if p.first < committed {
			continue
		}
		if head, err = takeOver(&d, p, head); err != nil {
			return head, err
		}
	}
	return head, nil
}

// isHead checks that the head's file is there and is the one that the head means: another ledger's archive has files of
// the same names.
func isHead(fsys FS, files []placed, head meter.ArchiveHead) error {
	if head.File == "" {
		return nil
	}
	i := slices.IndexFunc(files, func(p placed) bool { return p.name == head.File })
	if i < 0 {
		return fmt.Errorf("%w: the last file, %s, is not there", ErrChain, head.File)
	}
	f, err := readFile(fsys, head.File, planCache{})
	if err != nil {
		return err
	}
	if f.Next != head.Next || f.CumulativeRows != head.Rows {
		return fmt.Errorf("%w: %s ends at offset %d with %d rows so far, not at %d with %d: it is another archive's", ErrChain, head.File, f.Next, f.CumulativeRows, head.Next, head.Rows)
	}
	if i+1 < len(files) && files[i+1].first >= head.Next {
		return nil // the file behind it says what its hash has to be
	}
	if sum, err := f.Hash(); err != nil || sum != head.SHA256 {
		return errors.Join(err, fmt.Errorf("%w: the sha256 of %s is %s, not %s: it was changed, or is another archive's", ErrChain, head.File, sum, head.SHA256))
	}
	return nil
}

// takeOver moves the head behind a published file, once the file is durable and follows the head.
func takeOver(d *dirs, p placed, head meter.ArchiveHead) (meter.ArchiveHead, error) {
	f, err := readFile(d.fs, p.name, nil)
	if err != nil {
		return head, err
	}
	if f.First != head.Next || f.PrevName != head.File || f.PrevSHA256 != head.SHA256 || f.CumulativeRows != head.Rows+f.Rows {
		return head, fmt.Errorf("%w: %s, [%d, %d) behind %q, does not follow %q, which ends at %d", ErrChain, f.Name, f.First, f.Next, f.PrevName, head.File, head.Next)
	}
	if err := d.ensure(path.Dir(f.Name)); err != nil {
		return head, err
	}
	if err := d.fs.SyncDir(path.Dir(f.Name)); err != nil { // its owner may have died before it did
		return head, err
	}
	sum, err := f.Hash()
	return meter.ArchiveHead{Next: f.Next, Checkpoint: head.Checkpoint, File: f.Name, SHA256: sum, Rows: f.CumulativeRows}, err
}

// A placed file has a name and what it says.
type placed struct {
	name string
	place
}

// partitionFiles lists the partition's files by first offset, without opening them.
func partitionFiles(fsys FS, s Source) ([]placed, error) {
	var files []placed
	dates, err := subfolders(fsys, "topic="+escapeTo(s.Topic, maxTopicDir))
	if err != nil {
		return nil, err
	}
	for _, date := range dates {
		hours, err := subfolders(fsys, date)
		if err != nil {
			return nil, err
		}
		for _, hour := range hours {
			dir := path.Join(hour, fmt.Sprintf("part=%d", s.Partition))
			entries, err := fsys.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				name := path.Join(dir, e.Name())
				if where, ok := parsePlace(name); ok {
					files = append(files, placed{name, where})
				}
			}
		}
	}
	slices.SortFunc(files, func(a, b placed) int { return cmp.Or(cmp.Compare(a.first, b.first), strings.Compare(a.name, b.name)) })
	return files, nil
}

func subfolders(fsys FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, ignore(err, fs.ErrNotExist)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, path.Join(dir, e.Name()))
		}
	}
	return folders, nil
}
