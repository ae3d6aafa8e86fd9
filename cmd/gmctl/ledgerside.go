package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/run"
	"github.com/gatewaymeter/gatewaymeter/stream"
)

// A ledgerReading reads the ledger's rows and holds the ledger against itself while the other side is made: on a day of
// a gateway each takes as long as the other side does.
type ledgerReading struct {
	cancel  context.CancelFunc
	workers sync.WaitGroup

	rows                 []meter.StoredRow
	broken               []string // what the ledger contradicts itself in
	rowsError, selfError error
}

// readLedger begins to read. The rows are of the snapshot of the cut; the ledger is held against itself in a snapshot of
// its own, because one connection reads one thing at a time.
func (s *sides) readLedger(ctx context.Context) *ledgerReading {
	ctx, cancel := context.WithCancel(ctx)
	l := &ledgerReading{cancel: cancel}
	l.workers.Go(func() {
		l.rows, l.rowsError = s.ledger.Stored(ctx, sqlite.Range{Account: s.flags.account})
	})
	l.workers.Go(func() { l.broken, l.selfError = auditLedger(ctx, s.folder) })
	return l
}

// wait returns what was read.
func (l *ledgerReading) wait() ([]meter.StoredRow, []string, error) {
	l.workers.Wait()
	return l.rows, l.broken, errors.Join(l.rowsError, l.selfError)
}

// stop ends the reading, whose result nobody wants any more.
func (l *ledgerReading) stop() error {
	l.cancel()
	l.workers.Wait()
	return nil
}

func auditLedger(ctx context.Context, o *folder) (broken []string, err error) {
	r, err := openLedger(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	state, err := ledgerState(ctx, r)
	if err != nil {
		return nil, err
	}
	if broken, err = r.Audit(ctx, state.Merge.G); err != nil {
		return nil, err
	}
	positions, err := r.Positions(ctx)
	return append(broken, unknownPositions(state, positions)...), err
}

// unknownPositions names the partitions that the rows hold something of and the ledger has no position of: their records would
// be read again.
func unknownPositions(state *run.State, positions []meter.Position) []string {
	var faults []string
	for _, p := range state.Merge.Partitions {
		known := slices.ContainsFunc(positions, func(pos meter.Position) bool { return pos.Partition == p.Partition })
		if p.CommitNo > 0 && !known {
			faults = append(faults, fmt.Sprintf("partition %d was committed %d times, and the ledger has no position of it", p.Partition, p.CommitNo))
		}
	}
	return faults
}

func (s *sides) ledgerSide(ctx context.Context) (*diff.Side, error) {
	stored, broken, err := s.reading.wait()
	if err != nil {
		return nil, err
	}
	rows := make([]meter.Row, 0, len(stored))
	var unpriced int64
	for i := range stored {
		unpriced += stored[i].Unpriced
		if stored[i].Usage.Requests != 0 {
			rows = append(rows, stored[i].Row)
		}
	}
	if unpriced > 0 {
		s.app.say("gmctl: incomplete: %s a quantity without a price in the ledger, which the totals lack", pluralVerb(unpriced, "request", "has", "have"))
	}
	used, err := s.ledger.PricesUsed(ctx)
	if err != nil {
		return nil, err
	}
	var book []diff.UsedRate
	state, err := ledgerState(ctx, s.ledger)
	if err != nil {
		return nil, err
	}
	uses := state.Prices
	broken = append(broken, sqlite.AuditRows(s.Meter, stored, used)...)
	for _, u := range used {
		rate := diff.UsedRate{Rate: u.Rate, Source: u.Source, Revision: u.Revision}
		book = append(book, boundedBy(uses, rate)...)
	}
	side := own(s.folder, "ledger", diff.Ledger, s.audit.topic)
	side.Rows, side.Items, side.Complete, side.Prices = diff.SliceRows(rows), s.streamed, s.complete, diff.NewUsedBook(book)
	side.Lost, side.Findings = s.lost, s.priceFindings(uses)
	if len(s.undrained) > 0 {
		side.Findings = append(side.Findings, diff.Finding{Cause: diff.MissingInArchive, Log: s.undrained,
			Text: "the ledger says that the log was drained, the archive has no mark of it in _meta/drained: run 'gmctl stream' again, or bring it back"})
	}
	for _, what := range broken {
		side.Findings = append(side.Findings, diff.Finding{Cause: diff.LedgerBroken, Text: "the ledger contradicts itself: " + what})
	}
	return side, nil
}

// ledgerState is what the stream keeps in the ledger beside the positions.
func ledgerState(ctx context.Context, r *sqlite.Reader) (*run.State, error) {
	text, err := r.Driver(ctx)
	if err != nil {
		return nil, err
	}
	state, err := run.ParseState(text)
	if err == nil && state == nil {
		state = &run.State{Merge: stream.MergeState{G: meter.MinusInfinity}}
	}
	return state, err
}
