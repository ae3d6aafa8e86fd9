package duckdb_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// long logs: a query costs the same for ten records and for a thousand.
var long = gen.Options{MinRecords: 100, MaxRecords: 600}

// archiveCase archives a drawn case in files of a drawn length.
func archiveCase(t *rapid.T, c *tracetest.Case) *archived {
	return archiveIn(t, c, rapid.SampledFrom([]int{1000, 100, 37}).Draw(t, "rows per file"))
}

func archiveIn(t *rapid.T, c *tracetest.Case, perFile int) *archived {
	dir, err := os.MkdirTemp("", "archive-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a, err := archiveEvents(dir, c.Meter, decodeLog(c.Meter, c.Log), perFile)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func recompute(t *rapid.T, job *batch.Job) *batch.Result {
	turn := rapid.SampledFrom([]int64{0, 1}).Draw(t, "rows a turn") // 1: every partition alone
	r, err := duckdb.New(duckdb.Config{Threads: 1, TurnRows: turn}).Recompute(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func items(t *rapid.T, job *batch.Job, f batch.ItemFilter) []meter.Item {
	list, err := duckdb.New(duckdb.Config{Threads: 1}).Items(t.Context(), job, f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAsStreamedEqualsOracle (R1 to R9, R13, R14): rows with cells, set hashes and prices, every verdict on every record, the summary.
func TestAsStreamedEqualsOracle(t *testing.T) {
	gen.Check(t, long, func(t *rapid.T, c *tracetest.Case) {
		want, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, c.Drain)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, c, archiveCase(t, c).job(c.Card, c.List, batch.AsStreamed, c.Drain), want)
	})
}

// TestCompleteEqualsOracle (R15) is the same for the complete truth, with and without an audit horizon.
func TestCompleteEqualsOracle(t *testing.T) {
	gen.Check(t, long, func(t *rapid.T, c *tracetest.Case) {
		a := archiveCase(t, c)
		job := a.job(c.Card, c.List, batch.Complete, c.Drain)
		o := oracle.Options{Drain: c.Drain}
		if rapid.IntRange(0, 2).Draw(t, "horizon") == 0 {
			at, width := rapid.Int64Range(0, 99).Draw(t, "horizon begins"), rapid.Int64Range(0, 60).Draw(t, "horizon is wide")
			first, last := logTimes(a)
			from := first + (last-first)*at/100
			o.AuditHorizon = &oracle.Range{From: from, To: from + (last-first)*width/100}
			job.Horizon = &batch.Horizon{FromLog: o.AuditHorizon.From, ToLog: o.AuditHorizon.To}
		}
		want, err := oracle.Complete(c.Meter, c.Card, c.List, c.Log, o)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, c, job, want)
	})
}

// logTimes is the least and the greatest log time.
func logTimes(a *archived) (first, last int64) {
	first, last = meter.PlusInfinity, meter.MinusInfinity
	for _, events := range a.events {
		for i := range events {
			if events[i].HasLogTime {
				first, last = min(first, events[i].LogTime), max(last, events[i].LogTime)
			}
		}
	}
	return min(first, last), last
}

func compare(t *rapid.T, c *tracetest.Case, job *batch.Job, want *oracle.Result) {
	got := recompute(t, job)
	if d := tracetest.DiffRows(c.Meter, want.Rows, got.Rows); d != "" {
		t.Fatalf("rows (- the oracle, + the SQL):\n%s", d)
	}
	if got.Summary != want.Summary {
		t.Fatalf("summary: the oracle says %+v, the SQL %+v", want.Summary, got.Summary)
	}
	if d := diffItems(want.Items, items(t, job, batch.ItemFilter{Progress: true})); d != "" {
		t.Fatalf("items (- the oracle, + the SQL):\n%s", d)
	}
}

// diffItems shows the items that differ in any field; "" if none does.
func diffItems(want, got []meter.Item) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			fmt.Fprintf(&b, "- %+v\n", want[i])
		case i >= len(want):
			fmt.Fprintf(&b, "+ %+v\n", got[i])
		case !reflect.DeepEqual(want[i], got[i]):
			fmt.Fprintf(&b, "- %+v\n+ %+v\n", want[i], got[i])
		}
	}
	return b.String()
}
