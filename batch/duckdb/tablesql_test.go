package duckdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"strings"
	"testing"
)

// The statements of a table make, in a plain DuckDB, what Query makes of it: every value, type and NULL, in order.
func TestWriteSQL(t *testing.T) {
	table := Table{Name: "things", Columns: []string{"n", "word", `odd "name"`, "raw", "none", "mixed"}}
	for i := range int64(1203) {
		table.Rows = append(table.Rows, []any{i, fmt.Sprintf("it's %d; --", i), nil, []byte{byte(i), 0, '\''}, nil, any(i)})
	}
	table.Rows[7] = []any{int64(math.MinInt64), "line\nbreak\x1b\\", "x", []byte{}, nil, "text"}
	var script strings.Builder
	if err := table.WriteSQL(&script); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	s, err := New(Config{}).open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	read := func() string {
		var b strings.Builder
		text := `SELECT typeof(COLUMNS(*)) FROM things UNION ALL SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (SELECT * FROM things ORDER BY n)`
		if err := s.query(ctx, text, func(c []string) error { b.WriteString(strings.Join(c, "|") + "\n"); return nil }, func(v []driver.Value) error {
			for _, word := range v {
				fmt.Fprintf(&b, "%v|", word)
			}
			b.WriteByte('\n')
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if err := s.exec(ctx, script.String()); err != nil {
		t.Fatal(err)
	}
	written := read()
	if err := s.exec(ctx, "DROP TABLE things"); err != nil {
		t.Fatal(err)
	}
	if err := s.table(ctx, table); err != nil {
		t.Fatal(err)
	}
	if loaded := read(); written != loaded || strings.Count(written, "\n") < 2000 {
		t.Errorf("the statements make another table: %d and %d bytes", len(written), len(loaded))
	}
}
