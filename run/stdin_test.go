//go:build unix

package run

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// pipedLife begins a process that reads standard input.
func pipedLife(t *testing.T, s *site) (in *os.File, end func(signal os.Signal)) {
	t.Helper()
	for name, text := range map[string]string{"gatewaymeter.yaml": s.Files["meter.yaml"], "rates.yaml": s.Files["rates.yaml"]} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := life{Dir: s.dir, Log: "-", CommitEvery: 5 * time.Millisecond, Ready: filepath.Join(tempDir(t), "ready"), stdin: r}
	cmd, said := l.start(t)
	_ = r.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(l.Ready); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not begin: %s", said)
		}
	}
	return w, func(signal os.Signal) {
		t.Helper()
		if signal == nil {
			_ = w.Close()
		} else {
			_ = cmd.Process.Signal(signal)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		_ = w.Close()
	}
}

// TestStdin: standard input is counted as it comes, SIGTERM ends the process with 0 also while nothing comes, and fed
// again from the start it goes on.
func TestStdin(t *testing.T) {
	s := newSite(t, small(t))
	_, end := pipedLife(t, s)
	time.Sleep(50 * time.Millisecond)
	end(syscall.SIGTERM) // before the first line

	in, end := pipedLife(t, s)
	feed := func(text string) {
		t.Helper()
		if _, err := in.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	feed(smallLog(0, 50))
	s.await(t, 50)
	end(syscall.SIGTERM)

	in, end = pipedLife(t, s)
	feed(smallLog(0, 30))
	time.Sleep(50 * time.Millisecond)
	end(syscall.SIGTERM) // in the middle of what it knows
	s.await(t, 50)

	in, end = pipedLife(t, s)
	feed(smallLog(0, 120))
	s.await(t, 120)
	end(nil)
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}
