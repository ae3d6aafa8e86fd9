package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// usage is what one process cost.
type usage struct {
	wall, cpu time.Duration
	peakMB    int64
	out       []byte
}

func (u usage) plus(v usage) usage {
	return usage{u.wall + v.wall, u.cpu + v.cpu, max(u.peakMB, v.peakMB), v.out}
}

// callFor runs a verb to its end, or kills it after killAfter (0: never); one that ends with an error, or before it is
// killed, is an error.
func (s *size) callFor(killAfter time.Duration, args ...string) (usage, error) {
	cmd := exec.Command(s.gmctl, args...)
	cmd.Dir = s.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if s.profiles != "" && killAfter == 0 { // who is killed leaves none
		cmd.Env = append(os.Environ(), fmt.Sprintf("GMCTL_CPUPROFILE=%s/%s-%d.prof", s.profiles, filepath.Base(s.dir), time.Now().UnixNano()))
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	if killAfter > 0 {
		defer time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() }).Stop() // it may have ended by itself
	}
	err := cmd.Wait()
	ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return usage{}, fmt.Errorf("this system does not say what a process used")
	}
	u := usage{time.Since(begun), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), ru.Maxrss >> 10, out.Bytes()}
	switch killed := cmd.ProcessState.ExitCode() == -1; {
	case killAfter > 0 && !killed:
		return u, fmt.Errorf("gmctl %s: it ended before it was killed: %v", strings.Join(args, " "), err)
	case killAfter == 0 && err != nil:
		return u, fmt.Errorf("gmctl %s: %w\n%s%s", strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return u, nil
}

func (s *size) call(args ...string) (usage, error) { return s.callFor(0, args...) }
