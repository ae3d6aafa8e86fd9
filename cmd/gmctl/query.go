package main

import (
	"bufio"
	"context"
	"database/sql/driver"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

func (a *app) query() *cobra.Command {
	var format rowFormat
	var printViews bool
	cmd := &cobra.Command{
		Use:     "query [SQL]",
		GroupID: groupDaily,
		Short:   "Ask archive, ledger and recompute in SQL (DuckDB)",
		Long: `query runs SQL in DuckDB over
  archive              every record: log position, bucket, fields, raw bytes
  recompute            what 'gmctl recompute' wrote
  recompute_complete   what 'gmctl recompute --truth complete' wrote
and over the views of the ledger:
  bill, bill_by_sku    what stands, by window; split by sku and tier
  journal              every firing: main, correction, final, adjustment
  late, conflicts, orphans, late_completions, filtered, dead_letters
                       what is not billed, with its reason
  prices, positions_view, lost_ranges, about
                       the rates used, where the stream stands, what was lost
Without SQL it reads it from standard input. --print-views prints the same names
for a plain DuckDB; with SQL only the ledger's that it names, and the SQL.`,
		Example: `  gmctl query "select account, sum(requests) from bill group by all"
  gmctl query "select bucket, kind, count(*) from archive group by all"
  gmctl query --format csv "from late"
  gmctl query --print-views "from late" | duckdb`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			o, err := a.open()
			if err != nil {
				return err
			}
			u, err := openAudit(cmd.Context(), o, "card")
			if err != nil {
				return err
			}
			if printViews {
				return a.printViews(cmd.Context(), u, strings.Join(args, ""))
			}
			text, err := a.queryText(args)
			if err != nil {
				return err
			}
			return a.runQuery(cmd.Context(), u, text, format.format)
		},
	}
	a.archiveFlag(cmd)
	a.ledgerFlag(cmd)
	format.flags(cmd)
	cmd.Flags().BoolVar(&printViews, "print-views", false, "print what makes these names in a plain DuckDB: views of the files, tables of the ledger")
	return cmd
}

func (a *app) queryText(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	text, err := io.ReadAll(io.LimitReader(a.stdin, 1<<20))
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = hint(errors.New("query: no SQL"), `such as 'gmctl query "from bill"'`)
	}
	return string(text), err
}

// storedViews are the stored recomputes, as far as there are any.
func storedViews(u *audit) (map[string]string, error) {
	views := map[string]string{}
	for name, truth := range map[string]batch.Truth{"recompute": batch.AsStreamed, "recompute_complete": batch.Complete} {
		path, err := filepath.Abs(u.storedPath(scope{truth: truth}))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err == nil {
			views[name] = "SELECT COLUMNS(c -> c <> 'cells') FROM read_parquet('" + strings.ReplaceAll(path, "'", "''") + "')"
		}
	}
	return views, nil
}

func (a *app) runQuery(ctx context.Context, u *audit, text, format string) (err error) {
	named := text
	if showTables.MatchString(text) {
		named = strings.Join(sqlite.Views(), " ")
	}
	tables, err := queryTables(ctx, u.folder, named)
	if err != nil {
		return err
	}
	views, err := storedViews(u)
	if err != nil {
		return err
	}
	out := newSheet(a.rowsOut(), format)
	if err := u.engine().Query(ctx, u.job(scope{truth: batch.AsStreamed}), tables, views, text, out.head, out.row); err != nil {
		return unknownTable(u, views, err)
	}
	return out.flush()
}

var (
	showTables = regexp.MustCompile(`(?i)^\s*(show\s+(all\s+)?tables\b|describe\s*;?\s*$)|\b(information_schema|duckdb_tables|duckdb_views)\b`)
	noTable    = regexp.MustCompile(`Table with name (\S+) does not exist`)
)

// unknownTable says which tables there are, where the SQL names another.
func unknownTable(u *audit, views map[string]string, err error) error {
	said := noTable.FindStringSubmatch(err.Error())
	if said == nil {
		return err
	}
	name, names := said[1], []string{"archive"}
	for _, stored := range []string{"recompute", "recompute_complete"} {
		if views[stored] != "" {
			names = append(names, stored)
		} else if strings.EqualFold(name, stored) {
			verb := map[string]string{"recompute": "recompute", "recompute_complete": "recompute --truth complete"}[stored]
			return hint(fmt.Errorf("query: there is no stored %s yet", stored), "run 'gmctl %s' first; it writes it", verb)
		}
	}
	if u.Run.Ledger != "none" {
		names = append(names, sqlite.Views()...)
	}
	err = fmt.Errorf("query: there is no table %s", clip(name))
	if near := meter.Nearest(name, names); len(near) > 0 {
		return hint(err, "did you mean %s? There are %s", near[0], strings.Join(names, ", "))
	}
	return hint(err, "there are %s", strings.Join(names, ", "))
}

// queryTables reads the ledger's views that the SQL names.
func queryTables(ctx context.Context, o *folder, text string) (tables []duckdb.Table, err error) {
	r, err := openLedger(ctx, o)
	if errors.Is(err, sqlite.ErrMissing) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, name := range sqlite.Views() {
		if !regexp.MustCompile(`(?i)\b` + name + `\b`).MatchString(text) {
			continue
		}
		columns, rows, err := r.View(ctx, name)
		if err != nil {
			return nil, err
		}
		tables = append(tables, duckdb.Table{Name: name, Columns: columns, Rows: rows})
	}
	return tables, nil
}

// printViews prints what makes the same names in a plain DuckDB, wherever it is started: views of the archive and the
// recompute, tables with what stands in the ledger. With SQL: only those tables that it names, and then the SQL itself.
func (a *app) printViews(ctx context.Context, u *audit, text string) error {
	out := bufio.NewWriter(a.rowsOut())
	here, err := filepath.Abs(u.dir)
	if err != nil {
		return err
	}
	anywhere := *u
	anywhere.dir = here
	fmt.Fprintf(out, "CREATE OR REPLACE VIEW archive AS %s;\n", duckdb.Scan(anywhere.job(scope{truth: batch.AsStreamed})))
	views, err := storedViews(u)
	if err != nil {
		return err
	}
	for _, name := range []string{"recompute", "recompute_complete"} {
		if text, ok := views[name]; ok {
			fmt.Fprintf(out, "CREATE OR REPLACE VIEW %s AS %s;\n", name, text)
		}
	}
	named := text
	if text == "" {
		named = strings.Join(sqlite.Views(), " ")
	}
	if u.Run.Ledger != "none" {
		tables, err := queryTables(ctx, u.folder, named)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := t.WriteSQL(out); err != nil {
				return err
			}
		}
	}
	if text != "" {
		fmt.Fprintln(out, strings.TrimRight(text, "; \n")+";")
	}
	return out.Flush()
}

// A sheet prints columns and rows that are known only when they come.
type sheet struct {
	format  string
	buf     *bufio.Writer
	columns []string
	csv     *csv.Writer
	table   *table
	width   int // of the terminal; 0 off one
	rows    int64
}

func newSheet(w io.Writer, format string) *sheet {
	s := &sheet{format: format, buf: bufio.NewWriter(w), width: terminalWidth(w)}
	s.csv = csv.NewWriter(s.buf)
	return s
}

func (s *sheet) head(columns []string) error {
	s.columns = columns
	switch s.format {
	case "csv":
		return s.csv.Write(columns)
	case "table":
		s.table = newTable()
		for _, c := range columns {
			s.table.column(cell(c), false)
		}
	}
	return nil
}

func (s *sheet) row(values []driver.Value) error {
	s.rows++
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = queryWord(v)
		if s.format == "table" {
			words[i] = cell(words[i])
		}
	}
	switch s.format {
	case "csv":
		return s.csv.Write(words)
	case "json":
		return s.object(values, words)
	}
	for i, v := range values {
		s.table.right[i] = s.table.right[i] || isNumber(v)
	}
	s.table.row(words...)
	return nil
}

func isNumber(v driver.Value) bool {
	switch v.(type) {
	case *big.Int, int8, int16, int32, int64, uint8, uint16, uint32, uint64, int, float32, float64:
		return true
	}
	return false
}

func (s *sheet) object(values []driver.Value, words []string) error {
	line := []byte{'{'}
	for i, name := range s.columns {
		if i > 0 {
			line = append(line, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		line = append(append(line, key...), ':')
		var value []byte
		switch values[i].(type) {
		case nil:
			value = []byte("null")
		case *big.Int, bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, int:
			value = []byte(words[i])
		default:
			if value, err = json.Marshal(words[i]); err != nil {
				return err
			}
		}
		line = append(line, value...)
	}
	_, err := s.buf.Write(append(line, '}', '\n'))
	return err
}

// queryWord is a value as text: bytes as they are where they are text, times in UTC.
func queryWord(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return fmt.Sprintf("%q", v)
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999999Z")
	}
	return fmt.Sprint(v)
}

func (s *sheet) flush() error {
	s.csv.Flush()
	err := s.csv.Error()
	if err == nil && s.format == "table" {
		if err = s.table.print(s.buf, s.width); err == nil {
			_, err = fmt.Fprintln(s.buf, plural(s.rows, "row"))
		}
	}
	return errors.Join(err, s.buf.Flush())
}
