package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A lockFile is held by the one process that writes. The file stays when the lock goes: removing it would let two
// processes lock two files of one name.
type lockFile struct{ file *os.File }

func takeLock(path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if taken, err := lockHandle(f); err != nil || taken {
		holder := readHolder(f)
		_ = f.Close()
		if taken {
			return nil, fmt.Errorf("%w%s: wait for it to end, or stop it", ErrLocked, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Who holds it is a help to people, no more: a failure to write it is none of the lock.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &lockFile{file: f}, nil
}

func readHolder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || convErr != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

func (l *lockFile) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close() // the lock goes with the handle
}

// remove takes the file away too, where nothing was made that it would protect.
func (l *lockFile) remove() error {
	if l == nil {
		return nil
	}
	return errors.Join(os.Remove(l.file.Name()), l.release())
}
