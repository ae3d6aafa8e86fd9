package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// fieldOf is where the meter file says what a dead letter's reason is about, and what it says there; "" for a reason that
// is of the record as a whole.
func fieldOf(m *meter.Meter, r meter.Reason) string {
	e := &m.Event
	path := func(key string, p meter.FieldPath) string { return "event.fields." + key + ": " + strings.Join(p, ".") }
	switch r {
	case meter.MissingID:
		var parts []string
		for _, p := range e.Identity {
			parts = append(parts, strings.Join(p, "."))
		}
		return "event.fields.identity: " + strings.Join(parts, ", ")
	case meter.MissingAccount:
		return path("account", e.Account.Path)
	case meter.MissingSKU:
		return path("sku", e.SKU.Path)
	case meter.BadTime, meter.ImplausibleTime, meter.FutureTime:
		return fmt.Sprintf("%s, event.time_unit: %s", path("time", e.Time), e.TimeUnit)
	case meter.BadQuantity, meter.BadUsage:
		var parts []string
		for _, q := range e.Quantities {
			if !q.IsConst && (r == meter.BadQuantity || q.PartOf >= 0) {
				parts = append(parts, strings.Join(q.Path, "."))
			}
		}
		return "event.quantities: " + strings.Join(parts, ", ")
	case meter.BadStatus:
		return path("status", e.Status)
	}
	return ""
}

// reasonsText names the most frequent reasons of dead letters, each with its field.
func reasonsText(m *meter.Meter, s *meter.Summary) string {
	reasons := slices.DeleteFunc(meter.Reasons(), func(r meter.Reason) bool { return s.DeadLetter[r] == 0 })
	slices.SortStableFunc(reasons, func(a, b meter.Reason) int { return cmp.Compare(s.DeadLetter[b], s.DeadLetter[a]) })
	var words []string
	for _, r := range reasons {
		word := fmt.Sprintf("%d %s", s.DeadLetter[r], r)
		if field := fieldOf(m, r); field != "" {
			word += " (" + field + ")"
		}
		words = append(words, word)
	}
	if more := len(words) - 3; more > 0 {
		words = append(words[:3], plural(more, "other reason"))
	}
	return strings.Join(words, ", ")
}

// kindsText says what an ignored record lacks.
func kindsText(m *meter.Meter) string {
	var known []string
	for word := range m.Event.Kinds {
		known = append(known, word)
	}
	slices.Sort(known)
	return fmt.Sprintf("event.fields.kind: %s is none of the words of event.kinds (%s)", strings.Join(m.Event.KindPath, "."), strings.Join(known, ", "))
}

// nothingJudged says why there was nothing to count in a log that has records; "" where something was.
func nothingJudged(m *meter.Meter, s *meter.Summary) string {
	dead := s.DeadLetters()
	if s.Event > 0 || dead+s.Ignored == 0 {
		return ""
	}
	var why []string
	if dead > 0 {
		why = append(why, fmt.Sprintf("%s dead letters: %s", ofAll(dead, s.Read), reasonsText(m, s)))
	}
	if s.Ignored > 0 {
		why = append(why, fmt.Sprintf("%s ignored: %s", ofAll(s.Ignored, s.Read), kindsText(m)))
	}
	return "nothing was judged: " + strings.Join(why, "; ")
}

// ofAll is how many of so many records are of one kind.
func ofAll(n, all int64) string {
	if n == all {
		return fmt.Sprintf("all %s are", plural(all, "record"))
	}
	return fmt.Sprintf("%d of %s are", n, plural(all, "record"))
}

// noteNothingJudged says that a log came to nothing, why, and what to do: a bill of nothing must not pass for a bill.
func (a *app) noteNothingJudged(m *meter.Meter, s *meter.Summary) {
	if what := nothingJudged(m, s); what != "" {
		a.note("%s. 'gmctl validate' tries the meter on the log; mend the meter file, then count into another run.ledger and run.archive (or remove these: nothing is counted in them)", clean(what))
	}
}

// sumOfPositions is the summary of the whole log so far (R14).
func sumOfPositions(positions []meter.Position) meter.Summary {
	var sum meter.Summary
	for _, p := range positions {
		sum.Add(&p.Summary)
	}
	return sum
}
