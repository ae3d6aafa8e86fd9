// Package gen makes adversarial cases for property tests: a meter, rates and a small log in which coincidences
// are dense. [Draw] draws one with pgregory.net/rapid; [Check] runs a property over many.
//
// All durations are multiples of one coarse unit and so are most times, so that watermarks meet deadlines, window
// ends and horizons exactly (and now and then miss them by 1 ms). Few ids come again and again: as true copies, as
// conflicting ones, with a fresh time, after they were forgotten, in another partition. Clocks run fast,
// partitions are silent, dead or hold nothing of this meter, nights are quiet, offsets have holes, log times are
// missing, records are broken in every way of R2.
//
// A case is a [tracetest.Case]: its text is a trace that can be put into the exam, and a property that fails
// prints it beside rapid's own replay line.
package gen

import (
	"testing"

	"pgregory.net/rapid" // property tests with shrinking: the maintained one for Go

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Options narrow what is drawn. The zero value draws everything.
type Options struct {
	// Kind of the meter; "" draws either.
	Kind meter.MeterKind
	// MinRecords and MaxRecords bound the length of the log; 0 and 0 mean 10 and 120.
	MinRecords, MaxRecords int
	// EqualCopies: copies carry their original's time, and no id is used again (the promise of theorem 1, R8).
	EqualCopies bool
	// OnePartition: every id stays in one partition (the promise of R1).
	OnePartition bool
	// NoIdle: no idle lines.
	NoIdle bool
	// OnlyEvents: no dead letters, tombstones and ignored records.
	OnlyEvents bool
}

// Check runs the property on drawn cases. When it fails, the smallest case found is printed as a trace, beside
// rapid's replay line (-rapid.seed).
func Check(t *testing.T, o Options, property func(t *rapid.T, c *tracetest.Case)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) { property(t, Draw(t, o)) })
}

// Draw draws a case.
func Draw(t *rapid.T, o Options) *tracetest.Case {
	// Drawn by one generator, so that a failure prints the case and not every draw that made it.
	return rapid.Custom(func(t *rapid.T) *tracetest.Case { return draw(t, o) }).Draw(t, "case")
}

func draw(t *rapid.T, o Options) *tracetest.Case {
	if o.MaxRecords == 0 {
		o.MinRecords, o.MaxRecords = 10, 120
	}
	if o.Kind == "" {
		o.Kind = pick(t, "kind", meter.Requests, meter.Requests, meter.Events)
	}
	s := drawShape(t, o)
	files := map[string]string{"meter.yaml": s.meterText(t), "rates.yaml": s.ratesText(t, false)}
	if chance(t, "list", 2) {
		files["list-rates.yaml"] = s.ratesText(t, true)
	}
	files["log.jsonl"] = newWorld(t, o, s).log()
	if chance(t, "no drain", 3) {
		files["options"] = "no-drain\n"
	}
	c, err := tracetest.New("drawn", "Drawn by package gen.", files)
	if err != nil {
		t.Fatalf("gen: a drawn case does not parse: %v", err)
	}
	return c
}

// chance is true once in n draws.
func chance(t *rapid.T, label string, n int) bool {
	return rapid.IntRange(1, n).Draw(t, label) == n
}

// pick draws one of the values.
func pick[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}
