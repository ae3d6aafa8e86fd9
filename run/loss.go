package run

import (
	"context"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// acceptLoss goes on with a file that is not the one that was read. It is read from its beginning: what the counters
// need of it is replayed if it is there, what was not counted is counted, and what is not there is written down.
func (d *driver) acceptLoss(ctx context.Context) error {
	if err := d.reader.Close(); err != nil {
		return err
	}
	if err := d.openSource(ctx); err != nil {
		return err
	}
	if d.wasDrained {
		return refuse(ErrDrained, drainedHint, "%s is another file than the one that was drained", d.sourceName())
	}
	d.outcome.Replaced = &Replaced{Bytes: d.resume.NextByte}
	d.resume.NextByte, d.resume.PrefixHash, d.end = 0, "", 0
	d.replaced = true
	for _, p := range d.partitions.list {
		p.unsure = p.next > 0
		if d.archiver != nil && p.archived < p.committed {
			d.outcome.Replaced.Reread = append(d.outcome.Replaced.Reread, meter.LostRange{Partition: p.number, From: p.archived, To: p.committed})
		}
		p.witness.close() // the file is another one, and that is accepted
		p.witness = nil
	}
	return nil
}

// settle decides at the first record of a partition what is lost of it: everything that was still needed and is
// before it.
func (d *driver) settle(p *partition, rec *meter.Record, e *meter.Event) error {
	p.unsure = false
	if rec.Offset <= p.restart {
		return nil
	}
	to := meter.PlusInfinity
	if t, ok := timeInLog(rec, e); ok {
		to = t
	}
	return d.lose(p, rec.Offset, rec.Byte, to)
}

// settleAll decides at the end of the file about the partitions that have no record in it.
func (d *driver) settleAll() error {
	for _, p := range d.partitions.list {
		p.next = max(p.next, p.committed) // the file may end before the ledger's place: a position never goes back
		if !p.unsure {
			continue
		}
		p.unsure = false
		if p.restart >= p.committed {
			continue
		}
		if err := d.lose(p, p.committed, d.end, p.watermark+d.config.Meter.Watermark.MaxOutOfOrderness); err != nil {
			return err
		}
	}
	return nil
}

// lose begins a partition anew at an offset, without the live state that the lost records would have rebuilt, under
// the watermark that it had. The rows that may miss them are those of the windows that were not final then, up to
// the last one that a lost record could bill: latest is a time of the log when they must have been written.
func (d *driver) lose(p *partition, to, atByte, latest int64) error {
	m := d.config.Meter
	lost := meter.LostRange{Partition: p.number, From: p.restart, To: to, WindowFrom: meter.MinusInfinity, WindowTo: meter.PlusInfinity}
	reach := meter.MinusInfinity
	if p.watermark > meter.MinusInfinity {
		lost.WindowFrom = p.watermark - m.Window.AllowedLateness
		reach = p.watermark + m.Watermark.MaxOutOfOrderness
	}
	if latest < meter.PlusInfinity {
		lost.WindowTo = latest + m.Event.MaxAhead + m.AbandonAfter + m.Window.Size
	}
	d.pending.Lost = append(d.pending.Lost, lost)
	d.outcome.Lost = append(d.outcome.Lost, lost)
	d.changed = true
	return d.place(p, meter.Checkpoint{Restart: to, Byte: atByte, MaxReach: reach})
}
