package duckdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/batch"
)

// A Table is rows that a query can read by name beside the archive. A column whose values are all int64 (or nil) is a
// BIGINT, one with []byte a BLOB, any other VARCHAR.
type Table struct {
	Name    string
	Columns []string
	Rows    [][]any
}

// Query runs a person's SQL over the job's records (view `archive`, with column part), the given tables and views (name to
// SELECT). A text that does more than to read is ErrNotReading. head is called once with the columns, row with each row; its values are valid until it returns.
func (e *Engine) Query(ctx context.Context, job *batch.Job, tables []Table, views map[string]string, text string, head func(columns []string) error, row func([]driver.Value) error) error {
	return e.blame(ctx, job, e.ask(ctx, job, tables, views, text, head, row))
}

func (e *Engine) ask(ctx context.Context, job *batch.Job, tables []Table, views map[string]string, text string, head func(columns []string) error, row func([]driver.Value) error) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.exec(ctx, "CREATE VIEW "+batch.Archive+" AS "+scan(job)); err != nil {
		return fmt.Errorf("duckdb: read the archive: %w", err)
	}
	for name, text := range views {
		if err := s.exec(ctx, "CREATE VIEW "+name+" AS "+text); err != nil {
			return fmt.Errorf("duckdb: make view %s: %w", name, err)
		}
	}
	for _, t := range tables {
		if err := s.table(ctx, t); err != nil {
			return err
		}
	}
	if err := s.reading(ctx, text); err != nil {
		return err
	}
	return s.query(ctx, text, head, row)
}

// query runs text; head is called once with the columns, row with each row.
func (s *session) query(ctx context.Context, text string, head func(columns []string) error, row func([]driver.Value) error) error {
	return s.conn.Raw(func(raw any) error {
		rows, err := raw.(driver.QueryerContext).QueryContext(ctx, text, nil)
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		defer rows.Close()
		if err := head(rows.Columns()); err != nil {
			return err
		}
		return drain(ctx, rows, row)
	})
}

func (s *session) table(ctx context.Context, t Table) error {
	columns := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		columns[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `" ` + columnType(t, i)
	}
	return s.load(ctx, t.Name, columns, len(t.Rows), func(r int) []driver.Value {
		values := make([]driver.Value, len(columns))
		for i, v := range t.Rows[r] {
			if strings.HasSuffix(columns[i], " VARCHAR") && v != nil {
				v = fmt.Sprint(v)
			}
			values[i] = v
		}
		return values
	})
}

func columnType(t Table, column int) string {
	kind := ""
	for _, row := range t.Rows {
		switch row[column].(type) {
		case nil:
		case int64:
			if kind != "" && kind != "BIGINT" {
				return "VARCHAR"
			}
			kind = "BIGINT"
		case []byte:
			if kind != "" && kind != "BLOB" {
				return "VARCHAR"
			}
			kind = "BLOB"
		default:
			return "VARCHAR"
		}
	}
	if kind == "" {
		return "VARCHAR"
	}
	return kind
}

// Scan is the job's records as a SELECT for a plain DuckDB.
func Scan(job *batch.Job) string { return scan(job) }
