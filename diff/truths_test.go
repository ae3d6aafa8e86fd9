package diff_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
	"pgregory.net/rapid"
)

// Both truths, and two meters, of every trace and of drawn logs: nothing is unexplained, shares sum to deltas, and the
// report turned round is its mirror image.

// tb is what tests and rapid have in common.
type tb interface {
	Fatalf(string, ...any)
	Helper()
}

func side(name string, m *meter.Meter, c *tracetest.Case, complete, drain bool) (*diff.Side, error) {
	var res *oracle.Result
	var err error
	if complete {
		res, err = oracle.Complete(m, c.Card, c.List, c.Log, oracle.Options{Drain: drain})
	} else {
		res, err = oracle.AsStreamed(m, c.Card, c.List, c.Log, drain)
	}
	if err != nil {
		return nil, err
	}
	var dead []diff.Dead
	for _, d := range res.DeadLetters {
		dead = append(dead, diff.Dead{Partition: d.Partition, Offset: d.Offset, Reason: d.Reason})
	}
	return &diff.Side{Name: name, Kind: diff.Recompute, Fingerprint: m.Fingerprint, Topic: "t", WindowSize: m.Window.Size, Quantities: m.Event.Quantities,
		Identity: diff.IdentityOf(m), Columns: diff.AllColumns, Rows: diff.SliceRows(res.Rows), Items: diff.SliceItems(res.Items, dead), Prices: diff.NewPriceBook(c.Card, c.List)}, nil
}

var seen = map[string]int{}

func check(t tb, label string, o diff.Options, mk func() (*diff.Side, *diff.Side)) {
	t.Helper()
	l, r := mk()
	rep, err := diff.Compare(context.Background(), l, r, o)
	if err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	var out bytes.Buffer
	rep.WriteTable(&out, diff.TableOptions{MaxRows: -1})
	for _, d := range rep.Differences {
		for _, s := range d.Shares {
			seen[label+" "+s.Cause.String()]++
			if s.Cause == diff.Unexplained || label != "meters" && s.Cause == diff.DuplicateCounted {
				t.Fatalf("%s\n%s", label, out.String())
			}
		}
	}
	l, r = mk()
	back, err := diff.Compare(context.Background(), r, l, o)
	if err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	for i, d := range rep.Differences {
		b := back.Differences[i]
		if len(b.Shares) != len(d.Shares) {
			var o2 bytes.Buffer
			back.WriteTable(&o2, diff.TableOptions{MaxRows: -1})
			t.Fatalf("%s: mirrored differs\n%s\n%s", label, out.String(), o2.String())
		}
		for k := range d.Shares {
			if b.Shares[k].Cause != d.Shares[k].Cause || b.Shares[k].Requests != -d.Shares[k].Requests || b.Shares[k].Pico != d.Shares[k].Pico.Neg() {
				var o2 bytes.Buffer
				back.WriteTable(&o2, diff.TableOptions{MaxRows: -1})
				t.Fatalf("%s: mirrored differs\n%s\n%s", label, out.String(), o2.String())
			}
		}
	}
}

func all(t tb, c *tracetest.Case, change func(m *meter.Meter)) {
	must := func(s *diff.Side, err error) *diff.Side {
		if err != nil {
			t.Fatalf("%v", err)
		}
		return s
	}
	check(t, "complete", diff.Options{}, func() (*diff.Side, *diff.Side) {
		return must(side("ledger", c.Meter, c, false, true)), must(side("complete", c.Meter, c, true, true))
	})
	check(t, "growing", diff.Options{Comparable: closed(t, c)}, func() (*diff.Side, *diff.Side) {
		return must(side("ledger", c.Meter, c, false, false)), must(side("complete", c.Meter, c, true, false))
	})
	other := *c.Meter
	other.Fingerprint = "other"
	change(&other)
	check(t, "meters", diff.Options{}, func() (*diff.Side, *diff.Side) {
		return must(side("A", c.Meter, c, false, true)), must(side("B", &other, c, false, true))
	})
}

// closed says which windows of a log that will grow can be judged: those before the first that is open in either truth.
func closed(t tb, c *tracetest.Case) func(end int64) bool {
	streamed, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, false)
	if err != nil {
		t.Fatalf("%v", err)
	}
	complete, err := oracle.Complete(c.Meter, c.Card, c.List, c.Log, oracle.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	first := meter.PlusInfinity
	for _, row := range slices.Concat(streamed.Rows, complete.Rows) {
		if row.State == meter.Open {
			first = min(first, row.WindowEnd)
		}
	}
	return func(end int64) bool { return end < first }
}

func TestTruthsOfEveryTrace(t *testing.T) {
	cases, err := tracetest.Load("../testdata/traces")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			all(t, c, func(m *meter.Meter) { m.Watermark.MaxOutOfOrderness = 0; m.Window.AllowedLateness = 0 })
		})
	}
}

func TestTruthsOfDrawnLogs(t *testing.T) {
	gen.Check(t, gen.Options{}, func(t *rapid.T, c *tracetest.Case) {
		n := rapid.IntRange(0, 4).Draw(t, "change")
		all(t, c, func(m *meter.Meter) {
			switch n {
			case 0:
				m.Watermark.MaxOutOfOrderness = 0
				m.Window.AllowedLateness = 0
			case 1:
				m.Window.AllowedLateness *= 3
				m.AbandonAfter *= 2
			case 2:
				m.Filters = nil
			case 3:
				if m.Kind == meter.Events {
					m.Event.Reference = m.Event.Identity
					m.Event.Identity = nil
				} else {
					m.Watermark.MaxOutOfOrderness *= 4
				}
			case 4:
				m.Event.MaxAhead = 0
			}
		})
	})
	for _, cause := range []string{"complete late", "complete abandoned_then_completed", "complete conflict", "complete split_across_partitions"} {
		if seen[cause] == 0 {
			t.Errorf("no drawn log showed %s: the property proves little (%v)", cause, seen)
		}
	}
}
