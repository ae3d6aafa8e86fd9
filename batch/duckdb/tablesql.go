package duckdb

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// insertRows is how many rows one INSERT of WriteSQL has.
const insertRows = 500

// WriteSQL writes statements that make the table, as [Engine.Query] makes it, in a plain DuckDB.
func (t Table) WriteSQL(w io.Writer) error {
	kinds := make([]string, len(t.Columns))
	columns := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		kinds[i] = columnType(t, i)
		columns[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `" ` + kinds[i]
	}
	if _, err := fmt.Fprintf(w, "CREATE OR REPLACE TABLE %s (%s);\n", t.Name, strings.Join(columns, ", ")); err != nil {
		return err
	}
	for at := 0; at < len(t.Rows); at += insertRows {
		var b strings.Builder
		b.WriteString("INSERT INTO " + t.Name + " VALUES\n")
		for i, row := range t.Rows[at:min(at+insertRows, len(t.Rows))] {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(rowSQL(row, kinds))
		}
		if _, err := io.WriteString(w, b.String()+";\n"); err != nil {
			return err
		}
	}
	return nil
}

func rowSQL(row []any, kinds []string) string {
	values := make([]string, len(row))
	for i, v := range row {
		switch bytes, isBytes := v.([]byte); {
		case v == nil:
			values[i] = "NULL"
		case isBytes && kinds[i] == "BLOB":
			values[i] = "unhex('" + hex.EncodeToString(bytes) + "')"
		case kinds[i] == "BIGINT":
			values[i] = fmt.Sprint(v)
		default:
			values[i] = quote(fmt.Sprint(v))
		}
	}
	return "(" + strings.Join(values, ", ") + ")"
}
