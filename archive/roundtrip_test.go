package archive_test

import (
	"bytes"
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
	if p.Next() != a.next || p.Rows() != int64(len(log)) {
		t.Fatalf("the listing ends at %d with %d rows", p.Next(), p.Rows())
	}
}
