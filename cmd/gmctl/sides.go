package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// sides makes the two sides of a diff from the folder: one snapshot of the ledger, one listing of the archive, and the
// cut in each partition up to which both can be compared (DESIGN section 9).
type sides struct {
	*folder
	app       *app
	flags     *diffFlags
	ledger    *sqlite.Reader // nil without one
	audit     *audit
	cuts      []diff.Cut
	missing   []diff.Range
	lost      []diff.Range
	streamed  *engineItems // as-streamed verdicts at the cut
	complete  *engineItems
	result    *batch.Result // of the as-streamed recompute at the cut
	made      string        // when the recompute was made, if it is a stored one
	done      []func() error
	reading   *ledgerReading // of the ledger's rows, where it is a side
	totals    *diff.File     // the last side that is a file of totals
	undrained []string       // partitions that the ledger has drained and the archive has no mark of (R13)
}

func (s *sides) close() error {
	var err error
	for _, do := range s.done {
		err = errors.Join(err, do())
	}
	return err
}

// open takes the snapshot and finds the cut.
func (s *sides) open(ctx context.Context, left, right string) error {
	r, err := openLedger(ctx, s.folder)
	switch {
	case err == nil:
		s.ledger = r
		s.done = append(s.done, r.Close)
	case !errors.Is(err, sqlite.ErrMissing) || left == "ledger" || right == "ledger":
		return err
	}
	if s.audit, err = openAudit(ctx, s.folder, s.flags.prices); err != nil {
		return err
	}
	if err := s.findCut(ctx); err != nil {
		return err
	}
	if left == "ledger" || right == "ledger" {
		s.reading = s.readLedger(ctx)
		s.done = append([]func() error{s.reading.stop}, s.done...)
	}
	all := scope{truth: batch.AsStreamed}
	job := s.audit.job(all)
	s.streamed = &engineItems{audit: s.audit, job: job}
	s.complete = &engineItems{audit: s.audit, job: s.audit.job(scope{truth: batch.Complete})}
	if s.result, s.made, err = s.app.storedOrRun(ctx, s.audit, job, all); err != nil {
		return err
	}
	for i := range s.cuts {
		s.cuts[i].Watermark = s.result.Watermarks[s.cuts[i].Partition]
	}
	return nil
}

// findCut is the smaller of what the ledger committed and what its archive holds; what the archive should hold and does
// not is missing.
func (s *sides) findCut(ctx context.Context) error {
	s.audit.cut = map[int32]int64{}
	if s.ledger == nil {
		for _, p := range s.audit.parts {
			s.cuts = append(s.cuts, diff.Cut{Partition: p.Partition, Offset: p.Next(), Committed: p.Next()})
			s.addMissing(p, p.Next())
		}
		return nil
	}
	positions, err := s.ledger.Positions(ctx)
	if err != nil {
		return err
	}
	for _, pos := range positions {
		source := archive.Source{Topic: pos.Topic, Partition: pos.Partition}
		part := s.audit.arc.Partition(source)
		if part == nil {
			part = &archive.Partition{Source: source, Drained: pos.Drained}
			s.audit.parts = append(s.audit.parts, part)
		}
		cut := min(pos.Committed, pos.Archive.Next)
		s.audit.cut[pos.Partition] = cut
		s.cuts = append(s.cuts, diff.Cut{Partition: pos.Partition, Offset: cut, Committed: pos.Committed, Idle: pos.Idle})
		s.addMissing(part, cut)
		if pos.Drained && !part.Drained {
			s.undrained = append(s.undrained, source.String())
		}
	}
	lost, err := s.ledger.Lost(ctx)
	for _, l := range lost {
		s.lost = append(s.lost, diff.Range{Partition: l.Partition, First: l.From, Next: l.To, From: l.WindowFrom, To: l.WindowTo})
	}
	return err
}

func (s *sides) addMissing(p *archive.Partition, next int64) {
	for _, gap := range missingRanges(p, next) {
		s.missing = append(s.missing, diff.Range{Partition: p.Partition, First: gap[0], Next: gap[1]})
	}
}

// comparable says which windows can be judged: those against the complete truth have to be final (R15).
func (s *sides) comparable(left, right string) func(int64) bool {
	f := diff.NewFinality(s.Window.AllowedLateness, s.cuts)
	if s.flags.truth == string(batch.Complete) && (left == "recompute" || right == "recompute") {
		return f.Final
	}
	return f.Comparable
}

// side makes the side of a name.
func (s *sides) side(ctx context.Context, name string) (*diff.Side, error) {
	switch {
	case name == "ledger":
		return s.ledgerSide(ctx)
	case name == "recompute":
		return s.recomputeSide(ctx)
	case strings.HasPrefix(name, "archive:"):
		return s.otherMeter(ctx, strings.TrimPrefix(name, "archive:"))
	case strings.HasPrefix(name, "topic:"):
		return nil, fmt.Errorf("diff: side %q: Kafka topics are not built yet", clip(name))
	}
	return s.fileSide(ctx, name)
}

// own is what all sides of our own have.
func own(o *folder, name string, kind diff.SideKind, topic string) *diff.Side {
	side := &diff.Side{Name: name, Kind: kind, Fingerprint: o.Fingerprint, RateRevision: o.card.Revision, Topic: topic, WindowSize: o.Window.Size,
		Quantities: o.Event.Quantities, Identity: diff.IdentityOf(o.Meter), Columns: diff.AllColumns}
	if o.Event.SKU.IsConst {
		side.ConstSKU = o.Event.SKU.Const
	}
	return side
}

// boundedBy is a rate once for each range of windows that its revision priced; once without bounds where that is not known.
func boundedBy(uses meter.PriceUses, rate diff.UsedRate) []diff.UsedRate {
	var all []diff.UsedRate
	for i, use := range uses {
		if use.Card != rate.Revision && use.List != rate.Revision {
			continue
		}
		rate.After, rate.Until = use.From, meter.PlusInfinity
		if i+1 < len(uses) {
			rate.Until = uses[i+1].From
		}
		all = append(all, rate)
	}
	if all == nil {
		all = []diff.UsedRate{rate}
	}
	return all
}

// priceFindings says where the archive keeps other prices than the ledger used.
func (s *sides) priceFindings(uses meter.PriceUses) []diff.Finding {
	if s.flags.prices != "archive" || uses == nil || slices.Equal(uses, s.audit.uses) {
		return nil
	}
	return []diff.Finding{{Cause: diff.RateRevision, Text: fmt.Sprintf("the ledger priced with %s, the archive's _meta/prices says %s; "+
		"another ledger wrote there last, or the stream was killed: run 'gmctl stream' again", usesText(uses), usesText(s.audit.uses))}}
}

func usesText(uses meter.PriceUses) string {
	var words []string
	for _, use := range uses {
		word := priceName(use)
		if use.From > meter.MinusInfinity {
			word += " after " + meter.Time(use.From)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func (s *sides) recomputeSide(ctx context.Context) (*diff.Side, error) {
	side := own(s.folder, "recompute "+s.flags.truth, diff.Recompute, s.audit.topic)
	side.Items, side.Complete, side.Prices, side.MissingArchive = s.streamed, s.complete, cardBook(s.audit.prices), s.missing
	rows := s.result.Rows
	if s.flags.truth == string(batch.Complete) {
		res, made, err := s.app.storedOrRun(ctx, s.audit, s.complete.job, scope{truth: batch.Complete})
		if err != nil {
			return nil, err
		}
		s.made = made
		side.Items, rows = s.complete, res.Rows
	}
	side.Rows = diff.SliceRows(rows)
	return side, nil
}

// cardBook lists every rate of the cards as one that may have been used for the windows that its card priced.
func cardBook(uses []priceUse) *diff.PriceBook {
	var book []diff.UsedRate
	for i, use := range uses {
		until := meter.PlusInfinity
		if i+1 < len(uses) {
			until = uses[i+1].From
		}
		add := func(card *meter.RateCard, source string) {
			if card == nil {
				return
			}
			for _, r := range card.Rates {
				book = append(book, diff.UsedRate{Rate: r, Source: source, Revision: card.Revision, After: use.From, Until: until})
			}
		}
		add(use.Card, meter.PriceTable)
		add(use.List, meter.PriceList)
	}
	return diff.NewUsedBook(book)
}

// otherMeter is what another meter would have billed on the same archive.
func (s *sides) otherMeter(ctx context.Context, path string) (*diff.Side, error) {
	u, done, err := s.audit.underMeter(ctx, path)
	if err != nil {
		return nil, err
	}
	s.done = append(s.done, done)
	job := u.job(scope{truth: batch.Truth(s.flags.truth)})
	res, err := u.recompute(ctx, job, "duckdb")
	if err != nil {
		return nil, err
	}
	side := own(u.folder, "archive:"+path, diff.Archive, u.topic)
	side.Rows, side.Items, side.Prices = diff.SliceRows(res.Rows), &engineItems{audit: u, job: job}, cardBook(u.prices)
	side.Complete = &engineItems{audit: u, job: u.job(scope{truth: batch.Complete})}
	return side, nil
}

// engineItems answers for the records behind a recompute's rows.
type engineItems struct {
	audit *audit
	job   *batch.Job
}

// Items implements diff.ItemSource.
func (e *engineItems) Items(ctx context.Context, q diff.ItemQuery) ([]meter.Item, error) {
	engine := e.audit.engine()
	if q.All {
		return engine.Items(ctx, e.job, batch.ItemFilter{})
	}
	var all []meter.Item
	seen := map[meter.LogPosition]bool{}
	add := func(filter batch.ItemFilter) error {
		items, err := engine.Items(ctx, e.job, filter)
		for _, it := range items {
			at := meter.LogPosition{Partition: it.Partition, Offset: it.Offsets[0]}
			if !seen[at] {
				seen[at] = true
				all = append(all, it)
			}
		}
		return err
	}
	if len(q.Rows) > 0 {
		if err := add(batch.ItemFilter{Rows: q.Rows}); err != nil {
			return nil, err
		}
	}
	if len(q.IDs) > 0 {
		if err := add(batch.ItemFilter{IDs: q.IDs}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// DeadLetters implements diff.ItemSource.
func (e *engineItems) DeadLetters(ctx context.Context) ([]diff.Dead, error) {
	return e.audit.deadLetters(ctx)
}
