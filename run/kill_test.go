//go:build unix

package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// A life is what a process of the kill tests is asked to do.
type life struct {
	Dir, Log    string
	CommitEvery time.Duration
	MaxAge      time.Duration
	MaxRows     int64
	Pace        float64
	// Point and Hit: the process kills itself at the Hit-th time (from 1) that it passes the point.
	Point string
	Hit   int64
	// Ready is a file that the process makes once it listens for SIGTERM.
	Ready string

	stdin *os.File
}

const lifeEnv = "GATEWAYMETER_TEST_LIFE"

// TestMain runs the tests, or is a process that they kill.
func TestMain(m *testing.M) {
	if text := os.Getenv(lifeEnv); text != "" {
		os.Exit(live(text))
	}
	code := m.Run()
	if bigLogDir != "" {
		_ = os.RemoveAll(bigLogDir)
	}
	os.Exit(code)
}

func live(text string) int {
	var l life
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if l.Ready != "" {
		if err := os.WriteFile(l.Ready, nil, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	c, err := l.config()
	if err == nil {
		_, err = Run(ctx, *c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

func (l *life) config() (*Config, error) {
	text, err := os.ReadFile(filepath.Join(l.Dir, "gatewaymeter.yaml"))
	if err != nil {
		return nil, err
	}
	rates, err := os.ReadFile(filepath.Join(l.Dir, "rates.yaml"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{"meter.yaml": string(text), "rates.yaml": string(rates), "log.jsonl": ""}
	site, err := tracetest.New("life", "A process that is killed.", files)
	if err != nil {
		return nil, err
	}
	return &Config{
		Meter: site.Meter, Source: Source{Path: l.Log}, Card: site.Card, CardText: rates,
		Ledger: func(ctx context.Context) (Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(l.Dir, "gatewaymeter.db"), Meter: site.Meter, Fail: l.fail()})
		},
		Archive:     &Archive{FS: FailFS(archive.Dir(filepath.Join(l.Dir, "archive")), l.fail()), MaxAge: l.MaxAge, MaxRows: l.MaxRows},
		CommitEvery: l.CommitEvery, Drain: true, Pace: l.Pace, Clock: clock{}, Workers: 2, Fail: l.fail(),
	}, nil
}

// fail kills this process at the point that the life names: no deferred call, no flush, as kill -9 does.
func (l *life) fail() func(string) error {
	if l.Point == "" {
		return nil
	}
	var hits atomic.Int64
	return func(point string) error {
		if point == l.Point && hits.Add(1) == l.Hit {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
}

// start begins a process with the life.
func (l *life) start(t *testing.T) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeEnv+"="+string(text))
	cmd.Stdin = l.stdin
	said := &strings.Builder{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said
}

// killMeter forgets soon, so that checkpoints move on within a short log.
const killMeter = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id], account: tenant_id, sku: model, time: ts, status: payload.status}
  time_unit: ms
  kinds: {start: RequestStarted, progress: TokensStreamed, complete: RequestCompleted, error: ModelError, tick: Heartbeat}
  quantities:
    prompt_tokens: {path: payload.prompt_tokens, on: start}
    cached_tokens: {path: payload.cached_tokens, part_of: prompt_tokens, default: 0}
    completion_tokens: {path: payload.completion_tokens, on: end, default: 0}
  attributes: {agent: payload.agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 2s, idleness: 1m}
window: {size: 5s, allowed_lateness: 5s}
assembly: {abandon_after: 10s}
filter: [{name: bots, attribute: agent, prefix: bot/}]
pricing: {rate_card: rates.yaml}
`

// killLog is a log of some ten thousand records with idle lines in it, over several minutes of event time.
func killLog(t *testing.T, dir string, seconds int64) string {
	t.Helper()
	g := trace.NewGen(meter.Requests)
	g.PerSecond, g.Duration, g.Partitions, g.Accounts = 60, seconds*1000, 2, 5
	g.OutOfOrder, g.Late, g.LateBy, g.BurstEvery, g.BurstFor, g.BurstDelay = 2_000, 20, 9_000, 40_000, 2_000, 5_000
	g.Abandoned, g.Broken, g.Conflict = 30, 2, 3
	path := filepath.Join(dir, "log.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	if _, err := g.Write(w); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for _, at := range []int{len(lines) / 4, len(lines) / 2} {
		lines[at] += `{"idle":[1]}` + "\n"
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newLifeDir(t *testing.T) string {
	t.Helper()
	dir := tempDir(t)
	for name, text := range map[string]string{"gatewaymeter.yaml": killMeter, "rates.yaml": gatewayRates()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// All that a ledger says but how the archive was cut into files.
type everything struct {
	Bill      []meter.Row
	Stored    []meter.StoredRow
	Journal   []sqlite.JournalEntry
	Items     []meter.PricedItem
	Letters   []meter.DeadLetter
	Prices    []meter.PriceUsed
	Positions []meter.Position
}

func readEverything(t *testing.T, dir string) everything {
	t.Helper()
	ctx := context.Background()
	r, err := sqlite.OpenReader(ctx, filepath.Join(dir, "gatewaymeter.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var e everything
	var errs [7]error
	e.Bill, errs[0] = r.Bill(ctx, sqlite.Range{}, 0)
	e.Stored, errs[1] = r.Stored(ctx, sqlite.Range{})
	e.Journal, errs[2] = r.Journal(ctx, sqlite.Range{})
	e.Items, errs[3] = r.Items(ctx, sqlite.ItemFilter{})
	errs[4] = r.DeadLetters(ctx, func(d *meter.DeadLetter) error { e.Letters = append(e.Letters, *d); return nil })
	e.Prices, errs[5] = r.PricesUsed(ctx)
	e.Positions, errs[6] = r.Positions(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for i := range e.Positions {
		p := &e.Positions[i]
		p.CommitNo = 0
		p.Archive = meter.ArchiveHead{Next: p.Archive.Next, Rows: p.Archive.Rows}
	}
	return e
}

func compareEverything(t *testing.T, got, want everything) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		name, a, b := g.Type().Field(i).Name, g.Field(i), w.Field(i)
		if a.Len() != b.Len() {
			t.Errorf("%s: %d, the undisturbed run has %d", name, a.Len(), b.Len())
		}
		for j := range min(a.Len(), b.Len()) {
			if !reflect.DeepEqual(a.Index(j).Interface(), b.Index(j).Interface()) {
				t.Errorf("%s %d:\n got %+v\nwant %+v", name, j, a.Index(j), b.Index(j))
				break
			}
		}
	}
}

// undisturbed runs the log in this process and compares it with the oracle.
func undisturbed(t *testing.T, log string) (everything, *tracetest.Case) {
	t.Helper()
	dir := newLifeDir(t)
	l := life{Dir: dir, Log: log, CommitEvery: time.Hour, MaxRows: 5_000}
	c, err := l.config()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), *c); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	k, err := tracetest.New("kills", "A log that was counted by processes that were killed.",
		map[string]string{"meter.yaml": killMeter, "rates.yaml": gatewayRates(), "log.jsonl": string(text)})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Case: k, dir: dir, log: log}
	s.checkOracle(t)
	return readEverything(t, dir), k
}

// compareEnd compares what killed processes left in the end with the undisturbed run, and proves the archive.
func compareEnd(t *testing.T, dir string, c *tracetest.Case, want everything) {
	t.Helper()
	compareEverything(t, readEverything(t, dir), want)
	if err := (&site{Case: c, dir: dir}).checkArchive(); err != nil {
		t.Error(err)
	}
}

// inside reads how far the ledger has come: the byte, and whether every position lies strictly inside of the log.
func inside(t *testing.T, dir string, size int64) (at int64, strictly bool) {
	t.Helper()
	r, err := sqlite.OpenReader(context.Background(), filepath.Join(dir, "gatewaymeter.db"))
	if errors.Is(err, sqlite.ErrMissing) {
		return 0, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	positions, err := r.Positions(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := range positions {
		p := &positions[i]
		if err := p.Summary.Check(); err != nil {
			t.Fatal(err)
		}
		if p.Drained {
			return size, false
		}
		at = p.NextByte
	}
	return at, at > 0 && at < size
}

// restart is the highest offset at which the ledger would begin to replay.
func restart(t *testing.T, dir string) (at int64) {
	t.Helper()
	for _, p := range readEverything(t, dir).Positions {
		at = max(at, p.Restart)
	}
	return at
}

// TestKill kills a real process at random moments until 30 kills have left it strictly inside of the log, then
// lets it end: everything is as if nothing had happened.
func TestKill(t *testing.T) {
	kills := 30 // cmd/gmctl has as many of the program itself, and make crash more
	if testing.Short() {
		kills = 5
	}
	dir := newLifeDir(t)
	log := killLog(t, dir, int64(kills)*8)
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	want, c := undisturbed(t, log)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d bytes", seed, info.Size())
	rng := rand.New(rand.NewPCG(seed, 0))
	counted, stuck, last := 0, 0, int64(0)
	for counted < kills || !testing.Short() && restart(t, dir) == 0 { // until a checkpoint has moved, too
		l := life{Dir: dir, Log: log, Pace: 20,
			CommitEvery: []time.Duration{2, 20, 100}[rng.IntN(3)] * time.Millisecond,
			MaxAge:      []time.Duration{100, 1000}[rng.IntN(2)] * time.Millisecond}
		cmd, said := l.start(t)
		time.Sleep(time.Duration(50+rng.IntN(350)+300*stuck) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said.Len() > 0 {
			t.Fatalf("it said before it was killed: %s", said)
		}
		at, strictly := inside(t, dir, info.Size())
		if at < last {
			t.Fatalf("the ledger went back from byte %d to %d", last, at)
		}
		if stuck++; at > last {
			stuck = 0
		}
		last = at
		if strictly {
			counted++
		}
		if at == info.Size() {
			t.Fatalf("the log ended after %d kills, restart %d: it is too short for this machine", counted, restart(t, dir))
		}
	}
	t.Logf("%d kills, the last at byte %d of %d", counted, last, info.Size())
	end := life{Dir: dir, Log: log, CommitEvery: 100 * time.Millisecond, MaxAge: time.Second}
	cmd, said := end.start(t)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	compareEnd(t, dir, c, want)
}

// TestKillAtEveryPoint lets a process kill itself before and after each write, fsync, link, removal and commit, the
// first and a later time that it comes there.
func TestKillAtEveryPoint(t *testing.T) {
	log := killLog(t, tempDir(t), 40)
	want, c := undisturbed(t, log)
	for _, verb := range []string{"mkdir", "create", "write", "sync", "close", "link", "rename", "remove", "syncdir"} {
		for _, when := range []string{"before", "after"} {
			t.Run("archive:"+when+":"+verb, func(t *testing.T) { killAt(t, c, log, "archive:"+when+":"+verb, want) })
		}
	}
	for _, point := range []string{"ledger:before:rows", "ledger:before:journal", "ledger:before:items", "ledger:before:dead_letters",
		"ledger:before:prices", "ledger:before:lost", "ledger:before:positions", "ledger:before:commit", "ledger:after:commit",
		"run:before:commit", "run:after:commit", "run:before:drained", "run:after:drained"} {
		t.Run(point, func(t *testing.T) { killAt(t, c, log, point, want) })
	}
}

func killAt(t *testing.T, c *tracetest.Case, log, point string, want everything) {
	t.Parallel()
	dir := newLifeDir(t)
	died := 0
	for _, hit := range []int64{1, 4} {
		l := life{Dir: dir, Log: log, CommitEvery: 5 * time.Millisecond, MaxRows: 600, Point: point, Hit: hit}
		cmd, said := l.start(t)
		err := cmd.Wait()
		if said.Len() > 0 {
			t.Fatalf("it said: %s", said)
		}
		if err != nil {
			died++
		}
	}
	if died == 0 {
		t.Error("nothing died at this point: the test proves nothing")
	}
	l := life{Dir: dir, Log: log, CommitEvery: 5 * time.Millisecond, MaxRows: 600}
	cmd, said := l.start(t)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	compareEnd(t, dir, c, want)
}
