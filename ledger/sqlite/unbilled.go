package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A partitionCount names the records of a partition that have one verdict, or one reason.
type partitionCount struct {
	partition int32
	what      string // the word
}

// auditUnbilled holds the side outputs and the dead letters against what each position says was judged so (R14): an item names
// all records that it is made of. It returns what is wrong, a line each.
func (r *Reader) auditUnbilled(ctx context.Context) ([]string, error) {
	// Offsets are a list as ints writes it: one comma less than numbers.
	items, err := r.counts(ctx, `SELECT partition, verdict, sum(1 + length(offsets) - length(replace(offsets, ',', ''))) FROM gm_item GROUP BY partition, verdict`)
	if err != nil {
		return nil, r.failed("side outputs", err)
	}
	letters, err := r.counts(ctx, `SELECT partition, reason, count(*) FROM gm_dead_letter GROUP BY partition, reason`)
	if err != nil {
		return nil, r.failed("dead letters", err)
	}
	positions, err := r.Positions(ctx)
	if err != nil {
		return nil, err
	}
	var faults []string
	for i := range positions {
		p := &positions[i]
		if err := p.Summary.Check(); err != nil {
			faults = append(faults, fmt.Sprintf("partition %d: %v", p.Partition, err))
		}
		for _, v := range []struct {
			verdict meter.Verdict
			said    int64
		}{
			{meter.VerdictFiltered, p.Summary.Filtered}, {meter.VerdictLate, p.Summary.Late}, {meter.VerdictConflict, p.Summary.Conflict},
			{meter.VerdictOrphan, p.Summary.Orphan}, {meter.VerdictLateCompletion, p.Summary.LateCompletion},
		} {
			faults = items.hold(faults, p.Partition, v.verdict.String(), v.said, "side outputs")
		}
		for _, reason := range meter.Reasons() {
			faults = letters.hold(faults, p.Partition, reason.String(), p.Summary.DeadLetter[reason], "dead letters")
		}
	}
	// What is left belongs to no position, or has a verdict that is never written down.
	faults = items.strangers(faults, "side outputs")
	faults = letters.strangers(faults, "dead letters")
	return faults[:min(len(faults), maxFaults)], nil
}

// recordCounts is how many records there are of each.
type recordCounts map[partitionCount]int64

func (r *Reader) counts(ctx context.Context, query string) (recordCounts, error) {
	found := recordCounts{}
	err := each(ctx, r.tx, query, nil, func(scan func(...any) error) error {
		var c partitionCount
		var n int64
		if err := scan(&c.partition, &c.what, &n); err != nil {
			return err
		}
		found[c] = n
		return nil
	})
	return found, err
}

// hold takes out what was counted and adds a fault where it is not what was said.
func (c recordCounts) hold(faults []string, partition int32, what string, said int64, where string) []string {
	key := partitionCount{partition, what}
	if n := c[key]; n != said {
		faults = append(faults, fmt.Sprintf("partition %d: its position counts %d as %s, its %s %d", partition, said, what, where, n))
	}
	delete(c, key)
	return faults
}

// strangers names what was not taken out, in order.
func (c recordCounts) strangers(faults []string, where string) []string {
	keys := slices.SortedFunc(maps.Keys(c), func(a, b partitionCount) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.what, b.what))
	})
	for _, k := range keys {
		faults = append(faults, fmt.Sprintf("partition %d: its %s count %d as %.40q, and no position says so", k.partition, where, c[k], k.what))
	}
	return faults
}
