package archive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

const requestsYAML = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id, hop], account: tenant_id, sku: model, time: ts, status: payload.status, reference: [trace, span]}
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
pricing: {rate_card: rates.yaml}
`

const eventsYAML = `
meter: menu-taps
kind: events
event:
  format: json
  fields: {identity: none, account: partner, sku: {const: tap}, time: phone_time, received: server_time}
  time_unit: rfc3339
  quantities: {taps: {const: 1}}
  max_ahead: 5m
watermark: {max_out_of_orderness: 5s, idleness: 1m}
window: {size: 1m, allowed_lateness: 10m}
pricing: {rate_card: rates.yaml}
`

func parseMeter(tb rapid.TB, text string) *meter.Meter {
	tb.Helper()
	m, err := meter.Parse("gatewaymeter.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// decoders is the VerifyOptions.Decoder of one meter.
func decoders(m *meter.Meter) func(string) (*meter.Meter, archive.Decode, error) {
	return func(fingerprint string) (*meter.Meter, archive.Decode, error) {
		if fingerprint != m.Fingerprint {
			return nil, nil, fmt.Errorf("no meter %s", fingerprint)
		}
		return m, schemas.NewDecoder(m).Decode, nil
	}
}

// t0 is 2026-01-01T00:59:50Z: logs that begin there cross into another hour.
const t0 = 1767229190000

// gatewayLog is a seeded log of the requests meter: every kind and every bucket, offsets with holes, a log time
// that is now and then missing.
func gatewayLog(seed uint64, partition int32, n int) []meter.Record {
	rng := rand.New(rand.NewPCG(seed, 7))
	log := make([]meter.Record, 0, n)
	offset := int64(rng.IntN(3))
	for i := range n {
		now := t0 + int64(i)*40
		r := meter.Record{Partition: partition, Offset: offset}
		if rng.IntN(20) > 0 {
			r.LogTime, r.HasLogTime = now+int64(rng.IntN(1000)), true
		}
		r.Value, r.Null = gatewayValue(rng, i, now)
		log = append(log, r)
		offset += 1 + int64(rng.IntN(8)/7*5)
	}
	return log
}

func gatewayValue(rng *rand.Rand, i int, now int64) (value []byte, null bool) {
	id := fmt.Sprintf("r-%d", i/3)
	at := now - int64(rng.IntN(20_000))
	switch rng.IntN(14) {
	case 0:
		return nil, true
	case 1:
		return []byte{}, false
	case 2:
		b := make([]byte, rng.IntN(300))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		return b, false
	case 3:
		return fmt.Appendf(nil, `{"event_type":"Other","x":%d}`, i), false
	case 4:
		return fmt.Appendf(nil, `{"event_type":"Heartbeat","ts":%d}`, at), false
	case 5:
		return fmt.Appendf(nil, `{"event_type":"TokensStreamed","request_id":%q,"hop":1,"ts":%d,"payload":{"completion_tokens":%d}}`, id, at, i), false
	case 6, 7, 8:
		return fmt.Appendf(nil, `{"event_type":"RequestCompleted","request_id":%q,"hop":1,"ts":%d,"trace":"t\u0001%d","payload":{"completion_tokens":%d,"latency_ms":%d,"status":"ok"}}`, id, at, i, i, i*3), false
	case 9:
		return fmt.Appendf(nil, `{"event_type":"ModelError","request_id":%q,"hop":1,"ts":%d,"payload":{}}`, id, at), false
	case 10:
		return fmt.Appendf(nil, `{"event_type":"RequestStarted","request_id":%q,"hop":1,"tenant_id":"ac\nme","model":"m-\u20ac","ts":%d,"payload":{"prompt_tokens":-1}}`, id, at), false
	}
	return fmt.Appendf(nil, `{"event_type":"RequestStarted","request_id":%q,"hop":1,"tenant_id":"ac\nme%d","model":"m-\u20ac","ts":%d,"trace":"t%d","span":"%s","payload":{"prompt_tokens":%d,"cached_tokens":7,"agent":"bot/%d"}}`,
		id, rng.IntN(4), at, i, strings.Repeat("s", rng.IntN(40)), i+10, rng.IntN(3)), false
}

// An archiver writes a log the way a driver does.
type archiver struct {
	tb     rapid.TB
	w      *archive.Writer
	meta   *archive.Meta
	source archive.Source
	decode archive.Decode
	event  meter.Event
	reach  int64
	next   int64
	// before holds the highest reach before each record; the restart is lag records back, as if live state began
	// there.
	before []rise
	lag    int
	heads  []meter.ArchiveHead
}

type rise struct{ offset, reach int64 }

// checkpoint is the checkpoint at next.
func (a *archiver) checkpoint() meter.Checkpoint {
	if a.lag == 0 || len(a.before) < a.lag {
		return meter.Checkpoint{Restart: a.next, MaxReach: a.reach}
	}
	at := a.before[len(a.before)-a.lag]
	return meter.Checkpoint{Restart: at.offset, Byte: at.offset * 100, MaxReach: at.reach}
}

func config(fsys archive.FS, m *meter.Meter, topic string, partition int32) archive.Config {
	c := archive.Config{FS: fsys, Meter: m, Topic: topic, TopicID: "id-1", Partition: partition, LogTime: archive.LogTimeEnvelope, Version: "test",
		RowGroupRows: archive.DefaultRowGroupRows, RowGroupBytes: archive.DefaultRowGroupBytes}
	if m.Event.Received != nil {
		c.LogTime = archive.LogTimeReceived
	}
	return c
}

func fresh() meter.ArchiveHead {
	return meter.ArchiveHead{Checkpoint: meter.Checkpoint{MaxReach: meter.MinusInfinity}}
}

func newArchiver(tb rapid.TB, c archive.Config, m *meter.Meter, head meter.ArchiveHead) *archiver {
	tb.Helper()
	w, err := archive.NewWriter(c, head)
	if err != nil {
		tb.Fatal(err)
	}
	return &archiver{tb: tb, w: w, meta: archive.NewMeta(c.FS), source: archive.Source{Topic: c.Topic, Partition: c.Partition},
		decode: schemas.NewDecoder(m).Decode, reach: meter.MinusInfinity, next: head.Next}
}

func (a *archiver) append(r *meter.Record) error {
	a.decode(r, &a.event)
	a.before = append(a.before, rise{r.Offset, a.reach})
	if err := a.w.Append(r, &a.event, a.reach); err != nil {
		return err
	}
	if a.event.Admitted() {
		a.reach = max(a.reach, a.event.Reach())
	}
	a.next = r.Offset + 1
	return nil
}

// roll seals and publishes what was appended and keeps the head.
func (a *archiver) roll() error {
	if err := a.w.Seal(a.next, a.checkpoint()); err != nil {
		return err
	}
	head, err := a.w.Publish()
	if err != nil {
		return err
	}
	a.heads = append(a.heads, head)
	return a.meta.PutHead(a.source, head)
}

// writeLog archives a log in files of so many rows.
func writeLog(tb rapid.TB, c archive.Config, m *meter.Meter, log []meter.Record, rows int) *archiver {
	tb.Helper()
	a := newArchiver(tb, c, m, fresh())
	a.lag = 1 + rows*3/2
	for i := range log {
		if err := a.append(&log[i]); err != nil {
			tb.Fatal(err)
		}
		if (i+1)%rows == 0 || i == len(log)-1 {
			if err := a.roll(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return a
}

func verify(tb rapid.TB, fsys archive.FS, m *meter.Meter, heads archive.Heads) *archive.Report {
	tb.Helper()
	report, err := archive.Verify(context.Background(), fsys, archive.VerifyOptions{Heads: heads, Decoder: decoders(m), MaxFaults: 10})
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func wantClean(tb rapid.TB, r *archive.Report) {
	tb.Helper()
	if len(r.Faults) > 0 {
		tb.Fatalf("%d faults in a good archive, the first: %s", len(r.Faults), r.Faults[0])
	}
}

func kinds(r *archive.Report) string {
	var words []string
	for _, f := range r.Faults {
		words = append(words, string(f.Kind))
	}
	return strings.Join(words, " ")
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
