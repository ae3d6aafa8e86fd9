package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Gen describes a log to make up: the same Gen gives the same bytes on every machine. The values are those of the two
// starter meters: requests of an LLM gateway (event_type, request_id, tenant_id, model, ts, payload.*), or taps
// (click_id, partner, phone_time, server_time, agent). Times are ms; shares are per mille.
type Gen struct {
	Kind   meter.MeterKind // Requests or Events
	Format Format          // Trace, or Values: plain event lines of an events meter
	Topic  string          // of the header; "" for none
	Seed   uint64

	Start      int64 // event time of the first request or tap
	Duration   int64 // over which they begin; their records may come later
	PerSecond  int64 // requests or taps
	Partitions int32
	Accounts   int
	HotShare   int // of requests that are of the first account ("acme"); the rest is spread evenly
	SKUs       int

	OutOfOrder int64 // records come at most so late in ordinary times
	Late       int   // share of requests or taps of which all comes LateBy late
	LateBy     int64
	// BurstEvery so often, for BurstFor, the retry buffer holds all that begins back for BurstDelay. 0: never.
	BurstEvery, BurstFor, BurstDelay int64

	Duplicate int // share of records that come twice
	Conflict  int // share of records that come again with other numbers
	Bots      int // share of requests or taps of an agent bot/...
	Broken    int // share of records that come as a copy that is no JSON, too
	// Of requests meters only:
	Abandoned int // share of requests without an end
	Errors    int // share of requests that end with ModelError
	Progress  int // share of requests that stream progress
	// ProgressMost bounds the progress records of such a request: one to so many.
	ProgressMost int
	TickEvery    int64 // to every partition; 0: none
}

// NewGen is an ordinary minute of either kind, a little of everything in it.
func NewGen(kind meter.MeterKind) Gen {
	g := Gen{
		Kind: kind, Format: Trace, Topic: "requests", Seed: 1, Start: 1_767_225_600_000, // 2026-01-01
		Duration: 60_000, PerSecond: 20, Partitions: 3, Accounts: 6, HotShare: 400, SKUs: 4,
		OutOfOrder: 20_000, Late: 10, LateBy: 60_000, BurstEvery: 300_000, BurstFor: 10_000, BurstDelay: 30_000,
		Duplicate: 10, Conflict: 1, Bots: 20, Abandoned: 10, Errors: 20, Progress: 200, ProgressMost: 3, TickEvery: 10_000,
	}
	if kind == meter.Events {
		g.Topic, g.OutOfOrder = "taps", 5_000
		g.Abandoned, g.Errors, g.Progress, g.TickEvery = 0, 0, 0, 0
	}
	return g
}

// NewLab is the log of the rehearsal: 20 requests/s for four minutes, six tenants, 5 % of the requests 60 s late.
func NewLab() Gen {
	g := NewGen(meter.Requests)
	g.Seed, g.Duration, g.Late, g.BurstEvery = 2026, 240_000, 50, 0
	return g
}

// maxDelay bounds every delay, so that the queue stays small.
const maxDelay = 24 * 3_600_000

// Validate returns every fault at once.
func (g *Gen) Validate() error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(g.Kind == meter.Requests || g.Kind == meter.Events, "kind %q: want requests or events", g.Kind)
	want(g.Format == Trace || g.Format == Values && g.Kind == meter.Events, "format %q: want trace, or values for an events meter", g.Format)
	want(g.Topic == "" || IsTopic(g.Topic), "topic %q is no name", g.Topic)
	want(g.Start > minLogTime && g.Start < maxLogTime/2, "start %d is out of range", g.Start)
	want(g.Duration >= 0 && g.Duration <= 366*24*3_600_000, "duration %d ms: want 0 to 366 days", g.Duration)
	want(g.PerSecond >= 0 && g.PerSecond <= 1_000_000, "%d a second: want 0 to 1000000", g.PerSecond)
	want(g.Partitions >= 1 && g.Partitions <= 10_000, "%d partitions: want 1 to 10000", g.Partitions)
	want(g.Format != Values || g.Partitions == 1, "%d partitions: plain event lines have one", g.Partitions)
	want(g.Accounts >= 1 && g.Accounts <= 1_000_000, "%d accounts: want 1 to 1000000", g.Accounts)
	want(g.SKUs >= 1 && g.SKUs <= 10_000, "%d skus: want 1 to 10000", g.SKUs)
	want(g.ProgressMost >= 1 && g.ProgressMost <= 1000, "at most %d progress records: want 1 to 1000", g.ProgressMost)
	for _, s := range []struct {
		name  string
		share int
	}{{"hot", g.HotShare}, {"late", g.Late}, {"duplicate", g.Duplicate}, {"conflict", g.Conflict}, {"bots", g.Bots},
		{"broken", g.Broken}, {"abandoned", g.Abandoned}, {"errors", g.Errors}, {"progress", g.Progress}} {
		want(s.share >= 0 && s.share <= 1000, "%s: a share of %d per mille: want 0 to 1000", s.name, s.share)
	}
	for _, d := range []struct {
		name  string
		delay int64
	}{{"out of order", g.OutOfOrder}, {"late by", g.LateBy}, {"burst every", g.BurstEvery}, {"burst for", g.BurstFor},
		{"burst delay", g.BurstDelay}, {"tick every", g.TickEvery}} {
		want(d.delay >= 0 && d.delay <= maxDelay, "%s: %d ms: want 0 to a day", d.name, d.delay)
	}
	if len(faults) > 0 {
		return fmt.Errorf("trace: generate: %w", errors.Join(faults...))
	}
	return nil
}

// AccountName is the name of the i-th account of a generated log of a kind; the first is the hot one.
func AccountName(kind meter.MeterKind, i int) string {
	switch {
	case kind == meter.Events:
		return fmt.Sprintf("kitchen-%02d", i+1)
	case i == 0:
		return "acme"
	}
	return fmt.Sprintf("tenant-%03d", i)
}

// SKUName is the name of the i-th model of a generated log of requests.
func SKUName(i int) string { return fmt.Sprintf("model-%02d", i+1) }

// Write makes the log up and returns the number of its records.
func (g *Gen) Write(w io.Writer) (int64, error) {
	if err := g.Validate(); err != nil {
		return 0, err
	}
	m := newMaker(g, w)
	if err := m.run(); err != nil {
		return 0, err
	}
	return m.seq, nil
}
