//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// lockHandle takes the lock of the open file; taken says that another process has it.
func lockHandle(f *os.File) (taken bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
