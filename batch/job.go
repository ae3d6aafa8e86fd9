package batch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Truth is one of the two of R15.
type Truth string

// The truths.
const (
	AsStreamed Truth = "as-streamed"
	Complete   Truth = "complete"
)

// Everything is the End of a part that is not cut.
const Everything int64 = math.MaxInt64

// ErrSum says that a sum of quantities or requests leaves int64 (R9): there is no row then, never a wrapped one.
var ErrSum = errors.New("R9: a sum leaves 64 bits")

// A Job says what to recompute and from what.
type Job struct {
	Meter *meter.Meter
	// Card and List are the rates (R10); nil has no rates.
	Card, List *meter.RateCard
	Truth      Truth
	// Parts are the partitions that have records, each once. One of which nothing is left in [Begin, End) still holds finality back: its last
	// watermark is that of its MaxReach.
	Parts []Part
	// Files hold the archive columns, in any order; no two may hold the same offset of a partition. Rows outside their part's
	// [Begin, End) do not exist for the job.
	Files []File
	// From and To (ms) keep the rows of windows that end in (From, To]; nil is without bound. They do not change any verdict, nor the summary.
	From, To *int64
	// Account keeps the rows of one account; "" keeps all.
	Account string
	// Horizon bounds the complete truth to records with a log time in [FromLog, ToLog], or without one (R15); nil is everything there is.
	Horizon *Horizon
}

// A Part is one partition as the job sees it. See [Whole] and [Prune].
type Part struct {
	Partition int32
	// Begin is the first offset that exists; MaxReach the highest reach of admitted records before it (meter.MinusInfinity if none): for the as-streamed
	// truth a checkpoint of R8's second theorem.
	Begin, MaxReach int64
	// End is the first offset that no longer exists; Everything where nothing is cut.
	End int64
	// Drained says that the log ends here for good (R13). A part that was cut is not drained.
	Drained bool
}

// Whole is a partition from its beginning to its end.
func Whole(partition int32, drained bool) Part {
	return Part{Partition: partition, Begin: math.MinInt64, MaxReach: meter.MinusInfinity, End: Everything, Drained: drained}
}

// A File is one Parquet file with the archive columns.
type File struct {
	Path      string // as the engine opens it; nothing is read from the words in it
	Partition int32
	// First and Next bound the offsets of its rows: [First, Next). Files that lie wholly outside of their part are not opened.
	First, Next int64
	// Rows is how many rows the footer promises; 0 if unknown. Another number of rows is an error.
	Rows int64
}

// A Horizon bounds the complete truth by log time, ms, both ends included.
type Horizon struct{ FromLog, ToLog int64 }

// A Result is a finished recompute.
type Result struct {
	// Rows in which something is counted, by account and window end, priced, with their cells; state recomputed or open, revision 0.
	Rows []meter.Row
	// Summary is over all that exists for the job, whatever From, To and Account (R14).
	Summary meter.Summary
	// Watermarks is the last watermark of every part (plus infinity if drained).
	Watermarks map[int32]int64
}

// An ItemFilter chooses verdicts. The zero filter chooses every item but progress; what is given narrows it: an item must pass all of them.
type ItemFilter struct {
	// Rows keeps items of these rows: same window end, and same account where the item's account is known.
	Rows []meter.RowKey
	// IDs keeps items of these ids.
	IDs []meter.ID
	// Verdicts keeps these verdicts. Progress records are items only if VerdictProgress is asked for here, or with Progress.
	Verdicts []meter.Verdict
	Progress bool
}

// An Engine runs jobs.
type Engine interface {
	// Recompute computes the rows and the summary of a job.
	Recompute(ctx context.Context, job *Job) (*Result, error)
	// Items lists verdicts by partition, first and last offset. From, To and Account of the job hold too (an item without a known
	// account passes Account).
	Items(ctx context.Context, job *Job, filter ItemFilter) ([]meter.Item, error)
}

// Check finds what no engine can run.
func (j *Job) Check() error {
	switch {
	case j.Meter == nil:
		return errors.New("batch: check job: no meter")
	case j.Truth != AsStreamed && j.Truth != Complete:
		return fmt.Errorf("batch: check job: truth %q: want %s or %s", j.Truth, AsStreamed, Complete)
	case j.Horizon != nil && j.Truth != Complete:
		return errors.New("batch: check job: an audit horizon bounds the complete truth only (R15)")
	}
	parts := map[int32]*Part{}
	for i := range j.Parts {
		p := &j.Parts[i]
		if parts[p.Partition] != nil {
			return fmt.Errorf("batch: check job: partition %d stands twice", p.Partition)
		}
		if p.Drained && p.End != Everything {
			return fmt.Errorf("batch: check job: partition %d is cut at %d: it does not end there for good (R13)", p.Partition, p.End)
		}
		parts[p.Partition] = p
	}
	for _, f := range j.Files {
		switch p := parts[f.Partition]; {
		case p == nil:
			return fmt.Errorf("batch: check job: %s is of partition %d, which is not in the job", f.Path, f.Partition)
		case j.Truth == Complete && f.First < p.Begin:
			return fmt.Errorf("batch: check job: %s begins at offset %d, its partition at %d: the complete truth forgets nothing and is never pruned (R15)", f.Path, f.First, p.Begin)
		}
	}
	return nil
}
