package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/gatewaymeter/gatewaymeter/internal/filelock"
)

// lockName is the file that the one process which writes to an archive has locked. It stays when the lock goes.
var lockName = path.Join(metaDir, "lock")

// ErrLocked says that another process is writing to the archive.
var ErrLocked = errors.New("another process is writing to this archive")

// A Lock is the right to write to an archive. Two writers, even of different ledgers, would take each other's files in
// the making and hole it. Reading needs no lock.
type Lock struct {
	// Fresh says that nobody has locked the archive before: if it is none that is new, it is from before there were locks.
	Fresh bool

	fs   FS
	held Held
	made []string // folders that were made for it, the innermost last
}

// Held is a lock that is held until Release, or until the process ends.
type Held interface {
	Release() error
	// Remove is Release and takes the lock's file away.
	Remove() error
}

// TakeLock takes the archive for this process; [ErrLocked] if another has it.
func TakeLock(fsys FS) (*Lock, error) {
	l := &Lock{fs: fsys}
	for _, dir := range []string{".", metaDir} {
		if _, err := fsys.ReadDir(dir); errors.Is(err, fs.ErrNotExist) {
			l.made = append(l.made, dir)
		}
	}
	l.Fresh = !NewMeta(fsys).hasLock()
	err := (&dirs{fs: fsys}).ensure(metaDir)
	if err == nil {
		l.held, err = fsys.Lock(lockName)
	}
	var held *filelock.HeldError
	if errors.As(err, &held) {
		err = fmt.Errorf("%w%s: wait for it to end, or stop it; each ledger needs an archive of its own", ErrLocked, held.Holder())
	}
	if err != nil {
		return nil, fmt.Errorf("archive: lock: %w", err)
	}
	return l, nil
}

// Release gives the archive back. Where it is still as empty as it was found, nothing stays behind.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	if len(l.made) == 0 || !l.isAlone() {
		return l.held.Release()
	}
	err := l.held.Remove()
	for i := len(l.made) - 1; i >= 0 && err == nil; i-- {
		if err := l.fs.Remove(l.made[i]); err != nil {
			break // somebody put something there
		}
	}
	return err
}

// isAlone reports whether the lock is all that there is.
func (l *Lock) isAlone() bool {
	meta, err := l.fs.ReadDir(metaDir)
	if err != nil || len(meta) != 1 {
		return false
	}
	all, err := l.fs.ReadDir(".")
	return err == nil && len(all) == 1
}
