package archive

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatewaymeter/gatewaymeter/internal/filelock"
)

// FS is a folder that can hold an archive. Names are slash-separated and relative to it.
// Everything that the package does to a disk goes through it, so a test can make any step fail (see Hooked).
type FS interface {
	// Create makes a new file; fs.ErrExist if there is one.
	Create(name string) (WriteFile, error)
	Open(name string) (ReadFile, error)
	// Link gives an existing file a second name; fs.ErrExist if that name is taken.
	Link(old, name string) error
	// Rename replaces name by old.
	Rename(old, name string) error
	Remove(name string) error
	Mkdir(name string) error
	// ReadDir lists a folder by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(name string) error
	// Lock locks a file, and makes it if need be, until this process gives it back or ends. It does not wait: where
	// another process has it the error is a filelock.HeldError.
	Lock(name string) (Held, error)
}

// A WriteFile is a file in the making. Sync makes its bytes durable.
type WriteFile interface {
	io.Writer
	Sync() error
	Close() error
}

// A ReadFile is a file to read.
type ReadFile interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Dir is the FS of a folder on this machine. The folder itself need not exist before the first Mkdir of ".".
func Dir(folder string) FS { return dirFS(folder) }

type dirFS string

func (d dirFS) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d dirFS) Create(name string) (WriteFile, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func (d dirFS) Open(name string) (ReadFile, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: d.path(name), Err: errors.New("not a regular file")}, f.Close())
	}
	return &osFile{f, info.Size()}, nil
}

func (d dirFS) Link(old, name string) error   { return os.Link(d.path(old), d.path(name)) }
func (d dirFS) Rename(old, name string) error { return os.Rename(d.path(old), d.path(name)) }
func (d dirFS) Remove(name string) error      { return os.Remove(d.path(name)) }

// Mkdir of "." makes the archive's own folder, with the folders above it.
func (d dirFS) Mkdir(name string) error {
	if name != "." {
		return os.Mkdir(d.path(name), 0o755)
	}
	if info, err := os.Stat(string(d)); err == nil && info.IsDir() {
		return fs.ErrExist
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	return dirFS(filepath.Dir(filepath.Clean(string(d)))).SyncDir(".")
}

func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(d.path(name)) }

func (d dirFS) SyncDir(name string) error {
	f, err := os.Open(d.path(name))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d dirFS) Lock(name string) (Held, error) {
	l, err := filelock.Take(d.path(name))
	if err != nil {
		return nil, err
	}
	return l, nil
}

type osFile struct {
	*os.File
	size int64
}

func (f *osFile) Size() int64 { return f.size }

// An Op is one step on a disk, for a hook.
type Op struct {
	Verb  string // create, write, sync, close, link, rename, remove, mkdir, syncdir
	Name  string // of the file or folder (link and rename: the new name)
	After bool   // the step has been done
	Bytes int    // of a write
}

// Hooked is base with hook called before and after each step that changes the disk. A hook that returns an
// error before a step stops it; after a step, the step is done and its error is the hook's. A hook may also
// end the process: that is how crash tests choose their moment.
func Hooked(base FS, hook func(Op) error) FS { return &hookedFS{FS: base, hook: hook} }

type hookedFS struct {
	FS
	hook func(Op) error
}

// step runs do between the two calls of the hook.
func (h *hookedFS) step(op Op, do func() error) error {
	if err := h.hook(op); err != nil {
		return &fs.PathError{Op: op.Verb, Path: op.Name, Err: err}
	}
	if err := do(); err != nil {
		return err
	}
	op.After = true
	if err := h.hook(op); err != nil {
		return &fs.PathError{Op: op.Verb, Path: op.Name, Err: err}
	}
	return nil
}

func (h *hookedFS) Create(name string) (WriteFile, error) {
	var f WriteFile
	err := h.step(Op{Verb: "create", Name: name}, func() (err error) {
		f, err = h.FS.Create(name)
		return err
	})
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &hookedFile{h: h, f: f, name: name}, nil
}

func (h *hookedFS) Link(old, name string) error {
	return h.step(Op{Verb: "link", Name: name}, func() error { return h.FS.Link(old, name) })
}

func (h *hookedFS) Rename(old, name string) error {
	return h.step(Op{Verb: "rename", Name: name}, func() error { return h.FS.Rename(old, name) })
}

func (h *hookedFS) Remove(name string) error {
	return h.step(Op{Verb: "remove", Name: name}, func() error { return h.FS.Remove(name) })
}

func (h *hookedFS) Mkdir(name string) error {
	return h.step(Op{Verb: "mkdir", Name: name}, func() error { return h.FS.Mkdir(name) })
}

func (h *hookedFS) SyncDir(name string) error {
	return h.step(Op{Verb: "syncdir", Name: name}, func() error { return h.FS.SyncDir(name) })
}

type hookedFile struct {
	h    *hookedFS
	f    WriteFile
	name string
}

func (f *hookedFile) Write(p []byte) (int, error) {
	var n int
	err := f.h.step(Op{Verb: "write", Name: f.name, Bytes: len(p)}, func() (err error) {
		n, err = f.f.Write(p)
		return err
	})
	return n, err
}

func (f *hookedFile) Sync() error {
	return f.h.step(Op{Verb: "sync", Name: f.name}, f.f.Sync)
}

func (f *hookedFile) Close() error {
	return f.h.step(Op{Verb: "close", Name: f.name}, f.f.Close)
}
