package run

import (
	"context"
	"errors"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// line applies one line of the block.
func (d *driver) line(ctx context.Context, i int) error {
	line := &d.block.lines[i]
	if err := d.order.Check(line); err != nil {
		return err
	}
	fresh := line.Record.Byte >= d.resume.NextByte
	if fresh && d.wasDrained {
		return refuse(ErrDrained, drainedHint, "%s:%d", d.sourceName(), line.Number)
	}
	if line.Idle == nil {
		return d.record(ctx, i)
	}
	if fresh && d.merger != nil {
		return d.idle(ctx, line.Idle)
	}
	return nil
}

const drainedHint = "a drained log is closed (R13): count what comes after it as a log of its own, or count the whole log anew with --no-drain"

// idle marks partitions as idle from here on (R11).
func (d *driver) idle(ctx context.Context, numbers []int32) error {
	d.changed = true
	if err := d.publish(ctx); err != nil {
		return err
	}
	for _, n := range numbers {
		p := d.partitions.find(n)
		if p == nil {
			var err error
			if p, err = d.addPartition(n, nil, d.end); err != nil {
				return err
			}
		}
		d.tellMerge(p, meter.MinusInfinity, true)
	}
	return d.publish(ctx)
}

// record applies the record of a line: each consumer that is not silent at its offset sees it.
func (d *driver) record(ctx context.Context, i int) error {
	rec := &d.block.lines[i].Record
	p, err := d.partition(rec)
	if err != nil {
		return err
	}
	if p.drainedAt >= 0 && rec.Offset >= p.drainedAt {
		return refuse(ErrDrained, drainedHint, "%s/%d@%d: the archive was drained at %d", d.header.Topic, rec.Partition, rec.Offset, p.drainedAt)
	}
	if p.unsure {
		if err := d.settle(p, rec, &d.block.events[i]); err != nil {
			return err
		}
	}
	switch {
	case rec.Offset < p.restart:
		d.block.silent[i] = true
		return nil
	case rec.Offset < p.committed:
		return d.replay(i, p)
	}
	return d.count(ctx, i, p)
}

// partition is the record's, made where it is the first one of it.
func (d *driver) partition(rec *meter.Record) (*partition, error) {
	if p := d.partitions.find(rec.Partition); p != nil {
		return p, nil
	}
	return d.addPartition(rec.Partition, nil, rec.Byte)
}

// replay brings a counter back to where it was (R8).
func (d *driver) replay(i int, p *partition) error {
	if err := d.toArchive(i, p); err != nil {
		return err
	}
	d.outcome.Replayed++
	p.next = d.block.events[i].Offset + 1
	return p.counter.Replay(&d.block.events[i])
}

// count applies a record that was not counted before, and publishes where R11 says.
func (d *driver) count(ctx context.Context, i int, p *partition) error {
	rec, e := &d.block.lines[i].Record, &d.block.events[i]
	if err := d.keepPace(ctx, p, rec, e); err != nil {
		if errors.Is(err, errStopped) {
			return d.cut(i)
		}
		return err
	}
	if d.merger != nil && p.asleep {
		if err := d.publish(ctx); err != nil {
			return err
		}
		d.tellMerge(p, meter.MinusInfinity, false)
	}
	if err := d.toArchive(i, p); err != nil {
		return err
	}
	d.note(p, rec.Offset)
	p.next = rec.Offset + 1
	if e.Bucket == meter.BucketDeadLetter && d.merger != nil {
		d.deadLetter(rec, e)
	}
	if err := p.counter.Apply(e); err != nil {
		return err
	}
	return d.moved(ctx, p)
}

// note counts a record as new: to the ledger, or to the archive where that is all there is. Without a ledger the log is
// counted from its beginning each time, which costs little more than reading it: so the summary is of the whole log.
func (d *driver) note(p *partition, offset int64) {
	if d.ledger == nil && offset < p.archived {
		d.outcome.Replayed++
		return
	}
	d.changed = true
	d.outcome.Records++
}

// moved tells the merge of a watermark that has moved.
func (d *driver) moved(ctx context.Context, p *partition) error {
	w := p.counter.Watermark()
	if w == p.watermark || d.merger == nil {
		return nil
	}
	slept, crosses := p.asleep, p.crosses(d.config.Meter, w)
	p.watermark = w
	d.tellMerge(p, w, false)
	if (slept || crosses) && d.merger.Due() {
		return d.publish(ctx)
	}
	return nil
}

// tellMerge tells the merge how far a partition has come.
func (d *driver) tellMerge(p *partition, watermark int64, idle bool) {
	d.merger.SetPartition(p.number, watermark, idle)
	p.asleep = d.merger.Idle(p.number)
}

func (d *driver) deadLetter(rec *meter.Record, e *meter.Event) {
	d.letters += int64(len(rec.Value))
	d.pending.DeadLetters = append(d.pending.DeadLetters, meter.DeadLetter{
		Partition: e.Partition, Offset: e.Offset, LogTime: e.LogTime, HasLogTime: e.HasLogTime, Reason: e.Reason,
		Raw: slices.Clone(rec.Value),
	})
}

// toArchive says what the archive is to do with a record, before the counter sees it.
func (d *driver) toArchive(i int, p *partition) error {
	b := d.block
	rec := &b.lines[i].Record
	b.silent[i] = d.archiver == nil || rec.Offset < p.archived
	if b.silent[i] {
		return p.witness.check(rec)
	}
	if err := p.settleWitness(); err != nil {
		return err
	}
	a := d.config.Archive
	if f := &p.file; f.rows > 0 && (a.MaxRows > 0 && f.rows >= a.MaxRows || a.MaxBytes > 0 && f.bytes >= a.MaxBytes) {
		s, err := d.sealOf(p, i, rec.Byte)
		if err != nil {
			return err
		}
		b.seals = append(b.seals, s)
	}
	if p.file.rows == 0 {
		p.file.since = d.config.Clock.Now()
	}
	p.file.rows++
	p.file.bytes += int64(len(rec.Value))
	b.priors[i] = p.counter.MaxReach()
	return nil
}

// sealOf ends the open file of p before a line of the block. end is where the next line of the file begins.
func (d *driver) sealOf(p *partition, line int, end int64) (seal, error) {
	if err := d.keepMeta(); err != nil {
		return seal{}, err
	}
	if _, ok := d.heads[p.number]; !ok { // so that the first file is not without a head, should this process end between the two
		if err := d.meta.PutHead(archive.Source{Topic: d.header.Topic, Partition: p.number}, p.head); err != nil {
			return seal{}, err
		}
		d.heads[p.number] = p.head
	}
	at, err := p.checkpoint(false, end)
	p.file = openFile{}
	return seal{line: line, partition: p.number, next: p.next, at: at}, err
}

// sealAll ends every open file that is older than age, at the current place.
func (d *driver) sealAll(line int, age func(openFile) bool) ([]seal, error) {
	var seals []seal
	for _, p := range d.partitions.list {
		if p.file.rows == 0 || !age(p.file) {
			continue
		}
		s, err := d.sealOf(p, line, d.end)
		if err != nil {
			return nil, err
		}
		seals = append(seals, s)
	}
	return seals, nil
}
