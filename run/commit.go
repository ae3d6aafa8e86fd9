package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// Bounds of what waits for a commit.
const (
	maxPendingItems   = 100_000
	maxPendingLetters = 64 << 20 // bytes
)

// full reports whether what waits for a commit is too much to wait for the next tick.
func (d *driver) full() bool {
	return len(d.pending.Items) >= maxPendingItems || d.letters >= maxPendingLetters
}

// replaying reports whether the file is not yet back at the ledger's place: nothing may be committed there. In a file
// that was replaced (--accept-loss) that place is another in every partition, and known once each has been met.
func (d *driver) replaying() bool {
	if d.end < d.resume.NextByte {
		return true
	}
	return d.replaced && slices.ContainsFunc(d.partitions.list, func(p *partition) bool { return p.unsure || p.next < p.committed })
}

// publish takes the changes of all partitions and writes the journal (R11).
func (d *driver) publish(ctx context.Context) error {
	if err := d.absorb(ctx); err != nil {
		return err
	}
	firings, err := d.merger.Publish()
	d.pending.Firings = append(d.pending.Firings, firings...)
	return err
}

// absorb takes the changes of all partitions into the rows.
func (d *driver) absorb(ctx context.Context) error {
	if d.merger == nil {
		return nil
	}
	for _, p := range d.partitions.list {
		number, changes := p.counter.TakeChanges()
		p.commitNo = number
		if err := d.bringBack(ctx, d.merger.Missing(changes)); err != nil {
			return err
		}
		if err := d.merger.Add(p.number, number, changes); err != nil {
			return err
		}
	}
	return nil
}

// bringBack restores rows that have left memory.
func (d *driver) bringBack(ctx context.Context, keys []meter.RowKey) error {
	if len(keys) == 0 {
		return nil
	}
	if err := d.waitCommit(); err != nil { // it may be writing them
		return err
	}
	rows, err := d.ledger.RowsByKey(ctx, keys)
	if err != nil {
		return err
	}
	d.merger.Restore(rows)
	return nil
}

// takeItems prices the side outputs since the last take.
func (d *driver) takeItems() error {
	for _, p := range d.partitions.list {
		items := p.counter.TakeItems()
		if d.merger == nil { // nobody wants to know
			p.counter.TakeChanges()
			continue
		}
		for i := range items {
			it := meter.PricedItem{Item: items[i]}
			use := d.prices.uses.At(it.WindowEnd)
			it.Card, it.List = use.Card, use.List
			cell := meter.Cell{CellKey: meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}, Usage: it.Usage}
			it.Priced = d.pricer.Price(&cell)
			if err := d.prices.note(&cell); err != nil {
				return err
			}
			d.pending.Items = append(d.pending.Items, it)
		}
	}
	return nil
}

// commitTick is the cycle: old archive files are closed, and what happened is committed.
func (d *driver) commitTick(ctx context.Context) error {
	d.tick = d.config.Clock.After(d.config.CommitEvery)
	if d.archiver != nil && !d.replaying() {
		if err := d.rollByAge(); err != nil {
			return err
		}
		d.changed = d.changed || d.archiver.files() > d.filesKept // a head that moved while nothing came
	}
	return d.commitHere(ctx)
}

func (d *driver) rollByAge() error {
	age := d.config.Archive.MaxAge
	if age <= 0 {
		return nil
	}
	now := d.config.Clock.Now()
	seals, err := d.sealAll(d.applied(), func(f openFile) bool { return now.Sub(f.since) >= age })
	if err != nil || len(seals) == 0 {
		return err
	}
	if d.block != nil {
		d.block.seals = append(d.block.seals, seals...)
		return nil
	}
	return d.archiver.send(archiveJob{seals: seals})
}

// applied counts the lines of the block that were applied.
func (d *driver) applied() int {
	if d.block == nil {
		return 0
	}
	for i := range d.block.lines {
		if d.block.lines[i].End > d.end {
			return i
		}
	}
	return len(d.block.lines)
}

// commitHere makes everything up to the last applied line durable. It returns when the commit before it is: at most
// one is under way.
func (d *driver) commitHere(ctx context.Context) error {
	if !d.changed || d.replaying() {
		return nil
	}
	if err := d.takeItems(); err != nil {
		return err
	}
	if err := d.absorb(ctx); err != nil {
		return err
	}
	if err := d.checkSums(); err != nil || d.ledger == nil {
		return err
	}
	if err := d.waitCommit(); err != nil {
		return err
	}
	if d.archiver != nil && d.outcome.Repriced != nil { // the archive says first what the ledger is about to say
		if err := d.keepMeta(); err != nil {
			return err
		}
	}
	c, err := d.collect()
	if err != nil {
		return err
	}
	if err := d.config.failAt("run:before:commit"); err != nil {
		return err
	}
	d.outcome.Firings += int64(len(c.Firings))
	d.changed = false
	result := make(chan error, 1)
	d.inflight = result
	ledger := d.ledger
	d.group.Go(func() { result <- ledger.Commit(context.WithoutCancel(ctx), c) })
	return nil
}

// waitCommit waits for the commit under way.
func (d *driver) waitCommit() error {
	if d.inflight == nil {
		return nil
	}
	err := <-d.inflight
	d.inflight = nil
	if err != nil {
		return err
	}
	d.outcome.Commits++
	return d.config.failAt("run:after:commit")
}

// collect is the commit of everything that is not in the ledger yet.
func (d *driver) collect() (*meter.Commit, error) {
	c := d.pending
	d.pending, d.letters = meter.Commit{}, 0
	c.Topic, c.InForce = d.header.Topic, d.prices.uses
	c.Cards, d.newCards = d.newCards, nil
	var err error
	if c.Rows, err = d.merger.Dirty(); err != nil {
		return nil, err
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		use := c.InForce.At(r.WindowEnd)
		r.Card, r.List = use.Card, use.List
		for j := range r.Cells {
			if err := d.prices.note(&r.Cells[j].Cell); err != nil {
				return nil, err
			}
		}
	}
	c.Prices = d.prices.take()
	if d.archiver != nil {
		d.filesKept = d.archiver.files() // before the heads are read: a file between the two is committed twice, not never
	}
	hash := d.prefixHash()
	for _, p := range d.partitions.list {
		position, err := d.position(p, hash)
		if err != nil {
			return nil, err
		}
		c.Positions = append(c.Positions, position)
	}
	c.Driver, err = json.Marshal(State{
		NextByte: d.end, PrefixHash: hash, Drained: d.drain, Partitions: d.header.Partitions, Merge: d.merger.State(), Prices: d.prices.uses,
	})
	return &c, err
}

// prefixHash is the hash of the file up to the last applied line.
func (d *driver) prefixHash() string {
	if d.chunk == nil {
		if d.resume.PrefixHash != "" {
			return d.resume.PrefixHash
		}
		return (&trace.Chunk{}).PrefixHash(0)
	}
	return d.chunk.PrefixHash(d.end)
}

// position is all that is durable of a partition beside its rows (DESIGN section 5).
func (d *driver) position(p *partition, hash string) (meter.Position, error) {
	if d.wasDrained { // only the archive has gone on
		position := p.from
		position.Archive, position.CommitNo = d.archiveHead(p), p.commitNo
		return position, nil
	}
	// The archive's own head may need less than what a ledger carries; lives are carried for the ledger alone.
	at, err := p.checkpoint(true, d.end)
	position := meter.Position{
		V: 1, Topic: d.header.Topic, Partition: p.number, PartitionCount: len(d.header.Partitions),
		PrefixHash: hash, NextByte: d.end, Committed: p.next, Checkpoint: at, Watermark: p.watermark, CommitNo: p.commitNo,
		Idle: d.merger.Idle(p.number), Drained: d.drain, Fingerprint: d.config.Meter.Fingerprint,
		Archive: d.archiveHead(p), Summary: p.counter.Summary(),
	}
	return position, err
}

// archiveHead is the end of the partition's chain as it is published.
func (d *driver) archiveHead(p *partition) meter.ArchiveHead {
	if d.archiver == nil {
		return p.from.Archive
	}
	head, ok := d.archiver.published(p.number)
	if !ok {
		head = p.head
	}
	if head.File == "" && p.next == 0 { // nothing of it was read: its first line is still to come
		head.Byte = d.end
	}
	return head
}

// checkSums checks R14 in every partition: a run that cannot account for a record stops.
func (d *driver) checkSums() error {
	for _, p := range d.partitions.list {
		s := p.counter.Summary()
		if err := s.Check(); err != nil {
			return fmt.Errorf("run: partition %d: %w", p.number, err)
		}
	}
	return nil
}

// summary is that of the whole log so far.
func (d *driver) summary() meter.Summary {
	var sum meter.Summary
	for _, p := range d.partitions.list {
		s := p.from.Summary
		if !d.wasDrained && !d.replaying() {
			s = p.counter.Summary()
		}
		sum.Add(&s)
	}
	return sum
}

// finish ends a file that was read to its end: it is drained (R13), or waits as it is for more.
func (d *driver) finish(ctx context.Context) error {
	d.outcome.Unread = d.reader.Unread()
	if err := d.settleAll(); err != nil {
		return err
	}
	if err := d.proveAll(); err != nil {
		return err
	}
	if d.replaying() {
		return fmt.Errorf("run: %s ended at byte %d, before the ledger's place at byte %d", d.sourceName(), d.end, d.resume.NextByte)
	}
	if err := d.closeFiles(); err != nil {
		return err
	}
	d.drain = d.wasDrained
	finished := !d.changed && (d.wasDrained || d.archiveEnded())
	if !d.drain && (d.config.Drain || finished) {
		if err := d.drainAll(ctx); err != nil {
			return err
		}
	}
	if d.outcome.Finished = finished; finished {
		d.changed = false
	}
	if err := d.commitHere(ctx); err != nil {
		return err
	}
	if err := d.waitCommit(); err != nil {
		return err
	}
	d.outcome.Drained = d.drain
	d.outcome.Summary = d.summary()
	return d.markDrained()
}

// proveAll checks that the log is not shorter than the archive of it. Beside a ledger that is not at the log's end yet
// the archive may be ahead.
func (d *driver) proveAll() error {
	if d.ledger != nil && !d.config.Drain {
		return nil
	}
	for _, p := range d.partitions.list {
		if err := p.settleWitness(); err != nil {
			return err
		}
	}
	return nil
}

// stop ends a run whose context has ended: everything that was applied is archived and committed.
func (d *driver) stop(ctx context.Context) error {
	defer func() { d.outcome.Summary = d.summary() }()
	if d.replaying() {
		return nil
	}
	if err := d.closeFiles(); err != nil {
		return err
	}
	if err := d.commitHere(ctx); err != nil {
		return err
	}
	return d.waitCommit()
}

// closeFiles publishes the open archive files and waits for it.
func (d *driver) closeFiles() error {
	if d.archiver == nil {
		return nil
	}
	seals, err := d.sealAll(0, func(openFile) bool { return true })
	if err != nil {
		return err
	}
	if err := d.archiver.seal(seals); err != nil {
		return err
	}
	d.outcome.Files = d.archiver.files()
	d.changed = d.changed || d.outcome.Files > d.filesKept
	return nil
}

// archiveEnded reports whether, in a run that only archives, the archive says that the log was drained.
func (d *driver) archiveEnded() bool {
	if d.ledger != nil || d.changed || len(d.partitions.list) == 0 {
		return false
	}
	for _, p := range d.partitions.list {
		if p.drainedAt < 0 {
			return false
		}
	}
	return true
}

// drainAll moves every partition to the end of time (R13) and publishes what that makes final.
func (d *driver) drainAll(ctx context.Context) error {
	d.drain, d.changed = true, true
	for _, p := range d.partitions.list {
		// The archive's checkpoint was taken before: a drained counter has nothing to go on from.
		if err := p.counter.Drain(); err != nil {
			return err
		}
		p.watermark = p.counter.Watermark()
		if d.merger != nil {
			d.tellMerge(p, p.watermark, false)
		}
	}
	if d.merger == nil {
		return nil
	}
	return d.publish(ctx)
}

// markDrained writes the archive's mark; the ledger has it already, so that a process that dies between the two
// writes it at its next start.
func (d *driver) markDrained() error {
	if d.archiver == nil || !d.drain || d.ledger == nil && d.outcome.Finished {
		return nil
	}
	if err := d.keepMeta(); err != nil {
		return err
	}
	if err := d.config.failAt("run:before:drained"); err != nil {
		return err
	}
	for _, p := range d.partitions.list {
		source := archive.Source{Topic: d.header.Topic, Partition: p.number}
		mark := archive.Mark{Next: p.next, Fingerprint: d.config.Meter.Fingerprint}
		if d.drained[source] == mark {
			continue
		}
		if p.next == 0 { // the end of an empty chain is an end too
			if err := d.meta.PutHead(source, noFile(0)); err != nil {
				return err
			}
		}
		if err := d.meta.PutDrained(source, mark); err != nil {
			return err
		}
	}
	return d.config.failAt("run:after:drained")
}

// keepMeta keeps in the archive what an audit needs beside the records, before the first file is published.
func (d *driver) keepMeta() error {
	if d.metaKept {
		return nil
	}
	if err := d.meta.PutMeter(d.config.Meter); err != nil {
		return err
	}
	if err := d.keepRates(); err != nil {
		return err
	}
	d.metaKept = true
	return nil
}
