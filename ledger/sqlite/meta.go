package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// meta is the table gm_meta: what the ledger says of itself.
type meta map[string]any

func (m meta) text(key string) string {
	s, _ := m[key].(string)
	return s
}

// cardKey begins the keys of rate cards that priced something.
const cardKey = "card:"

// cards are the texts of rate cards, by revision.
func (m meta) cards() []meter.CardText {
	var list []meter.CardText
	for key, value := range m {
		if revision, ok := strings.CutPrefix(key, cardKey); ok {
			text, _ := value.([]byte)
			list = append(list, meter.CardText{Revision: revision, Text: text})
		}
	}
	slices.SortFunc(list, func(a, b meter.CardText) int { return strings.Compare(a.Revision, b.Revision) })
	return list
}

func (m meta) number(key string) int64 {
	n, _ := m[key].(int64)
	return n
}

// querier is a transaction or a connection.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readMeta reads all of it; empty where the tables do not exist yet.
func readMeta(ctx context.Context, q querier) (meta, error) {
	var tables int
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'gm_meta'`).Scan(&tables); err != nil || tables == 0 {
		return nil, err
	}
	m := meta{}
	return m, each(ctx, q, `SELECT key, value FROM gm_meta`, nil, func(scan func(...any) error) error {
		var key string
		var value any
		err := scan(&key, &value)
		m[key] = value
		return err
	})
}

func putMeta(ctx context.Context, tx *sql.Tx, key string, value any) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO gm_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}

// each runs a query and hands out its rows one by one.
func each(ctx context.Context, q querier, query string, args []any, do func(scan func(...any) error) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
