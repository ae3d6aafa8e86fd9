package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
	"github.com/gatewaymeter/gatewaymeter/schemas"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// still is a clock that never comes to an end of anything: no commit by time, no roll by age.
type still struct{}

func (still) Now() time.Time                       { return time.UnixMilli(0) }
func (still) After(time.Duration) <-chan time.Time { return nil }

// quick is a clock for which every wait is over at once, and time flies.
type quick struct {
	mu  *sync.Mutex
	now *time.Time
}

func newQuick() quick { return quick{&sync.Mutex{}, new(time.Time)} }

func (q quick) Now() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	*q.now = q.now.Add(time.Second)
	return *q.now
}

func (q quick) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- q.Now()
	return c
}

// A site is a meter folder on disk with a case in it.
type site struct {
	*tracetest.Case
	dir, log string
}

func newSite(t testing.TB, c *tracetest.Case) *site {
	t.Helper()
	dir := tempDir(t)
	return &site{Case: c, dir: dir, log: c.Write(t, dir)}
}

// tempDir is in memory where the machine has such a folder: the tests of recovery write much and prove nothing about
// the disk's own promises.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "run")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *site) db() string { return filepath.Join(s.dir, "gatewaymeter.db") }

func (s *site) archive() archive.FS { return archive.Dir(filepath.Join(s.dir, "archive")) }

// config is a run of the site: ledger and archive.
func (s *site) config(fail func(string) error) *Config {
	format := trace.Trace
	if s.Values {
		format = trace.Values
	}
	c := &Config{
		Meter: s.Meter, Source: Source{Path: s.log, Format: format, Topic: s.Log.Topic}, Card: s.Card, List: s.List,
		ParseCard: func(text []byte) (*meter.RateCard, error) { return pricing.Parse(s.Meter, "kept card", text) },
		CardText:  []byte(s.Files["rates.yaml"]), ListText: []byte(s.Files["list-rates.yaml"]),
		Ledger: func(ctx context.Context) (Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: s.db(), Meter: s.Meter, Fail: fail})
		},
		Archive:     &Archive{FS: FailFS(s.archive(), fail), MaxRows: 7},
		CommitEvery: time.Second, Drain: s.Drain, Clock: still{}, Workers: 2, Fail: fail,
	}
	return c
}

// answer reads what the ledger says.
func (s *site) answer(t tb) *tracetest.Answer {
	t.Helper()
	ctx := context.Background()
	a := &tracetest.Answer{Skip: []string{tracetest.Rows, tracetest.Complete}, Bill: []meter.Row{}, Prices: []meter.Priced{}}
	r, err := sqlite.OpenReader(ctx, s.db())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a.Bill, err = r.Bill(ctx, sqlite.Range{}, 0)
	check(err)
	journal, err := r.Journal(ctx, sqlite.Range{})
	check(err)
	for i, e := range journal {
		if e.Seq != int64(i+1) {
			t.Fatalf("journal entry %d has number %d", i+1, e.Seq)
		}
		a.Journal = append(a.Journal, e.Firing)
	}
	items, err := r.Items(ctx, sqlite.ItemFilter{})
	check(err)
	for _, it := range items {
		a.Items, a.Prices = append(a.Items, it.Item), append(a.Prices, it.Priced)
	}
	check(r.DeadLetters(ctx, func(d *meter.DeadLetter) error {
		a.Dead = append(a.Dead, tracetest.DeadLetter{Partition: d.Partition, Offset: d.Offset, Reason: d.Reason})
		return nil
	}))
	positions, err := r.Positions(ctx)
	check(err)
	for i := range positions {
		a.Summary.Add(&positions[i].Summary)
	}
	return a
}

// tb is what testing.TB and rapid.T have in common.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// checkOracle compares the ledger with the oracle, and the deltas of the journal with the totals.
func (s *site) checkOracle(t tb) *tracetest.Answer {
	t.Helper()
	a := s.answer(t)
	diff, err := s.DiffOracle(a)
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Fatalf("%s", diff)
	}
	sums := map[meter.RowKey]meter.Int128{}
	for _, f := range a.Journal {
		sums[f.RowKey] = sums[f.RowKey].Add(f.DeltaPico)
	}
	for i := range a.Bill {
		if r := &a.Bill[i]; s.Drain && sums[r.RowKey] != r.Total() {
			t.Fatalf("%v: the journal's deltas sum to %s, the row to %s", r.RowKey, sums[r.RowKey], r.Total())
		}
	}
	return a
}

// checkArchive proves the archive whole: it verifies, with every column decoded anew, and holds every record of the log.
func (s *site) checkArchive() error {
	report, err := archive.Verify(context.Background(), s.archive(), archive.VerifyOptions{
		Decoder: func(string) (*meter.Meter, archive.Decode, error) {
			return s.Meter, schemas.NewDecoder(s.Meter).Decode, nil
		},
		MaxFaults: 10,
	})
	if err != nil {
		return err
	}
	if len(report.Faults) > 0 {
		return fmt.Errorf("the archive does not verify: %v", report.Faults)
	}
	a, err := archive.Open(s.archive(), nil)
	if err != nil {
		return err
	}
	if err := a.Err(); err != nil {
		return err
	}
	want := map[int32][]int64{}
	for _, step := range s.Log.Steps {
		if step.Idle == nil {
			want[step.Record.Partition] = append(want[step.Record.Partition], step.Record.Offset)
		}
	}
	for p, offsets := range want {
		part := a.Partition(archive.Source{Topic: s.Log.Topic, Partition: p})
		if part == nil {
			return fmt.Errorf("partition %d is not in the archive", p)
		}
		var got []int64
		for _, f := range part.Files {
			err := f.Records(func(rec *meter.Record) error { got = append(got, rec.Offset); return nil })
			if err != nil {
				return err
			}
		}
		if !slices.Equal(got, offsets) {
			return fmt.Errorf("partition %d: the archive holds offsets %v, the log %v", p, got, offsets)
		}
	}
	return nil
}
