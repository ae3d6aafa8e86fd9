package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// TestWriterAndReader: any record is read back as it was written, from lines that are JSON.
func TestWriterAndReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := []string{``, `{}`, `{"a":1}`, ` {}`, `{} `, "{\n}", "{\r}", `{"a":1,"a":2}`, `{a}`, `{"a":"}"}`, `{"a":"\ud800"}`, "{\"\xff\":1}", "\xff", "\x00", `"`, `\`, "null", "é\u2028", "[1]",
		strings.Repeat("[", 20_000), `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, `}{`, `{}}`, `{"a":{}`}
	var log []meter.Record
	for i := range 2000 {
		r := meter.Record{Partition: int32(i % 3), Offset: int64(i), Null: rng.IntN(20) == 0, HasLogTime: rng.IntN(3) > 0}
		if r.HasLogTime {
			r.LogTime = rng.Int64N(1<<41) - 1<<40
		}
		if rng.IntN(3) > 0 {
			r.Key = []byte(values[rng.IntN(len(values))])
		}
		if !r.Null {
			r.Value = []byte(values[rng.IntN(len(values))])
			if n := len(r.Value); n > 0 && n < 100 && rng.IntN(3) == 0 {
				r.Value[rng.IntN(n)] = byte(rng.IntN(256))
			}
		}
		log = append(log, r)
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	seed := uint64(1<<64 - 1)
	if err := w.Header(Header{Topic: "t", Partitions: []int32{0, 1, 2}, Seed: &seed, About: "<&>\n"}); err != nil {
		t.Fatal(err)
	}
	for i := range log {
		if err := errors.Join(w.Idle([]int32{1, 2}), w.Record(&log[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if !json.Valid([]byte(line)) && len(line) < 20_000 {
			t.Fatalf("not JSON: %q", line)
		}
	}
	got, err := ReadLogFrom(&b, "x", Trace)
	if err != nil || len(got.Steps) != 2*len(log) || got.Topic != "t" {
		t.Fatal(err)
	}
	for i := range log {
		if s := got.Steps[2*i+1]; !same(&s.Record, &log[i]) || len(got.Steps[2*i].Idle) != 2 {
			t.Fatalf("wrote %+v\nread  %+v", log[i], s.Record)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter(&bytes.Buffer{})
	for _, err := range []error{w.Header(Header{Topic: "a b"}), w.Header(Header{Partitions: []int32{1, 1}}), w.Value(&meter.Record{Null: true}), w.Value(&meter.Record{Value: []byte("a\nb")})} {
		if err == nil {
			t.Error("no error")
		}
	}
	broken := NewWriter(failing{})
	if err := broken.Record(&meter.Record{Value: bytes.Repeat([]byte("x"), 1<<20)}); err == nil {
		t.Error("no error of a full disk")
	}
	if err := broken.Flush(); err == nil {
		t.Error("the error is forgotten")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func reader(t *testing.T, b []byte, name string) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHash: what is said counts, not how it is written.
func TestHash(t *testing.T) {
	hash := func(b []byte, name string) string {
		h, err := Hash(context.Background(), reader(t, b, name))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	text := `{"trace":1,"topic":"t","partitions":[0,1],"seed":1}` + "\n" + `{"partition":0,"offset":1,"key":"k","value":{"a":1}}` + "\n" + `{"idle":[0,1]}` + "\n"
	want := hash([]byte(text), "a")
	for _, other := range [][]byte{
		gzipped(t, text), zstded(t, text), []byte(strings.ReplaceAll(text, "\n", "\r\n")), []byte(strings.TrimSuffix(text, "\n")),
		[]byte(strings.Replace(text, `"seed":1`, `"seed":2,"about":"x"`, 1)), []byte(strings.Replace(text, `[0,1]`, `[1,0]`, 2)),
		[]byte(strings.Replace(text, `"partition":0,"offset":1`, `"offset": 1, "partition":0`, 1)), []byte(strings.Replace(text, `{"a":1}`, `"{\"a\":1}"`, 1)),
	} {
		name := "b"
		if bytes.HasPrefix(other, []byte{0x1f}) {
			name = "b.gz"
		} else if other[0] == 0x28 {
			name = "b.zst"
		}
		if got := hash(other, name); got != want {
			t.Errorf("%.100q: another hash", other)
		}
	}
	for _, change := range [][2]string{{`"t"`, `"u"`}, {`[0,1],`, `[0],`}, {`"offset":1`, `"offset":2`}, {`"partition":0`, `"partition":1`}, {`"key":"k",`, ``}, {`"k"`, `"k2"`}, {`{"a":1}`, `{"a":2}`},
		{`{"a":1}`, `null`}, {`{"a":1}`, `""`}, {`"key"`, `"log_time":0,"key"`}, {`{"idle":[0,1]}`, `{"idle":[0]}`}, {"\n" + `{"idle":[0,1]}`, ``}} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			t.Fatal(change)
		}
		if strings.Contains(change[1], `[0],`) {
			changed = strings.Replace(changed, `{"idle":[0,1]}`, `{"idle":[0]}`, 1)
		}
		if hash([]byte(changed), "a") == want {
			t.Errorf("%q: the same hash", change)
		}
	}
}

func TestCount(t *testing.T) {
	text := `{"trace":1,"partitions":[0,1,7]}` + "\n" + `{"partition":1,"offset":3,"log_time":50,"value":{"k":{"t":"a"}}}` + "\n" +
		`{"partition":1,"offset":9,"log_time":-5,"value":{"k":{"t":"b"}}}` + "\n" + `{"partition":0,"offset":4,"value":{"k":{"t":"a"}}}` + "\n" +
		`{"idle":[7]}` + "\n" + `{"partition":0,"offset":5,"value":null}` + "\n" + `{"partition":0,"offset":6,"value":{"k":"t"}}` + "\n" + `{"partition":0,"offset":7,"value":"x"}` + "\n"
	s, err := Count(context.Background(), reader(t, []byte(text), "x.jsonl"), WordAt("k", "t"))
	if err != nil || s.Lines != 7 || s.Idle != 1 || s.Tombstones != 1 || s.Unreadable != 2 || s.Words["a"] != 2 || s.Words["b"] != 1 ||
		!s.HasTime || s.First != -5 || s.Last != 50 || s.Bytes != int64(len(text)) || len(s.Partitions) != 3 ||
		s.Partitions[0] != (PartitionStat{0, 4, 4, 7}) || s.Partitions[1] != (PartitionStat{1, 2, 3, 9}) || s.Partitions[2] != (PartitionStat{7, 0, 0, 0}) {
		t.Errorf("%+v %v", s, err)
	}
}

func TestReplay(t *testing.T) {
	text := `{"trace":1,"topic":"x"}` + "\n" + `{"partition":0,"offset":0,"value":{}}` + "\n" + `{"partition":0,"offset":1,"log_time":1000,"value":{}}` + "\n" + `{"partition":0,"offset":2,"log_time":3000,"value":{}}` + "\n" +
		`{"idle":[0]}` + "\n" + `{"partition":0,"offset":3,"log_time":2000,"value":{}}` + "\n" + `{"partition":0,"offset":4,"log_time":3000,"value":{}}` + "\n" + `{"partition":0,"offset":5,"log_time":7000,"value":{}}` + "\n"
	var b bytes.Buffer
	var waits []time.Duration
	err := Replay(context.Background(), reader(t, []byte(text), "x"), NewWriter(&b), 4, func(_ context.Context, d time.Duration) error {
		if lines := strings.Count(b.String(), "\n"); lines != []int{3, 7}[len(waits)] {
			t.Errorf("%d lines are written before %v", lines, d)
		}
		waits = append(waits, d)
		return nil
	})
	if err != nil || b.String() != text || len(waits) != 2 || waits[0] != 500*time.Millisecond || waits[1] != 1500*time.Millisecond {
		t.Errorf("%v %v\n%s", err, waits, b.String())
	}
	b.Reset()
	if err := Replay(context.Background(), reader(t, []byte(text), "x"), NewWriter(&b), 0, nil); err != nil || b.String() != text {
		t.Errorf("%v\n%s", err, b.String())
	}
	stopped := errors.New("stopped")
	b.Reset()
	err = Replay(context.Background(), reader(t, []byte(text), "x"), NewWriter(&b), 1, func(context.Context, time.Duration) error { return stopped })
	if !errors.Is(err, stopped) || strings.Count(b.String(), "\n") != 3 {
		t.Errorf("%v\n%s", err, b.String())
	}
	r, err := NewReader(strings.NewReader("a\nb"), "x", Options{Format: Values})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := Replay(context.Background(), r, NewWriter(&b), 1, nil); err != nil || b.String() != "a\nb\n" {
		t.Errorf("%v %q", err, b.String())
	}
}
