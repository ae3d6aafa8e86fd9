package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// rowFormat is --format of the verbs that print tables; some have more formats than those all have.
type rowFormat struct {
	format string
	more   string // "parquet", "html" or none
}

func (f *rowFormat) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "table", f.known("table", "json (one object a line)", "csv"))
}

func (f *rowFormat) check() error {
	if f.format == "table" || f.format == "json" || f.format == "csv" || f.format == f.more && f.more != "" {
		return nil
	}
	return hint(fmt.Errorf("--format %q is unknown", clip(f.format)), "use %s", f.known("table", "json", "csv"))
}

// known lists the formats in words.
func (f *rowFormat) known(words ...string) string {
	if f.more != "" {
		words = append(words, f.more)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// grouping is --by: rows as they are, one row an account, or one row a sku and tier.
type grouping string

const (
	byWindow  grouping = ""
	byAccount grouping = "account"
	bySKU     grouping = "sku"
)

// print writes rows and, for a table, their sum.
func (f *rowFormat) print(ctx context.Context, w io.Writer, m *meter.Meter, rows []meter.Row, by grouping) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	columns := terminalWidth(w)
	var err error
	switch f.format {
	case "json":
		var line []byte
		for i := range rows {
			line = append(meter.AppendRow(line[:0], m, &rows[i], by == bySKU), '\n')
			if _, err = buf.Write(line); err != nil {
				return fmt.Errorf("write rows: %w", err)
			}
		}
	case "csv":
		err = rowsCSV(buf, m, rows, by)
	case "parquet":
		err = rowsParquet(ctx, w, m, rows, by)
	default:
		err = rowsTable(buf, columns, rows, by)
	}
	if err == nil {
		err = buf.Flush()
	}
	if err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

func rowsCSV(w io.Writer, m *meter.Meter, rows []meter.Row, by grouping) error {
	out := csv.NewWriter(w)
	columns := rowColumns(m, by, false)
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.name
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for i := range rows {
		for k, c := range columns {
			switch v := c.of(&rows[i]).(type) {
			case string:
				line[k] = v
			case int64:
				if line[k] = strconv.FormatInt(v, 10); c.isTime {
					line[k] = meter.Time(v)
				}
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func rowsTable(w io.Writer, columns int, rows []meter.Row, by grouping) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "nothing is counted in this range")
		return err
	}
	heads := []string{"account"}
	if by == bySKU {
		heads = append(heads, "sku", ">tier")
	}
	if by == byAccount { // of many windows: which the range says
		heads = append(heads, "state")
	} else {
		heads = append(heads, "window end", "state", ">rev")
	}
	t := newTable(append(heads, ">requests", ">total", "prices", "note")...)
	var total meter.Int128
	var requests, unpriced int64
	notes := false
	for i := range rows {
		r := &rows[i]
		total, requests, unpriced = total.Add(r.Total()), requests+r.Usage.Requests, unpriced+r.Unpriced
		line := []string{cell(r.Account)}
		if by == bySKU {
			line = append(line, cell(r.Cells[0].SKU), text(int64(r.Cells[0].Tier)))
		}
		note := ""
		if !r.Adjustment.IsZero() {
			note, notes = "adjusted "+r.Adjustment.Dollars(), true
		}
		if by == byAccount {
			line = append(line, r.State.String())
		} else {
			line = append(line, meter.Time(r.WindowEnd), r.State.String(), text(r.Revision))
		}
		t.row(append(line, text(r.Usage.Requests), r.Total().Dollars(), r.Source, note)...)
	}
	if !notes {
		t.dropLast()
	}
	if err := t.print(w, columns); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s\n", plural(len(rows), "row"), plural(requests, "request"), total.Dollars())
	if err == nil && unpriced > 0 {
		_, err = fmt.Fprintf(w, "incomplete: %s a quantity without a price\n", pluralVerb(unpriced, "request", "has", "have"))
	}
	return err
}

// cell keeps untrusted text from breaking a table.
func cell(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, clean(s))
}
