package run

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// A block is a chunk of lines on its way: read, decoded by any core, applied by the owner, archived, and used again.
type block struct {
	meter  *meter.Meter
	chunk  *trace.Chunk
	lines  []trace.Line
	events []meter.Event // by line; of idle lines nothing
	// priors are the highest reach of each record's partition before it; seals are the ends of archive files in
	// this block. Both are the owner's words to the archiver.
	priors []int64
	seals  []seal
	silent []bool // the archive has the record already

	err     error // after the lines: what ended the file (io.EOF), or the fault of the line behind them
	decoded chan struct{}
	users   atomic.Int32
	isCut   bool // the owner still asks the chunk for a hash in its midst
}

// A pipeline reads and decodes ahead of the owner, a bounded number of blocks.
type pipeline struct {
	reader *trace.Reader
	meter  *meter.Meter
	free   chan *block // blocks that nobody uses
	ready  chan *block // in file order; decoded is closed when it may be looked at
	work   chan *block
}

// blocksPerWorker bounds what is decoded ahead.
const blocksPerWorker = 4

func newPipeline(r *trace.Reader, m *meter.Meter, workers int) *pipeline {
	n := blocksPerWorker*workers + blocksPerWorker
	p := &pipeline{reader: r, meter: m, free: make(chan *block, n), ready: make(chan *block, n), work: make(chan *block, n)}
	for range n {
		p.free <- &block{meter: m}
	}
	return p
}

// start begins to read; group counts the goroutines, which end with ctx or with the file. A read of standard input
// cannot be interrupted: that goroutine is not waited for, and ends at the next line or with the process.
func (p *pipeline) start(ctx context.Context, workers int, group *sync.WaitGroup, interruptible bool) {
	if interruptible {
		group.Go(func() { p.read(ctx) })
	} else {
		go p.read(ctx)
	}
	for range workers {
		group.Go(func() { p.decode(ctx) })
	}
}

func (p *pipeline) read(ctx context.Context) {
	defer close(p.work)
	for {
		var b *block
		select {
		case b = <-p.free:
		case <-ctx.Done():
			return
		}
		b.decoded, b.isCut = make(chan struct{}), false
		b.chunk, b.err = p.reader.Next(ctx)
		if b.err != nil {
			b.lines = b.lines[:0]
			close(b.decoded)
			p.ready <- b // has room for every block
			return
		}
		p.ready <- b
		p.work <- b
	}
}

func (p *pipeline) decode(ctx context.Context) {
	d := schemas.NewDecoder(p.meter)
	for {
		select {
		case b, ok := <-p.work:
			if !ok {
				return
			}
			b.decode(d)
		case <-ctx.Done():
			return
		}
	}
}

func (b *block) decode(d *schemas.Decoder) {
	b.lines, b.err = b.chunk.Decode(b.lines[:0], func(i int, r *meter.Record) bool {
		if i >= len(b.events) {
			b.grow(i + 1)
		}
		d.Decode(r, &b.events[i])
		return b.events[i].Bucket != meter.BucketDeadLetter
	})
	close(b.decoded)
}

// grow makes room for n events and some more, their quantities and attributes side by side.
func (b *block) grow(n int) {
	have := len(b.events)
	b.events = append(b.events, make([]meter.Event, n+n/2+64-have)...)
	events := b.events[have:]
	width, tags := len(b.meter.Event.Quantities), len(b.meter.Event.Attributes)
	quantities, attributes := make([]int64, width*len(events)), make([]string, tags*len(events))
	for i := range events {
		events[i].Quantities = quantities[i*width : (i+1)*width : (i+1)*width]
		events[i].Attributes = attributes[i*tags : (i+1)*tags : (i+1)*tags]
	}
}

// recycle gives a block back once all its users have.
func (p *pipeline) recycle(b *block) {
	if b.users.Add(-1) > 0 {
		return
	}
	if !b.isCut {
		b.chunk.Release()
	}
	b.chunk = nil
	p.free <- b
}

// ended reports whether err is the end of the file, or of the patience to wait for more.
func ended(err error) bool { return errors.Is(err, io.EOF) }
