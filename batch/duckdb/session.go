package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	driverdb "github.com/duckdb/duckdb-go/v2"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A session is one database in memory with one connection.
type session struct {
	db   *sql.DB
	conn *sql.Conn
	temp string // to remove; "" if it is the caller's
}

// An order is what a query without ORDER BY does with the order of what it reads.
type order bool

const (
	anyOrder  order = false // for sums: DuckDB takes less memory
	keepOrder order = true
)

func (e *Engine) open(ctx context.Context) (*session, error) { return e.openFor(ctx, anyOrder) }

func (e *Engine) openFor(ctx context.Context, o order) (*session, error) {
	s := &session{}
	dir := e.config.TempDir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "gatewaymeter-duckdb-"); err != nil {
			return nil, fmt.Errorf("duckdb: make a folder to spill into: %w", err)
		}
		s.temp = dir
	}
	connector, err := driverdb.NewConnector("?"+strings.Join(settings(e.config, o), "&"), nil)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("duckdb: open: %w", err)
	}
	s.db = sql.OpenDB(connector)
	if s.conn, err = s.db.Conn(ctx); err == nil {
		err = s.exec(ctx, "SET temp_directory = "+quote(dir))
	}
	if err == nil {
		err = s.exec(ctx, dearHelp)
	}
	if err == nil {
		err = s.exec(ctx, "SET lock_configuration = true")
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("duckdb: open: %w", err)
	}
	return s, nil
}

// dearHelp turns an optimizer off that costs more than it saves here: it tests conditions on millions of rows to leave hardly any of them out.
const dearHelp = "SET disabled_optimizers = 'cte_filter_pusher'"

// settings keep DuckDB from fetching or loading anything, and bound it.
func settings(c Config, o order) []string {
	list := []string{"autoinstall_known_extensions=false", "autoload_known_extensions=false", "allow_community_extensions=false",
		"preserve_insertion_order=" + strconv.FormatBool(bool(o))}
	if c.Threads > 0 {
		list = append(list, "threads="+strconv.Itoa(c.Threads))
	}
	if c.MemoryLimit > 0 {
		list = append(list, "memory_limit="+strconv.FormatInt(c.MemoryLimit, 10)+"B")
	}
	return list
}

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close() // nothing is written: a failure here loses nothing
	}
	if s.db != nil {
		_ = s.db.Close()
	}
	if s.temp != "" {
		_ = os.RemoveAll(s.temp)
	}
}

// prepare opens a session in which the archive and the tally can be read by name.
func (e *Engine) prepare(ctx context.Context, job *batch.Job, text batch.Text) (*session, error) {
	s, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	for _, step := range []struct{ what, sql string }{
		{"read the archive", "CREATE VIEW " + batch.Archive + " AS " + scan(job)},
		{"read the archive", "CREATE TABLE " + batch.TallyTable + " AS " + text.Tally},
	} {
		if err := s.exec(ctx, step.sql); err != nil {
			s.close()
			return nil, fmt.Errorf("duckdb: %s: %w", step.what, err)
		}
	}
	return s, nil
}

func (s *session) exec(ctx context.Context, text string) error {
	_, err := s.conn.ExecContext(ctx, text)
	return named(err)
}

// each runs a query and hands over row after row; the values are valid until the next.
func (s *session) each(ctx context.Context, text string, row func(v []driver.Value) error) error {
	return s.conn.Raw(func(raw any) error {
		rows, err := raw.(driver.QueryerContext).QueryContext(ctx, text, nil)
		if err != nil {
			return named(err)
		}
		defer rows.Close()
		return drain(ctx, rows, row)
	})
}

// drain hands over the rows that are left.
func drain(ctx context.Context, rows driver.Rows, row func(v []driver.Value) error) error {
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return named(ctx.Err())
		case err != nil:
			return named(err)
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// named says which rule an error of the engine is about, where it is about one: a sum or product that leaves 64 bits.
func named(err error) error {
	var e *driverdb.Error
	if errors.As(err, &e) && (e.Type == driverdb.ErrorTypeConversion || e.Type == driverdb.ErrorTypeOutOfRange) &&
		(strings.Contains(e.Msg, "INT64") || strings.Contains(e.Msg, "INT128")) {
		return fmt.Errorf("%w: %s", batch.ErrSum, e.Msg)
	}
	return err
}

// want makes the tables that an item filter is joined with.
func (s *session) want(ctx context.Context, m *meter.Meter, filter batch.ItemFilter) error {
	if filter.Rows != nil {
		if err := s.load(ctx, batch.WantedRows, []string{"account VARCHAR", "window_end BIGINT"}, len(filter.Rows), func(i int) []driver.Value {
			return []driver.Value{filter.Rows[i].Account, filter.Rows[i].WindowEnd}
		}); err != nil {
			return err
		}
	}
	if filter.IDs == nil {
		return nil
	}
	columns := []string{"id_hash BIGINT"}
	for i := range idParts(m) {
		columns = append(columns, fmt.Sprintf("id_%d VARCHAR", i+1))
	}
	ids := make([]meter.ID, 0, len(filter.IDs))
	for _, id := range filter.IDs {
		if len(id.Parts()) == idParts(m) { // no record has another number of parts
			ids = append(ids, id)
		}
	}
	return s.load(ctx, batch.WantedIDs, columns, len(ids), func(i int) []driver.Value {
		values := []driver.Value{int64(ids[i].Hash64())}
		for _, p := range ids[i].Parts() {
			values = append(values, p)
		}
		return values
	})
}

// load makes a table of n rows.
func (s *session) load(ctx context.Context, table string, columns []string, n int, row func(i int) []driver.Value) error {
	if err := s.exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", table, strings.Join(columns, ", "))); err != nil {
		return fmt.Errorf("duckdb: make %s: %w", table, err)
	}
	err := s.conn.Raw(func(raw any) error {
		a, err := driverdb.NewAppenderFromConn(raw.(driver.Conn), "", table)
		if err != nil {
			return err
		}
		for i := range n {
			if err := a.AppendRow(row(i)...); err != nil {
				return errors.Join(err, a.Close())
			}
		}
		return a.Close()
	})
	if err != nil {
		return fmt.Errorf("duckdb: fill %s: %w", table, err)
	}
	return nil
}

func idParts(m *meter.Meter) int {
	if m.Event.Identity == nil {
		return 2 // R3
	}
	return len(m.Event.Identity)
}

// quote is a literal of DuckDB.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
