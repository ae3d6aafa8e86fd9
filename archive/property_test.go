package archive_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// drawLog is any log: both meters' events, broken ones, arbitrary bytes, tombstones, offsets with holes, log times
// far from the present.
func drawLog(t *rapid.T, m *meter.Meter) []meter.Record {
	n := rapid.IntRange(1, 60).Draw(t, "records")
	offset := rapid.Int64Range(0, 1<<40).Draw(t, "first")
	received := m.Event.Received != nil
	var log []meter.Record
	for range n {
		r := meter.Record{Partition: 2, Offset: offset, Received: received}
		if !received && rapid.IntRange(0, 9).Draw(t, "log time") > 0 {
			r.HasLogTime = true
			r.LogTime = rapid.OneOf(rapid.Int64Range(t0, t0+1_000_000), rapid.Int64()).Draw(t, "at")
		}
		r.Value, r.Null = drawValue(t, received)
		log = append(log, r)
		offset += rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 1000)).Draw(t, "step")
	}
	return log
}

func drawValue(t *rapid.T, taps bool) (value []byte, null bool) {
	word := rapid.OneOf(rapid.SampledFrom([]string{"", "acme", "a\x00b", "é\u2028", strings.Repeat("x", 512), "12", "\x1b[31m"}), rapid.String())
	number := rapid.OneOf(rapid.Int64Range(-2, 100), rapid.Int64Range(t0-10_000, t0+10_000), rapid.Int64()).Draw
	text := func(label string) string { return word.Draw(t, label) }
	switch rapid.IntRange(0, 6).Draw(t, "shape") {
	case 0:
		return nil, true
	case 1:
		return rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "bytes"), false
	case 2:
		return bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "byte"))}, rapid.SampledFrom([]int{0, 1, 5000, 1<<20 + 1}).Draw(t, "size")), false
	}
	if taps {
		return fmt.Appendf(nil, `{"partner":%q,"phone_time":%q,"server_time":%q}`, text("partner"),
			rapid.SampledFrom([]string{"2026-01-01T00:00:05Z", "2026-01-01T00:00:06.5+01:00", "x"}).Draw(t, "time"),
			rapid.SampledFrom([]string{"2026-01-01T00:00:04Z", "", "1969-12-31T23:59:59Z"}).Draw(t, "server")), false
	}
	kind := rapid.SampledFrom([]string{"RequestStarted", "TokensStreamed", "RequestCompleted", "ModelError", "Heartbeat", "Other"}).Draw(t, "kind")
	return fmt.Appendf(nil, `{"event_type":%q,"request_id":%q,"hop":%d,"tenant_id":%q,"model":%q,"ts":%d,"trace":%q,"payload":{"prompt_tokens":%d,"cached_tokens":%d,"completion_tokens":%d,"latency_ms":%d,"agent":%q,"status":%q}}`,
		kind, text("id"), rapid.IntRange(0, 3).Draw(t, "hop"), text("tenant"), text("model"), rapid.Int64Range(t0-100_000, t0+10_000).Draw(t, "ts"), text("trace"),
		number(t, "prompt"), number(t, "cached"), number(t, "completion"), number(t, "latency"), text("agent"), text("status")), false
}

// Whatever is written is read again, however it is cut into files and row groups; and it verifies.
func TestWriteThenReadIsIdentity(t *testing.T) {
	meters := []*meter.Meter{parseMeter(t, requestsYAML), parseMeter(t, eventsYAML)}
	rapid.Check(t, func(rt *rapid.T) {
		m := meters[rapid.IntRange(0, 1).Draw(rt, "meter")]
		log := drawLog(rt, m)
		fsys := newMemFS()
		topic := rapid.SampledFrom([]string{"usage", "a/../b", "a+b=c%", "é\n\x1b[0m", strings.Repeat("long/", 80)}).Draw(rt, "topic")
		c := config(fsys, m, topic, 2)
		c.RowGroupRows = rapid.IntRange(3, 50).Draw(rt, "group")
		writeLog(rt, c, m, log, rapid.IntRange(8, 60).Draw(rt, "file"))
		if r := verify(rt, fsys, m, nil); len(r.Faults) > 0 || r.Rows != int64(len(log)) {
			rt.Fatalf("%d rows of %d, %v", r.Rows, len(log), r.Faults)
		}
		a, err := archive.Open(fsys, nil)
		if err != nil {
			rt.Fatal(err)
		}
		rows := readAll(rt, a.Partition(archive.Source{Topic: topic, Partition: 2}))
		wantRows(rt, m, log, rows)
		i := 0
		for _, f := range a.Partitions[0].Files {
			if err := f.Records(func(r *meter.Record) error {
				if asJSON(*r) != asJSON(log[i]) {
					rt.Fatalf("record %d: %s, was %s", i, asJSON(*r), asJSON(log[i]))
				}
				i++
				return nil
			}); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func wantRows(rt *rapid.T, m *meter.Meter, log []meter.Record, rows []archive.Row) {
	if len(rows) != len(log) {
		rt.Fatalf("%d rows of %d records", len(rows), len(log))
	}
	d := schemas.NewDecoder(m)
	reach := meter.MinusInfinity
	for i := range rows {
		var e meter.Event
		d.Decode(&log[i], &e)
		e.Quantities, e.Attributes = append([]int64{}, e.Quantities...), append([]string{}, e.Attributes...)
		if got, want := asJSON(rows[i].Record), asJSON(log[i]); got != want {
			rt.Fatalf("record %d is\n%s, was\n%s", i, got, want)
		}
		if got, want := asJSON(rows[i].Event), asJSON(e); got != want {
			rt.Fatalf("event %d is\n%s, was\n%s", i, got, want)
		}
		if rows[i].PriorMaxReach != reach {
			rt.Fatalf("prior_max_reach of %d is %d, was %d", i, rows[i].PriorMaxReach, reach)
		}
		if e.Admitted() {
			reach = max(reach, e.Reach())
		}
	}
}

// A reader that knows nothing of archives sees the columns of schemas in their order, with their values.
func TestPlainParquet(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(21, 0, 500)
	fsys := newMemFS()
	c := config(fsys, m, "usage", 0)
	c.RowGroupRows = 120
	writeLog(t, c, m, log, 500)
	data := fsys.now[fsys.files()[0]].data
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, field := range f.Root().Columns() {
		got = append(got, field.Name())
	}
	var want []string
	for _, col := range schemas.ArchiveColumns(m) {
		want = append(want, col.Name)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("columns %v, declared %v", got, want)
	}
	type row struct {
		Offset  int64   `parquet:"log_offset"`
		Bucket  string  `parquet:"bucket"`
		Account *string `parquet:"account,optional"`
		Prompt  *int64  `parquet:"prompt_tokens,optional"`
		Time    *int64  `parquet:"event_time,optional"`
		Raw     *[]byte `parquet:"raw,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(rows) != len(log) {
		t.Fatal(len(rows), err)
	}
	d := schemas.NewDecoder(m)
	var e meter.Event
	for i, r := range rows {
		d.Decode(&log[i], &e)
		if r.Offset != log[i].Offset || r.Bucket != e.Bucket.String() || (r.Account != nil) != (e.Account != "") || r.Account != nil && *r.Account != e.Account ||
			(r.Time != nil) != e.Admitted() || (r.Prompt != nil) != (e.Present&1 == 1) || r.Prompt != nil && *r.Prompt != e.Quantities[0] {
			t.Fatalf("row %d is %s, the event %s", i, asJSON(r), asJSON(e))
		}
	}
}

// Words that are too many or too long for a dictionary, and records of megabytes, are kept all the same.
func TestHugeValues(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	var log []meter.Record
	for i := range int64(40_000) {
		v := fmt.Appendf(nil, `{"event_type":"RequestStarted","request_id":"%d","hop":1,"tenant_id":"%d-%s","model":"m","ts":%d,"payload":{"prompt_tokens":1}}`, i, i, strings.Repeat("y", int(i%100)), t0+i)
		if i%8000 == 7000 {
			v = bytes.Repeat([]byte("{"), 3<<20)
		}
		log = append(log, meter.Record{Offset: i, Value: v})
	}
	fsys := newMemFS()
	writeLog(t, config(fsys, m, "usage", 0), m, log, len(log))
	wantClean(t, verify(t, fsys, m, nil))
	a, err := archive.Open(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	if err := a.Partitions[0].Files[0].Each(func(r *archive.Row) error {
		if !bytes.Equal(r.Record.Value, log[i].Value) {
			t.Fatalf("record %d is another", i)
		}
		i++
		return nil
	}); err != nil || i != len(log) {
		t.Fatal(i, err)
	}
}
