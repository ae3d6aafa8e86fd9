package meter

import (
	"slices"
	"strings"
)

// Rules is the number of the rules that every engine obeys; it is part of the fingerprint.
const Rules = 1

// MeterKind says how records become billable (R7).
type MeterKind string

// The kinds of meter.
const (
	Requests MeterKind = "requests"
	Events   MeterKind = "events"
)

// A Meter is a meter file as it was parsed and found right. Durations are milliseconds.
type Meter struct {
	Name      string
	Kind      MeterKind
	Event     EventMap
	Watermark Watermark
	Window    Window
	// AbandonAfter is A of R7; 0 in an events meter.
	AbandonAfter int64
	Filters      []Filter
	Pricing      Pricing
	Run          RunConfig
	// Fingerprint is hex sha256 over what decides a verdict, and only that.
	Fingerprint string
	// EventFingerprint covers the `event:` part alone (without reference): archives with another one
	// have to be decoded again.
	EventFingerprint string
	// Path is the file it was read from; relative paths in it are relative to its folder.
	Path string
	Text []byte // as read: `_meta` of the archive keeps it
}

// Version names the meter's verdicts in rows and archives: the first 16 digits of the fingerprint.
func (m *Meter) Version() string { return m.Fingerprint[:16] }

// A FieldPath is where a field stands in the JSON object: exact names from the outside in.
type FieldPath []string

// A Source is a path or a constant.
type Source struct {
	Path    FieldPath
	Const   string
	IsConst bool
}

// TimeUnit is how event time is written.
type TimeUnit string

// The time units of R2.
const (
	UnitMs      TimeUnit = "ms"
	UnitS       TimeUnit = "s"
	UnitUs      TimeUnit = "us"
	UnitNs      TimeUnit = "ns"
	UnitRFC3339 TimeUnit = "rfc3339"
)

// EventMap says where the meter reads its fields (the `event:` part).
type EventMap struct {
	KindPath FieldPath       // nil: every record is an event
	Kinds    map[string]Kind // word in the record -> kind
	Identity []FieldPath     // nil: identity none
	Account  Source
	SKU      Source
	Time     FieldPath
	Status   FieldPath // nil: always ok
	Received FieldPath // nil: none
	// Reference is what the outside calls a record; nil: the identity. Decides no verdict.
	Reference  []FieldPath
	TimeUnit   TimeUnit
	Latency    FieldPath // nil: none
	Quantities []Quantity
	Attributes []Attribute
	// TierOn is the index of the tier's quantity, -1 without tiers; TierAbove are the thresholds, rising.
	TierOn    int
	TierAbove []int64
	MaxAhead  int64 // ms
	MaxBytes  int64
	MinTime   int64 // ms
}

// Quantity is one counted number of an event, named as in rates and output.
type Quantity struct {
	Name    string
	Path    FieldPath
	Const   int64
	IsConst bool
	OnEnd   bool // requests meters: read on ends and progress; else on starts. Always false in events meters.
	// PartOf is the index of the whole that this is a part of, or -1.
	PartOf     int
	Default    int64
	HasDefault bool
}

// Attribute is a text of the event or the start, for filters.
type Attribute struct {
	Name string
	Path FieldPath
}

// Watermark settings (R4, R11), ms.
type Watermark struct {
	MaxOutOfOrderness int64
	Idleness          int64
}

// Window settings (R5, R6), ms.
type Window struct {
	Size            int64
	AllowedLateness int64
}

// FilterField says what a filter looks at.
type FilterField string

// What filters look at (R9). FilterAttribute and FilterQuantity use Filter.Index.
const (
	FilterAttribute FilterField = "attribute"
	FilterQuantity  FilterField = "quantity"
	FilterAccount   FilterField = "account"
	FilterSKU       FilterField = "sku"
	FilterStatus    FilterField = "status"
)

// FilterOp is how a filter compares.
type FilterOp string

// The comparisons of R9. OpIn covers equals (one value). Above and below are strict, of quantities only.
const (
	OpIn     FilterOp = "in"
	OpPrefix FilterOp = "prefix"
	OpAbove  FilterOp = "above"
	OpBelow  FilterOp = "below"
)

// A Filter keeps matching billable records out of every cell (R9).
type Filter struct {
	Name   string
	Field  FilterField
	Index  int // of the attribute or quantity
	Op     FilterOp
	Values []string // OpIn, OpPrefix on text
	Ints   []int64  // OpIn, OpAbove, OpBelow on quantities
}

// Pricing names the rate files (R10), relative to the meter file.
type Pricing struct {
	RateCard string
	List     string // "" without
}

// RunConfig says where things live; never part of the fingerprint.
type RunConfig struct {
	Source       string // "" or file, "-"
	SourceFormat string // "trace" or "values"
	Archive      string
	Ledger       string
}

// QuantityNames lists the names in order.
func (m *Meter) QuantityNames() []string {
	names := make([]string, len(m.Event.Quantities))
	for i, q := range m.Event.Quantities {
		names[i] = q.Name
	}
	return names
}

// QuantityColumns are the quantities as columns of a table that has the columns taken, too: a name that is one of those,
// however it is spelled, gets the ending _quantity. SQL and Parquet readers know no difference in case.
func (m *Meter) QuantityColumns(taken ...string) []string {
	names := m.QuantityNames()
	for i := range names {
		others := slices.Concat(taken, names[:i], names[i+1:])
		for slices.ContainsFunc(others, func(t string) bool { return strings.EqualFold(t, names[i]) }) {
			names[i] += "_quantity"
		}
	}
	return names
}
