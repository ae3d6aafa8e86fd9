package schemas

import (
	"fmt"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// benchRecords are starts and completes of about 200 bytes; their quantities sum to a known total.
func benchRecords() (records []meter.Record, want int64) {
	for i := range 1024 {
		id := fmt.Sprintf("req-%08d-%04x", i*7919, i)
		ts := 1767225600000 + int64(i)*13
		var value string
		if i%2 == 0 {
			value = fmt.Sprintf(`{"event_type":"RequestStarted","request_id":"%s","tenant_id":"tenant-%03d","model":"model-%02d","ts":%d,"payload":{"prompt_tokens":%d,"cached_tokens":%d,"agent":"sdk-python/1.%d","region":"eu-west-1"}}`,
				id, i%400, i%30, ts, 1000+i, i, i%9)
			want += int64(1000 + i)
		} else {
			value = fmt.Sprintf(`{"event_type":"RequestCompleted","request_id":"%s","tenant_id":"tenant-%03d","model":"model-%02d","ts":%d,"payload":{"completion_tokens":%d,"latency_ms":%d,"status":"ok","finish_reason":"stop"}}`,
				id, i%400, i%30, ts, 300+i, 800+i)
			want += int64(300 + i)
		}
		records = append(records, meter.Record{Offset: int64(i), LogTime: ts + 40, HasLogTime: true, Value: []byte(value)})
	}
	return records, want
}

func BenchmarkDecode(b *testing.B) {
	m := requestsMeter()
	d := NewDecoder(m)
	records, want := benchRecords()
	var e meter.Event
	var size, sum, loops int64
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			d.Decode(&records[i], &e)
			if e.Bucket != meter.BucketEvent {
				b.Fatalf("record %d is %s %s", i, e.Bucket, e.Reason)
			}
			sum += e.Quantities[0] + e.Quantities[2]
			size += int64(len(records[i].Value))
		}
		loops++
	}
	if sum != want*loops {
		b.Fatalf("sum of quantities is %d, want %d", sum, want*loops)
	}
	events := float64(loops) * float64(len(records))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events, "ns/event")
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(size)/events, "B/event")
}
