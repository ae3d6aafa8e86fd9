package schemas_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle" // in tests alone: the rules' second statement, by another decoder
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// A pair decodes for one meter, strictly and naively.
type pair struct {
	meter   *meter.Meter
	decoder *schemas.Decoder
	event   meter.Event
}

const common = `
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
pricing: {rate_card: rates.yaml}
`

var meters = []string{`
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id, p.id], account: tenant_id, sku: model, time: ts, status: p.status, received: p.at, reference: [ref, request_id]}
  time_unit: UNIT
  kinds: {start: S, progress: P, complete: C, error: E, tick: T}
  latency: p.latency
  quantities:
    prompt: {path: p.prompt, on: start}
    cached: {path: p.cached, part_of: prompt, default: 0}
    audio: {path: p.audio, part_of: prompt, default: 1}
    out: {path: p.out, on: end, default: 0}
    thought: {path: p.thought, part_of: out, default: 0}
    calls: {const: 1, on: end}
  attributes: {agent: p.agent, id: p.id}
  max_ahead: 5m
  max_bytes: 2600
  min_time: 1960-01-01
assembly: {abandon_after: 5m}
` + common, `
meter: menu-taps
kind: events
event:
  format: json
  fields: {identity: none, account: tenant_id, sku: {const: tap}, time: ts, status: p.status, received: at}
  time_unit: UNIT
  quantities: {taps: {const: 1}, out: {path: p.out, default: 7}}
  latency: p.latency
  attributes: {agent: agent}
  max_ahead: 5m
` + common}

func pairs(tb testing.TB) []*pair {
	tb.Helper()
	var all []*pair
	for _, text := range meters {
		for _, unit := range []string{"ms", "s", "us", "ns", "rfc3339"} {
			m, err := meter.Parse("gatewaymeter.yaml", []byte(strings.Replace(text, "UNIT", unit, 1)))
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, &pair{meter: m, decoder: schemas.NewDecoder(m)})
		}
	}
	return all
}

// check decodes r both ways.
func (p *pair) check(t *testing.T, r *meter.Record) *meter.Event {
	t.Helper()
	want := oracle.Decode(p.meter, r)
	got := &p.event
	p.decoder.Decode(r, got)
	type facts struct {
		bucket          meter.Bucket
		reason          meter.Reason
		kind            meter.Kind
		id, ref         meter.ID
		hash            uint64
		account, sku    string
		time, logTime   int64
		hasLog, hasLate bool
		status          string
		present         uint64
		latency         int64
		offset, byteAt  int64
		partition       int32
	}
	of := func(e *meter.Event) facts {
		return facts{e.Bucket, e.Reason, e.Kind, e.ID, e.Reference, e.IDHash, e.Account, e.SKU, e.Time, e.LogTime, e.HasLogTime, e.HasLatency,
			e.Status, e.Present, e.Latency, e.Offset, e.Byte, e.Partition}
	}
	if of(got) != of(&want) {
		t.Fatalf("%s of %s, record %.1500q:\nschemas %+v\noracle  %+v", p.meter.Name, p.meter.Event.TimeUnit, r.Value, of(got), of(&want))
	}
	if want.Bucket == meter.BucketEvent && (!slices.Equal(got.Quantities, want.Quantities) || !slices.Equal(got.Attributes, want.Attributes)) {
		t.Fatalf("record %.1500q: %v %q, oracle %v %q", r.Value, got.Quantities, got.Attributes, want.Quantities, want.Attributes)
	}
	return got
}

// words are what the generator puts where a value belongs, most of them where it does not.
var words = []string{
	`null`, `true`, `false`, `""`, `"x"`, `{}`, `[]`, `[1]`, `0`, `-0`, `1`, `7`, `-1`, `5.0`, `5.5`, `1e3`, `1e-3`, `0e9`, `1e400`, `1e-400`, `1000000000000`, `1000000000001`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `18446744073709551617`, `1767225600`, `1767225600.123`, `1767225600.1234`,
	`1767225600000`, `1767225600000.0`, `1767225600123456`, `1767225600123456789`, `1767225599999`, `-86400000`, `-1500`, `-1501.0`, `7258118400000`, `7258118399`, `"2026-01-01T00:00:00Z"`,
	`"2026-01-01T00:00:00.9999Z"`, `"2025-12-31T23:59:60Z"`, `"2026-01-01T01:00:00+01:00"`, `"1969-12-31T23:59:59.9999Z"`, `"2026-01-01t00:00:00Z"`, `"2199-12-31T23:59:59.999Z"`, `"2200-01-01T00:00:00Z"`, `"ok"`, `"o\u006b"`, `"a\u0000b"`, `"\ud83d\ude00"`, `"\ud83d"`, `"S"`,
	`{"prompt":5}`, `{"a":1,"a":2}`, `"` + strings.Repeat("y", 512) + `"`, `"` + strings.Repeat("y", 513) + `"`, strings.Repeat("8", 600), strings.Repeat("8", 2500), strings.Repeat("[", 999) + strings.Repeat("]", 999), strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	"\"\xff\"", "\"é\"", `nope`, ``,
}

// object makes up a record: mostly a good one.
func object(rng *rand.Rand, unit meter.TimeUnit) string {
	good := map[string]string{
		"event_type": []string{`"S"`, `"P"`, `"C"`, `"E"`, `"T"`, `"S"`, `"C"`}[rng.IntN(7)], "request_id": `"r1"`, "tenant_id": `"acme"`, "model": `"gpt-x"`, "ref": `"R"`,
		"ts":    map[meter.TimeUnit]string{"ms": "1767225600000", "s": "1767225600.5", "us": "1767225600000000", "ns": "1767225600000000000", "rfc3339": `"2026-01-01T00:00:00Z"`}[unit],
		"agent": `"bot/1"`, "p.id": `17`, "p.status": `"ok"`, "p.latency": `12`, "p.prompt": `100`, "p.cached": `40`, "p.audio": `0`, "p.out": `9`, "p.thought": `3`, "p.agent": `"sdk"`,
	}
	good["p.at"], good["at"] = good["ts"], good["ts"]
	for range rng.IntN(3) {
		keys := []string{"event_type", "request_id", "tenant_id", "model", "ref", "ts", "agent", "p.id", "p.status", "p.latency", "p.prompt", "p.cached", "p.audio", "p.out", "p.thought", "p.agent", "p.at", "at", "x", "p.x", "p"}
		key := keys[rng.IntN(len(keys))]
		if rng.IntN(4) == 0 {
			delete(good, key)
		} else {
			good[key] = words[rng.IntN(len(words))]
		}
	}
	var outer, inner []string
	for _, key := range slices.Sorted(maps.Keys(good)) {
		value := good[key]
		name, nested := strings.CutPrefix(key, "p.")
		if rng.IntN(40) == 0 && len(name) > 0 {
			name = `\u00` + string("0123456789abcdef"[name[0]>>4]) + string("0123456789abcdef"[name[0]&15]) + name[1:]
		}
		member := `"` + name + `":` + value
		if nested {
			inner = append(inner, member)
		} else {
			outer = append(outer, member)
		}
	}
	rng.Shuffle(len(outer), func(i, j int) { outer[i], outer[j] = outer[j], outer[i] })
	if _, whole := good["p"]; !whole {
		outer = append(outer, `"p":{`+strings.Join(inner, ",")+`}`)
	}
	if rng.IntN(30) == 0 {
		outer = append(outer, outer[rng.IntN(len(outer))])
	}
	return `{` + strings.Join(outer, ",") + `}`
}

func damage(rng *rand.Rand, s string) string {
	i := rng.IntN(len(s) + 1)
	k := min(len(s), i+rng.IntN(12))
	switch rng.IntN(4) {
	case 0:
		return s[:i]
	case 1:
		return s[:i] + s[k:]
	case 2:
		return s[:i] + string([]byte{byte(rng.IntN(256))}) + s[i:]
	}
	return s[:k] + s[i:k] + s[k:]
}

// TestDecodeIsTheOracles decodes a fixed set of made-up records; FuzzDecode looks for others.
func TestDecodeIsTheOracles(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	all := pairs(t)
	seen := map[string]int{}
	for n := range 12_000 {
		p := all[rng.IntN(len(all))]
		value := object(rng, p.meter.Event.TimeUnit)
		if rng.IntN(5) == 0 {
			value = damage(rng, value)
		}
		r := meter.Record{Partition: 2, Offset: int64(n), Byte: int64(n), Value: []byte(value), Received: rng.IntN(3) == 0, Null: rng.IntN(500) == 0}
		if r.HasLogTime = rng.IntN(4) > 0; r.HasLogTime {
			r.LogTime = 1767225600000 + rng.Int64N(800_000) - 400_000
		}
		e := p.check(t, &r)
		seen[e.Bucket.String()+" "+e.Reason.String()+e.Kind.String()]++
		seen[e.Reason.String()]++
	}
	for _, reason := range meter.Reasons() {
		if seen[reason.String()] == 0 {
			t.Errorf("no record was %s", reason)
		}
	}
	for _, kind := range []string{"event start", "event progress", "event complete", "event error", "event event", "tick tick"} {
		if seen[kind] < 50 {
			t.Errorf("%d records were %s", seen[kind], kind)
		}
	}
}

func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	all := pairs(f)
	for i := range 60 {
		f.Add([]byte(object(rng, all[i%len(all)].meter.Event.TimeUnit)), i, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, value []byte, which int, received bool) {
		p := all[uint(which)%uint(len(all))]
		p.check(t, &meter.Record{Offset: 1, LogTime: 1767225600000, HasLogTime: true, Received: received, Value: value})
	})
}
