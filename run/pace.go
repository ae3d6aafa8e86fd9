package run

import (
	"context"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A pacer maps the log's time to the clock.
type pacer struct {
	begun bool
	start time.Time // of the replay
	first int64     // ms, the log's time then
}

// keepPace waits until a record is due (Config.Pace); commits go on meanwhile.
func (d *driver) keepPace(ctx context.Context, p *partition, rec *meter.Record, e *meter.Event) error {
	if d.config.Pace == 0 || d.ledger == nil && rec.Offset < p.archived {
		return nil
	}
	at, ok := timeInLog(rec, e)
	if !ok {
		return nil
	}
	now := d.config.Clock.Now()
	if !d.pace.begun {
		d.pace = pacer{begun: true, start: now, first: at}
	}
	ahead := time.Duration(float64(at-d.pace.first) / d.config.Pace * float64(time.Millisecond))
	return d.pause(ctx, d.pace.start.Add(ahead).Sub(now))
}

// timeInLog is the log time, or the event's own without one.
func timeInLog(rec *meter.Record, e *meter.Event) (int64, bool) {
	switch {
	case rec.HasLogTime:
		return rec.LogTime, true
	case e.HasLogTime:
		return e.LogTime, true
	}
	return e.Time, e.Admitted()
}

func (d *driver) pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	due := d.config.Clock.After(wait)
	for {
		select {
		case <-due:
			return nil
		case <-d.tick:
			if err := d.commitTick(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return errStopped
		}
	}
}

// waitForMore is called at the end of a file that is followed.
func (d *driver) waitForMore(ctx context.Context) error {
	select {
	case <-d.config.Clock.After(d.config.Source.FollowEvery):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tellEvery is the least time between two words of progress.
const tellEvery = 200 * time.Millisecond

// tell reports progress.
func (d *driver) tell() {
	if d.config.Progress == nil {
		return
	}
	now := d.config.Clock.Now()
	if now.Sub(d.lastTold) < tellEvery {
		return
	}
	d.lastTold = now
	p := Progress{Records: d.outcome.Records, Bytes: d.end, Replayed: d.outcome.Replayed, Elapsed: now.Sub(d.started), Watermark: meter.MinusInfinity}
	if d.merger != nil {
		p.Watermark = d.merger.G()
	}
	d.config.Progress(p)
}
