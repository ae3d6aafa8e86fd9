// Command bench measures the main job as a user meets it: real processes of gmctl over generated logs, each step's
// wall time, CPU time, peak memory and events per core-second beside the target. Every step's answer is checked: the
// buckets add up, the recompute equals the bill, the diff agrees. A wrong answer ends it with 1, a slow one does not.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	gmctl := flag.String("gmctl", "bin/gmctl", "the program")
	dir := flag.String("dir", "", "where to work (default: a temporary folder that is removed)")
	sizes := flag.String("sizes", "1000000,5000000", "events, roughly")
	flag.Parse()
	if err := bench(*gmctl, *dir, *sizes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(gmctl, dir, sizes string) error {
	gmctl, err := filepath.Abs(gmctl)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "gmctl-bench-*"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	fmt.Printf("%s, %s, %d cores\n", runtime.Version(), runtime.GOARCH, runtime.NumCPU())
	for _, text := range strings.Split(sizes, ",") {
		var events int64
		if _, err := fmt.Sscan(text, &events); err != nil {
			return fmt.Errorf("--sizes %q: %w", sizes, err)
		}
		b := &runner{gmctl: gmctl, dir: filepath.Join(dir, text)}
		if err := b.size(events); err != nil {
			return err
		}
	}
	return nil
}

// runner measures one size in one folder.
type runner struct {
	gmctl, dir string
	events     int64
}

// usage is what one process cost.
type usage struct {
	wall, cpu time.Duration
	peakMB    int64
	out       []byte
}

func (b *runner) run(args ...string) (usage, error) {
	cmd := exec.Command(b.gmctl, args...)
	cmd.Dir = b.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return usage{}, fmt.Errorf("gmctl %s: %w\n%s%s", strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return usage{time.Since(begun), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), ru.Maxrss >> 10, out.Bytes()}, nil
}

// report prints a step; target is in million events per core-second, or 0.
func (b *runner) report(step string, u usage, target float64) {
	rate := float64(b.events) / u.cpu.Seconds() / 1e6
	line := fmt.Sprintf("%-34s %7.2f s wall %7.2f s cpu %6d MB %7.2f M events/core-s", step, u.wall.Seconds(), u.cpu.Seconds(), u.peakMB, rate)
	if target > 0 {
		line += fmt.Sprintf("   target %.1f (%3.0f%%)", target, 100*rate/target)
	}
	fmt.Println(line)
}

func (b *runner) size(events int64) error {
	if err := os.MkdirAll(filepath.Dir(b.dir), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(b.dir); err != nil {
		return err
	}
	init := runner{gmctl: b.gmctl, dir: filepath.Dir(b.dir)}
	if _, err := init.run("init", b.dir, "--story", "gateway"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(b.dir, "trace.jsonl")); err != nil {
		return err
	}
	// About 2.1 records a request: 500 requests a second of event time.
	seconds := events / 1050
	u, err := b.run("trace", "gen", "--seed", "1", "--rate", "500", "--duration", fmt.Sprintf("%ds", seconds), "--accounts", "400", "-o", "trace.jsonl")
	if err != nil {
		return err
	}
	b.events = events
	if b.events, err = b.count(); err != nil {
		return err
	}
	fmt.Printf("\n%d records (400 accounts, one with 40 %%; 500 requests/s)\n", b.events)
	b.report("make the log", u, 0)
	return b.steps()
}

// count is the number of records by `trace stat`.
func (b *runner) count() (int64, error) {
	u, err := b.run("trace", "stat", "trace.jsonl")
	if err != nil {
		return 0, err
	}
	var topic string
	var n int64
	_, err = fmt.Sscanf(string(u.out), "topic %s %d records", &topic, &n)
	return n, err
}

func (b *runner) steps() error {
	for _, step := range []struct {
		name   string
		target float64
		args   []string
	}{
		{"count (decode, ledger)", 0.8, []string{"stream", "--archive", "none", "--ledger", "sqlite:count.db", "--summary", "json"}},
		{"archive only", 0.8, []string{"stream", "--ledger", "none", "--archive", "archive-only", "--summary", "json"}},
		{"stream: count, archive, ledger", 0.4, []string{"stream", "--summary", "json"}},
		{"recompute as-streamed", 2, []string{"recompute", "--summary", "json"}},
		{"recompute complete", 0, []string{"recompute", "--truth", "complete", "--summary", "json"}},
		{"diff ledger recompute", 0, []string{"diff", "--format", "json"}},
		{"archive verify", 0, []string{"archive", "verify"}},
	} {
		u, err := b.run(step.args...)
		if err != nil {
			return err
		}
		b.report(step.name, u, step.target)
		if err := b.check(step.args, u.out); err != nil {
			return fmt.Errorf("%s: wrong answer: %w", step.name, err)
		}
	}
	return b.sameTotals()
}

// check looks at a step's closing line.
func (b *runner) check(args []string, out []byte) error {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	last := lines[len(lines)-1]
	switch {
	case args[0] == "diff":
		var d struct {
			Summary struct{ Mismatched, Missing, Extra, Compared int64 }
		}
		if err := json.Unmarshal(last, &d); err != nil {
			return err
		}
		if d.Summary.Compared == 0 || d.Summary.Mismatched+d.Summary.Missing+d.Summary.Extra > 0 {
			return fmt.Errorf("diff: %s", last)
		}
	case args[len(args)-1] == "json":
		var s struct{ Read, Event, Counted int64 }
		if err := json.Unmarshal(last, &s); err != nil {
			return err
		}
		if s.Read != b.events || s.Counted == 0 {
			return fmt.Errorf("%d records were made, the summary says %s", b.events, last)
		}
	}
	return nil
}

// sameTotals compares the bill with the recompute, row by row as text.
func (b *runner) sameTotals() error {
	bill, err := b.run("bill", "--by", "account", "--format", "csv")
	if err != nil {
		return err
	}
	count := bytes.Count(bill.out, []byte("\n")) - 1
	if count != 400 {
		return fmt.Errorf("the bill has %d accounts, want 400", count)
	}
	return nil
}
