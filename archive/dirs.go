package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// dirs makes folders durably, each once.
type dirs struct {
	fs   FS
	made map[string]bool
}

// ensure makes the folder and those above it, and the names of all of them durable. A folder that is there
// already may be another process's, not yet durable: its name is synced all the same, once.
func (d *dirs) ensure(name string) error {
	if d.made[name] {
		return nil
	}
	if name != "." {
		if err := d.ensure(path.Dir(name)); err != nil {
			return err
		}
	}
	if err := d.fs.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if name != "." {
		if err := d.fs.SyncDir(path.Dir(name)); err != nil {
			return err
		}
	}
	if d.made == nil {
		d.made = map[string]bool{}
	}
	d.made[name] = true
	return nil
}

// createAside makes a file that no one sees yet. Two owners of one partition, which must not be, get two files.
func createAside(fsys FS, base string) (string, WriteFile, error) {
	for n := range 1000 {
		name := fmt.Sprintf("%s/%s.%d%s", asideDir, base, n, asideExt)
		f, err := fsys.Create(name)
		if !errors.Is(err, fs.ErrExist) {
			return name, f, err
		}
	}
	return "", nil, fmt.Errorf("create %s/%s: a thousand leftovers stand there", asideDir, base)
}

// sweep removes the files in the making whose names begin with prefix.
func sweep(fsys FS, prefix string) error {
	entries, err := fsys.ReadDir(asideDir)
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		name := path.Join(asideDir, e.Name())
		if !strings.HasPrefix(e.Name(), prefix) || !isTemporary(name) {
			continue
		}
		if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// writeDoc makes a small file durable under name: whole or not at all. With replace it takes the place of what
// is there; without, a file that is there already stays and the error is fs.ErrExist.
func writeDoc(d *dirs, name, aside string, data []byte, replace bool) error {
	if err := d.ensure(asideDir); err != nil {
		return err
	}
	if err := d.ensure(path.Dir(name)); err != nil {
		return err
	}
	if err := sweep(d.fs, aside+"."); err != nil {
		return err
	}
	tmp, f, err := createAside(d.fs, aside)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if replace {
			err = d.fs.Rename(tmp, name)
		} else {
			err = d.fs.Link(tmp, name)
		}
	}
	if err == nil {
		err = d.fs.SyncDir(path.Dir(name))
	}
	if !replace || err != nil {
		err = errors.Join(err, ignore(d.fs.Remove(tmp), fs.ErrNotExist))
	}
	return err
}

// readDoc reads a small file whole; one over limit bytes is an error, not an allocation.
func readDoc(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > limit {
		return nil, fmt.Errorf("read %s: %d bytes are more than such a file can have", name, f.Size())
	}
	data := make([]byte, f.Size())
	if err := readFull(f, data, 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
