package archive_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// benchLog is events of about 200 bytes, decoded, as a driver hands them on.
func benchLog(m *meter.Meter, n int) ([]meter.Record, []meter.Event, []int64) {
	rng := rand.New(rand.NewPCG(1, 2))
	records, events, reach := make([]meter.Record, n), make([]meter.Event, n), make([]int64, n)
	d := schemas.NewDecoder(m)
	highest := meter.MinusInfinity
	for i := range records {
		now := int64(1767225600000 + i/6)
		at := now - int64(rng.IntN(20_000))
		r := meter.Record{Offset: int64(i), LogTime: now, HasLogTime: true}
		if i%2 == 0 {
			r.Value = fmt.Appendf(nil, `{"event_type":"RequestStarted","request_id":"req-%016x","hop":0,"tenant_id":"tenant-%d","model":"model-%d","ts":%d,"payload":{"prompt_tokens":%d,"cached_tokens":%d,"agent":"sdk/1.%d"}}`,
				rng.Uint64(), rng.IntN(400), rng.IntN(30), at, 100+rng.IntN(4000), rng.IntN(90), rng.IntN(9))
		} else {
			r.Value = fmt.Appendf(nil, `{"event_type":"RequestCompleted","request_id":"req-%016x","hop":0,"tenant_id":"tenant-%d","model":"model-%d","ts":%d,"payload":{"completion_tokens":%d,"latency_ms":%d,"status":"ok"}}`,
				rng.Uint64(), rng.IntN(400), rng.IntN(30), at, rng.IntN(2000), rng.IntN(9000))
		}
		records[i], reach[i] = r, highest
		d.Decode(&records[i], &events[i])
		highest = max(highest, events[i].Reach())
	}
	return records, events, reach
}

// BenchmarkWrite archives 500,000 events of about 200 bytes in one file, and checks that they are there, each
// as it was. The
// events are 20,000 in turn, as warm as a driver's: a page never holds one twice.
func BenchmarkWrite(b *testing.B) {
	const n, distinct = 500_000, 20_000
	const handedOver = 400 // as many records of one partition as a driver's block has
	var list []archive.Entry
	checked := false // row by row, once
	m := parseMeter(b, benchYAML)
	records, events, reach := benchLog(m, distinct)
	var raw int64
	for i := range records {
		raw += int64(len(records[i].Value))
	}
	var cpu time.Duration
	for range b.N {
		b.StopTimer()
		fsys := archive.Dir(b.TempDir())
		w, err := archive.NewWriter(config(fsys, m, "bench", 0), fresh())
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		begin := cpuTime()
		for i := range int64(n) {
			r, e := &records[i%distinct], &events[i%distinct]
			r.Offset, e.Offset = i, i
			list = append(list, archive.Entry{Record: r, Event: e, PriorMaxReach: reach[i%distinct]})
			if len(list) < handedOver && i < n-1 {
				continue
			}
			if err := w.AppendAll(list); err != nil {
				b.Fatal(err)
			}
			list = list[:0]
		}
		if err := w.Seal(n, meter.Checkpoint{Restart: n, MaxReach: events[0].Time}); err != nil {
			b.Fatal(err)
		}
		cpu += cpuTime() - begin
		head, err := w.Publish()
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		listing, err := archive.Open(fsys, archive.Heads{{Topic: "bench"}: head})
		if err != nil || listing.Err() != nil || listing.Partitions[0].Rows() != n {
			b.Fatal(err, listing.Err())
		}
		f := listing.Partitions[0].Files[0]
		b.ReportMetric(float64(f.Size)/n, "bytes/row")
		if checked {
			b.StartTimer()
			continue
		}
		checked = true
		next := int64(0)
		err = f.Each(func(r *archive.Row) error {
			i := next % distinct
			if r.Record.Offset != next || !bytes.Equal(r.Record.Value, records[i].Value) || r.Event.PayloadHash != events[i].PayloadHash || r.PriorMaxReach != reach[i] {
				return fmt.Errorf("row %d is not what was appended", next)
			}
			next++
			return nil
		})
		if err != nil || next != n {
			b.Fatal(next, err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*n/cpu.Seconds(), "rows/cpu-s")
	b.ReportMetric(float64(raw)/distinct, "raw-bytes/row")
}

// BenchmarkRead reads the rows of a file of 200,000 events back, whole and as records only, and counts them.
func BenchmarkRead(b *testing.B) {
	const n, distinct = 200_000, 20_000
	m := parseMeter(b, benchYAML)
	records, events, reach := benchLog(m, distinct)
	fsys := archive.Dir(b.TempDir())
	w, err := archive.NewWriter(config(fsys, m, "bench", 0), fresh())
	if err != nil {
		b.Fatal(err)
	}
	for i := range int64(n) {
		r, e := &records[i%distinct], &events[i%distinct]
		r.Offset, e.Offset = i, i
		if err := w.Append(r, e, reach[i%distinct]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Seal(n, meter.Checkpoint{Restart: n}); err != nil {
		b.Fatal(err)
	}
	head, err := w.Publish()
	if err != nil {
		b.Fatal(err)
	}
	listing, err := archive.Open(fsys, archive.Heads{{Topic: "bench"}: head})
	if err != nil {
		b.Fatal(err)
	}
	f := listing.Partitions[0].Files[0]
	for name, read := range map[string]func(count *int) error{
		"rows":    func(count *int) error { return f.Each(func(*archive.Row) error { *count++; return nil }) },
		"records": func(count *int) error { return f.Records(func(*meter.Record) error { *count++; return nil }) },
	} {
		b.Run(name, func(b *testing.B) {
			begin := cpuTime()
			for range b.N {
				count := 0
				if err := read(&count); err != nil || count != n {
					b.Fatal(count, err)
				}
			}
			b.ReportMetric(float64(b.N)*n/(cpuTime()-begin).Seconds(), "rows/cpu-s")
		})
	}
}

const benchYAML = `
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
pricing: {rate_card: rates.yaml}
`

// cpuTime is the processor time of this process so far: the machine may be shared.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPackRaw is what of BenchmarkWrite is spent on packing raw text, on this machine at this moment.
func BenchmarkPackRaw(b *testing.B) {
	const n = 100_000
	records, _, _ := benchLog(parseMeter(b, benchYAML), n)
	var text, out []byte
	var cpu time.Duration
	packed := 0
	for range b.N {
		begin := cpuTime()
		for i := range records {
			text = append(text, records[i].Value...)
			if len(text) >= 64<<10 || i == n-1 {
				out = s2.EncodeSnappy(out[:cap(out)], text)
				packed += len(out)
				text = text[:0]
			}
		}
		cpu += cpuTime() - begin
	}
	if plain, err := s2.Decode(nil, out); err != nil || !bytes.HasSuffix(plain, records[n-1].Value) {
		b.Fatalf("the last page is not what was packed: %v", err)
	}
	b.ReportMetric(float64(b.N)*n/cpu.Seconds(), "rows/cpu-s")
	b.ReportMetric(float64(packed)/float64(b.N)/n, "bytes/row")
}
