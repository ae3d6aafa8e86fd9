package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// An audit is one topic of an archive as a meter's recompute reads it.
type audit struct {
	*folder
	dir    string
	arc    *archive.Archive
	topic  string
	parts  []*archive.Partition
	prices []priceUse      // by From
	uses   meter.PriceUses // what `_meta/prices` comes to; nil for the card at hand
	// cut is the first offset of each partition that does not exist for the audit; nil: all that is archived exists.
	cut map[int32]int64
	// whole: the archive was written by another version of the meter, whose restarts do not hold for this one.
	whole bool
}

// A priceUse is the card and list that priced the windows that end after From (ms), until the next priceUse.
type priceUse struct {
	From       int64
	Card, List *meter.RateCard
}

// openAudit opens the archive for a meter; prices is `archive` (what each row was priced with) or `card`.
func openAudit(ctx context.Context, o *folder, prices string) (*audit, error) {
	dir, err := o.archivePath(o.Run.Archive)
	if err != nil {
		return nil, err
	}
	arc, err := openArchive(ctx, o, openLedger)
	if err != nil {
		return nil, err
	}
	u := &audit{folder: o, dir: dir, arc: arc}
	topics := arc.Topics()
	switch len(topics) {
	case 0:
		return nil, hint(fmt.Errorf("archive %s is empty", dir), "run 'gmctl stream' first; it writes the archive")
	case 1:
		u.topic = topics[0]
	default:
		return nil, fmt.Errorf("archive %s holds %d topics (%q, ...): a meter has one; give each meter its own archive", dir, len(topics), topics[0])
	}
	for _, p := range arc.Partitions {
		if p.Topic == u.topic {
			u.parts = append(u.parts, p)
			for _, f := range p.Files {
				u.whole = u.whole || f.Fingerprint != o.Fingerprint
			}
		}
	}
	if !u.decodedBy(o.EventFingerprint) {
		err := fmt.Errorf("archive %s was written under a meter with another `event:` part: its columns are not what this one reads", dir)
		return nil, hint(err, "bring that meter file back, or count the log into another run.archive and run.ledger; diff ledger archive:THIS_FILE with the former file as -m says what this one would bill")
	}
	return u, u.pricesUsed(prices)
}

// pricesUsed are the cards that the archive says its rows were priced with, or the card at hand.
func (u *audit) pricesUsed(prices string) error {
	switch prices {
	case "card":
		u.prices = []priceUse{{From: meter.MinusInfinity, Card: u.card.RateCard, List: u.listCard()}}
		return nil
	case "archive":
	default:
		return hint(fmt.Errorf("--prices %q is unknown", clip(prices)), "use archive (what each row was priced with) or card (the rate card at hand)")
	}
	if err := u.pricesKept(); err != nil {
		return hint(fmt.Errorf("what the rows were priced with cannot be told: %w", err),
			"bring _meta back from a copy, or use --prices card: the rate card at hand")
	}
	return nil
}

// pricesKept reads `_meta/prices` and the cards that it names: all of it, as it was written, or it is an error.
func (u *audit) pricesKept() error {
	meta := archive.NewMeta(u.arc.FS)
	written, err := meta.Prices()
	if err != nil {
		return err
	}
	if u.uses = meter.InForce(written); len(u.uses) == 0 {
		return errors.New("the archive has no _meta/prices")
	}
	for _, use := range u.uses {
		kept := priceUse{From: use.From}
		if kept.Card, err = u.keptCard(meta, use.Card); err == nil && use.List != "" {
			kept.List, err = u.keptCard(meta, use.List)
		}
		if err != nil {
			return err
		}
		u.prices = append(u.prices, kept)
	}
	return nil
}

// keptCard is the card of a revision as the archive has it.
func (u *audit) keptCard(meta *archive.Meta, revision string) (*meter.RateCard, error) {
	text, err := meta.Rate(revision)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(u.Run.Archive, "_meta", "rates", revision+".yaml")
	card, err := pricing.Parse(u.Meter, path, text)
	if err == nil && card.Revision != revision {
		err = fmt.Errorf("%s has the text of revision %s: it was changed", path, card.Revision)
	}
	return card, err
}

// scope is what is recomputed.
type scope struct {
	truth    batch.Truth
	from, to *int64
	account  string
	drain    *bool // nil: as the archive's mark says
	unpruned bool  // read everything, whatever the range: the oracle begins at the beginning
	horizon  *batch.Horizon
}

// job is the recompute of a scope: exactly pruned where the archive's restarts hold (DESIGN section 8).
func (u *audit) job(s scope) *batch.Job {
	last := u.prices[len(u.prices)-1]
	j := &batch.Job{Meter: u.Meter, Card: last.Card, List: last.List, Truth: s.truth, From: s.from, To: s.to, Account: s.account, Horizon: s.horizon}
	for _, p := range u.parts {
		span := p.Whole()
		if s.truth == batch.AsStreamed && !u.whole && u.cut == nil && !s.unpruned {
			fromTime, untilReach := meter.MinusInfinity, meter.PlusInfinity
			if s.from != nil {
				fromTime = *s.from - u.AbandonAfter
			}
			if s.to != nil {
				untilReach = *s.to + u.Window.AllowedLateness + u.Watermark.MaxOutOfOrderness
			}
			span = p.Select(fromTime, untilReach)
		}
		part := batch.Part{Partition: p.Partition, Begin: span.Begin.Restart, MaxReach: span.Begin.MaxReach, End: batch.Everything}
		if span.End < p.Next() {
			part.End = span.End
		}
		if cut, ok := u.cut[p.Partition]; ok && cut < p.Next() {
			part.End = cut
		}
		part.Drained = p.Drained
		if s.drain != nil {
			part.Drained = *s.drain
		}
		part.Drained = part.Drained && part.End == batch.Everything
		j.Parts = append(j.Parts, part)
		for _, f := range span.Files {
			j.Files = append(j.Files, batch.File{Path: filepath.Join(u.dir, filepath.FromSlash(f.Name)), Partition: p.Partition, First: f.First, Next: f.Next, Rows: f.Rows})
		}
	}
	return j
}

// reprice prices the rows of windows that an earlier card had priced by that card.
func (u *audit) reprice(rows []meter.Row) error {
	for i, use := range u.prices[:len(u.prices)-1] {
		pricer := batch.NewPricer(u.Meter, use.Card, use.List)
		for r := range rows {
			row := &rows[r]
			if row.WindowEnd <= use.From || row.WindowEnd > u.prices[i+1].From {
				continue
			}
			priced, err := pricer.Row(row.RowKey, row.Cells)
			if err != nil {
				return err
			}
			row.Amount, row.Source, row.Unpriced, row.Cells = priced.Amount, priced.Source, priced.Unpriced, priced.Cells
		}
	}
	return nil
}

// refuseGaps is the answer of every verb but diff and verify to an archive that is not whole.
func (u *audit) refuseGaps() error {
	if err := u.arc.Err(); err != nil {
		return hint(err, "'gmctl archive verify' names every fault, 'gmctl diff' what it costs")
	}
	return nil
}

func (u *audit) engine() *duckdb.Engine { return duckdb.New(duckdb.Config{}) }

// underMeter is the same archive under another meter: as it is where the `event:` parts are equal, else decoded again
// into a temporary archive, which done removes.
func (u *audit) underMeter(ctx context.Context, path string) (other *audit, done func() error, err error) {
	o, err := openMeter(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, noMeterSide(path)
	} else if err != nil {
		return nil, nil, err
	}
	other = &audit{folder: o, dir: u.dir, arc: u.arc, topic: u.topic, parts: u.parts, cut: u.cut, whole: true,
		prices: []priceUse{{From: meter.MinusInfinity, Card: o.card.RateCard, List: o.listCard()}}}
	if same := u.decodedBy(o.EventFingerprint); same {
		return other, func() error { return nil }, nil
	}
	if other.dir, err = os.MkdirTemp("", "gmctl-archive-*"); err != nil {
		return nil, nil, err
	}
	done = func() error { return os.RemoveAll(other.dir) }
	if err := other.decodeAgain(ctx); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return other, done, nil
}

func (u *audit) decodedBy(eventFingerprint string) bool {
	for _, p := range u.parts {
		for _, f := range p.Files {
			if f.EventFingerprint != eventFingerprint {
				return false
			}
		}
	}
	return true
}

// decodeAgain writes the records of the archive, decoded by this meter, into u.dir and reads from there.
func (u *audit) decodeAgain(ctx context.Context) error {
	fsys := archive.Dir(u.dir)
	marks := map[int32]bool{}
	for _, p := range u.parts {
		if err := u.decodePartition(ctx, fsys, p); err != nil {
			return err
		}
		marks[p.Partition] = p.Drained
	}
	arc, err := archive.Open(fsys, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	u.arc = arc
	for i, p := range u.parts {
		q := arc.Partition(p.Source)
		if q == nil {
			q = &archive.Partition{Source: p.Source}
		}
		q.Drained = marks[p.Partition]
		u.parts[i] = q
	}
	return nil
}

// decodePartition decodes a partition file by file. The checkpoints of the new files say nothing: a meter that had the
// archive decoded again begins at its start.
func (u *audit) decodePartition(ctx context.Context, fsys archive.FS, p *archive.Partition) error {
	if len(p.Files) == 0 {
		return nil
	}
	start := meter.Checkpoint{Restart: p.Files[0].First, MaxReach: meter.MinusInfinity}
	w, err := archive.NewWriter(archive.Config{FS: fsys, Meter: u.Meter, Topic: p.Topic, Partition: p.Partition, Version: release, LogTime: p.Files[0].LogTime,
		RowGroupRows: archive.DefaultRowGroupRows, RowGroupBytes: archive.DefaultRowGroupBytes},
		meter.ArchiveHead{Next: start.Restart, Checkpoint: start})
	if err != nil {
		return err
	}
	decoder, reach := schemas.NewDecoder(u.Meter), meter.MinusInfinity
	var e meter.Event
	for _, f := range p.Files {
		err := ctx.Err()
		if err == nil {
			err = f.Records(func(r *meter.Record) error {
				decoder.Decode(r, &e)
				if err := w.Append(r, &e, reach); err != nil {
					return err
				}
				if e.Admitted() {
					reach = max(reach, e.Reach())
				}
				return nil
			})
		}
		if err == nil {
			err = w.Seal(f.Next, start)
		}
		if err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	_, err = w.Publish()
	return err
}

// missingRanges are the offsets of a partition that the archive should hold up to next and does not.
func missingRanges(p *archive.Partition, next int64) [][2]int64 {
	var gaps [][2]int64
	at := int64(0)
	for i, f := range p.Files {
		if f.First > at && (i > 0 || f.PrevName != "") {
			gaps = append(gaps, [2]int64{at, f.First})
		}
		at = f.Next
	}
	if at < next {
		gaps = append(gaps, [2]int64{at, next})
	}
	return slices.DeleteFunc(gaps, func(g [2]int64) bool { return g[0] >= g[1] })
}
