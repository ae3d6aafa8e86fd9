package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// errStale says that a position would go back, or repeat a commit.
var errStale = errors.New("a position never goes back")

// Load reads where the stream stands.
func (l *Ledger) Load(ctx context.Context) (*meter.Standing, error) {
	s, err := l.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("ledger: load from %s: %w", l.path, err)
	}
	return s, nil
}

func (l *Ledger) load(ctx context.Context) (s *meter.Standing, err error) {
	s = &meter.Standing{}
	if l.db == nil {
		return s, nil
	}
	m, err := readMeta(ctx, l.db)
	if err != nil {
		return nil, err
	}
	s.Topic, s.Cards = m.text("topic"), m.cards()
	if driver := m.text("driver"); driver != "" {
		s.Driver = json.RawMessage(driver)
	}
	if s.Positions, err = readPositions(ctx, l.db); err != nil {
		return nil, err
	}
	if s.Rows, err = readRows(ctx, l.db, `live = 1 AND version = ?`, l.meter.Version()); err != nil {
		return nil, err
	}
	if s.Lost, err = readLost(ctx, l.db); err != nil {
		return nil, err
	}
	return s, l.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM gm_firing`).Scan(&s.Firings)
}

// RowsByKey reads the rows of keys; those that were never written are not in the answer.
func (l *Ledger) RowsByKey(ctx context.Context, keys []meter.RowKey) ([]meter.StoredRow, error) {
	var found []meter.StoredRow
	if l.db == nil {
		return nil, nil
	}
	for _, key := range keys {
		rows, err := readRows(ctx, l.db, `account = ? AND window_end = ? AND version = ?`, key.Account, key.WindowEnd, l.meter.Version())
		if err != nil {
			return nil, fmt.Errorf("ledger: read row %q %d from %s: %w", key.Account, key.WindowEnd, l.path, err)
		}
		found = append(found, rows...)
	}
	return found, nil
}

func readRows(ctx context.Context, q querier, where string, args ...any) ([]meter.StoredRow, error) {
	var list []meter.StoredRow
	words := plainjson.Words{}
	err := each(ctx, q, `SELECT account, window_end, state, revision, requests, quantities, set_hash, amount, adjustment, source, unpriced,
		published_requests, published_quantities, published_set_hash, published, live, card, list, cells
		FROM gm_row WHERE `+where+` ORDER BY account, window_end`, args, func(scan func(...any) error) error {
		var r meter.StoredRow
		var cells string
		if err := scan(&r.Account, &r.WindowEnd, scanWord[meter.State]{&r.State, parseState}, &r.Revision,
			&r.Usage.Requests, scanInts{&r.Usage.Quantities}, scanHash{&r.Usage.SetHash}, scanAmount{&r.Amount}, scanAmount{&r.Adjustment}, &r.Source, &r.Unpriced,
			&r.Published.Requests, scanInts{&r.Published.Quantities}, scanHash{&r.Published.SetHash}, scanAmount{&r.PublishedPico},
			&r.Live, &r.Card, &r.List, &cells); err != nil {
			return err
		}
		var err error
		if r.Cells, err = parseCells(cells, r.RowKey, len(r.Usage.Quantities), words); err != nil {
			return fmt.Errorf("row %q %d: %w", r.Account, r.WindowEnd, err)
		}
		r.Account, r.Source, r.Card, r.List = words.Get(r.Account), words.Get(r.Source), words.Get(r.Card), words.Get(r.List)
		list = append(list, r)
		return nil
	})
	return list, err
}

func readPositions(ctx context.Context, q querier) ([]meter.Position, error) {
	var list []meter.Position
	err := each(ctx, q, `SELECT position FROM gm_position ORDER BY partition`, nil, func(scan func(...any) error) error {
		var text string
		var p meter.Position
		if err := scan(&text); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(text), &p)
		list = append(list, p)
		return err
	})
	return list, err
}

func readLost(ctx context.Context, q querier) ([]meter.LostRange, error) {
	var list []meter.LostRange
	err := each(ctx, q, `SELECT partition, from_offset, to_offset, window_from, window_to FROM gm_lost ORDER BY partition, from_offset`, nil, func(scan func(...any) error) error {
		var r meter.LostRange
		err := scan(&r.Partition, &r.From, &r.To, &r.WindowFrom, &r.WindowTo)
		list = append(list, r)
		return err
	})
	return list, err
}
