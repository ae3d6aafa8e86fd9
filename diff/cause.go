package diff

// A Cause says why a row differs. Its order is that of DESIGN section 9: of two causes that apply to one record, the
// smaller one explains it.
type Cause uint8

// The causes.
const (
	// Late: one side billed it, the other judged it late (R6, R7).
	Late Cause = iota + 1
	// DuplicateCounted: a copy of a record was billed by a side that does not know it for a copy.
	DuplicateCounted
	// DuplicateBeyondHorizon: a copy that came after its id was forgotten was billed again (R8).
	DuplicateBeyondHorizon
	// Conflict: same id, other payload; each side billed another of the two, or one billed neither (R3).
	Conflict
	// AbandonedThenCompleted: one side billed the abandoned request, the other its late completion (R7).
	AbandonedThenCompleted
	// Orphan: the end met no start in time; the other side put them together (R7).
	Orphan
	// SplitAcrossPartitions: records of one id are in several partitions (R1), which one side counts apart.
	SplitAcrossPartitions
	// DeadLetter: one side billed it, the other could not read it (R2).
	DeadLetter
	// Filtered: one side billed it, a filter of the other took it out (R9).
	Filtered
	// ListPrice: one side used a list price, the other another price (R10).
	ListPrice
	// RateRevision: the two sides used different rates.
	RateRevision
	// Unpriced: one side had no price for it (R10).
	Unpriced
	// Adjustment: one side has the final row without its adjustments (R11).
	Adjustment
	// MissingInArchive: the archive lacks log positions that the ledger counted.
	MissingInArchive
	// MissingInStream: the other side knows a record that is nowhere in our log.
	MissingInStream
	// LostRange: log positions that were lost and accepted as lost.
	LostRange
	// Overflow: an amount leaves 64 bits, and one side wrapped or clamped it.
	Overflow
	// MeterMismatch: the two sides are of different meters, and nothing else explains the record.
	MeterMismatch
	// LedgerBroken: the ledger contradicts itself, whatever it is compared with (R11).
	LedgerBroken
	// Unexplained: none of the above; the text says what is known.
	Unexplained
	causeEnd
)

var causeNames = [...]string{"", "late", "duplicate_counted", "duplicate_beyond_horizon", "conflict",
	"abandoned_then_completed", "orphan", "split_across_partitions", "dead_letter", "filtered", "list_price",
	"rate_revision", "unpriced", "adjustment", "missing_in_archive", "missing_in_stream", "lost_range", "overflow",
	"meter_mismatch", "ledger_broken", "unexplained"}

// String is the name of the cause in every format.
func (c Cause) String() string { return causeNames[c] }

// Causes lists every cause in order.
func Causes() []Cause {
	all := make([]Cause, 0, causeEnd-1)
	for c := Late; c < causeEnd; c++ {
		all = append(all, c)
	}
	return all
}
