// Package filelock lets one process at a time own something on disk: a ledger, an archive. The lock is the kernel's and
// goes with the process, however it ends.
package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A HeldError says that another process has the lock.
type HeldError struct {
	PID int // of the process; 0: it is not known
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "locked by another process"
	}
	return fmt.Sprintf("locked by process %d", e.PID)
}

// Holder is " (process 17)", or nothing where that is not known.
func (e *HeldError) Holder() string {
	if e.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", e.PID)
}

// A Lock is a locked file.
type Lock struct{ file *os.File }

// Take locks the file at path and makes it if need be. It does not wait: a lock that another process has is a
// [HeldError].
func Take(path string) (*Lock, error) {
	for {
		l, err := take(path)
		if l == nil || err != nil {
			return nil, err
		}
		// Who removed the file while this process was about to lock it left it a file that no one else will ever see.
		if same, err := l.isAt(path); same {
			return l, nil
		} else if err = errors.Join(err, l.Release()); err != nil {
			return nil, err
		}
	}
}

func take(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if taken, err := lockHandle(f); err != nil || taken {
		held := &HeldError{PID: readHolder(f)}
		_ = f.Close()
		if taken {
			return nil, held
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Who holds it is a help to people, no more: a failure to write it is none of the lock.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{file: f}, nil
}

func (l *Lock) isAt(path string) (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

func readHolder(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Release gives the lock back; its file stays.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return l.file.Close() // the lock goes with the handle
}

// Remove takes the file away too, where nothing was made that it would protect.
func (l *Lock) Remove() error {
	if l == nil {
		return nil
	}
	return errors.Join(os.Remove(l.file.Name()), l.Release())
}
