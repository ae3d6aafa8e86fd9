package duckdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
)

// WriteParquet writes n rows as a Parquet file, zstd, in the given order. A column is a name, quoted where it has to be,
// and a type of DuckDB; metadata, asked for when every row was, becomes the file's key-value pairs; nil is none.
func (e *Engine) WriteParquet(ctx context.Context, path string, columns []string, order string, n int, row func(i int) []driver.Value, metadata func() map[string]string) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.load(ctx, "stored", columns, n, row); err != nil {
		return err
	}
	options := "FORMAT parquet, COMPRESSION zstd"
	if metadata != nil {
		var pairs []string
		for key, value := range metadata() {
			pairs = append(pairs, quote(key)+": "+quote(value))
		}
		slices.Sort(pairs)
		options += ", KV_METADATA {" + strings.Join(pairs, ", ") + "}"
	}
	if err := s.exec(ctx, "COPY (SELECT * FROM stored ORDER BY "+order+") TO "+quote(path)+" ("+options+")"); err != nil {
		return fmt.Errorf("duckdb: write %s: %w", path, err)
	}
	return nil
}

// ReadParquet reads a Parquet file that somebody else may have written: head is called once with the columns, row with
// each row in the file's order; its values are valid until it returns.
func (e *Engine) ReadParquet(ctx context.Context, path string, head func(columns []string) error, row func([]driver.Value) error) error {
	s, err := e.openFor(ctx, keepOrder)
	if err != nil {
		return err
	}
	defer s.close()
	return s.parquet(ctx, path, head, row)
}

// parquet reads a file in its own order; the session has to keep it.
func (s *session) parquet(ctx context.Context, path string, head func(columns []string) error, row func([]driver.Value) error) error {
	return s.query(ctx, "SELECT * FROM read_parquet("+quote(path)+", hive_partitioning = false)", head, row)
}
