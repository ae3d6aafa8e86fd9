// Package mutants breaks rules on purpose and requires the tests to notice.
//
// A [Mutant] is a change of one place in one file, as text. A [Suite] is a table of mutants with the tests that have
// to notice them: a room's exam and properties. Nothing is written into the tree: the go command reads the changed
// file through -overlay, embedded files (SQL) too.
//
// A mutant whose text stands no longer exactly once in its file is an error: a table must not rot into one that
// proves nothing. A mutant that no test can notice, because what it changes makes no difference, carries the
// argument for that in its Equivalent; it is run as well, and must not be noticed.
//
// To add a room, write a table like those beside this file and a test that hands it to [Suite.Run].
package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Mutant is one broken rule.
type Mutant struct {
	Name string // the rule and what is wrong: "R4: timers fire one millisecond late"
	File string // from the module's root
	Old  string // stands exactly once in File
	New  string
	// Equivalent argues why no test can notice; "" for all others.
	Equivalent string
}

// A Suite is a table of mutants and the tests that judge them.
type Suite struct {
	Root    string // the module's root
	Package string // whose tests judge, from the root
	// Stages are the arguments of the package's test program, one run after the other until one notices: what is fast
	// goes first. None means one run without any.
	Stages [][]string
	// Timeout bounds one run; zero means two minutes. A mutant that makes the tests run for ever is noticed.
	Timeout time.Duration
	Mutants []Mutant
}

// ErrStale means that a mutant's text does not stand in its file exactly once.
var ErrStale = errors.New("its old text does not stand in the file exactly once; write it anew")

// Apply is the mutant's file with the change.
func (s *Suite) Apply(m *Mutant) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(s.Root, m.File))
	if err != nil {
		return nil, fmt.Errorf("mutants: %s: %w", m.Name, err)
	}
	if m.Old == m.New || bytes.Count(text, []byte(m.Old)) != 1 {
		return nil, fmt.Errorf("mutants: %s: %s: %w", m.Name, m.File, ErrStale)
	}
	return bytes.Replace(text, []byte(m.Old), []byte(m.New), 1), nil
}

// An Outcome says what became of a mutant.
type Outcome struct {
	Noticed bool
	By      string // the test that noticed, or "timeout"
	Output  string // of the tests
	Took    time.Duration
}

// Run runs the suite's tests on one mutant. An error means that nothing is known: the mutant does not apply or does
// not compile.
func (s *Suite) Run(ctx context.Context, m *Mutant) (*Outcome, error) {
	text, err := s.Apply(m)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := s.overlay(dir, m.File, text)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "mutant.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "-overlay="+overlay, "-vet=off", "-ldflags=-s -w", s.Package)
	build.Dir = s.Root
	began := time.Now()
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mutants: %s: it does not compile: %w\n%s", m.Name, err, out)
	}
	o := &Outcome{}
	for _, args := range s.stages() {
		if o.Noticed, o.Output, err = s.test(ctx, program, args); err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", m.Name, err)
		}
		if o.Noticed {
			o.By = noticedBy(o.Output)
			break
		}
	}
	o.Took = time.Since(began)
	return o, nil
}

func (s *Suite) stages() [][]string {
	if len(s.Stages) == 0 {
		return [][]string{nil}
	}
	return s.Stages
}

// overlay writes the changed file aside and tells the go command of it.
func (s *Suite) overlay(dir, file string, text []byte) (string, error) {
	real, err := filepath.Abs(filepath.Join(s.Root, file))
	if err != nil {
		return "", err
	}
	aside := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(aside, text, 0o600); err != nil {
		return "", err
	}
	table, err := json.Marshal(map[string]map[string]string{"Replace": {real: aside}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, table, 0o600)
}

// test runs a stage as go test would, in the package's folder.
func (s *Suite) test(ctx context.Context, program string, args []string) (noticed bool, output string, err error) {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = 2 * time.Minute
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.failfast", "-test.timeout=" + timeout.String()}, args...)...)
	cmd.Dir = filepath.Join(s.Root, s.Package)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case err == nil:
		return false, string(out), nil
	case !errors.As(err, &failed):
		return false, "", err
	}
	return true, string(out), nil
}

// noticedBy finds the name of the innermost test that failed.
func noticedBy(output string) string {
	by := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic: test timed out") {
			return "timeout"
		}
		if strings.HasPrefix(line, "panic:") && by == "" {
			by = "panic"
		}
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			if by == "" || strings.HasPrefix(name, by+"/") {
				by = name
			}
		}
	}
	return by
}
