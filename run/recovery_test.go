package run

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
)

// errDied is what every step of a dead process says.
var errDied = errors.New("died")

// A killer lets the n-th step fail, and every step after it: what a process leaves that dies there. Below zero it counts
// only.
type killer struct {
	mu   sync.Mutex
	left int
	seen int
	at   string // where it died
}

func (k *killer) fail(point string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	if k.left < 0 || k.seen <= k.left {
		return nil
	}
	if k.at == "" {
		k.at = point
	}
	return errDied
}

// TestRecovery dies at random steps, again and again, and starts again on the same files: ledger, journal and archive
// become those of a run that nothing disturbed.
func TestRecovery(t *testing.T) {
	var mu sync.Mutex
	died := map[string]int{}
	gen.Check(t, gen.Options{MinRecords: 20, MaxRecords: 120}, func(r *rapid.T, c *tracetestCase) {
		if beyondHeader(c) {
			r.Skip("a trace states its partitions")
		}
		s := newSite(t, c)
		every := rapid.IntRange(2, 20).Draw(r, "commit every")
		deaths := rapid.IntRange(1, 8).Draw(r, "deaths")
		for i := range deaths + 1 {
			k := &killer{left: -1}
			if i < deaths {
				k.left = rapid.IntRange(0, 60).Draw(r, "steps")
			}
			due := chance(rapid.Uint64().Draw(r, "commits"), every)
			_, err := run(context.Background(), s.config(k.fail), due)
			if err != nil && !errors.Is(err, errDied) {
				r.Fatalf("after %d deaths, the last at %s: %v", i, k.at, err)
			}
			mu.Lock()
			died[k.at]++
			mu.Unlock()
			s.checkPrefix(r)
		}
		s.checkOracle(r)
		if err := s.checkArchive(); err != nil {
			r.Fatal(err)
		}
	})
	t.Logf("died at %v", died)
}

// checkPrefix: what is committed adds up, whenever the process died.
func (s *site) checkPrefix(t tb) {
	t.Helper()
	ctx := context.Background()
	r, err := sqlite.OpenReader(ctx, s.db())
	if errors.Is(err, sqlite.ErrMissing) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	positions, err := r.Positions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range positions {
		if err := positions[i].Summary.Check(); err != nil {
			t.Fatal(err)
		}
		if p := &positions[i]; p.NextByte != positions[0].NextByte || p.Restart > p.Committed || p.Archive.Next > p.Committed {
			t.Fatalf("position %+v", p)
		}
	}
}

// TestFinished: a drained log changes nothing, and its run says so; a run that only archives too.
func TestFinished(t *testing.T) {
	gen.Check(t, gen.Options{MaxRecords: 60, MinRecords: 20}, func(r *rapid.T, c *tracetestCase) {
		if beyondHeader(c) || !c.Drain {
			r.Skip("not drained")
		}
		s := newSite(t, c)
		first, err := run(context.Background(), s.config(nil), chance(1, 5))
		if err != nil || first.Finished || !first.Drained {
			r.Fatalf("first: %+v %v", first, err)
		}
		counted := &killer{left: -1}
		again, err := run(context.Background(), s.config(counted.fail), chance(1, 5))
		if err != nil || !again.Finished || again.Commits != 0 || again.Firings != 0 || again.Records != 0 || again.Files != 0 {
			r.Fatalf("again: %+v %v", again, err)
		}
		if again.Summary != first.Summary {
			r.Fatalf("summary %+v, want %+v", again.Summary, first.Summary)
		}
		s.checkOracle(r)
	})
}

// TestNoLeaks: every goroutine that Run starts has ended when it returns, whatever it returns.
func TestNoLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	for left := -1; left < 80; left += 3 {
		s := newSite(t, small(t))
		k := &killer{left: left}
		_, err := run(context.Background(), s.config(k.fail), chance(1, 4))
		if left < 0 && err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(time.Millisecond)
	}
}
