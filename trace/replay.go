package trace

import (
	"context"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Replay copies a log at a pace: each record pace times as fast as the log times say, measured from the first one. Wait
// returns when so much time has passed since the replay began, at once if it has, or with the context's error; what
// was written before is flushed first. A pace of 0 is as fast as possible. Records without a log time follow the
// record before them.
func Replay(ctx context.Context, r *Reader, w *Writer, pace float64, wait func(ctx context.Context, since time.Duration) error) error {
	h, err := r.Header(ctx)
	if err != nil {
		return err
	}
	if h.Stated {
		if err := w.Header(h); err != nil {
			return err
		}
	}
	p := pacer{pace: pace, wait: wait, flush: w.Flush}
	err = Each(ctx, r, func(_ *Chunk, l *Line) error {
		if l.Idle != nil {
			return w.Idle(l.Idle)
		}
		if err := p.until(ctx, &l.Record); err != nil {
			return err
		}
		if l.Record.Received {
			return w.Value(&l.Record)
		}
		return w.Record(&l.Record)
	})
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	return err
}

type pacer struct {
	pace        float64
	wait        func(context.Context, time.Duration) error
	flush       func() error
	begun       bool
	first, last int64 // log times, ms
}

// until waits for the record's turn. Log times that step back wait for nothing.
func (p *pacer) until(ctx context.Context, r *meter.Record) error {
	if p.pace <= 0 || !r.HasLogTime {
		return nil
	}
	if !p.begun {
		p.begun, p.first, p.last = true, r.LogTime, r.LogTime
	}
	if r.LogTime <= p.last {
		return nil
	}
	p.last = r.LogTime
	if err := p.flush(); err != nil {
		return err
	}
	return p.wait(ctx, time.Duration(float64(r.LogTime-p.first)/p.pace*float64(time.Millisecond)))
}
