package duckdb

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A tally is what the log holds before any verdict.
type tally struct {
	summary meter.Summary
	rows    map[int32]int64 // by partition
}

func (s *session) tally(ctx context.Context) (tally, error) {
	t := tally{rows: map[int32]int64{}}
	err := s.each(ctx, "SELECT part, bucket, reason, kind, records FROM "+batch.TallyTable, func(v []driver.Value) error {
		part, bucket, reason, kind, n := int32(whole(v[0])), text(v[1]), text(v[2]), text(v[3]), whole(v[4])
		t.rows[part] += n
		return admit(&t.summary, bucket, reason, kind, n)
	})
	if err != nil {
		return t, fmt.Errorf("duckdb: count the log: %w", err)
	}
	return t, nil
}

// admit counts records by the bucket in which admission put them (R2, R14).
func admit(s *meter.Summary, bucket, reason, kind string, n int64) error {
	s.Read += n
	switch bucket {
	case meter.BucketEvent.String():
		s.Event += n
		if kind == meter.KindProgress.String() {
			s.Progress += n
		}
	case meter.BucketTick.String():
		s.Tick += n
	case meter.BucketTombstone.String():
		s.Tombstone += n
	case meter.BucketIgnored.String():
		s.Ignored += n
	case meter.BucketDeadLetter.String():
		i := slices.IndexFunc(meter.Reasons(), func(r meter.Reason) bool { return r.String() == reason })
		if i < 0 {
			return fmt.Errorf("R2: %d dead letters have the unknown reason %q", n, reason)
		}
		s.DeadLetter[meter.Reasons()[i]] += n
	default:
		return fmt.Errorf("R2: %d records are in the unknown bucket %q", n, bucket)
	}
	return nil
}

// Watermarks at the end of the log.
type watermarks struct {
	last map[int32]int64
	rows map[int32]int64
}

func (s *session) watermarks(ctx context.Context, query string) (watermarks, error) {
	w := watermarks{last: map[int32]int64{}, rows: map[int32]int64{}}
	err := s.each(ctx, "SELECT part, w_end, records FROM ("+query+") AS w", func(v []driver.Value) error {
		w.last[int32(whole(v[0]))], w.rows[int32(whole(v[0]))] = whole(v[1]), whole(v[2])
		return nil
	})
	if err != nil {
		return w, fmt.Errorf("duckdb: find the last watermarks: %w", err)
	}
	return w, nil
}

// final is the time up to which windows are final in every partition (R6): their end must not be above it. A partition without a
// record, which a trace's header or the ledger names, does not count; under an audit horizon, one of which nothing is inside.
func (w *watermarks) final(job *batch.Job) int64 {
	lowest := meter.PlusInfinity
	for part, mark := range w.last {
		if w.rows[part] > 0 || job.Horizon == nil && mark != meter.MinusInfinity {
			lowest = min(lowest, mark)
		}
	}
	return lowest - job.Meter.Window.AllowedLateness
}

// judge counts the records of requests with a verdict (R14).
func judge(s *meter.Summary, verdict meter.Verdict, manner string, requests int64) error {
	records := requests
	switch manner {
	case "ended":
		records *= 2
	case "superseded": // it had been abandoned
		records *= 2
		s.Abandoned += requests
		s.Superseded += requests
	case "abandoned":
		s.Abandoned += requests
	case "alone":
	default:
		return fmt.Errorf("R14: %d requests came about in the unknown manner %q", requests, manner)
	}
	switch verdict {
	case meter.VerdictCounted:
		s.Counted += records
	case meter.VerdictFiltered:
		s.Filtered += records
	case meter.VerdictLate:
		s.Late += records
	case meter.VerdictDuplicate:
		s.Duplicate += records
	case meter.VerdictConflict:
		s.Conflict += records
	case meter.VerdictOrphan:
		s.Orphan += records
	case meter.VerdictLateCompletion:
		s.LateCompletion += records
	case meter.VerdictOpen:
		s.Open += records
	default:
		return fmt.Errorf("R14: %d records have an unknown verdict", records)
	}
	return nil
}

// items reads verdicts in the order of partition, first and last offset.
func (s *session) items(ctx context.Context, m *meter.Meter, query string) ([]meter.Item, error) {
	var items []meter.Item
	known := plainjson.Words{}
	err := s.each(ctx, query, func(v []driver.Value) error {
		items = append(items, item(m, v, known))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("duckdb: list verdicts: %w", err)
	}
	slices.SortFunc(items, func(a, b meter.Item) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offsets[0], b.Offsets[0]),
			cmp.Compare(a.Offsets[len(a.Offsets)-1], b.Offsets[len(b.Offsets)-1]))
	})
	return items, nil
}

// item reads one row of items.sql.
func item(m *meter.Meter, v []driver.Value, words plainjson.Words) meter.Item {
	it := meter.Item{
		Verdict: meter.ParseVerdict(text(v[0])), Abandoned: text(v[1]) == "abandoned", Superseded: text(v[1]) == "superseded",
		Filter: words.Get(text(v[2])), Door: whole(v[3]) == 1, Partition: int32(whole(v[5])), Offsets: []int64{whole(v[6])}, Kind: kindOf(text(v[9])),
		Account: words.Get(text(v[10])), SKU: words.Get(text(v[11])), Tier: int32(whole(v[12])), Time: whole(v[13]),
		WindowEnd: whole(v[14]), Status: words.Get(text(v[15])), Judged: whole(v[17]),
	}
	if v[8] != nil {
		end := meter.LogPosition{Partition: int32(whole(v[7])), Offset: whole(v[8])}
		if end.Partition == it.Partition {
			it.Offsets = append(it.Offsets, end.Offset)
			slices.Sort(it.Offsets)
		} else {
			it.Elsewhere = []meter.LogPosition{end}
		}
	}
	it.Usage.Requests = whole(v[4])
	if it.Usage.Requests == 1 {
		it.Usage.SetHash = uint64(whole(v[16]))
	}
	v = v[18:]
	it.ID, v = joinID(v, idParts(m))
	it.Reference = it.ID
	if n := len(m.Event.Reference); n > 0 {
		it.Reference, v = joinID(v, n)
	}
	it.Usage.Quantities = make([]int64, len(v))
	for i := range v {
		it.Usage.Quantities[i] = whole(v[i])
	}
	return it
}

func joinID(v []driver.Value, n int) (meter.ID, []driver.Value) {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(v[i])
	}
	return meter.NewID(parts...), v[n:]
}

func kindOf(word string) meter.Kind {
	for k := meter.KindStart; k <= meter.KindTick; k++ {
		if k.String() == word {
			return k
		}
	}
	return meter.KindNone
}

// whole is an integer of whatever width the engine chose; 0 for null.
func whole(v driver.Value) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case nil:
		return 0
	}
	panic(fmt.Sprintf("duckdb: the SQL returned %T where an integer belongs", v)) // a bug in the SQL: every sum is cast
}

// text is a string; "" for null.
func text(v driver.Value) string {
	s, _ := v.(string)
	return s
}
