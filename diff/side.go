package diff

import (
	"context"
	"io"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// SideKind says what a side is.
type SideKind uint8

// The kinds of side. The first three are our own: they have records of the log behind them. Totals and Events are
// somebody else's.
const (
	Ledger SideKind = iota + 1
	Recompute
	Archive // another meter over the same archive
	Totals
	Events
)

// Columns says what the rows of a side state. A column is compared only if both sides state it.
type Columns struct {
	Requests bool
	Money    bool // Row.Amount and Row.Adjustment
	SetHash  bool // Row.Usage.SetHash
}

// AllColumns is what our own sides state.
var AllColumns = Columns{Requests: true, Money: true, SetHash: true}

// A Side is one of the two things that are compared.
type Side struct {
	// Name is how the report calls the side: "ledger", "recompute as-streamed", "partner.csv".
	Name string
	Kind SideKind
	// Fingerprint and RateRevision are provenance; "" where the side has none. Two sides with different non-empty
	// fingerprints are of different meters (MeterMismatch).
	Fingerprint  string
	RateRevision string
	// Topic is the log's name in positions ("topic/partition@offset"); our own sides only.
	Topic string
	// WindowSize is Z in ms; 0 in a file, whose windows are then taken to be the other side's.
	WindowSize int64
	// Quantities are the columns of Row.Usage.Quantities and Item.Usage.Quantities, in that order, with PartOf (-1
	// for none) and, where the meter has it so, a constant. A quantity is compared if both sides name it.
	Quantities []meter.Quantity
	// Identity names what ids are made of ([IdentityOf]). Sides of equal identity are matched by id, and their set
	// hashes are compared; others are matched by reference.
	Identity string
	// ConstSKU is the sku of every event, where the meter has a constant; it values events that our log lacks.
	ConstSKU string
	Columns  Columns

	// Rows are the side's rows, ordered by account and window; nil for Events.
	Rows RowReader
	// Detail returns the rows of keys with their cells, in any order. nil: Rows bring their cells themselves.
	Detail func(ctx context.Context, keys []meter.RowKey) ([]meter.Row, error)
	// Items are the records behind the rows, by the rules that made the rows; nil for files. Two sides with the
	// same records share one source: it is asked once.
	Items ItemSource
	// Complete are the records by the complete truth (R15), to explain totals without ids; may be nil.
	Complete ItemSource
	// Events are the single events of an Events side, in the order of the file.
	Events []Event
	// Prices are the rates that the rows were priced with; nil for files.
	Prices *PriceBook
	// Lost are log positions that the side accepted as lost, MissingArchive those that its archive should hold.
	Lost, MissingArchive []Range
	// Findings are what is wrong with the side as a whole, whatever it is compared with.
	Findings []Finding
	// Adjusted is the usage that adjustments moved per row (the sum of the journal's deltas after the final row);
	// nil where it is not known. It helps only against totals.
	Adjusted map[meter.RowKey]meter.Usage
}

// A RowReader hands out rows one by one.
type RowReader interface {
	// Next fills *r with the next row, or returns io.EOF. It may reuse r's slices; the caller copies what it keeps.
	Next(r *meter.Row) error
}

// An ItemSource answers for the records behind a side's rows.
type ItemSource interface {
	// Items returns the items that q asks for, in any order, each once.
	Items(ctx context.Context, q ItemQuery) ([]meter.Item, error)
	// DeadLetters returns what could not be read, decoded as far as it goes (R2).
	DeadLetters(ctx context.Context) ([]Dead, error)
}

// An ItemQuery asks for items: all of them, or those of the rows (Item.Account and Item.WindowEnd) and those of the
// ids. An item asked for twice is returned once.
type ItemQuery struct {
	All  bool
	Rows []meter.RowKey
	IDs  []meter.ID
}

// A Dead is a dead letter with what could be read of it; what could not is zero.
type Dead struct {
	Partition int32
	Offset    int64
	Reason    meter.Reason
	Kind      meter.Kind
	ID        meter.ID
	Reference meter.ID
	Account   string
	SKU       string
	Time      int64 // ms; valid if HasTime
	HasTime   bool
	// Quantities as Side.Quantities; bit i of Present says that quantity i could be read.
	Quantities []int64
	Present    uint64
}

// A Range is [First, Next) of one partition's log.
type Range struct {
	Partition   int32
	First, Next int64
	// From and To bound, where they are known (From < To), the ends of the windows that may miss something: (From,
	// To] in ms. Both zero: any window may.
	From, To int64
}

// An Event is one line of a partner's log.
type Event struct {
	Account   string
	Time      int64    // ms
	Reference meter.ID // the tuple that the meter's reference is matched with
	// Quantities as Side.Quantities of the Events side.
	Quantities []int64
	Line       int // of the file, from 1
}

// IdentityOf names the identity of m: equal names mean that equal records have equal ids.
func IdentityOf(m *meter.Meter) string {
	if m.Event.Identity == nil {
		return "none"
	}
	var parts []string
	for _, path := range m.Event.Identity {
		parts = append(parts, string(meter.NewID(path...)))
	}
	return string(meter.NewID(parts...))
}

// SliceRows reads rows from memory.
func SliceRows(rows []meter.Row) RowReader { return &sliceRows{rows: rows} }

type sliceRows struct {
	rows []meter.Row
	next int
}

func (s *sliceRows) Next(r *meter.Row) error {
	if s.next == len(s.rows) {
		return io.EOF
	}
	*r = s.rows[s.next]
	s.next++
	return nil
}

// SliceItems answers from memory.
func SliceItems(items []meter.Item, dead []Dead) ItemSource { return &sliceItems{items, dead} }

type sliceItems struct {
	items []meter.Item
	dead  []Dead
}

func (s *sliceItems) Items(_ context.Context, q ItemQuery) ([]meter.Item, error) {
	if q.All {
		return s.items, nil
	}
	rows, ids := make(map[meter.RowKey]bool, len(q.Rows)), make(map[meter.ID]bool, len(q.IDs))
	for _, k := range q.Rows {
		rows[k] = true
	}
	for _, id := range q.IDs {
		ids[id] = true
	}
	var found []meter.Item
	for _, it := range s.items {
		if ids[it.ID] || rows[meter.RowKey{Account: it.Account, WindowEnd: it.WindowEnd}] {
			found = append(found, it)
		}
	}
	return found, nil
}

func (s *sliceItems) DeadLetters(context.Context) ([]Dead, error) { return s.dead, nil }
