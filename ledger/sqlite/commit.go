package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Commit makes c durable, all of it or nothing. It fails with [ErrFenced] if another writer took the ledger since
// [Open]. After any error the ledger holds what it held before, unless the error came from Fail after the commit.
func (l *Ledger) Commit(ctx context.Context, c *meter.Commit) error {
	if l.db == nil {
		if err := l.openFile(ctx, true); err != nil {
			return fmt.Errorf("ledger: make %s: %w", l.path, err)
		}
	}
	err := l.within(ctx, func(tx *sql.Tx) error {
		if err := l.fence(ctx, tx); err != nil {
			return err
		}
		w := &writer{ctx: ctx, tx: tx, commit: c, version: l.meter.Version(), width: len(l.meter.Event.Quantities)}
		for _, part := range []struct {
			name  string
			write func() error
		}{
			{"rows", w.rows}, {"journal", w.firings}, {"items", w.items}, {"dead_letters", w.deadLetters},
			{"prices", w.prices}, {"lost", w.lost}, {"positions", w.positions},
		} {
			if err := l.fail("ledger:before:" + part.name); err != nil {
				return err
			}
			if err := part.write(); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ledger: commit to %s: %w", l.path, err)
	}
	return nil
}

// fence refuses to write under an epoch that is not the ledger's. The transaction is immediate: nobody can
// change the epoch between this look and the commit.
func (l *Ledger) fence(ctx context.Context, tx *sql.Tx) error {
	var epoch int64
	if err := tx.QueryRowContext(ctx, `SELECT value FROM gm_meta WHERE key = 'epoch'`).Scan(&epoch); err != nil {
		return err
	}
	if epoch != l.epoch {
		return fmt.Errorf("%w (writer epoch %d, this writer has %d)", ErrFenced, epoch, l.epoch)
	}
	return nil
}

// A writer writes the parts of one commit.
type writer struct {
	ctx     context.Context
	tx      *sql.Tx
	commit  *meter.Commit
	version string
	width   int // quantities
}

// insert prepares once and runs the statement for each of n argument lists.
func (w *writer) insert(n int, statement string, args func(i int) []any) error {
	if n == 0 {
		return nil
	}
	stmt, err := w.tx.PrepareContext(w.ctx, statement)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	for i := range n {
		if _, err := stmt.ExecContext(w.ctx, args(i)...); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) rows() error {
	return w.insert(len(w.commit.Rows), `INSERT INTO gm_row (account, window_end, version, state, revision,
		requests, quantities, set_hash, amount, adjustment, overflow, source, unpriced,
		published_requests, published_quantities, published_set_hash, published, live, card, list, cells)
		VALUES (?,?,?,?,?, ?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?,?)
		ON CONFLICT (account, window_end, version) DO UPDATE SET state = excluded.state, revision = excluded.revision,
		requests = excluded.requests, quantities = excluded.quantities, set_hash = excluded.set_hash, amount = excluded.amount,
		adjustment = excluded.adjustment, overflow = excluded.overflow, source = excluded.source, unpriced = excluded.unpriced,
		published_requests = excluded.published_requests, published_quantities = excluded.published_quantities,
		published_set_hash = excluded.published_set_hash, published = excluded.published,
		live = excluded.live, card = excluded.card, list = excluded.list, cells = excluded.cells`, func(i int) []any {
		r := &w.commit.Rows[i]
		return []any{
			r.Account, r.WindowEnd, w.version, r.State.String(), r.Revision,
			r.Usage.Requests, ints(r.Usage.Quantities, w.width), int64(r.Usage.SetHash), amount(r.Amount), amount(r.Adjustment),
			overflow(&r.Row), r.Source, r.Unpriced,
			r.Published.Requests, ints(r.Published.Quantities, w.width), int64(r.Published.SetHash), amount(r.PublishedPico),
			r.Live, r.Card, r.List, string(appendCells(nil, r.Cells, w.width)),
		}
	})
}

// overflow is the total of a row as text where SQL cannot add it up in 64 bits, else nil.
func overflow(r *meter.Row) any {
	total := r.Total()
	for _, v := range []meter.Int128{r.Amount, r.Adjustment, total} {
		if _, fits := v.Int64(); !fits {
			return total.String()
		}
	}
	return nil
}

func (w *writer) firings() error {
	return w.insert(len(w.commit.Firings), `INSERT INTO gm_firing (kind, revision, account, window_end, version,
		requests, quantities, set_hash, total, delta_requests, delta_quantities, delta_set_hash, delta,
		source, unpriced, card, list) VALUES (?,?,?,?,?, ?,?,?,?,?,?,?,?, ?,?,?,?)`, func(i int) []any {
		f := &w.commit.Firings[i]
		use := w.commit.InForce.At(f.WindowEnd)
		return []any{
			f.Kind.String(), f.Revision, f.Account, f.WindowEnd, w.version,
			f.Total.Requests, ints(f.Total.Quantities, w.width), int64(f.Total.SetHash), amount(f.TotalPico),
			f.Delta.Requests, ints(f.Delta.Quantities, w.width), int64(f.Delta.SetHash), amount(f.DeltaPico),
			f.Source, f.Unpriced, use.Card, use.List,
		}
	})
}

func (w *writer) items() error {
	return w.insert(len(w.commit.Items), `INSERT INTO gm_item (verdict, filter, partition, first_offset, offsets, id, reference,
		kind, account, sku, tier, time, window_end, status, requests, quantities, set_hash, judged, door, abandoned, superseded,
		amount, source, unpriced, version, card, list) VALUES (?,?,?,?,?,?,?, ?,?,?,?,?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?)`, func(i int) []any {
		it := &w.commit.Items[i]
		first := int64(-1)
		if len(it.Offsets) > 0 {
			first = it.Offsets[0]
		}
		return []any{
			it.Verdict.String(), it.Filter, it.Partition, first, ints(it.Offsets, 0), words(it.ID.Parts()), words(it.Reference.Parts()),
			it.Kind.String(), it.Account, it.SKU, it.Tier, it.Time, it.WindowEnd, it.Status,
			it.Usage.Requests, ints(it.Usage.Quantities, w.width), int64(it.Usage.SetHash), it.Judged, it.Door, it.Abandoned, it.Superseded,
			amount(it.Amount), it.Source, words(it.Unpriced), w.version, it.Card, it.List,
		}
	})
}

func (w *writer) deadLetters() error {
	return w.insert(len(w.commit.DeadLetters), `INSERT INTO gm_dead_letter (partition, "offset", log_time, reason, raw) VALUES (?,?,?,?,?)`, func(i int) []any {
		d := &w.commit.DeadLetters[i]
		var logTime any
		if d.HasLogTime {
			logTime = d.LogTime
		}
		return []any{d.Partition, d.Offset, logTime, d.Reason.String(), append([]byte{}, d.Raw...)}
	})
}

func (w *writer) prices() error {
	return w.insert(len(w.commit.Prices), `INSERT OR REPLACE INTO gm_price (sku, tier, quantity, effective_from, source, revision, pico)
		VALUES (?,?,?,?,?,?,?)`, func(i int) []any {
		p := &w.commit.Prices[i]
		return []any{p.SKU, p.Tier, p.Quantity, p.EffectiveFrom, p.Source, p.Revision, p.Pico}
	})
}

func (w *writer) lost() error {
	return w.insert(len(w.commit.Lost), `INSERT OR REPLACE INTO gm_lost (partition, from_offset, to_offset, window_from, window_to) VALUES (?,?,?,?,?)`, func(i int) []any {
		r := &w.commit.Lost[i]
		return []any{r.Partition, r.From, r.To, r.WindowFrom, r.WindowTo}
	})
}

// positions writes where the log stands; a position that goes back would bill the records between again.
func (w *writer) positions() error {
	for i := range w.commit.Positions {
		p := &w.commit.Positions[i]
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		done, err := w.tx.ExecContext(w.ctx, `INSERT INTO gm_position (partition, position) VALUES (?1, ?2) ON CONFLICT (partition) DO UPDATE
			SET position = excluded.position WHERE json_extract(position, '$.commit_no') <= ?3 AND json_extract(position, '$.committed') <= ?4`,
			p.Partition, string(text), p.CommitNo, p.Committed)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("partition %d: commit %d at offset %d does not follow the ledger's (%w)", p.Partition, p.CommitNo, p.Committed, orStale(err))
		}
	}
	if err := putMeta(w.ctx, w.tx, "topic", w.commit.Topic); err != nil {
		return err
	}
	for _, card := range w.commit.Cards {
		if err := putMeta(w.ctx, w.tx, cardKey+card.Revision, append([]byte{}, card.Text...)); err != nil {
			return err
		}
	}
	return putMeta(w.ctx, w.tx, "driver", string(w.commit.Driver))
}

func orStale(err error) error {
	if err != nil {
		return err
	}
	return errStale
}
