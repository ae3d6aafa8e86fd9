package duckdb

import (
	"context"
	"errors"
	"fmt"

	driverdb "github.com/duckdb/duckdb-go/v2"

	"github.com/gatewaymeter/gatewaymeter/batch"
)

// A FileError is trouble with one file of the archive.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("duckdb: read %s: %v", e.Path, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// blame finds the file that an error of DuckDB is about, which DuckDB itself often does not name: the first one that cannot
// be read alone, by its footer or else by its rows.
func (e *Engine) blame(ctx context.Context, job *batch.Job, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, batch.ErrSum) || !ofFile(err) {
		return err
	}
	s, openErr := e.open(ctx)
	if openErr != nil {
		return err
	}
	defer s.close()
	for _, look := range []string{"SELECT count(*) FROM parquet_metadata(%s)", "SELECT count(hash(t)) FROM read_parquet(%s, hive_partitioning = false) AS t"} {
		for _, f := range job.Files {
			if fileErr := s.exec(ctx, fmt.Sprintf(look, quote(f.Path))); fileErr != nil && ctx.Err() == nil {
				return &FileError{f.Path, err}
			}
		}
	}
	return err
}

// ofFile reports whether an error of DuckDB may be about a file rather than about a statement.
func ofFile(err error) bool {
	var e *driverdb.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Type {
	case driverdb.ErrorTypeParser, driverdb.ErrorTypeSyntax, driverdb.ErrorTypeCatalog, driverdb.ErrorTypeDivideByZero, driverdb.ErrorTypeInterrupt,
		driverdb.ErrorTypeOutOfMemory, driverdb.ErrorTypePermission, driverdb.ErrorTypeSettings:
		return false
	}
	return true
}
