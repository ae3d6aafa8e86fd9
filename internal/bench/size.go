package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The shape of every log: 58 requests a second are 5.01 M a day, five records each.
const (
	perSecond = 58
	accounts  = 400
	models    = 30
	perRecord = 5.1 // records a request, with copies
)

// A size is the bench over one log.
type size struct {
	gmctl, dir string
	profiles   string // where every process leaves its CPU profile; "" is nowhere
	records    int64
	steps      []measured
	disk       []onDisk
}

type measured struct {
	name   string
	usage  usage
	target float64 // M records a core-second, or 0
}

type onDisk struct {
	name  string
	bytes int64
}

func (s *size) run(records int64) error {
	if err := s.makeLog(records); err != nil {
		return err
	}
	fmt.Printf("\n%d records (%d requests/s, %d accounts, one with 40 %%, %d models)\n", s.records, perSecond, accounts, models)
	for _, step := range []struct {
		name   string
		target float64
		args   []string
	}{
		{"count (decode, ledger)", 0.8, []string{"stream", "--archive", "none", "--ledger", "sqlite:count.db", "--summary", "json"}},
		{"archive only", 0.8, []string{"stream", "--ledger", "none", "--archive", "archive-only", "--summary", "json"}},
		{"stream: count, archive, ledger", 0.4, []string{"stream", "--summary", "json"}},
		{"archive verify", 0, []string{"archive", "verify"}},
		{"recompute --truth complete", 0, []string{"recompute", "--truth", "complete", "--summary", "json"}},
		{"diff, recomputing", 0, []string{"diff", "--format", "json"}},
		{"recompute", 2, []string{"recompute", "--summary", "json"}},
		{"diff, of the stored recompute", 0, []string{"diff", "--format", "json"}},
	} {
		u, err := s.call(step.args...)
		if err != nil {
			return err
		}
		s.report(step.name, u, step.target)
		if err := s.check(step.args, u.out); err != nil {
			return fmt.Errorf("%s: wrong answer: %w", step.name, err)
		}
	}
	if err := s.recover(); err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	return s.weigh("trace.jsonl", "archive", "gatewaymeter.db", "recompute")
}

// makeLog starts a project with the gateway's meter, prices every model, and makes up the log.
func (s *size) makeLog(records int64) error {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	parent := size{gmctl: s.gmctl, dir: filepath.Dir(s.dir)}
	if _, err := parent.call("init", s.dir, "--story", "gateway"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.dir, "trace.jsonl")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "rates.yaml"), rates(), 0o644); err != nil {
		return err
	}
	seconds := int64(float64(records) / perSecond / perRecord)
	u, err := s.call("trace", "gen", "--seed", "1", "--rate", fmt.Sprint(perSecond), "--duration", fmt.Sprintf("%ds", seconds),
		"--accounts", fmt.Sprint(accounts), "--models", fmt.Sprint(models), "--progress", "1000", "--progress-most", "5", "-o", "trace.jsonl")
	if err != nil {
		return err
	}
	stat, err := s.call("trace", "stat", "trace.jsonl")
	if err != nil {
		return err
	}
	var topic string
	if _, err := fmt.Sscanf(string(stat.out), "topic %s %d records", &topic, &s.records); err != nil {
		return fmt.Errorf("trace stat: %w", err)
	}
	s.steps = append(s.steps, measured{"make the log", u, 0})
	return nil
}

// rates is a card with three prices a model.
func rates() []byte {
	var b bytes.Buffer
	b.WriteString("rates:\n")
	for i := range models {
		for q, usd := range map[string]int{"prompt_tokens": 250, "cached_tokens": 25, "completion_tokens": 1000} {
			fmt.Fprintf(&b, "  - {sku: model-%02d, tier: 0, quantity: %s, usd: \"%d.%02d\", per: 1000000, effective_from: 2026-01-01T00:00:00Z}\n",
				i+1, q, (usd+i)/100, (usd+i)%100)
		}
	}
	return b.Bytes()
}

// recover kills a run halfway through the log and starts it again; its bill is that of the undisturbed run.
func (s *size) recover() error {
	args := []string{"stream", "--archive", "archive-killed", "--ledger", "sqlite:killed.db", "--summary", "json"}
	whole := s.named("stream: count, archive, ledger").usage.wall
	killed, err := s.callFor(whole/2, args...)
	if err != nil {
		return err
	}
	again, err := s.call(args...)
	if err != nil {
		return err
	}
	s.report("stream, killed halfway, restarted", killed.plus(again), 0)
	var sum struct{ Read int64 }
	if err := json.Unmarshal(again.out, &sum); err != nil {
		return err
	}
	if sum.Read != s.records {
		return fmt.Errorf("%d records were made, the summary says %s", s.records, again.out)
	}
	return s.sameBills()
}

// sameBills compares the killed run's bill with the undisturbed one's, as text, and that with the accounts made.
func (s *size) sameBills() error {
	bill := []string{"bill", "--format", "csv"}
	want, err := s.call(bill...)
	if err != nil {
		return err
	}
	byAccount, err := s.call("bill", "--by", "account", "--format", "csv")
	if err != nil {
		return err
	}
	if n := bytes.Count(byAccount.out, []byte("\n")) - 1; n != accounts {
		return fmt.Errorf("the bill has %d accounts, want %d", n, accounts)
	}
	if err := s.useLedger("killed.db"); err != nil {
		return err
	}
	got, err := s.call(bill...)
	if err != nil {
		return err
	}
	if !bytes.Equal(got.out, want.out) {
		return errors.New("the bill of the killed run differs from the undisturbed run's")
	}
	return s.useLedger("gatewaymeter.db")
}

// useLedger names another ledger in the meter file.
func (s *size) useLedger(name string) error {
	path := filepath.Join(s.dir, "gatewaymeter.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ledger:") {
			lines[i] = "  ledger: sqlite:" + name
		}
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

// check looks at a step's closing line.
func (s *size) check(args []string, out []byte) error {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	last := lines[len(lines)-1]
	switch {
	case args[0] == "diff":
		var d struct {
			Summary struct{ Matched, Mismatched, Missing, Extra, Compared int64 }
		}
		if err := json.Unmarshal(last, &d); err != nil {
			return err
		}
		if d.Summary.Compared == 0 || d.Summary.Mismatched+d.Summary.Missing+d.Summary.Extra > 0 {
			return fmt.Errorf("diff: %s", last)
		}
	case args[len(args)-1] == "json":
		var sum struct{ Read, Event, Counted int64 }
		if err := json.Unmarshal(last, &sum); err != nil {
			return err
		}
		if sum.Read != s.records || sum.Counted == 0 {
			return fmt.Errorf("%d records were made, the summary says %s", s.records, last)
		}
	}
	return nil
}

func (s *size) named(step string) *measured {
	for i := range s.steps {
		if s.steps[i].name == step {
			return &s.steps[i]
		}
	}
	return &measured{usage: usage{wall: time.Second}}
}

// weigh adds up what files and folders take.
func (s *size) weigh(names ...string) error {
	for _, name := range names {
		var sum int64
		err := filepath.WalkDir(filepath.Join(s.dir, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				sum += info.Size()
			}
			return err
		})
		if err != nil {
			return err
		}
		s.disk = append(s.disk, onDisk{name, sum})
		fmt.Printf("%-34s %8.1f MB %6.1f bytes a record\n", name+" on disk", float64(sum)/1e6, float64(sum)/float64(s.records))
	}
	return nil
}
