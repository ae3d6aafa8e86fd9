package run

import (
	"encoding/json"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/stream"
)

// A State is what the driver keeps in the ledger beside the positions.
type State struct {
	// NextByte is where the next line of the file begins, PrefixHash that of the bytes before it.
	NextByte   int64             `json:"next_byte"`
	PrefixHash string            `json:"prefix_hash"`
	Drained    bool              `json:"drained"`
	Partitions []int32           `json:"partitions,omitempty"` // of the header; nil without one
	Merge      stream.MergeState `json:"merge"`
	Prices     meter.PriceUses   `json:"prices,omitempty"` // which card priced which windows (R10)
}

// ParseState reads what a ledger keeps of the driver; nil for a ledger that has nothing yet.
func ParseState(text json.RawMessage) (*State, error) {
	if text == nil {
		return nil, nil
	}
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("run: the ledger's driver state: %w", err)
	}
	return s, nil
}
