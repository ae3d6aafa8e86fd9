package diff

import (
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// State is what became of one (account, window).
type State uint8

// The states. Missing: only the right side has the row. Extra: only the left. Open: the window cannot be judged yet.
// Incomplete: the row may miss log positions that were lost.
const (
	Matched State = iota + 1
	Mismatched
	Missing
	Extra
	Open
	Incomplete
)

var stateNames = [...]string{"", "matched", "mismatched", "missing", "extra", "open", "incomplete"}

// String is the name of the state in every format.
func (s State) String() string { return stateNames[s] }

// A Value is what a row states, or the difference of two. Quantities are in the order of Report.Quantities.
type Value struct {
	Requests   int64
	Quantities []int64
	Pico       meter.Int128
	SetHash    uint64
}

// A Share is the part of a difference that one cause explains.
type Share struct {
	Cause Cause
	Value // SetHash is not used
	// IDs are the references of the records, each once, in log order.
	IDs []meter.ID
	// Log are the positions, "topic/partition@offset" or, of a range, "topic/partition@first-last".
	Log []string
	// Why says what is known, where the cause's name does not say it all. Always there for Unexplained.
	Why []string
}

// A Difference is a row that is not matched.
type Difference struct {
	meter.RowKey
	State       State
	Left, Right *Value // nil where the side has no row
	Delta       Value  // left - right; SetHash is not used
	Shares      []Share
}

// A Finding is something wrong that no row shows, such as a missing archive file all of whose records were ignored.
type Finding struct {
	Cause Cause
	Text  string
	Log   []string
}

// A Summary counts rows and money. Compared = Matched + Mismatched + Missing + Extra + Incomplete.
type Summary struct {
	Compared, Matched, Mismatched, Missing, Extra, Incomplete int64
	Open                                                      int64 // rows in windows that cannot be judged yet
	NotCompared                                               int64 // rows of accounts that a partner's log does not name
	Left, Right, Delta                                        Value // sums over the compared rows
	// Causes has one share per cause that occurs, in order; IDs, Log and Why are left out.
	Causes      []Share
	Unexplained int // rows with an unexplained share
}

// Stated says which columns a side states. An Events side states requests, and what was taken from our records.
type Stated struct {
	Requests, Money, SetHash bool
	Quantities               []bool // as Report.Quantities
}

// A Report is the outcome of a comparison. Differences are ordered by account and window.
type Report struct {
	Left, Right string // names of the sides
	// Quantities are the names of the columns of every Value. HasX says which columns are compared; the others mean
	// nothing in a delta. States says what each side states at all.
	Quantities            []string
	HasRequests, HasMoney bool
	HasQuantity           []bool
	States                [2]Stated
	// Valued names the columns that an events side does not state and that were taken from our record of the event.
	Valued      []string
	Differences []Difference
	Findings    []Finding
	Summary     Summary
	allowLost   bool
}

// Agree reports whether the two sides agree: nothing differs, nothing is missing, nothing was found. With
// Options.AllowLost, differences that lost ranges explain wholly do not count.
func (r *Report) Agree() bool {
	for _, d := range r.Differences {
		if !r.forgiven(&d) {
			return false
		}
	}
	for _, f := range r.Findings {
		if !r.allowLost || f.Cause != LostRange {
			return false
		}
	}
	return true
}

func (r *Report) forgiven(d *Difference) bool {
	if !r.allowLost {
		return false
	}
	for _, s := range d.Shares {
		if s.Cause != LostRange {
			return false
		}
	}
	return true
}

// mirror turns the report round.
func (r *Report) mirror() {
	r.Left, r.Right = r.Right, r.Left
	r.States[0], r.States[1] = r.States[1], r.States[0]
	for i := range r.Differences {
		d := &r.Differences[i]
		d.Left, d.Right = d.Right, d.Left
		switch d.State {
		case Missing:
			d.State = Extra
		case Extra:
			d.State = Missing
		}
		d.Delta = d.Delta.neg()
		mirrorShares(d.Shares)
	}
	s := &r.Summary
	s.Missing, s.Extra = s.Extra, s.Missing
	s.Left, s.Right, s.Delta = s.Right, s.Left, s.Delta.neg()
	mirrorShares(s.Causes)
}

func mirrorShares(shares []Share) {
	for i := range shares {
		shares[i].Value = shares[i].Value.neg()
	}
}

// find is the difference of a row, nil if there is none.
func (r *Report) find(key meter.RowKey) *Difference {
	i, found := slices.BinarySearchFunc(r.Differences, key, func(d Difference, k meter.RowKey) int { return d.RowKey.Compare(k) })
	if !found {
		return nil
	}
	return &r.Differences[i]
}
