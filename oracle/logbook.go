package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A logbook is the log after admission (R2), each admitted record with the watermark it met (R4).
type logbook struct {
	partitions []*partition // that have a record, by number
	dead       []DeadLetter
	summary    meter.Summary // without the verdicts on events
	lines      int           // of the log, idle lines too
	err        error
}

// A partition is the history of one partition.
type partition struct {
	number  int32
	entries []entry // admitted records in offset order: their w never falls
	reach   int64   // highest reach so far
	admits  bool    // whether anything was admitted
	last    int64   // the watermark after the last record
}

// An entry is an admitted record, W(r) and the watermark after it (R4), and its line in the log.
type entry struct {
	meter.Event
	w, after int64
	step     int
}

// newLogbook decodes the log. Records whose log time lies outside of within (nil: none) do not exist.
func newLogbook(m *meter.Meter, log *meter.Log, within *Range) *logbook {
	b := &logbook{lines: len(log.Steps)}
	byNumber := map[int32]*partition{}
	lastOffset := map[int32]int64{}
	for i := range log.Steps {
		rec := &log.Steps[i].Record
		if log.Steps[i].Idle != nil {
			continue
		}
		if before, seen := lastOffset[rec.Partition]; seen && before >= rec.Offset {
			b.err = fmt.Errorf("oracle: read partition %d: R1: offset %d follows %d", rec.Partition, rec.Offset, before)
			return b
		}
		lastOffset[rec.Partition] = rec.Offset
		e := Decode(m, rec)
		if within != nil && e.HasLogTime && (e.LogTime < within.From || e.LogTime > within.To) {
			continue
		}
		p := byNumber[rec.Partition]
		if p == nil {
			p = &partition{number: rec.Partition, last: meter.MinusInfinity}
			byNumber[rec.Partition] = p
			b.partitions = append(b.partitions, p)
		}
		b.admit(m, p, e, rec.Value, i)
	}
	slices.SortFunc(b.partitions, func(x, y *partition) int { return cmp.Compare(x.number, y.number) })
	slices.SortFunc(b.dead, func(x, y DeadLetter) int {
		return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
	})
	return b
}

// admit counts the record in its bucket (R2), and writes down an admitted one with its watermarks (R4).
func (b *logbook) admit(m *meter.Meter, p *partition, e meter.Event, raw []byte, step int) {
	b.summary.Read++
	switch e.Bucket {
	case meter.BucketDeadLetter:
		b.summary.DeadLetter[e.Reason]++
		b.dead = append(b.dead, DeadLetter{e.Partition, e.Offset, e.Reason, raw})
		return
	case meter.BucketTombstone:
		b.summary.Tombstone++
		return
	case meter.BucketIgnored:
		b.summary.Ignored++
		return
	case meter.BucketTick:
		b.summary.Tick++
	case meter.BucketEvent:
		b.summary.Event++
	}
	w := p.last
	reach := e.Time
	if e.HasLogTime {
		reach = min(e.Time, e.LogTime)
	}
	if !p.admits || reach > p.reach {
		p.reach, p.admits = reach, true
	}
	p.last = max(meter.MinusInfinity, p.reach-m.Watermark.MaxOutOfOrderness)
	p.entries = append(p.entries, entry{Event: e, w: w, after: p.last, step: step})
}
