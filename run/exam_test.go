package run

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
)

// TestTraces: the ledger after a run sits the exam, with a commit after every third line.
func TestTraces(t *testing.T) {
	tracetest.Run(t, "../testdata/traces", func(c *tracetest.Case) (*tracetest.Answer, error) {
		s := newSite(t, c)
		lines := 0
		_, err := run(context.Background(), s.config(nil), func() bool { lines++; return lines%3 == 0 })
		if err != nil {
			return nil, err
		}
		return s.answer(t), s.checkArchive()
	})
}

// TestOracle: on adversarial logs, with commits at random lines, the ledger says what the oracle says: bill, journal,
// side outputs, dead letters and summary.
func TestOracle(t *testing.T) {
	gen.Check(t, gen.Options{}, func(r *rapid.T, c *tracetest.Case) {
		if beyondHeader(c) {
			r.Skip("a trace states its partitions") // package trace refuses such a file
		}
		s := newSite(t, c)
		every := rapid.IntRange(1, 40).Draw(r, "commit every")
		rng := rapid.Uint64().Draw(r, "commits")
		_, err := run(context.Background(), s.config(nil), chance(rng, every))
		if err != nil {
			r.Fatal(err)
		}
		s.checkOracle(r)
		if err := s.checkArchive(); err != nil {
			r.Fatal(err)
		}
	})
}

// TestOnlyArchiveOracle: without a ledger, however the file grew, the summary is the oracle's and the archive whole.
func TestOnlyArchiveOracle(t *testing.T) {
	gen.Check(t, gen.Options{}, func(r *rapid.T, c *tracetest.Case) {
		if beyondHeader(c) {
			r.Skip("a trace states its partitions")
		}
		s := newSite(t, c)
		lines := strings.SplitAfter(s.LogText(), "\n")
		cut := rapid.IntRange(0, len(lines)).Draw(r, "lines at first")
		var out Outcome
		for _, part := range [][]string{lines[:cut], lines} {
			if err := os.WriteFile(s.log, []byte(strings.Join(part, "")), 0o600); err != nil {
				r.Fatal(err)
			}
			config := s.config(nil)
			config.Ledger, config.Drain = nil, s.Drain && len(part) == len(lines)
			var err error
			if out, err = run(context.Background(), config, chance(1, 9)); err != nil {
				r.Fatal(err)
			}
		}
		want, err := tracetest.OracleAnswer(c)
		if err != nil {
			r.Fatal(err)
		}
		if out.Summary != want.Summary {
			r.Fatalf("summary %+v, the oracle's %+v", out.Summary, want.Summary)
		}
		if err := s.checkArchive(); err != nil {
			r.Fatal(err)
		}
	})
}

// chance is true about every n-th time, as the seed says.
func chance(seed uint64, n int) func() bool {
	x := seed | 1
	return func() bool {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x%uint64(n) == 0
	}
}

// beyondHeader reports whether a record is of a partition that the header does not name.
func beyondHeader(c *tracetest.Case) bool {
	for _, step := range c.Log.Steps {
		of := step.Idle
		if of == nil {
			of = []int32{step.Record.Partition}
		}
		for _, p := range of {
			if c.Log.Partitions != nil && !slices.Contains(c.Log.Partitions, p) {
				return true
			}
		}
	}
	return false
}

// TestWakesAlone: R11, with all partitions idle G stays; the one that wakes moves it, though it crosses no window's end itself.
func TestWakesAlone(t *testing.T) {
	log := header + tap(0, 0, 0) + tap(1, 0, 200) + `{"idle":[0,1]}` + "\n" + tap(1, 1, 201)
	s := newSite(t, newCase(t, log, "no-drain"))
	s.run(t, nil)
	if a := s.checkOracle(t); len(a.Journal) == 0 {
		t.Error("nothing was published")
	}
}

func tap(partition, offset, second int) string {
	at := 1767225600 + second
	return fmt.Sprintf(`{"partition":%d,"offset":%d,"log_time":%d,"value":{"id":"t%d","a":"k","t":%d}}`+"\n", partition, offset, at*1000, second, at)
}
