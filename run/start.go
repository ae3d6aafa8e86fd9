package run

import (
	"context"
	"errors"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/stream"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// begin opens the source, loads where everything stands, checks it, and leaves the driver ready to replay.
func (d *driver) begin(ctx context.Context) error {
	if err := d.openSource(ctx); err != nil {
		return err
	}
	if err := d.preview(ctx); err != nil {
		return err
	}
	standing := &meter.Standing{}
	if d.config.Ledger != nil {
		ledger, err := d.config.Ledger(ctx)
		if err != nil {
			return err
		}
		d.ledger = ledger
		if standing, err = d.ledger.Load(ctx); err != nil {
			return err
		}
	}
	state, err := ParseState(standing.Driver)
	if err != nil {
		return err
	}
	if err := d.check(standing, state); err != nil {
		return err
	}
	if state != nil {
		d.resume, d.wasDrained = *state, state.Drained
		d.end = state.NextByte
	}
	d.outcome.Lost = standing.Lost
	if err := d.beginMerge(standing); err != nil {
		return err
	}
	if err := d.beginPartitions(standing); err != nil {
		return err
	}
	return d.seek(ctx)
}

// openSource opens the file and reads its header.
func (d *driver) openSource(ctx context.Context) error {
	s := d.config.Source
	o := trace.Options{Format: s.Format, Growing: !d.config.Drain}
	if s.Follow {
		o.Wait = d.waitForMore
	}
	r, h, err := open(ctx, s.Path, o)
	if err != nil {
		return err
	}
	d.reader, d.header = r, h
	if s.Topic != "" {
		d.header.Topic = s.Topic
	}
	if s.Format == trace.Values {
		d.header.Partitions = []int32{0}
	}
	d.order = trace.NewOrder(d.sourceName(), d.header)
	return nil
}

// preview looks at the first lines before anything is written: a file that is no log leaves nothing behind.
func (d *driver) preview(ctx context.Context) error {
	return patiently(ctx, d.config.Source.Path == "-", func() error {
		lines, err := d.reader.Preview(ctx)
		order := trace.NewOrder(d.sourceName(), d.header)
		for i := range lines {
			if err := order.Check(&lines[i]); err != nil {
				return err
			}
		}
		return err
	})
}

// open opens the source and reads its header, and gives up with ctx.
func open(ctx context.Context, path string, o trace.Options) (*trace.Reader, trace.Header, error) {
	var r *trace.Reader
	var h trace.Header
	err := patiently(ctx, path == "-", func() (err error) {
		if path == "-" {
			r, err = trace.OpenStdin(o)
		} else {
			r, err = trace.Open(path, o)
		}
		if err != nil {
			return err
		}
		if h, err = r.Header(ctx); err != nil {
			return errors.Join(err, r.Close())
		}
		return nil
	})
	if err != nil {
		return nil, trace.Header{}, err
	}
	return r, h, nil
}

// patiently does what may block for ever on standard input, which cannot be interrupted: when ctx ends it is left behind,
// and ends with the next input or with the process.
func patiently(ctx context.Context, stdin bool, do func() error) error {
	if !stdin {
		return do()
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *driver) sourceName() string {
	if d.config.Source.Path == "-" {
		return trace.Stdin
	}
	return d.config.Source.Path
}

// check refuses to go on where the log, the meter or the partitions are not those of the ledger.
func (d *driver) check(s *meter.Standing, state *State) error {
	if s.Topic != "" && s.Topic != d.header.Topic {
		return refuse(ErrTopic, "name another ledger for this log, or the source that this ledger was made from",
			"it holds %q, the source is %q", s.Topic, d.header.Topic)
	}
	for i := range s.Positions {
		if p := &s.Positions[i]; p.Fingerprint != d.config.Meter.Fingerprint {
			return refuse(ErrFingerprint, "count this log into a ledger of its own, or bring the old meter file back",
				"partition %d has fingerprint %.12s, the meter has %.12s", p.Partition, p.Fingerprint, d.config.Meter.Fingerprint)
		}
	}
	if state != nil && !slices.Equal(state.Partitions, d.header.Partitions) {
		return refuse(ErrPartitions, "ids may have moved between partitions: drain the old log, and count the new one into a ledger of its own",
			"the ledger knows %v, the source states %v", state.Partitions, d.header.Partitions)
	}
	return nil
}

func (d *driver) beginMerge(s *meter.Standing) error {
	if d.ledger == nil {
		return nil
	}
	state := d.resume.Merge
	if s.Driver == nil {
		state = stream.MergeState{G: meter.MinusInfinity}
	}
	if err := d.beginPrices(s); err != nil {
		return err
	}
	d.merger = stream.NewMerger(d.config.Meter, d.pricer, state)
	d.merger.Restore(s.Rows)
	if d.outcome.Repriced != nil && !d.outcome.Repriced.Nothing {
		d.merger.Reprice()
		d.changed = true
	}
	for _, n := range d.header.Partitions {
		d.merger.SetPartition(n, meter.MinusInfinity, false)
	}
	return nil
}

// beginPartitions makes the partitions that are known before the first line.
func (d *driver) beginPartitions(s *meter.Standing) error {
	if d.config.Archive != nil {
		if err := d.openArchive(); err != nil {
			return err
		}
	}
	for i := range s.Positions {
		if _, err := d.addPartition(s.Positions[i].Partition, &s.Positions[i], 0); err != nil {
			return err
		}
	}
	known := slices.Clone(d.header.Partitions)
	for n := range d.heads {
		known = append(known, n)
	}
	slices.Sort(known)
	for _, n := range slices.Compact(known) {
		if d.partitions.find(n) == nil {
			// Of a partition that the ledger does not know nothing was read before the ledger's place in the file,
			// but what the archive has of it may be from further back.
			if _, err := d.addPartition(n, nil, d.unreadFrom(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreadFrom is where the lines of a partition without a position may begin.
func (d *driver) unreadFrom(n int32) int64 {
	if d.ledger == nil {
		return 0
	}
	return d.resume.NextByte
}

// addPartition makes a partition: with its position if the ledger has one, with its archive's head if there is one.
// atByte is where its first line may be.
func (d *driver) addPartition(n int32, position *meter.Position, atByte int64) (*partition, error) {
	p := &partition{number: n, watermark: meter.MinusInfinity, quietTo: meter.MinusInfinity, drainedAt: -1}
	from := meter.Checkpoint{Byte: atByte, MaxReach: meter.MinusInfinity}
	p.head = noFile(atByte)
	if position != nil {
		p.from = *position
		p.committed, p.next, p.watermark, p.commitNo = position.Committed, position.Committed, position.Watermark, position.CommitNo
		from = position.Checkpoint
		if p.head = position.Archive; p.head.File == "" {
			p.head = noFile(p.head.Byte)
		}
	} else if head, ok := d.heads[n]; ok && d.ledger == nil {
		p.head = head
	}
	if d.archiver != nil {
		if err := d.resumeArchive(p); err != nil {
			return nil, err
		}
		// The archive's files carry the checkpoint at their first offset: the counter has to be in the state that
		// belongs there, not only in that of its own mark. A head behind which nothing was committed yet has a checkpoint
		// that need not cover what lives at the position: then the position's own is the one.
		complete := d.wasDrained && p.archived >= p.committed
		if d.ledger != nil && !complete && p.head.Next <= p.committed && p.head.Restart <= from.Restart {
			from = p.head.Checkpoint
		}
		// What a position does not vouch for has to be of this log.
		if known := p.from.Archive.Next; p.archived > known && !complete {
			source := archive.Source{Topic: d.header.Topic, Partition: n}
			p.witness = newWitness(d.config.Archive.FS, source, known, max(known, from.Restart), p.archived)
		}
	}
	return p, d.place(p, from)
}

// place gives p a counter as of a checkpoint, and makes it known.
func (d *driver) place(p *partition, from meter.Checkpoint) error {
	var err error
	if p.counter, err = stream.NewCounter(d.config.Meter, p.number, from, p.from.Summary); err != nil {
		return err
	}
	p.counter.Resume(p.commitNo)
	p.asleep = d.merger != nil && (!d.merger.Has(p.number) || d.merger.Idle(p.number))
	p.restart, p.startByte = from.Restart, from.Byte
	if d.partitions.find(p.number) == nil {
		d.partitions.add(p)
	}
	return nil
}

// minRowGroup is the least size of a row group, in bytes of raw text: each partition's writer holds about one in memory.
const minRowGroup = 8 << 20

// openArchive reads what `_meta` says: ends of chains and of drained logs.
func (d *driver) openArchive() error {
	a := d.config.Archive
	var err error
	if d.lock, err = archive.TakeLock(a.FS); err != nil {
		return err
	}
	d.meta = archive.NewMeta(a.FS)
	if d.lock.Fresh {
		if err := d.meta.Adopt(); err != nil {
			return err
		}
	}
	heads, err := d.meta.Heads()
	if err != nil {
		return err
	}
	d.heads = map[int32]meter.ArchiveHead{}
	for source, head := range heads {
		if source.Topic != d.header.Topic {
			return refuse(ErrArchive, "a meter's archive is of one log: name another archive for this one", "it holds %s, the source is %q", source, d.header.Topic)
		}
		d.heads[source.Partition] = head
	}
	if d.drained, err = d.meta.Drained(); err != nil {
		return err
	}
	logTime := archive.LogTimeEnvelope
	if d.config.Source.Format == trace.Values {
		logTime = archive.LogTimeReceived
	}
	d.archiver = newArchiver(archive.Config{
		FS: a.FS, Meter: d.config.Meter, Topic: d.header.Topic, LogTime: logTime, Version: a.Version,
		RowGroupRows: archive.DefaultRowGroupRows, RowGroupBytes: max(minRowGroup, archive.DefaultRowGroupBytes/int64(max(1, len(d.header.Partitions)))),
	}, max(1, d.config.Workers))
	return nil
}

// resumeArchive takes over what was published and not committed.
func (d *driver) resumeArchive(p *partition) error {
	source := archive.Source{Topic: d.header.Topic, Partition: p.number}
	head, err := archive.Resume(d.config.Archive.FS, source, p.head)
	if errors.Is(err, archive.ErrChain) {
		return &Refusal{Err: err, Hint: "bring its files back as they were ('gmctl archive verify' names what is wrong), or count the log into another archive and another ledger"}
	} else if err != nil {
		return err
	}
	p.head, p.archived = head, head.Next
	if mark, ok := d.drained[source]; ok {
		p.drainedAt = mark.Next
	}
	d.archiver.adopt(p.number, head)
	return nil
}

// seek goes to the lowest byte that a counter or the archive needs, and proves that the file before the ledger's place
// is the one that was read.
func (d *driver) seek(ctx context.Context) error {
	if d.resume.PrefixHash == "" {
		return nil
	}
	from := d.resume.NextByte
	for _, p := range d.partitions.list {
		from = min(from, p.startByte)
	}
	err := patiently(ctx, d.config.Source.Path == "-", func() error {
		return d.reader.Resume(ctx, from, d.resume.NextByte, d.resume.PrefixHash)
	})
	if !errors.Is(err, trace.ErrPrefix) {
		return err
	}
	if d.config.AcceptLoss && d.config.Source.Path != "-" {
		return d.acceptLoss(ctx)
	}
	return refuse(ErrPrefix, "bring the old file back, or count the new one into a ledger of its own; --accept-loss goes on here and writes down what is lost",
		"%v", err)
}
