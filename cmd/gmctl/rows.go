package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
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
	head := []string{"account"}
	if by == bySKU {
		head = append(head, "sku", "tier")
	}
	head = append(head, "window_start", "window_end", "state", "revision", "requests")
	tail := []string{"amount_usd", "adjustment_usd", "total_usd", "price_source", "unpriced_requests", "set_hash"}
	quantities := m.QuantityColumns(append([]string{"sku", "tier"}, slices.Concat(head, tail)...)...)
	if err := out.Write(slices.Concat(head, quantities, tail)); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		rec := []string{r.Account}
		if by == bySKU {
			rec = append(rec, r.Cells[0].SKU, strconv.Itoa(int(r.Cells[0].Tier)))
		}
		rec = append(rec, meter.Time(r.WindowStart(m)), meter.Time(r.WindowEnd), r.State.String(), strconv.FormatInt(r.Revision, 10), strconv.FormatInt(r.Usage.Requests, 10))
		for q := range m.Event.Quantities {
			rec = append(rec, strconv.FormatInt(r.Usage.Quantities[q], 10))
		}
		rec = append(rec, r.Amount.USD(), r.Adjustment.USD(), r.Total().USD(), r.Source, strconv.FormatInt(r.Unpriced, 10), fmt.Sprintf("%016x", r.Usage.SetHash))
		if err := out.Write(rec); err != nil {
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
	t := newTable(append(heads, "window end", "state", ">rev", ">requests", ">total", "prices", "note")...)
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
		t.row(append(line, meter.Time(r.WindowEnd), r.State.String(), text(r.Revision), text(r.Usage.Requests), r.Total().Dollars(), r.Source, note)...)
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
