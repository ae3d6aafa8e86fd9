package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Result is everything that the rules say of a log under one truth (R15).
type Result struct {
	// Rows are the recompute's: ordered by account and window end, with cells. State is recomputed, or open
	// where the window is not final in every partition that has a record; Revision 0.
	Rows []meter.Row
	// Items hold a verdict for every admitted event, each event in exactly one item, progress records one each.
	// Ordered by partition, first offset, last offset. Duplicates and open records are among them. Under the
	// complete truth nothing judges: Judged is 0.
	Items []meter.Item
	// DeadLetters in order of partition and offset.
	DeadLetters []DeadLetter
	// Journal is what a file run publishes (R11), in order. Nil for the complete truth.
	Journal []meter.Firing
	// Bill is the ledger's rows after the run (R11): the state and revision are those of the row's last firing
	// (running, 0 without one), the total is the sum of the cells as they stand, Amount of a final row is its
	// final firing's, of any other row the total. Nil for the complete truth.
	Bill    []meter.Row
	Summary meter.Summary
}

// A DeadLetter is a record that no rule admits (R2), with its bytes.
type DeadLetter struct {
	Partition int32
	Offset    int64
	Reason    meter.Reason
	Value     []byte
}

// Options of the complete truth.
type Options struct {
	// Drain: the log has ended for good (R13).
	Drain bool
	// AuditHorizon bounds the truth to records with log time in the range (R15); the others do not exist for
	// it, neither as records nor for watermarks. Nil: everything there is.
	AuditHorizon *Range
}

// A Range of log times in ms, both ends inside.
type Range struct{ From, To int64 }

// AsStreamed judges the log by the rules with lateness and forgetting: what the stream has to say (R15).
// An error means that the log is none (R1) or that a sum left its range (R9, R10). list may be nil.
func AsStreamed(m *meter.Meter, card, list *meter.RateCard, log *meter.Log, drain bool) (*Result, error) {
	return asStreamed(&ruling{m: m, drain: drain}, newPrices(m, card, list), log)
}

func asStreamed(r *ruling, prices *prices, log *meter.Log) (*Result, error) {
	if r.book = newLogbook(r.m, log, nil); r.book.err != nil {
		return nil, r.book.err
	}
	for _, p := range r.book.partitions {
		r.partition(p)
	}
	res, err := r.result(prices)
	if err != nil {
		return nil, err
	}
	res.Journal, res.Bill, err = publish(r, prices, log)
	return res, err
}

// Complete judges the log by the rules without lateness, door or forgetting (R15).
func Complete(m *meter.Meter, card, list *meter.RateCard, log *meter.Log, o Options) (*Result, error) {
	book := newLogbook(m, log, o.AuditHorizon)
	if book.err != nil {
		return nil, book.err
	}
	r := &ruling{m: m, book: book, drain: o.Drain, complete: true}
	r.everything()
	return r.result(newPrices(m, card, list))
}

// result puts the verdicts together: rows from the effects, the summary from the items, both checked.
func (r *ruling) result(prices *prices) (*Result, error) {
	res := &Result{Items: r.items, DeadLetters: r.book.dead, Summary: r.book.summary}
	slices.SortFunc(res.Items, func(a, b meter.Item) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offsets[0], b.Offsets[0]),
			cmp.Compare(a.Offsets[len(a.Offsets)-1], b.Offsets[len(b.Offsets)-1]))
	})
	tally(&res.Summary, res.Items)
	res.Summary.Abandoned, res.Summary.Superseded = r.abandoned, r.superseded
	if err := res.Summary.Check(); err != nil {
		return nil, fmt.Errorf("oracle: check its own verdicts: %w", err)
	}
	if err := r.checkOnce(); err != nil {
		return nil, err
	}
	ledger := cells{}
	for _, e := range r.effects {
		if err := ledger.add(e); err != nil {
			return nil, err
		}
	}
	for key, c := range ledger {
		row, err := prices.row(key, c)
		if err != nil {
			return nil, err
		}
		if row.Usage.Requests == 0 {
			continue
		}
		row.State = meter.Recomputed
		if !r.final(key.WindowEnd) {
			row.State = meter.Open
		}
		res.Rows = append(res.Rows, row)
	}
	sortRows(res.Rows)
	return res, nil
}

// final reports whether a window is final in every partition that has a record (R6).
func (r *ruling) final(end int64) bool {
	for _, p := range r.book.partitions {
		if !r.drain && p.last < end+r.m.Window.AllowedLateness {
			return false
		}
	}
	return true
}

// tally counts the records of the items (R14).
func tally(s *meter.Summary, items []meter.Item) {
	for i := range items {
		n := int64(len(items[i].Offsets) + len(items[i].Elsewhere))
		switch items[i].Verdict {
		case meter.VerdictProgress:
			s.Progress += n
		case meter.VerdictCounted:
			s.Counted += n
		case meter.VerdictFiltered:
			s.Filtered += n
		case meter.VerdictLate:
			s.Late += n
		case meter.VerdictDuplicate:
			s.Duplicate += n
		case meter.VerdictConflict:
			s.Conflict += n
		case meter.VerdictOrphan:
			s.Orphan += n
		case meter.VerdictLateCompletion:
			s.LateCompletion += n
		case meter.VerdictOpen:
			s.Open += n
		}
	}
}

// checkOnce requires every admitted event in exactly one item: R14 record by record.
func (r *ruling) checkOnce() error {
	times := map[meter.LogPosition]int{}
	for i := range r.items {
		for _, o := range r.items[i].Offsets {
			times[meter.LogPosition{Partition: r.items[i].Partition, Offset: o}]++
		}
		for _, at := range r.items[i].Elsewhere {
			times[at]++
		}
	}
	for _, p := range r.book.partitions {
		for i := range p.entries {
			e := &p.entries[i]
			at := meter.LogPosition{Partition: e.Partition, Offset: e.Offset}
			if e.Bucket == meter.BucketEvent && times[at] != 1 {
				return fmt.Errorf("oracle: check its own verdicts: R14: %v has %d of them", at, times[at])
			}
		}
	}
	return nil
}

func sortRows(rows []meter.Row) {
	slices.SortFunc(rows, func(a, b meter.Row) int { return a.Compare(b.RowKey) })
}
