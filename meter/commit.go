package meter

import "encoding/json"

// A Commit is everything that becomes durable in one act (DESIGN section 5): rows and what was published of
// them, side outputs, dead letters, and the positions that say up to where in the log all of it is true.
type Commit struct {
	Topic string
	// InForce says which revisions of card and list priced which windows (R10).
	InForce PriceUses
	// Cards are the texts of revisions that the ledger has not kept yet.
	Cards []CardText

	Rows        []StoredRow // absolute values, of every row that changed
	Firings     []Firing    // in publication order
	Items       []PricedItem
	DeadLetters []DeadLetter
	Prices      []PriceUsed
	Lost        []LostRange
	Positions   []Position // of every partition that changed
	// Driver is what the driver keeps beside the positions: the merge's own state, the place in a file.
	Driver json.RawMessage
}

// A StoredRow is a row as the ledger keeps it: what readers see, and what the merge needs to go on with it.
// Row.Usage is the sum of the cells, whether published or not; so is Row.Total().
type StoredRow struct {
	Row
	// Published and PublishedPico are what the deltas of the row's journal have added up to.
	Published     Usage
	PublishedPico Int128
	// Live rows are those that the merge still holds in memory.
	Live       bool
	Card, List string // the revisions that price its window (R10)
}

// A PricedItem is a side output with what it costs (R3).
type PricedItem struct {
	Item
	Priced
	Card, List string
}

// A DeadLetter is a record that no rule admits, with its bytes (R2).
type DeadLetter struct {
	Partition  int32
	Offset     int64
	LogTime    int64 // ms; valid if HasLogTime
	HasLogTime bool
	Reason     Reason
	Raw        []byte
}

// A PriceUsed is one rate that a cell was priced with, and where it came from (R10).
type PriceUsed struct {
	Rate
	Source   string // PriceTable, PriceList, PriceService
	Revision string // of the card or list
}

// A LostRange is a part of a log that was gone when the stream went on (`--accept-loss`): [From, To) of the
// partition's offsets. Rows of windows that end in (WindowFrom, WindowTo] may miss what was in it.
type LostRange struct {
	Partition            int32
	From, To             int64
	WindowFrom, WindowTo int64 // ms
}

// A Standing is what a ledger holds for a driver that starts: where it stopped, and what it held in memory.
type Standing struct {
	Topic     string // "" in a new ledger
	Positions []Position
	Driver    json.RawMessage // nil in a new ledger
	Rows      []StoredRow     // the live ones
	Lost      []LostRange
	Cards     []CardText
	Firings   int64 // the last number of the journal
}
