package diff

import "github.com/gatewaymeter/gatewaymeter/meter"

// A Cut is where one partition ends for both sides (DESIGN section 9): records at or beyond Offset do not exist for
// either. It is the smaller of what the ledger committed and what its archive holds.
type Cut struct {
	Partition int32
	Offset    int64 // next offset
	Committed int64 // next offset of the ledger's position
	// Watermark of the partition at the cut: meter.PlusInfinity if it was drained there, meter.MinusInfinity if it
	// had no admitted record.
	Watermark int64
	Idle      bool // as the ledger's position has it (R11)
}

// Finality says which windows can be judged at a cut.
type Finality struct {
	cuts     []Cut
	lateness int64
}

// NewFinality takes every partition of the log. lateness is L in ms.
func NewFinality(lateness int64, cuts []Cut) *Finality {
	return &Finality{cuts: cuts, lateness: lateness}
}

// Comparable reports whether a window that ends at end can be judged against the as-streamed truth: in every partition
// it is final at the cut (R6), or all that was committed is in the cut.
func (f *Finality) Comparable(end int64) bool {
	for _, c := range f.cuts {
		if c.Offset < c.Committed && !f.final(c, end) {
			return false
		}
	}
	return true
}

// Final reports whether a window that ends at end is final as-streamed, so that the complete truth can be held against
// it (R15): final at the cut in every partition but those that hold nothing back, which are idle or have no record.
func (f *Finality) Final(end int64) bool {
	for _, c := range f.cuts {
		holds := !c.Idle && c.Watermark > meter.MinusInfinity || c.Offset < c.Committed
		if holds && !f.final(c, end) {
			return false
		}
	}
	return true
}

// final is R6 in one partition.
func (f *Finality) final(c Cut, end int64) bool { return c.Watermark >= end+f.lateness }

// WindowEnd is the end of the window of size z in which a partner's event of time t falls: R5, stated for this
// package's own input. Floor division, also below zero.
func WindowEnd(t, z int64) int64 {
	into := t % z
	if into < 0 {
		into += z
	}
	return t - into + z
}
