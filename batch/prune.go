package batch

import "github.com/gatewaymeter/gatewaymeter/meter"

// Prune says which part of a partition the as-streamed rows of the windows that end in (from, to] need; nil is without bound.
//
// Let o be the first offset with an event time of at least minTime. It is exact to begin at the restart offset of any archive file that holds o or
// comes before it, with that footer's max_reach (R8, theorem 2): what is counted in a window that ends after from is counted by a record of at least
// that time, which is at o or behind it: an end or event in the window, or a start whose D is in it. It is exact to end at any offset before
// which the partition's highest reach is at least untilReach, for then every window up to to is final (R6), and such a part is not drained. A file's
// greatest prior_max_reach bounds that reach from below at its Next. An empty rest of a partition has the watermark of all that is before it.
//
// Footers hold restarts of the lives of the meter that wrote them: with another fingerprint begin at the beginning. Verdicts on
// the records that are read are exact too, in those windows; late records of a window can lie behind the end. The summary is of what was read.
func Prune(m *meter.Meter, from, to *int64) (minTime, untilReach int64) {
	minTime, untilReach = meter.MinusInfinity, meter.PlusInfinity
	if from != nil {
		into := *from % m.Window.Size
		if into < 0 {
			into += m.Window.Size
		}
		minTime = *from - into - m.AbandonAfter // a window that ends after from may begin before it
	}
	if to != nil {
		untilReach = *to + m.Window.AllowedLateness + m.Watermark.MaxOutOfOrderness
	}
	return minTime, untilReach
}
