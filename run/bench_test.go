//go:build unix

package run

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

const gatewayMeter = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id], account: tenant_id, sku: model, time: ts, status: payload.status}
  time_unit: ms
  kinds: {start: RequestStarted, progress: TokensStreamed, complete: RequestCompleted, error: ModelError, tick: Heartbeat}
  latency: payload.latency_ms
  quantities:
    prompt_tokens: {path: payload.prompt_tokens, on: start}
    cached_tokens: {path: payload.cached_tokens, part_of: prompt_tokens, default: 0}
    completion_tokens: {path: payload.completion_tokens, on: end, default: 0}
  attributes: {agent: payload.agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
assembly: {abandon_after: 5m}
filter: [{name: bots, attribute: agent, prefix: bot/}]
pricing: {rate_card: rates.yaml}
`

// clock is the machine's.
type clock struct{}

func (clock) Now() time.Time                         { return time.Now() }
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func gatewayConfig(tb testing.TB, dir, log string) *Config {
	tb.Helper()
	m, err := meter.Parse("gatewaymeter.yaml", []byte(gatewayMeter))
	if err != nil {
		tb.Fatal(err)
	}
	rates := gatewayRates()
	card, err := pricing.Parse(m, "rates.yaml", []byte(rates))
	if err != nil {
		tb.Fatal(err)
	}
	return &Config{
		Meter: m, Source: Source{Path: log}, Card: card, CardText: []byte(rates),
		Ledger: func(ctx context.Context) (Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "gatewaymeter.db"), Meter: m})
		},
		Archive:     &Archive{FS: archive.Dir(filepath.Join(dir, "archive")), MaxRows: 1_000_000},
		CommitEvery: time.Second, Drain: true, Clock: clock{}, Workers: 2,
	}
}

func gatewayRates() string {
	text := "rates:\n"
	for _, sku := range []string{"model-00", "model-01", "model-02", "model-03"} {
		for q, usd := range map[string]string{"prompt_tokens": "0.15", "cached_tokens": "0.07", "completion_tokens": "0.6"} {
			text += `  - {sku: ` + sku + `, tier: 0, quantity: ` + q + `, usd: "` + usd + `", per: 1000000, effective_from: 2026-01-01T00:00:00Z}` + "\n"
		}
	}
	return text
}

// bigLogDir holds the log of the benchmarks until TestMain ends.
var bigLogDir string

// bigLog is a log of about a million records: six minutes at 1,200 requests a second, made once.
var bigLog = sync.OnceValues(func() (string, error) {
	var err error
	if bigLogDir, err = os.MkdirTemp("", "gatewaymeter-bench"); err != nil {
		return "", err
	}
	path := filepath.Join(bigLogDir, "log.jsonl")
	g := trace.NewGen(meter.Requests)
	g.PerSecond, g.Duration, g.Accounts, g.Partitions = 1200, 360_000, 400, 4
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	if _, err := g.Write(w); err != nil {
		return "", err
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return path, f.Close()
})

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// adder keeps of every commit only what the journal adds up to: the count without the price of SQL.
type adder struct {
	total    meter.Int128
	requests int64
}

func (*adder) Load(context.Context) (*meter.Standing, error) { return &meter.Standing{}, nil }
func (*adder) RowsByKey(context.Context, []meter.RowKey) ([]meter.StoredRow, error) {
	return nil, nil
}
func (a *adder) Commit(_ context.Context, c *meter.Commit) error {
	for i := range c.Firings {
		a.total, a.requests = a.total.Add(c.Firings[i].DeltaPico), a.requests+c.Firings[i].Delta.Requests
	}
	return nil
}
func (*adder) Close() error { return nil }

// billOf adds up the ledger that a run wrote.
func billOf(b *testing.B, dir string) (sum adder) {
	b.Helper()
	r, err := sqlite.OpenReader(context.Background(), filepath.Join(dir, "gatewaymeter.db"))
	if err != nil {
		b.Fatal(err)
	}
	rows, err := r.Bill(context.Background(), sqlite.Range{}, 0)
	if err := errors.Join(err, r.Close()); err != nil {
		b.Fatal(err)
	}
	for i := range rows {
		sum.total, sum.requests = sum.total.Add(rows[i].Total()), sum.requests+rows[i].Usage.Requests
	}
	return sum
}

// ledgerBill is the bill of a run with a ledger.
func ledgerBill(b *testing.B, log string) adder {
	b.Helper()
	dir := b.TempDir()
	c := gatewayConfig(b, dir, log)
	c.Archive = nil
	if _, err := Run(context.Background(), *c); err != nil {
		b.Fatal(err)
	}
	return billOf(b, dir)
}

// BenchmarkRun counts, archives and writes a million events; it fails unless every record is accounted for. "count" is
// reading, decoding, deduplication, assembly, windows and publication, without a ledger behind them.
func BenchmarkRun(b *testing.B) {
	log, err := bigLog()
	if err != nil {
		b.Fatal(err)
	}
	var billed adder
	for _, part := range []string{"ledger", "count", "archive", "ledger+archive"} {
		b.Run(part, func(b *testing.B) {
			if part == "count" && billed == (adder{}) { // chosen alone
				billed = ledgerBill(b, log)
				b.ResetTimer()
			}
			var events int64
			before := cpu()
			for range b.N {
				dir, err := os.MkdirTemp("", "bench")
				if err != nil {
					b.Fatal(err)
				}
				c := gatewayConfig(b, dir, log)
				if part == "ledger" || part == "count" {
					c.Archive = nil
				}
				var sum adder
				if part == "count" {
					c.Ledger = func(context.Context) (Ledger, error) { return &sum, nil }
				}
				if part == "archive" {
					c.Ledger = nil
				}
				out, err := Run(context.Background(), *c)
				if err != nil {
					b.Fatal(err)
				}
				if err := out.Summary.Check(); err != nil || out.Records != out.Summary.Read {
					b.Fatalf("%v: %+v", err, out)
				}
				switch part {
				case "ledger": // its bill is what the count alone has to add up to
					billed = billOf(b, dir)
				case "count":
					if sum != billed {
						b.Fatalf("the journal adds up to %d requests and %s, the bill of a ledger says %d and %s",
							sum.requests, sum.total.USD(), billed.requests, billed.total.USD())
					}
				}
				events += out.Records
				_ = os.RemoveAll(dir)
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(events)/(cpu()-before).Seconds(), "events/s/core")
		})
	}
}

// BenchmarkRestart measures what lies between a start and the first new record: proving the file, loading the ledger,
// and replaying a million records in silence.
func BenchmarkRestart(b *testing.B) {
	log, err := bigLog()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := gatewayConfig(b, dir, log)
	c.Drain = false
	first, err := Run(context.Background(), *c)
	if err != nil {
		b.Fatal(err)
	}
	before := cpu()
	var replayed int64
	for b.Loop() {
		out, err := Run(context.Background(), *c)
		if err != nil {
			b.Fatal(err)
		}
		if out.Records != 0 || out.Commits != 0 || out.Summary != first.Summary || out.Replayed < first.Records/2 {
			b.Fatalf("%+v, want nothing new and a replay of most of %d records", out, first.Records)
		}
		replayed += out.Replayed
	}
	b.ReportMetric(float64(replayed)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(replayed)/(cpu()-before).Seconds(), "records/s/core")
	b.ReportMetric(float64(replayed)/float64(b.N), "replayed")
}
