package meter

import "math"

// MinusInfinity is the watermark of a partition before its first admitted record;
// PlusInfinity the one after draining (R4, R13). Both are far beyond any plausible time, and
// half of an int64, so that adding a duration never wraps.
const (
	MinusInfinity int64 = math.MinInt64 / 2
	PlusInfinity  int64 = math.MaxInt64 / 2
)

// A Record is one record of a log as it was read (R1). Its bytes are not yet judged.
type Record struct {
	Partition  int32
	Offset     int64
	LogTime    int64 // ms; valid if HasLogTime
	HasLogTime bool
	// Received: the log time is to be read from the meter's `received` field (plain event lines).
	Received bool
	Null     bool // a null value: a tombstone
	Key      []byte
	Value    []byte
	Byte     int64 // where its line begins in a file source; a restart mark remembers it
}

// Bucket is where admission puts a record (R2). Every record has exactly one.
type Bucket uint8

// The buckets of R2.
const (
	BucketEvent Bucket = iota + 1
	BucketTick
	BucketTombstone
	BucketIgnored
	BucketDeadLetter
)

var bucketNames = [...]string{"", "event", "tick", "tombstone", "ignored", "dead_letter"}

// String is the name of the bucket in archives and summaries.
func (b Bucket) String() string { return bucketNames[b] }

// Reason says why a record is a dead letter (R2), in the order in which they are judged.
type Reason uint8

// The reasons of R2; ReasonNone for every record that is no dead letter.
const (
	ReasonNone Reason = iota
	TooLarge
	Empty
	BadUTF8
	BadJSON
	DuplicateKey
	MissingID
	MissingAccount
	MissingSKU
	BadTime
	ImplausibleTime
	FutureTime
	BadQuantity
	BadUsage
	BadStatus
	reasonEnd
)

var reasonNames = [...]string{"", "too_large", "empty", "bad_utf8", "bad_json", "duplicate_key", "missing_id", "missing_account",
	"missing_sku", "bad_time", "implausible_time", "future_time", "bad_quantity", "bad_usage", "bad_status"}

// String is the name of the reason in archives and summaries.
func (r Reason) String() string { return reasonNames[r] }

// Reasons lists every reason in order.
func Reasons() []Reason {
	all := make([]Reason, 0, reasonEnd-1)
	for r := TooLarge; r < reasonEnd; r++ {
		all = append(all, r)
	}
	return all
}

// Kind is what an event means to the meter (R7).
type Kind uint8

// The kinds. KindEvent is the only billable kind of an events meter.
const (
	KindNone Kind = iota
	KindStart
	KindProgress
	KindComplete
	KindError
	KindEvent
	KindTick
)

var kindNames = [...]string{"", "start", "progress", "complete", "error", "event", "tick"}

// String is the name of the kind in the meter file, archives and SQL.
func (k Kind) String() string { return kindNames[k] }

// Kinds lists every kind but KindNone.
func Kinds() []Kind {
	return []Kind{KindStart, KindProgress, KindComplete, KindError, KindEvent, KindTick}
}

// IsEnd reports whether k is C or E, which are one kind to identity (R3).
func (k Kind) IsEnd() bool { return k == KindComplete || k == KindError }

// An Event is a decoded record: its bucket and, if admitted, what the meter reads from it.
// Which fields are read on which kind is R2; what is not read is zero.
type Event struct {
	Partition  int32
	Offset     int64
	LogTime    int64 // ms; valid if HasLogTime. For plain event lines already taken from `received`.
	HasLogTime bool
	Byte       int64 // Record.Byte
	Bucket     Bucket
	Reason     Reason // of a dead letter
	Kind       Kind   // KindNone unless the kind was known

	ID      ID
	IDHash  uint64 // ID.Hash64(), so that no engine hashes twice
	Account string // starts and events
	SKU     string // starts and events
	Time    int64  // event time, ms
	Status  string // completes and events: "ok" where missing. Errors: "error".

	// Quantities has one value per Meter.Event.Quantities, 0 where not Present. Bit i of Present
	// says that quantity i was read (a default counts as read; a progress record may say nothing).
	Quantities []int64
	Present    uint64
	// Attributes has one value per Meter.Event.Attributes, "" where absent (starts and events).
	Attributes []string
	Latency    int64 // ms; valid if HasLatency (ends and events)
	HasLatency bool
	// PayloadHash is XXH3-64 over all mapped fields read on this kind; equal hashes of two records
	// of one id and kind mean equal fields (R3). 0 for progress records and ticks.
	PayloadHash uint64
	// Reference is what the outside calls the record; the ID where the meter names none.
	Reference ID
}

// Admitted reports whether the record moves the watermark (R2).
func (e *Event) Admitted() bool { return e.Bucket == BucketEvent || e.Bucket == BucketTick }

// Reach is min(time, log time), or the time without a log time (R4). Only of admitted records.
func (e *Event) Reach() int64 {
	if e.HasLogTime && e.LogTime < e.Time {
		return e.LogTime
	}
	return e.Time
}
