package trace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func generated(tb testing.TB, g Gen) ([]byte, int64) {
	tb.Helper()
	var b bytes.Buffer
	n, err := g.Write(&b)
	if err != nil {
		tb.Fatal(err)
	}
	return b.Bytes(), n
}

func BenchmarkReadAndParse(b *testing.B) { benchmarkRead(b, (*Chunk).Parse) }

// BenchmarkReadForADecoder leaves the values' ends to a decoder, which here costs nothing.
func BenchmarkReadForADecoder(b *testing.B) {
	sound := func(int, *meter.Record) bool { return true }
	benchmarkRead(b, func(c *Chunk, lines []Line) ([]Line, error) { return c.Decode(lines, sound) })
}

func benchmarkRead(b *testing.B, parse func(*Chunk, []Line) ([]Line, error)) {
	g := NewLab()
	g.PerSecond = 200
	text, want := generated(b, g)
	var lines []Line
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(text), "bench.jsonl", Options{})
		if err != nil {
			b.Fatal(err)
		}
		got := int64(0)
		for {
			c, err := r.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if lines, err = parse(c, lines[:0]); err != nil {
				b.Fatal(err)
			}
			got += int64(len(lines))
		}
		if got != want {
			b.Fatalf("%d lines, want %d", got, want)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*want), "ns/line")
}

func BenchmarkGen(b *testing.B) {
	g := NewLab()
	g.PerSecond = 200
	var want int64
	for b.Loop() {
		n, err := g.Write(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		if want == 0 {
			want = n
		}
		if n != want || n < 100_000 {
			b.Fatalf("%d records, first %d", n, want)
		}
	}
	b.ReportMetric(float64(int64(b.N)*want)/b.Elapsed().Seconds(), "records/s")
}
