package tracetest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// RenderRows prints rows of a recompute, one a line.
func RenderRows(m *meter.Meter, rows []meter.Row) []string {
	lines := make([]string, len(rows))
	for i := range rows {
		r := &rows[i]
		lines[i] = fmt.Sprintf("%s %s %s %s usd=%s %s%s", word(r.Account), stamp(r.WindowEnd), r.State, usage(m, r.Usage), r.Amount.USD(),
			r.Source, marks(r))
	}
	return lines
}

// RenderBill prints rows of the ledger, one a line.
func RenderBill(m *meter.Meter, rows []meter.Row) []string {
	lines := make([]string, len(rows))
	for i := range rows {
		r := &rows[i]
		lines[i] = fmt.Sprintf("%s %s %s rev=%d %s usd=%s adj=%s total=%s %s%s", word(r.Account), stamp(r.WindowEnd), r.State, r.Revision,
			usage(m, r.Usage), r.Amount.USD(), r.Adjustment.USD(), r.Total().USD(), r.Source, marks(r))
	}
	return lines
}

// marks are the words at the end of a row's line.
func marks(r *meter.Row) string {
	var s string
	if r.Unpriced > 0 {
		s += fmt.Sprintf(" unpriced=%d", r.Unpriced)
	}
	_, amount := r.Amount.Int64()
	_, total := r.Total().Int64()
	if !amount || !total {
		s += " overflow"
	}
	return s
}

// RenderJournal prints firings, one a line.
func RenderJournal(firings []meter.Firing) []string {
	lines := make([]string, len(firings))
	for i := range firings {
		f := &firings[i]
		lines[i] = fmt.Sprintf("%s rev=%d %s %s requests=%d total=%s delta=%s", f.Kind, f.Revision, word(f.Account), stamp(f.WindowEnd),
			f.Total.Requests, f.TotalPico.USD(), f.DeltaPico.USD())
	}
	return lines
}

// RenderItems prints side outputs, one a line, by partition, first and last offset; other verdicts are left out.
// prices[i] is what items[i] would have cost.
func RenderItems(m *meter.Meter, items []meter.Item, prices []meter.Priced) []string {
	order := make([]int, 0, len(items))
	for i := range items {
		switch items[i].Verdict {
		case meter.VerdictFiltered, meter.VerdictLate, meter.VerdictConflict, meter.VerdictOrphan, meter.VerdictLateCompletion:
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return compareItems(&items[a], &items[b]) })
	lines := make([]string, len(order))
	for i, j := range order {
		lines[i] = renderItem(m, &items[j], prices[j])
	}
	return lines
}

func compareItems(a, b *meter.Item) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offsets[0], b.Offsets[0]),
		cmp.Compare(a.Offsets[len(a.Offsets)-1], b.Offsets[len(b.Offsets)-1]))
}

func renderItem(m *meter.Meter, it *meter.Item, p meter.Priced) string {
	offsets := make([]string, len(it.Offsets))
	for i, o := range it.Offsets {
		offsets[i] = strconv.FormatInt(o, 10)
	}
	account := "-"
	if it.Account != "" {
		account = word(it.Account)
	}
	s := fmt.Sprintf("%s %d@%s %s %s %s %s %s usd=%s", it.Verdict, it.Partition, strings.Join(offsets, ","),
		word(strings.Join(it.ID.Parts(), "/")), it.Kind, account, stamp(it.WindowEnd), usage(m, it.Usage), p.Amount.USD())
	if len(p.Unpriced) > 0 {
		s += " unpriced"
	}
	if it.Door {
		s += " door"
	}
	if it.Abandoned {
		s += " abandoned"
	}
	if it.Filter != "" {
		s += " filter=" + word(it.Filter)
	}
	return s
}

// RenderDead prints dead letters, one a line, by partition and offset.
func RenderDead(dead []DeadLetter) []string {
	dead = slices.Clone(dead)
	slices.SortFunc(dead, func(a, b DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	lines := make([]string, len(dead))
	for i, d := range dead {
		lines[i] = fmt.Sprintf("%d@%d %s", d.Partition, d.Offset, d.Reason)
	}
	return lines
}

// RenderSummary prints the buckets that are not zero, on one line.
func RenderSummary(s *meter.Summary) []string {
	words := []string{fmt.Sprintf("read=%d", s.Read)}
	add := func(name string, n int64) {
		if n != 0 {
			words = append(words, fmt.Sprintf("%s=%d", name, n))
		}
	}
	for _, r := range meter.Reasons() {
		add("dead_letter."+r.String(), s.DeadLetter[r])
	}
	add("tombstone", s.Tombstone)
	add("ignored", s.Ignored)
	add("tick", s.Tick)
	add("event", s.Event)
	add("progress", s.Progress)
	add("counted", s.Counted)
	add("filtered", s.Filtered)
	add("late", s.Late)
	add("duplicate", s.Duplicate)
	add("conflict", s.Conflict)
	add("orphan", s.Orphan)
	add("late_completion", s.LateCompletion)
	add("open", s.Open)
	add("abandoned", s.Abandoned)
	add("superseded", s.Superseded)
	return []string{strings.Join(words, " ")}
}

// usage prints requests and every quantity in the meter's order, zeros too.
func usage(m *meter.Meter, u meter.Usage) string {
	words := []string{fmt.Sprintf("requests=%d", u.Requests)}
	for i, name := range m.QuantityNames() {
		var q int64
		if i < len(u.Quantities) {
			q = u.Quantities[i]
		}
		words = append(words, fmt.Sprintf("%s=%d", name, q))
	}
	return strings.Join(words, " ")
}

// stamp prints a time in UTC, with ms where it has some.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// word prints text that may hold anything: quoted if a space or something unprintable is in it.
func word(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !strconv.IsPrint(r) || r == '"' }) {
		return strconv.Quote(s)
	}
	return s
}
