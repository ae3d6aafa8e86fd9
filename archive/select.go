package archive

import (
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Span is the part of a partition that a recompute reads.
type Span struct {
	// Begin is where it begins: the state of a fresh engine at offset Begin.Restart with Begin.MaxReach, fed from
	// there, is exact (R8, theorem 2). Records before Begin.Restart in the first file are not to be read.
	Begin meter.Checkpoint
	Files []*File
	End   int64 // offset behind the last file
}

// Whole is the partition from its first record to its last.
func (p *Partition) Whole() Span {
	s := Span{Begin: meter.Checkpoint{MaxReach: meter.MinusInfinity}, Files: p.Files, End: p.Next()}
	if len(p.Files) > 0 {
		s.Begin.Restart = p.Files[0].First
	}
	return s
}

// Select prunes exactly (DESIGN section 8). fromTime, ms: the least event time that can matter (for the windows
// that end after from: from - A; without a bound MinusInfinity). untilReach, ms: the reach at which every window
// asked for is final (to + L + B; without a bound PlusInfinity): files behind the one where it is reached are
// left out. Where nothing in the partition matters the last file is the span: it tells how far the watermark came.
func (p *Partition) Select(fromTime, untilReach int64) Span {
	s := p.Whole()
	if len(p.Files) == 0 {
		return s
	}
	if fromTime > meter.MinusInfinity {
		i := slices.IndexFunc(p.Files, func(f *File) bool { return f.HasTime && f.MaxTime >= fromTime })
		if i < 0 {
			i = len(p.Files) - 1
		}
		s.Begin = p.Files[i].Checkpoint
	}
	s.Files = nil
	for _, f := range p.Files {
		if f.Next <= s.Begin.Restart {
			continue
		}
		s.Files, s.End = append(s.Files, f), f.Next
		if f.MaxPrior >= untilReach {
			break
		}
	}
	return s
}
