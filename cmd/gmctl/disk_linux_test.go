package main

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestFullDisk lets the disk under archive and ledger fill up while gmctl streams: it stops with 2 and says what to do,
// nothing of what it committed is lost, and with room again it goes on as if nothing had happened.
func TestFullDisk(t *testing.T) {
	f, dir := newKillFolder(t, 60), t.TempDir()
	mount := func(flags uintptr, size string) error {
		return syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+size)
	}
	if err := mount(0, "600k"); err != nil {
		t.Skipf("no small disk can be mounted here (%v); TestRecovery in run has every write fail instead", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	small := f.again(t, dir)
	stream := []string{"-m", small.meter, "stream", "--commit-every", "5ms", "--archive-rows", "1000", "--summary", "none"}
	for range 2 { // a full disk is still full
		cmd := exec.Command("gmctl", stream...)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		_ = cmd.Run()
		text := said.String()
		if code := cmd.ProcessState.ExitCode(); code != 2 || out.Len() > 0 || !strings.Contains(text, "no space left") && !strings.Contains(text, "disk is full") {
			t.Fatalf("exit %d: %s%s", code, out.Bytes(), text)
		}
		if !strings.Contains(text, "hint: free space and run the same command again") {
			t.Errorf("it does not say what to do: %s", text)
		}
		t.Logf("%s", text)
	}
	if err := mount(syscall.MS_REMOUNT, "64m"); err != nil {
		t.Fatal(err)
	}
	small.run(t, 0, stream[2:]...)
	f.run(t, 0, "stream", "--commit-every", "1h", "--summary", "none")
	asks := [][]string{{"bill", "--format", "json"}, {"stream", "--summary", "json"}, {"query", "from journal", "--format", "json"}}
	small.compare(t, asks, f.answers(t, asks))
}
