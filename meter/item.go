package meter

// Verdict is what the rules say of a record, or of the whole request it is part of (R14).
type Verdict uint8

// The verdicts of R14. Those from VerdictFiltered to VerdictLateCompletion but for duplicates are side
// outputs: kept, priced, itemised.
const (
	VerdictProgress Verdict = iota + 1
	VerdictCounted
	VerdictFiltered
	VerdictLate
	VerdictDuplicate
	VerdictConflict
	VerdictOrphan
	VerdictLateCompletion
	VerdictOpen
)

var verdictNames = [...]string{"", "progress", "counted", "filtered", "late", "duplicate", "conflict", "orphan", "late_completion", "open"}

// String is the name of the verdict in the ledger, SQL and the summary.
func (v Verdict) String() string { return verdictNames[v] }

// ParseVerdict reads what String writes; 0 for anything else.
func ParseVerdict(s string) Verdict {
	for v, name := range verdictNames {
		if v > 0 && name == s {
			return Verdict(v)
		}
	}
	return 0
}

// An Item is one verdict with all that a person needs to check it: a record, or a request with its start
// and end together where they were counted, late or filtered as one.
type Item struct {
	Verdict Verdict
	Filter  string // VerdictFiltered: the first matching filter's name (R9)
	// Abandoned: the billable record is that of an abandoned request. Superseded: its end came in time and
	// took the abandoned record's place (R7).
	Abandoned, Superseded bool
	Partition             int32
	Offsets               []int64 // the log positions it takes with it, rising
	// Elsewhere are the records it takes with it in other partitions than its own, which is its start's: only under
	// the complete truth, where ids match across partitions (R15).
	Elsewhere []LogPosition
	ID        ID
	Reference ID // of the start or event; of the end where there is no start
	// Kind is the record's kind; of a request that ended its end's, of an abandoned or open one KindStart.
	Kind    Kind
	Account string // "" where it is not known (an end without its start)
	SKU     string
	Tier    int32
	// Time is the event time of the billable record (R7), or of the lone record itself; WindowEnd is end(Time),
	// the window whose price its amount has (R3).
	Time      int64
	WindowEnd int64
	Status    string // "abandoned" for an abandoned request
	// Usage: Requests is 1 for a whole billable record (every item of an events meter), 0 for a lone start or end.
	// Quantities are its own; SetHash is the id's hash where Requests is 1.
	Usage  Usage
	Judged int64 // the watermark that judged it
	Door   bool  // late at the door (R7)
}
