package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Take(path); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("a second lock: %v, want one that names process %d", err, os.Getpid())
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Take(path)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := second.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the file of a removed lock is still there: %v", err)
	}
}

// TestLockRemoved: a lock on a file that was removed meanwhile locks nothing, and is seen.
func TestLockRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := take(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Release() }()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if same, err := l.isAt(path); same || err != nil {
		t.Errorf("after the file was removed: %v, %v", same, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if same, err := l.isAt(path); same || err != nil {
		t.Errorf("after another file took its place: %v, %v", same, err)
	}
}
