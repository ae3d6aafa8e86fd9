package archive_test

import (
	"bytes"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

func readAll(tb rapid.TB, p *archive.Partition) (rows []archive.Row) {
	tb.Helper()
	for _, f := range p.Files {
		err := f.Each(func(r *archive.Row) error {
			c := *r
			c.Record.Value = bytes.Clone(r.Record.Value)
			c.Event.Quantities = append([]int64{}, r.Event.Quantities...)
			c.Event.Attributes = append([]string{}, r.Event.Attributes...)
			rows = append(rows, c)
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return rows
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(1, 3, 2000)
	fsys := archive.Dir(t.TempDir() + "/archive")
	c := config(fsys, m, "usage", 3)
	c.RowGroupRows = 300
	a := writeLog(t, c, m, log, 701)
	wantClean(t, verify(t, fsys, m, nil))
	listing, err := archive.Open(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := listing.Partition(archive.Source{Topic: "usage", Partition: 3})
	wantLog(t, p, m, log)
	if p.Next() != a.next || p.Rows() != int64(len(log)) {
		t.Fatalf("the listing ends at %d with %d rows", p.Next(), p.Rows())
	}
}

// wantLog checks that a partition holds exactly the records of a log, and what the meter makes of them.
func wantLog(t *testing.T, p *archive.Partition, m *meter.Meter, log []meter.Record) {
	t.Helper()
	rows := readAll(t, p)
	if len(rows) != len(log) {
		t.Fatalf("%d rows of %d records", len(rows), len(log))
	}
	d := schemas.NewDecoder(m)
	reach := meter.MinusInfinity
	for i := range rows {
		var e meter.Event
		d.Decode(&log[i], &e)
		e.Byte = 0
		if got, want := asJSON(rows[i].Record), asJSON(log[i]); got != want || (rows[i].Record.Value == nil) != (log[i].Value == nil) && !log[i].Null {
			t.Fatalf("record %d is %s, was %s", i, got, want)
		}
		if got, want := asJSON(rows[i].Event), asJSON(e); got != want {
			t.Fatalf("event %d is\n%s, was\n%s", i, got, want)
		}
		if rows[i].PriorMaxReach != reach {
			t.Fatalf("prior reach of %d is %d, was %d", i, rows[i].PriorMaxReach, reach)
		}
		if e.Admitted() {
			reach = max(reach, e.Reach())
		}
	}
}

// testdata/zstd was written before text was packed by Snappy. Such an archive stays good: it is read and verified,
// and the chain goes on behind it.
func TestArchiveOfAnEarlierVersionIsContinued(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(1, 3, 600)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/zstd")); err != nil {
		t.Fatal(err)
	}
	fsys, source := archive.Dir(dir), archive.Source{Topic: "usage", Partition: 3}
	wantClean(t, verify(t, fsys, m, nil))
	listing, err := archive.Open(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantLog(t, listing.Partition(source), m, log[:400])

	heads, err := archive.NewMeta(fsys).Heads()
	if err != nil {
		t.Fatal(err)
	}
	head, err := archive.Resume(fsys, source, heads[source])
	if err != nil {
		t.Fatal(err)
	}
	a := newArchiver(t, config(fsys, m, "usage", 3), m, head)
	for i := range log[:400] {
		var e meter.Event
		if a.decode(&log[i], &e); e.Admitted() {
			a.reach = max(a.reach, e.Reach())
		}
	}
	for i := range log[400:] {
		if err := a.append(&log[400+i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.roll(); err != nil {
		t.Fatal(err)
	}
	wantClean(t, verify(t, fsys, m, nil))
	if listing, err = archive.Open(fsys, nil); err != nil {
		t.Fatal(err)
	}
	wantLog(t, listing.Partition(source), m, log)
}

// However a log is handed over, one by one or many at once, and wherever row groups end, the file is the same.
func TestAppendAllWritesTheSameFile(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(5, 3, 600)
	for i := range log {
		if i%200 == 7 && !log[i].Null { // a large text ends a batch
			log[i].Value = bytes.Repeat([]byte("x"), 40_000+i)
		}
	}
	entries := make([]archive.Entry, len(log))
	d, reach := schemas.NewDecoder(m), meter.MinusInfinity
	for i := range log {
		e := new(meter.Event)
		d.Decode(&log[i], e)
		entries[i] = archive.Entry{Record: &log[i], Event: e, PriorMaxReach: reach}
		if e.Admitted() {
			reach = max(reach, e.Reach())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := config(newMemFS(), m, "usage", 3)
		c.RowGroupRows = rapid.IntRange(50, 800).Draw(t, "rows of a group")
		c.RowGroupBytes = int64(rapid.IntRange(20_000, 300_000).Draw(t, "bytes of a group"))
		write := func(next func(left int) int) string {
			c.FS = newMemFS()
			w, err := archive.NewWriter(c, fresh())
			if err != nil {
				t.Fatal(err)
			}
			for left := entries; len(left) > 0; {
				n := next(len(left))
				if n == 1 {
					err = w.Append(left[0].Record, left[0].Event, left[0].PriorMaxReach)
				} else {
					err = w.AppendAll(left[:n])
				}
				if err != nil {
					t.Fatal(err)
				}
				left = left[n:]
			}
			if err := w.Seal(log[len(log)-1].Offset+1, meter.Checkpoint{MaxReach: meter.MinusInfinity}); err != nil {
				t.Fatal(err)
			}
			head, err := w.Publish()
			if err != nil || w.Rows() != 0 || head.Rows != int64(len(log)) {
				t.Fatal(head, err)
			}
			return head.SHA256
		}
		some := rapid.IntRange(1, 200)
		one, many := write(func(int) int { return 1 }), write(func(left int) int { return min(left, some.Draw(t, "handed over")) })
		if one != many {
			t.Fatal("the files differ")
		}
	})
}
