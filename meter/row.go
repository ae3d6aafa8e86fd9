package meter

// State says how far a row has come (R11).
type State uint8

// The states of a row, as CLI.md names them. Recomputed and Open belong to a recompute's rows.
const (
	Running State = iota
	Main
	Corrected
	Final
	Incomplete
	Recomputed
	Open
)

var stateNames = [...]string{"running", "main", "corrected", "final", "incomplete", "recomputed", "open"}

// String is the name of the state in machine formats.
func (s State) String() string { return stateNames[s] }

// Price sources (R10).
const (
	PriceTable    = "table"
	PriceService  = "service"
	PriceList     = "list"
	PriceUnpriced = "unpriced"
	PriceMixed    = "mixed"
)

// A Priced amount is the cost of usage and where its prices came from (R10).
type Priced struct {
	Amount   Int128 // pico-dollars, without what is unpriced
	Source   string
	Unpriced []string // names of the quantities that no rate covers, sorted
}

// Overflow reports whether the amount leaves int64 pico-dollars ($9.22 M).
func (p Priced) Overflow() bool {
	_, fits := p.Amount.Int64()
	return !fits
}

// A Row is (account, window) as a reader sees it: `bill` and `recompute` print it (CLI.md).
// Usage and Total are of the row and its adjustments together; Amount is the row alone.
type Row struct {
	RowKey
	State      State
	Revision   int64
	Usage      Usage
	Amount     Int128 // pico-dollars
	Adjustment Int128
	Source     string
	Unpriced   int64 // requests of cells that have an unpriced quantity
	Cells      []PricedCell
	// Span is how much of time the row folds, ms; 0 is one window.
	Span int64
}

// WindowStart is where the row begins: its window, or the first of those it folds.
func (r *Row) WindowStart(m *Meter) int64 {
	if r.Span > 0 {
		return r.WindowEnd - r.Span
	}
	return r.WindowEnd - m.Window.Size
}

// Total is what stands: the row and its adjustments.
func (r *Row) Total() Int128 { return r.Amount.Add(r.Adjustment) }

// A PricedCell is a cell with its cost.
type PricedCell struct {
	Cell
	Priced
}

// FiringKind says why a row was published (R11).
type FiringKind uint8

// The kinds of firing.
const (
	MainFiring FiringKind = iota + 1
	CorrectionFiring
	FinalFiring
	AdjustmentFiring
)

var firingNames = [...]string{"", "main", "correction", "final", "adjustment"}

// String is the name of the firing in the journal.
func (k FiringKind) String() string { return firingNames[k] }

// A Firing is one entry of the journal (R11): the total of the row after it, adjustments included,
// and the delta to what was published before. The deltas of a row sum to its last total.
type Firing struct {
	RowKey
	Kind      FiringKind
	Revision  int64 // of the row; an adjustment carries the final row's
	Total     Usage
	Delta     Usage // Delta.Requests and quantities may be negative; SetHash is the difference mod 2^64
	TotalPico Int128
	DeltaPico Int128
	Source    string
	Unpriced  int64
}
