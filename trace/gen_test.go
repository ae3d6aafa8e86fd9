package trace_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

const rest = `
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
pricing: {rate_card: rates.yaml}
`

const requests = `
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
assembly: {abandon_after: 5m}
` + rest

const taps = `
meter: menu-taps
kind: events
event:
  format: json
  fields: {identity: [click_id], account: partner, sku: {const: tap}, time: phone_time, received: server_time}
  time_unit: rfc3339
  quantities: {taps: {const: 1}}
  attributes: {agent: agent}
  max_ahead: 5m
` + rest

// census decodes a generated log and counts what it finds.
func census(t *testing.T, g trace.Gen, text []byte) map[string]int {
	t.Helper()
	m, err := meter.Parse("gatewaymeter.yaml", []byte(map[meter.MeterKind]string{meter.Requests: requests, meter.Events: taps}[g.Kind]))
	if err != nil {
		t.Fatal(err)
	}
	log, err := trace.ReadLogFrom(bytes.NewReader(text), "x", g.Format)
	if err != nil {
		t.Fatal(err)
	}
	d := schemas.NewDecoder(m)
	count := map[string]int{}
	home := map[meter.ID]int32{}
	first := map[string]uint64{} // payload hash by kind and id
	reach := int64(0)
	for _, s := range log.Steps {
		var e meter.Event
		d.Decode(&s.Record, &e)
		count["records"]++
		if e.Bucket != meter.BucketEvent {
			count[e.Bucket.String()+e.Reason.String()]++
			continue
		}
		count[e.Kind.String()]++
		if p, known := home[e.ID]; known && p != e.Partition {
			t.Fatalf("%q is in two partitions", e.ID)
		}
		home[e.ID] = e.Partition
		if e.Account == "acme" {
			count["acme"]++
		}
		if len(e.Attributes) > 0 && strings.HasPrefix(e.Attributes[0], "bot/") {
			count["bots"]++
		}
		if key := e.Kind.String() + string(e.ID); e.Kind != meter.KindProgress {
			if h, known := first[key]; !known {
				first[key] = e.PayloadHash
			} else if h == e.PayloadHash {
				count["duplicate"]++
			} else {
				count["conflict"]++
			}
		}
		if !e.HasLogTime || e.LogTime < reach || e.LogTime < e.Time {
			t.Fatalf("log time %d after %d, event time %d", e.LogTime, reach, e.Time)
		}
		reach = e.LogTime
		for _, late := range []int64{20_000, 30_000, 60_000} {
			if e.LogTime-e.Time >= late {
				count[fmt.Sprint("late ", late)]++
			}
		}
	}
	count["ids"] = len(home)
	return count
}

func generate(t *testing.T, g trace.Gen) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := g.Write(&b)
	if err != nil {
		t.Fatal(err)
	}
	lines := int64(bytes.Count(b.Bytes(), []byte("\n")))
	if g.Format == trace.Trace {
		lines--
	}
	if n != lines {
		t.Errorf("%d records in %d lines", n, lines)
	}
	return b.Bytes()
}

func between(t *testing.T, count map[string]int, what string, low, high int) {
	t.Helper()
	if n := count[what]; n < low || n > high {
		t.Errorf("%s: %d, want %d to %d (%v)", what, n, low, high, count)
	}
}

func TestGenRequests(t *testing.T) {
	g := trace.NewGen(meter.Requests)
	g.Duration, g.Broken = 600_000, 5
	text := generate(t, g)
	count := census(t, g, text)
	between(t, count, "ids", 12_000, 12_000) // 20/s for ten minutes
	between(t, count, "start", 12_000, 12_400)
	between(t, count, "complete", 11_300, 12_000)
	between(t, count, "error", 150, 330)
	between(t, count, "progress", 3_500, 6_500)
	between(t, count, "tick", 180, 180) // three partitions, every ten seconds
	between(t, count, "acme", 4_400, 5_300)
	between(t, count, "bots", 150, 350)
	between(t, count, "duplicate", 150, 400)
	between(t, count, "conflict", 8, 60)
	between(t, count, "dead_letterbad_json", 80, 220)
	between(t, count, "ignored", 0, 0)
	between(t, count, "late 60000", 150, 500)
	between(t, count, "late 30000", 700, 1500) // two bursts of ten seconds, too
	if !bytes.HasPrefix(text, []byte(`{"trace":1,"topic":"requests","partitions":[0,1,2],"seed":1}`+"\n")) {
		t.Errorf("header: %.200s", text)
	}
}

func TestGenEvents(t *testing.T) {
	for _, f := range []trace.Format{trace.Trace, trace.Values} {
		g := trace.NewGen(meter.Events)
		g.Format, g.Partitions, g.Duration, g.Duplicate = f, 1, 120_000, 100
		count := census(t, g, generate(t, g))
		between(t, count, "ids", 2400, 2400)
		between(t, count, "event", 2600, 2700)
		between(t, count, "duplicate", 180, 300)
		between(t, count, "conflict", 1, 10)
		between(t, count, "late 60000", 10, 60)
		if count["records"] != count["event"] {
			t.Errorf("%v", count)
		}
	}
}

// TestGenIsDeterministic: the bytes are a function of the Gen alone, on every machine; these hashes are published.
func TestGenIsDeterministic(t *testing.T) {
	for name, g := range map[string]trace.Gen{"lab": trace.NewLab(), "requests": trace.NewGen(meter.Requests), "taps": trace.NewGen(meter.Events)} {
		a, b := generate(t, g), generate(t, g)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: twice, not the same", name)
		}
		g.Seed++
		if bytes.Equal(a, generate(t, g)) {
			t.Errorf("%s: another seed, the same", name)
		}
		sum := sha256.Sum256(a)
		if got := hex.EncodeToString(sum[:]); got != golden[name] {
			t.Errorf("%s: sha256 %s, published as %s", name, got, golden[name])
		}
	}
}

func TestGenLab(t *testing.T) {
	g := trace.NewLab()
	count := census(t, g, generate(t, g))
	between(t, count, "ids", 4800, 4800)
	between(t, count, "acme", 1750, 2100)
	between(t, count, "late 60000", 350, 700)
}

func TestGenOfNothing(t *testing.T) {
	g := trace.NewGen(meter.Requests)
	g.Duration = 0
	log, err := trace.ReadLogFrom(bytes.NewReader(generate(t, g)), "x", trace.Trace)
	if err != nil || len(log.Steps) != 0 || len(log.Partitions) != 3 {
		t.Errorf("%+v %v", log, err)
	}
	g.Duration, g.PerSecond, g.TickEvery = 10_000, 0, 5_000
	if log, err := trace.ReadLogFrom(bytes.NewReader(generate(t, g)), "x", trace.Trace); err != nil || len(log.Steps) != 6 {
		t.Errorf("%+v %v", log, err)
	}
}

func TestGenValidates(t *testing.T) {
	g := trace.Gen{Kind: "x", Format: "y", Topic: "a b", Duration: -1, Late: 1001, BurstDelay: -1}
	_, err := g.Write(io.Discard)
	for _, want := range []string{"kind", "format", "topic", "duration", "partitions", "accounts", "skus", "late", "burst delay"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	for name, change := range map[string]func(*trace.Gen){
		"values of requests":   func(g *trace.Gen) { g.Format = trace.Values },
		"two partitions":       func(g *trace.Gen) { g.Kind, g.Format = meter.Events, trace.Values },
		"too many a second":    func(g *trace.Gen) { g.PerSecond = 1 << 40 },
		"longer than a year":   func(g *trace.Gen) { g.Duration = 1 << 40 },
		"a tick of minus one":  func(g *trace.Gen) { g.TickEvery = -1 },
		"late by two days":     func(g *trace.Gen) { g.LateBy = 48 * 3_600_000 },
		"no end of partitions": func(g *trace.Gen) { g.Partitions = 1 << 30 },
	} {
		g := trace.NewGen(meter.Requests)
		if change(&g); g.Validate() == nil {
			t.Errorf("%s is valid", name)
		}
	}
}

// TestGenReadsBack: what Stat counts of a generated log is what was written.
func TestGenReadsBack(t *testing.T) {
	g := trace.NewGen(meter.Requests)
	text := generate(t, g)
	r, err := trace.NewReader(bytes.NewReader(text), "x", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := trace.Count(context.Background(), r, trace.WordAt("event_type"))
	if err != nil || s.Words["RequestStarted"] < 1200 || s.Words["Heartbeat"] != 18 || len(s.Partitions) != 3 || s.Unreadable != 0 || s.First < g.Start {
		t.Errorf("%+v %v", s, err)
	}
}

var golden = map[string]string{
	"lab":      "e33ecb7622b4f1ce4a12422898bdd8f217e4cd4d79158f005e9923d96ad45fba",
	"requests": "1a685439d635a64c0e5888f78cf467ed0b4b887e3bb2b959195c26ce8da9a69d",
	"taps":     "1e2e75a3ccc0ef94599196833aa281c1792ff76186740d9815d5b12162ea7d49",
}
