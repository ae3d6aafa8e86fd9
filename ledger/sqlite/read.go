package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Reader sees one snapshot of a ledger, from [OpenReader] to Close, whatever a writer does meanwhile.
// It is not safe for concurrent use.
type Reader struct {
	About About
	db    *sql.DB
	tx    *sql.Tx
	path  string
}

// About is what a ledger says of itself.
type About struct {
	Meter       string
	Fingerprint string
	Version     string
	Topic       string // "" before the first commit
	WindowSize  int64  // ms
	Lateness    int64  // ms
	Quantities  []string
	Epoch       int64 // of its last writer
	LastFiring  int64 // the last number of the journal
}

// OpenReader opens the ledger at path for reading; [ErrMissing] if there is none.
func OpenReader(ctx context.Context, path string) (r *Reader, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ledger: open %s: %w", path, err)
		}
	}()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	r = &Reader{path: path}
	if r.db, err = openDB(path, "mode=ro", "_txlock=deferred", "_pragma=busy_timeout(10000)", "_pragma=query_only(1)", "_pragma=temp_store(memory)", "_pragma=cache_size(-65536)"); err != nil {
		return nil, err
	}
	defer func(r *Reader) {
		if err != nil {
			_ = r.Close()
		}
	}(r)
	if r.tx, err = r.db.BeginTx(ctx, &sql.TxOptions{}); err != nil {
		return nil, err
	}
	m, err := readMeta(ctx, r.tx) // the first read fixes the snapshot
	if err != nil {
		return nil, err
	}
	if len(m) == 0 {
		return nil, r.noLedger(ctx)
	}
	if n := m.number("schema"); n != schemaNumber {
		return nil, fmt.Errorf("its tables are of schema %d, this program reads %d", n, schemaNumber)
	}
	r.About = About{
		Meter: m.text("meter"), Fingerprint: m.text("fingerprint"), Version: m.text("version"), Topic: m.text("topic"),
		WindowSize: m.number("window_ms"), Lateness: m.number("lateness_ms"), Epoch: m.number("epoch"),
	}
	if err := (scanWords{&r.About.Quantities}).Scan(m["quantities"]); err != nil {
		return nil, err
	}
	return r, r.tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM gm_firing`).Scan(&r.About.LastFiring)
}

// noLedger tells a ledger that its writer has not come to make from another database.
func (r *Reader) noLedger(ctx context.Context) error {
	var tables int
	err := r.tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables)
	switch {
	case err != nil:
		return err
	case tables == 0:
		return ErrMissing
	}
	return errors.New("this is no ledger of ours: it has no table gm_meta")
}

// Close ends the snapshot.
func (r *Reader) Close() error {
	var err error
	if r.tx != nil {
		err = ignoreDone(r.tx.Rollback())
	}
	if r.db != nil {
		err = errors.Join(err, r.db.Close())
	}
	return err
}

// A Range chooses rows: windows that end in (From, To], of one account or ("") of all. Nil bounds are open.
type Range struct {
	From, To *int64
	Account  string
}

func (g Range) where(b *condition) {
	if g.From != nil {
		b.and("window_end > ?", *g.From)
	}
	if g.To != nil {
		b.and("window_end <= ?", *g.To)
	}
	if g.Account != "" {
		b.and("account = ?", g.Account)
	}
}

// condition builds the WHERE of a query; the texts are ours, the values are arguments.
type condition struct {
	terms []string
	args  []any
}

func (c *condition) and(term string, args ...any) {
	c.terms, c.args = append(c.terms, term), append(c.args, args...)
}

func (c *condition) sql() string {
	if len(c.terms) == 0 {
		return "1"
	}
	return strings.Join(c.terms, " AND ")
}

// Stored reads rows as the ledger keeps them, ordered by account and window, with those that count nothing.
func (r *Reader) Stored(ctx context.Context, g Range) ([]meter.StoredRow, error) {
	var where condition
	g.where(&where)
	rows, err := readRows(ctx, r.tx, where.sql(), where.args...)
	if err != nil {
		return nil, r.failed("rows", err)
	}
	lost, err := r.Lost(ctx)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if mayMiss(lost, rows[i].WindowEnd) {
			rows[i].State = meter.Incomplete
		}
	}
	return rows, nil
}

func mayMiss(lost []meter.LostRange, windowEnd int64) bool {
	for _, l := range lost {
		if windowEnd > l.WindowFrom && windowEnd <= l.WindowTo {
			return true
		}
	}
	return false
}

// Bill reads what stands (CLI.md): one row for each account and window in which something is counted, with its
// cells. With asOf > 0 it is what stood after that firing of the journal: published rows only, without cells.
func (r *Reader) Bill(ctx context.Context, g Range, asOf int64) ([]meter.Row, error) {
	if asOf > 0 {
		return r.billAsOf(ctx, g, asOf)
	}
	stored, err := r.Stored(ctx, g)
	if err != nil {
		return nil, err
	}
	rows := make([]meter.Row, 0, len(stored))
	for i := range stored {
		if stored[i].Usage.Requests != 0 {
			rows = append(rows, stored[i].Row)
		}
	}
	return rows, nil
}

// billAsOf plays the journal up to a firing.
func (r *Reader) billAsOf(ctx context.Context, g Range, asOf int64) ([]meter.Row, error) {
	var where condition
	g.where(&where)
	where.and("seq <= ?", asOf)
	firings, err := r.firings(ctx, &where, "account, window_end, seq")
	if err != nil {
		return nil, err
	}
	lost, err := r.Lost(ctx)
	if err != nil {
		return nil, err
	}
	var rows []meter.Row
	for i := range firings {
		f := &firings[i].Firing
		if len(rows) == 0 || rows[len(rows)-1].RowKey != f.RowKey {
			rows = append(rows, meter.Row{RowKey: f.RowKey})
		}
		replay(&rows[len(rows)-1], f)
	}
	counted := rows[:0]
	for i := range rows {
		if mayMiss(lost, rows[i].WindowEnd) {
			rows[i].State = meter.Incomplete
		}
		if rows[i].Usage.Requests != 0 {
			counted = append(counted, rows[i])
		}
	}
	return counted, nil
}

// replay moves a row on by one firing (R11): an adjustment leaves the row alone and stands beside it.
func replay(row *meter.Row, f *meter.Firing) {
	row.Usage, row.Source, row.Unpriced = f.Total, f.Source, f.Unpriced
	if f.Kind == meter.AdjustmentFiring {
		row.Adjustment = row.Adjustment.Add(f.DeltaPico)
		return
	}
	row.Amount, row.Revision = f.TotalPico, f.Revision
	switch f.Kind {
	case meter.MainFiring:
		row.State = meter.Main
	case meter.CorrectionFiring:
		row.State = meter.Corrected
	case meter.FinalFiring:
		row.State = meter.Final
	}
}

// A JournalEntry is a numbered firing with the revisions of the card and list it was priced with.
type JournalEntry struct {
	Seq int64
	meter.Firing
	Card, List string
}

// Journal reads the firings of rows in the range in the order in which they were published.
func (r *Reader) Journal(ctx context.Context, g Range) ([]JournalEntry, error) {
	var where condition
	g.where(&where)
	return r.firings(ctx, &where, "seq")
}

func (r *Reader) firings(ctx context.Context, where *condition, order string) ([]JournalEntry, error) {
	var list []JournalEntry
	err := each(ctx, r.tx, `SELECT seq, kind, revision, account, window_end, requests, quantities, set_hash, total,
		delta_requests, delta_quantities, delta_set_hash, delta, source, unpriced, card, list
		FROM gm_firing WHERE `+where.sql()+` ORDER BY `+order, where.args, func(scan func(...any) error) error {
		var e JournalEntry
		err := scan(&e.Seq, scanWord[meter.FiringKind]{&e.Kind, parseFiring}, &e.Revision, &e.Account, &e.WindowEnd,
			&e.Total.Requests, scanInts{&e.Total.Quantities}, scanHash{&e.Total.SetHash}, scanAmount{&e.TotalPico},
			&e.Delta.Requests, scanInts{&e.Delta.Quantities}, scanHash{&e.Delta.SetHash}, scanAmount{&e.DeltaPico},
			&e.Source, &e.Unpriced, &e.Card, &e.List)
		list = append(list, e)
		return err
	})
	if err != nil {
		return nil, r.failed("journal", err)
	}
	return list, nil
}

// An ItemFilter chooses side outputs; the zero value chooses all. The range looks at the window whose price the
// item has (R3); an account also leaves out items whose account is not known.
type ItemFilter struct {
	Range
	Verdicts []meter.Verdict // nil: all
	IDs      []meter.ID      // nil: all
}

// Items reads side outputs, ordered by partition and first offset.
func (r *Reader) Items(ctx context.Context, f ItemFilter) ([]meter.PricedItem, error) {
	var list []meter.PricedItem
	err := r.EachItem(ctx, f, func(it *meter.PricedItem) error {
		list = append(list, *it)
		return nil
	})
	return list, err
}

// EachItem is Items for more than fit in memory; the item is the callee's to keep.
func (r *Reader) EachItem(ctx context.Context, f ItemFilter, do func(*meter.PricedItem) error) error {
	var where condition
	f.where(&where)
	if f.Verdicts != nil {
		where.and("verdict IN (SELECT value FROM json_each(?))", words(texts(f.Verdicts, meter.Verdict.String)))
	}
	if f.IDs != nil {
		where.and("id IN (SELECT value FROM json_each(?))", words(texts(f.IDs, func(id meter.ID) string { return words(id.Parts()) })))
	}
	err := each(ctx, r.tx, `SELECT verdict, filter, partition, offsets, id, reference, kind, account, sku, tier, time, window_end, status,
		requests, quantities, set_hash, judged, door, abandoned, superseded, amount, source, unpriced, card, list
		FROM gm_item WHERE `+where.sql()+` ORDER BY partition, first_offset, item`, where.args, func(scan func(...any) error) error {
		var it meter.PricedItem
		if err := scan(scanWord[meter.Verdict]{&it.Verdict, parseVerdict}, &it.Filter, &it.Partition, scanInts{&it.Offsets},
			scanID{&it.ID}, scanID{&it.Reference}, scanWord[meter.Kind]{&it.Kind, parseKind},
			&it.Account, &it.SKU, &it.Tier, &it.Time, &it.WindowEnd, &it.Status,
			&it.Usage.Requests, scanInts{&it.Usage.Quantities}, scanHash{&it.Usage.SetHash}, &it.Judged, &it.Door, &it.Abandoned, &it.Superseded,
			scanAmount{&it.Amount}, &it.Source, scanWords{&it.Unpriced}, &it.Card, &it.List); err != nil {
			return r.failed("side outputs", err)
		}
		return do(&it)
	})
	return err
}

func texts[T any](list []T, text func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = text(v)
	}
	return out
}

// DeadLetters hands out the records that no rule admits (R2), in the order of partition and offset.
func (r *Reader) DeadLetters(ctx context.Context, do func(*meter.DeadLetter) error) error {
	return each(ctx, r.tx, `SELECT partition, "offset", log_time, reason, raw FROM gm_dead_letter ORDER BY partition, "offset"`, nil, func(scan func(...any) error) error {
		var d meter.DeadLetter
		var logTime sql.NullInt64
		if err := scan(&d.Partition, &d.Offset, &logTime, scanWord[meter.Reason]{&d.Reason, parseReason}, &d.Raw); err != nil {
			return r.failed("dead letters", err)
		}
		d.Raw = append([]byte{}, d.Raw...)
		d.LogTime, d.HasLogTime = logTime.Int64, logTime.Valid
		return do(&d)
	})
}

// Positions reads where each partition stands, in their order.
func (r *Reader) Positions(ctx context.Context) ([]meter.Position, error) {
	list, err := readPositions(ctx, r.tx)
	return list, r.failed("positions", err)
}

// Driver reads what the driver keeps beside the positions; nil before the first commit.
func (r *Reader) Driver(ctx context.Context) (json.RawMessage, error) {
	m, err := readMeta(ctx, r.tx)
	if err != nil || m.text("driver") == "" {
		return nil, r.failed("driver state", err)
	}
	return json.RawMessage(m.text("driver")), nil
}

// Lost reads the ranges of the log that were gone when the stream went on (`--accept-loss`).
func (r *Reader) Lost(ctx context.Context) ([]meter.LostRange, error) {
	list, err := readLost(ctx, r.tx)
	return list, r.failed("lost ranges", err)
}

// PricesUsed reads the rates that cells were priced with.
func (r *Reader) PricesUsed(ctx context.Context) ([]meter.PriceUsed, error) {
	var list []meter.PriceUsed
	err := each(ctx, r.tx, `SELECT sku, tier, quantity, effective_from, source, revision, pico FROM gm_price
		ORDER BY sku, tier, quantity, effective_from, source, revision`, nil, func(scan func(...any) error) error {
		var p meter.PriceUsed
		err := scan(&p.SKU, &p.Tier, &p.Quantity, &p.EffectiveFrom, &p.Source, &p.Revision, &p.Pico)
		list = append(list, p)
		return err
	})
	return list, r.failed("prices", err)
}

func (r *Reader) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ledger: read %s of %s: %w", what, r.path, err)
}
