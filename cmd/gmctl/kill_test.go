//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// How often TestKill kills, and what makes its moments random: set them to have more, or the same again.
const (
	killsEnv    = "GMCTL_KILLS"
	killSeedEnv = "GMCTL_KILL_SEED"
)

// TestTerminated: SIGTERM ends a stream that follows its log with 0, with all of its closing words, the unpriced ones too.
func TestTerminated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "g")
	if out, err := exec.Command("gmctl", "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rates := "rates:\n  - {sku: large, tier: 0, quantity: prompt_tokens, usd: \"2.50\", per: 1000000, effective_from: 2026-01-01T00:00:00Z}\n"
	if err := os.WriteFile(filepath.Join(dir, "rates.yaml"), []byte(rates), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gmctl", "-C", dir, "stream", "--follow", "--commit-every", "10ms", "--summary", "json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		bill, err := exec.Command("gmctl", "-C", dir, "bill", "--by", "account").Output()
		if err == nil && bytes.Contains(bill, []byte("rows")) {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatalf("nothing is counted: %v %s", err, bill)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, want 0", err)
	}
	if !strings.HasPrefix(out.String(), `{"read":`) {
		t.Errorf("stdout: %s", out.String())
	}
	for _, want := range []string{"stopped with everything committed", "no rate for large"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %s", want, errs.String())
		}
	}
}

// TestKill kills `gmctl stream` itself with SIGKILL, at random moments, until enough kills have left the position strictly
// inside of the log. Then it lets it end, and everything that gmctl can print of the folder is what it prints of one that
// was never disturbed; the naive engine agrees, the archive is proven, and ledger and archive agree.
func TestKill(t *testing.T) {
	kills := int(numberFrom(t, killsEnv, 25))
	if testing.Short() {
		kills = min(kills, 5)
	}
	seed := uint64(numberFrom(t, killSeedEnv, time.Now().UnixNano()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: %s=%d %s=%d go test ./cmd/gmctl -count=1 -run 'TestKill$'", killSeedEnv, seed, killsEnv, kills)
		}
	})
	f := newKillFolder(t, int64(kills)*10)
	rng := rand.New(rand.NewPCG(seed, 0))
	counted, stuck, last := 0, 0, int64(0)
	for counted < kills {
		every, roll := []string{"2ms", "20ms", "100ms"}[rng.IntN(3)], []string{"100ms", "1s"}[rng.IntN(2)]
		cmd := exec.Command("gmctl", "-m", f.meter, "stream", "--pace", "20", "--commit-every", every, "--archive-every", roll)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(60+rng.IntN(340)+300*stuck) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said.Len() > 0 {
			t.Fatalf("it said before it was killed: %s", said.Bytes())
		}
		at, strictly := f.place(t)
		switch {
		case at < last:
			t.Fatalf("the ledger went back from byte %d to %d", last, at)
		case at == f.size:
			t.Fatalf("the log ended after %d kills: it is too short for this machine", counted)
		case at > last:
			stuck = 0
		default:
			stuck++
		}
		if last = at; strictly {
			counted++
		}
	}
	t.Logf("%d kills, the last at byte %d of %d; seed %d", counted, last, f.size, seed)
	f.run(t, 0, "stream", "--archive-every", "1s", "--commit-every", "50ms", "--summary", "none")
	f.compareEnd(t)
}

// TestKillAtPoints: the points at which a test can end the run are reached in archive and ledger, too, and what a process
// leaves that ended there is right in the end.
func TestKillAtPoints(t *testing.T) {
	calm := newKillFolder(t, 20)
	calm.run(t, 0, "stream", "--commit-every", "1h", "--summary", "none")
	asks := [][]string{{"bill", "--format", "json"}, {"query", "from journal", "--format", "json"}}
	want := calm.answers(t, asks)
	for _, point := range []string{"archive:after:link@2", "ledger:before:commit@2", "ledger:after:commit@2", "run:before:drained"} {
		t.Run(point, func(t *testing.T) {
			f := newKillFolder(t, 20)
			cmd := exec.Command("gmctl", "-m", f.meter, "stream", "--commit-every", "2ms", "--archive-rows", "200", "--summary", "none")
			cmd.Env = append(os.Environ(), "GMCTL_FAILPOINT="+point)
			if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it did not die there: %v\n%s", err, out)
			}
			f.run(t, 0, "stream", "--archive-rows", "200", "--summary", "none")
			f.compare(t, asks, want)
		})
	}
}

func numberFrom(t *testing.T, env string, other int64) int64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return other
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

// A killFolder is a meter folder for processes that are killed, with a log of so many seconds.
type killFolder struct {
	dir, meter, log string
	size            int64 // of the log
}

// killMeter forgets soon, so that checkpoints move on within a short log.
const killMeter = `meter: tenant-cost
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
run: {source: log.jsonl}
`

func killRates() string {
	var b strings.Builder
	b.WriteString("rates:\n")
	for i, sku := range []string{"model-01", "model-02", "model-03"} {
		for j, q := range []string{"prompt_tokens", "cached_tokens", "completion_tokens"} {
			fmt.Fprintf(&b, "  - {sku: %s, tier: 0, quantity: %s, usd: \"0.%d%d\", per: 1000000, effective_from: 2000-01-01T00:00:00Z}\n", sku, q, i+1, j+1)
		}
	}
	return b.String()
}

func newKillFolder(t *testing.T, seconds int64) *killFolder {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gmctl") // much is written, and the disk's own promises are not at stake
	if err != nil {
		dir = t.TempDir()
	} else {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	f := &killFolder{dir: dir, meter: filepath.Join(dir, "gatewaymeter.yaml"), log: filepath.Join(dir, "log.jsonl")}
	g := trace.NewGen(meter.Requests)
	g.PerSecond, g.Duration, g.Partitions, g.Accounts = 60, seconds*1000, 2, 5
	g.OutOfOrder, g.Late, g.LateBy, g.BurstEvery, g.BurstFor, g.BurstDelay = 2_000, 20, 9_000, 40_000, 2_000, 5_000
	g.Abandoned, g.Broken, g.Conflict = 30, 2, 3
	log, err := os.Create(f.log)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(log)
	_, err = g.Write(w)
	if err := errors.Join(err, w.Flush(), log.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.log)
	if err != nil {
		t.Fatal(err)
	}
	f.size = info.Size()
	for path, text := range map[string]string{f.meter: killMeter, filepath.Join(dir, "rates.yaml"): killRates()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// run is a command line in the folder; it returns what stands on stdout.
func (f *killFolder) run(t *testing.T, want int, args ...string) string {
	t.Helper()
	cmd := exec.Command("gmctl", append([]string{"-m", f.meter}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("gmctl %s: exit %d (%v), want %d\n%s%s", strings.Join(args, " "), code, err, want, out.Bytes(), said.Bytes())
	}
	return out.String()
}

// place reads how far the ledger has come: the byte, and whether every position lies strictly inside of the log.
func (f *killFolder) place(t *testing.T) (at int64, strictly bool) {
	t.Helper()
	r, err := sqlite.OpenReader(context.Background(), filepath.Join(f.dir, "gatewaymeter.db"))
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
		if err := positions[i].Summary.Check(); err != nil {
			t.Fatal(err)
		}
		if positions[i].Drained {
			return f.size, false
		}
		at = positions[i].NextByte
	}
	return at, at > 0 && at < f.size
}

// compareEnd compares all that gmctl says of the folder with what it says of one in which the log was counted at one go.
func (f *killFolder) compareEnd(t *testing.T) {
	t.Helper()
	calm := f.again(t, t.TempDir())
	calm.run(t, 0, "stream", "--commit-every", "1h", "--summary", "none")
	asks := [][]string{{"bill", "--format", "json"}, {"stream", "--summary", "json"}}
	for _, view := range []string{"journal", "late", "conflicts", "orphans", "late_completions", "filtered", "dead_letters", "prices", "lost_ranges"} {
		asks = append(asks, []string{"query", "from " + view, "--format", "json"})
	}
	f.compare(t, asks, calm.answers(t, asks))
	bill, naive := billed(t, f.run(t, 0, "bill", "--format", "json")), billed(t, f.run(t, 0, "recompute", "--engine", "oracle", "-o", "-", "--format", "json"))
	if bill != naive || len(bill) < 1000 {
		t.Errorf("the naive engine says otherwise:\n%s", firstDifference(bill, naive))
	}
}

// again is a folder with the same log in which nothing was counted.
func (f *killFolder) again(t *testing.T, dir string) *killFolder {
	t.Helper()
	other := &killFolder{dir: dir}
	other.meter = filepath.Join(other.dir, "gatewaymeter.yaml")
	for _, name := range []string{"gatewaymeter.yaml", "rates.yaml", "log.jsonl"} {
		if err := os.Symlink(filepath.Join(f.dir, name), filepath.Join(other.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return other
}

func (f *killFolder) answers(t *testing.T, asks [][]string) (answers []string) {
	t.Helper()
	for _, ask := range asks {
		answers = append(answers, f.run(t, 0, ask...))
	}
	return answers
}

// compare asks and wants the answers; the archive is proven, and it agrees with the ledger.
func (f *killFolder) compare(t *testing.T, asks [][]string, want []string) {
	t.Helper()
	for i, got := range f.answers(t, asks) {
		if got != want[i] {
			t.Errorf("gmctl %s: it differs from an undisturbed run:\n%s", strings.Join(asks[i], " "), firstDifference(got, want[i]))
		}
	}
	f.run(t, 0, "archive", "verify")
	f.run(t, 0, "diff")
}

// billed are the rows of bill or recompute without what the two state differently: how the row came about.
func billed(t *testing.T, rows string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(rows) {
		var row struct {
			Account    string          `json:"account"`
			End        string          `json:"window_end"`
			Requests   int64           `json:"requests"`
			Quantities json.RawMessage `json:"quantities"`
			Total      string          `json:"total_usd"`
			Source     string          `json:"price_source"`
			Unpriced   int64           `json:"unpriced_requests"`
			SetHash    string          `json:"set_hash"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		fmt.Fprintf(&b, "%+v\n", row)
	}
	return b.String()
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(nothing)"
		}
		if line(g) != line(w) {
			return fmt.Sprintf("line %d of %d: %s\n  want, of %d: %s", i+1, len(g), line(g), len(w), line(w))
		}
	}
	return "nothing"
}
