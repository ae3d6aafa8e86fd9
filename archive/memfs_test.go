package archive_test

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
)

// A memFS is a disk in memory that forgets, in a crash, all that was not made durable: bytes without a sync,
// names without a sync of their folder.
type memFS struct {
	now     map[string]*inode // by path
	durable map[string]*inode
}

type inode struct {
	dir    bool
	data   []byte
	synced []byte
}

func newMemFS() *memFS {
	root := &inode{dir: true}
	return &memFS{now: map[string]*inode{".": root}, durable: map[string]*inode{".": root}}
}

// crash is the power going off and on.
func (m *memFS) crash() {
	m.now = map[string]*inode{}
	for name, n := range m.durable {
		if m.reachable(name) {
			n.data = slices.Clone(n.synced)
			m.now[name] = n
		}
	}
	m.durable = maps.Clone(m.now)
}

func (m *memFS) reachable(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if m.durable[name] == nil {
			return false
		}
	}
	return true
}

// clone is a copy to damage.
func (m *memFS) clone() *memFS {
	c := &memFS{now: map[string]*inode{}}
	for name, n := range m.now {
		c.now[name] = &inode{dir: n.dir, data: slices.Clone(n.data), synced: slices.Clone(n.synced)}
	}
	c.durable = maps.Clone(c.now)
	return c
}

// files lists the Parquet files in offset order (of one partition: the names end in the offset).
func (m *memFS) files() []string {
	var names []string
	for name := range m.now {
		if strings.HasSuffix(name, ".parquet") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	return names
}

// Lock is none: a test has one process.
func (m *memFS) Lock(string) (archive.Held, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Release() error { return nil }
func (noLock) Remove() error  { return nil }

func (m *memFS) parent(verb, name string) error {
	if p := m.now[path.Dir(name)]; p == nil || !p.dir {
		return &fs.PathError{Op: verb, Path: name, Err: fs.ErrNotExist}
	}
	return nil
}

func (m *memFS) Create(name string) (archive.WriteFile, error) {
	if err := m.parent("create", name); err != nil {
		return nil, err
	}
	if m.now[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	n := &inode{}
	m.now[name] = n
	return memWriter{n}, nil
}

type memWriter struct{ *inode }

func (w memWriter) Write(p []byte) (int, error) { w.data = append(w.data, p...); return len(p), nil }
func (w memWriter) Sync() error                 { w.synced = slices.Clone(w.data); return nil }
func (w memWriter) Close() error                { return nil }

type memReader struct{ *bytes.Reader }

func (memReader) Close() error { return nil }

func (m *memFS) Open(name string) (archive.ReadFile, error) {
	n := m.now[name]
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return memReader{bytes.NewReader(n.data)}, nil
}

func (m *memFS) Link(old, name string) error {
	switch {
	case m.now[old] == nil:
		return &fs.PathError{Op: "link", Path: old, Err: fs.ErrNotExist}
	case m.now[name] != nil:
		return &fs.PathError{Op: "link", Path: name, Err: fs.ErrExist}
	}
	if err := m.parent("link", name); err != nil {
		return err
	}
	m.now[name] = m.now[old]
	return nil
}

func (m *memFS) Rename(old, name string) error {
	if m.now[old] == nil {
		return &fs.PathError{Op: "rename", Path: old, Err: fs.ErrNotExist}
	}
	if err := m.parent("rename", name); err != nil {
		return err
	}
	m.now[name] = m.now[old]
	delete(m.now, old)
	return nil
}

func (m *memFS) Remove(name string) error {
	if m.now[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(m.now, name)
	return nil
}

func (m *memFS) Mkdir(name string) error {
	if m.now[name] != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	if err := m.parent("mkdir", name); err != nil {
		return err
	}
	m.now[name] = &inode{dir: true}
	return nil
}

func (m *memFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if n := m.now[name]; n == nil || !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var entries []fs.DirEntry
	for _, child := range slices.Sorted(maps.Keys(m.now)) {
		if child != "." && path.Dir(child) == name {
			entries = append(entries, fs.FileInfoToDirEntry(memInfo{path.Base(child), m.now[child]}))
		}
	}
	return entries, nil
}

func (m *memFS) SyncDir(name string) error {
	if n := m.now[name]; n == nil || !n.dir {
		return &fs.PathError{Op: "syncdir", Path: name, Err: fs.ErrNotExist}
	}
	for child := range m.durable {
		if child != "." && path.Dir(child) == name {
			delete(m.durable, child)
		}
	}
	for child, n := range m.now {
		if child != "." && path.Dir(child) == name {
			m.durable[child] = n
		}
	}
	return nil
}

type memInfo struct {
	name string
	*inode
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return int64(len(i.data)) }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

var _ io.ReaderAt = memReader{}
