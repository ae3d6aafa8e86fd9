package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/stream"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// Run reads the source to its end, or until ctx ends; see the package comment for what it promises. After an error
// everything that was committed stands, and nothing else.
func Run(ctx context.Context, config Config) (Outcome, error) {
	return run(ctx, &config, nil)
}

// run is Run; commitDue replaces the clock's word of when to commit, in tests.
func run(ctx context.Context, config *Config, commitDue func() bool) (Outcome, error) {
	if err := config.validate(); err != nil {
		return Outcome{}, err
	}
	d := &driver{config: config, started: config.Clock.Now(), commitDue: commitDue}
	err := d.run(ctx)
	return d.outcome, errors.Join(err, d.close())
}

// A driver is the owner of all state of a run. Only its own goroutine touches it.
type driver struct {
	config  *Config
	started time.Time
	outcome Outcome

	reader     *trace.Reader
	header     trace.Header
	order      *trace.Order
	ledger     Ledger // nil: only archive
	resume     State  // as it was loaded
	wasDrained bool
	replaced   bool  // the file is not the one that was read, and --accept-loss goes on with it
	end        int64 // of the file: behind the last line that was applied
	changed    bool  // there is something to commit

	partitions partitions
	merger     *stream.Merger // nil without a ledger
	pricer     *stream.Pricer
	prices     *priceLog
	texts      map[string][]byte // of the cards that price something, by revision
	newCards   []meter.CardText  // those that the ledger does not have yet
	pending    meter.Commit      // what happened since the last commit
	letters    int64             // bytes of the dead letters in it
	inflight   chan error        // the commit under way; nil without one

	archiver  *archiver // nil without an archive
	lock      *archive.Lock
	meta      *archive.Meta
	metaKept  bool
	filesKept int64 // archive files whose heads the ledger has
	heads     map[int32]meter.ArchiveHead
	drained   map[archive.Source]archive.Mark
	pipeline  *pipeline
	block     *block       // being applied
	chunk     *trace.Chunk // the last one that was applied, or is; nil before the first
	drain     bool         // the log was drained, by this run or before
	tick      <-chan time.Time
	pace      pacer
	commitDue func() bool // for tests: a commit after this line? nil: when the tick says so
	lastTold  time.Time

	group sync.WaitGroup
}

// errStopped: the context has ended; what was applied is to be committed.
var errStopped = errors.New("stopped")

func (d *driver) run(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			d.outcome.Stopped = true
			return nil
		}
		return err
	}
	d.outcome.Topic = d.header.Topic
	inner, cancel := context.WithCancel(ctx)
	defer d.group.Wait()
	defer d.stopArchiver()
	defer cancel()
	workers := max(1, d.config.Workers)
	d.pipeline = newPipeline(d.reader, d.config.Meter, workers)
	if d.archiver != nil {
		d.archiver.start(&d.group, d.pipeline.recycle)
	}
	d.pipeline.start(inner, workers, &d.group, d.config.Source.Path != "-")
	d.tick = d.config.Clock.After(d.config.CommitEvery)
	err := d.loop(ctx)
	switch {
	case err == nil:
		err = d.finish(ctx)
	case errors.Is(err, errStopped):
		d.outcome.Stopped = true
		err = d.stop(ctx)
	}
	return errors.Join(err, d.waitCommit())
}

func (d *driver) stopArchiver() {
	if d.archiver != nil {
		d.archiver.close()
	}
}

func (d *driver) close() error {
	var errs []error
	if d.reader != nil && !(d.outcome.Stopped && d.config.Source.Path == "-") { // a read of it may be under way for ever
		errs = append(errs, d.reader.Close())
	}
	if d.ledger != nil {
		errs = append(errs, d.ledger.Close())
	}
	for _, p := range d.partitions.list {
		p.witness.close()
	}
	errs = append(errs, d.lock.Release())
	return errors.Join(errs...)
}

// loop applies blocks until the end of the file (nil), errStopped, or an error.
func (d *driver) loop(ctx context.Context) error {
	for {
		select {
		case b := <-d.pipeline.ready:
			select {
			case <-b.decoded:
			case <-ctx.Done():
				return errStopped
			}
			inFile := b.err // apply gives the block away
			if err := d.apply(ctx, b); err != nil || inFile != nil {
				return d.ofBlock(ctx, err, inFile)
			}
		case <-d.tick:
			if err := d.commitTick(ctx); err != nil {
				return err
			}
		case <-d.archiveFailed():
			return d.archiver.err()
		case <-ctx.Done():
			return errStopped
		}
	}
}

// ofBlock is how the loop ends at a block: with its own error, the end of the file, or the fault in it.
func (d *driver) ofBlock(ctx context.Context, err, inFile error) error {
	switch {
	case err != nil:
		return err
	case ended(inFile):
		return nil
	case ctx.Err() != nil && errors.Is(inFile, ctx.Err()):
		return errStopped
	}
	return inFile
}

func (d *driver) archiveFailed() <-chan struct{} {
	if d.archiver == nil {
		return nil
	}
	return d.archiver.failed
}

// lookEvery is how many lines are applied between two looks at the tick.
const lookEvery = 64

// apply applies the lines of a block in order and hands it to the archive.
func (d *driver) apply(ctx context.Context, b *block) error {
	d.block, b.seals = b, nil
	if b.chunk != nil {
		d.chunk = b.chunk
	}
	b.priors = grow(b.priors, len(b.lines))
	b.silent = grow(b.silent, len(b.lines))
	for i := range b.lines {
		if i%aheadBy == 0 {
			d.expect(i)
		}
		if err := d.line(ctx, i); err != nil {
			return err
		}
		d.end = b.lines[i].End
		if err := d.look(ctx, i); err != nil {
			return err
		}
	}
	if err := d.takeItems(); err != nil {
		return err
	}
	if err := d.handOver(b); err != nil {
		return err
	}
	d.block = nil
	d.tell()
	return nil
}

// aheadBy is how many lines the counters look ahead.
const aheadBy = 32

// expect lets the counters read ahead for the lines from one on.
func (d *driver) expect(line int) {
	lines := d.block.lines[line:]
	lines = lines[:min(aheadBy, len(lines))]
	events := d.block.events[line:]
	var counters [aheadBy]*stream.Counter
	for i := range lines {
		if lines[i].Idle != nil { // its event is of an earlier block
			continue
		}
		if p := d.partitions.find(lines[i].Record.Partition); p != nil {
			counters[i] = p.counter
			p.counter.Expect(&events[i])
		}
	}
	for i, c := range counters[:len(lines)] {
		if c != nil {
			c.Look(&events[i])
		}
	}
}

// handOver gives the block to the archive, or back to the reader.
func (d *driver) handOver(b *block) error {
	if d.archiver == nil || b.chunk == nil {
		b.users.Store(1)
		if b.chunk != nil {
			d.pipeline.recycle(b)
		}
		return nil
	}
	b.users.Store(int32(len(d.archiver.shards)))
	return d.archiver.write(b)
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// look commits if it is time, now and then, and ends the block where the context has ended.
func (d *driver) look(ctx context.Context, i int) error {
	if d.commitDue != nil {
		if !d.commitDue() {
			return nil
		}
		return d.commitHere(ctx)
	}
	if i%lookEvery != 0 {
		return nil
	}
	if d.full() {
		return d.commitHere(ctx)
	}
	select {
	case <-d.tick:
		return d.commitTick(ctx)
	case <-ctx.Done():
		return d.cut(i + 1)
	default:
		return nil
	}
}

// cut ends the block before a line: what was applied goes to the archive, the rest is as if it had not been read.
func (d *driver) cut(line int) error {
	b := d.block
	b.lines, b.isCut = b.lines[:line], true
	if err := d.takeItems(); err != nil {
		return err
	}
	if err := d.handOver(b); err != nil {
		return err
	}
	d.block = nil
	return errStopped
}
