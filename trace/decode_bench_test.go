package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// BenchmarkReadAndDecode is all that comes before the first rule: split, hash, envelope, value.
func BenchmarkReadAndDecode(b *testing.B) {
	g := trace.NewLab()
	g.PerSecond = 200
	var text bytes.Buffer
	want, err := g.Write(&text)
	if err != nil {
		b.Fatal(err)
	}
	m, err := meter.Parse("gatewaymeter.yaml", []byte(requests))
	if err != nil {
		b.Fatal(err)
	}
	d := schemas.NewDecoder(m)
	var lines []trace.Line
	var events []meter.Event
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		r, err := trace.NewReader(bytes.NewReader(text.Bytes()), "bench.jsonl", trace.Options{})
		if err != nil {
			b.Fatal(err)
		}
		admitted := int64(0)
		for {
			c, err := r.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			lines, err = c.Decode(lines[:0], func(i int, r *meter.Record) bool {
				if i == len(events) {
					events = append(events, meter.Event{})
				}
				d.Decode(r, &events[i])
				return events[i].Bucket != meter.BucketDeadLetter
			})
			if err != nil {
				b.Fatal(err)
			}
			for i := range lines {
				if events[i].Admitted() {
					admitted++
				}
			}
		}
		if admitted != want {
			b.Fatalf("%d of %d records are admitted", admitted, want)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*want), "ns/event")
}
