package duckdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"

	driverdb "github.com/duckdb/duckdb-go/v2"
)

// ErrNotReading says that a text does more than to read.
var ErrNotReading = errors.New("only reading is allowed here: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN, one statement")

var (
	explainWord = regexp.MustCompile(`(?is)^explain\s+(analyze\s+)?(\([^)]*\)\s*)?`)
	readingWord = regexp.MustCompile(`(?i)^[(\s]*(select|with|from|values|table|describe|desc|summarize|show|pivot|unpivot)\b`)
	comments    = regexp.MustCompile(`(?s)^\s*(--[^\n]*(\n|$)|/\*.*?\*/)`)
)

// reading refuses a text that is not one statement that reads. Its first word has to say so before DuckDB sees it, for to
// prepare an EXPORT makes its folder; then DuckDB itself says what kind of statement it is.
func (s *session) reading(ctx context.Context, text string) error {
	if several(text) {
		return fmt.Errorf("query: %w; these are several", ErrNotReading)
	}
	inner := bare(text)
	if after := explainWord.ReplaceAllString(inner, ""); after != inner { // EXPLAIN ANALYZE runs what it explains
		inner = bare(after)
	}
	if !readingWord.MatchString(inner) {
		word, _, _ := strings.Cut(inner, " ")
		return fmt.Errorf("query: %w; this begins with %.20q", ErrNotReading, word)
	}
	return s.conn.Raw(func(raw any) error {
		kind, err := kindOfStatement(ctx, raw.(driver.ConnPrepareContext), inner)
		if err == nil && kind != driverdb.STATEMENT_TYPE_SELECT {
			err = ErrNotReading
		}
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		return nil
	})
}

// bare is a text without the comments that it begins with.
func bare(text string) string {
	for comments.MatchString(text) {
		text = comments.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}

func kindOfStatement(ctx context.Context, conn driver.ConnPrepareContext, text string) (kind driverdb.StmtType, err error) {
	stmt, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	return stmt.(*driverdb.Stmt).StatementType()
}

// several reports whether a text may hold more than one statement: preparing it would run all but the last. In doubt it says
// so: what a backslash or a dollar quotes is not looked into.
func several(text string) bool {
	bare := strings.TrimRight(text, "; \t\r\n")
	if !strings.Contains(bare, ";") {
		return false
	}
	return strings.ContainsAny(bare, `\$`) || strings.Contains(quoted.ReplaceAllString(bare, " "), ";")
}

// quoted is what holds no statement: comments, texts and quoted names.
var quoted = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"`)
