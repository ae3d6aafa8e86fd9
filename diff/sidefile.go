package diff

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// FileOptions say how a file of totals or events is read.
type FileOptions struct {
	// Format is "csv" or "json" (JSON lines); "" tells by the name's ending (.csv; .json, .jsonl, .ndjson).
	Format string
	// Columns maps our names (account, window_end, time, reference, requests, total_usd, a quantity) to the file's.
	Columns map[string]string
	// Quantities are the names of the meter's quantities: columns that may be compared.
	Quantities []string
	// WindowSize is Z of the meter in ms: window_end has to be a boundary. 0: not checked.
	WindowSize int64
	// MinTime is the earliest plausible time in ms; 0 is 2000-01-01.
	MinTime int64
}

// A File is a side read from a file.
type File struct {
	Side
	// Ignored are the columns that mean nothing to us, as the file names them. A person should hear of them: one may be
	// a misspelled name.
	Ignored []string
	// Accounts are those that totals are of, in order; all their windows end in (From, To], in ms.
	Accounts []string
	From, To int64
}

// ReadFile reads a CSV or JSON-lines side. Totals have the columns account and window_end and any of requests,
// total_usd and quantities; single events have account, time and reference (or reference_1, reference_2, ... for one of
// several parts) and any quantities. In JSON, quantities may also stand in an object "quantities", so that the rows that
// `bill` prints are totals, and a reference may be a list. Every line has to have the same of these columns. Times are
// RFC 3339 or milliseconds; numbers are whole, money decimal, both exact. An error names file and line.
func ReadFile(name string, r io.Reader, opt FileOptions) (*File, error) {
	f := &fileReader{name: name, opt: opt, side: &File{}, lineOf: map[meter.RowKey]int{}}
	if f.opt.MinTime == 0 {
		f.opt.MinTime = 946684800000 // 2000-01-01
	}
	var err error
	switch f.format() {
	case "csv":
		err = f.csv(bufio.NewReader(r))
	case "json":
		err = f.jsonLines(bufio.NewReader(r))
	default:
		err = fmt.Errorf("cannot tell its format: want a name in .csv, .json, .jsonl, .ndjson or .parquet")
	}
	if err != nil {
		return nil, fmt.Errorf("diff: read %s%w", name, withLine(f.line, err))
	}
	f.finish()
	return f.side, nil
}

// withLine puts ":12: " before an error, or ": " where no line was read.
func withLine(line int, err error) error {
	if line == 0 {
		return fmt.Errorf(": %w", err)
	}
	return fmt.Errorf(":%d: %w", line, err)
}

func (f *fileReader) format() string {
	if f.opt.Format != "" {
		return f.opt.Format
	}
	lower := strings.ToLower(f.name)
	switch {
	case strings.HasSuffix(lower, ".csv"):
		return "csv"
	case strings.HasSuffix(lower, ".json"), strings.HasSuffix(lower, ".jsonl"), strings.HasSuffix(lower, ".ndjson"):
		return "json"
	}
	return ""
}

// A fileReader turns lines of named fields into a side.
type fileReader struct {
	name string
	opt  FileOptions
	line int
	side *File

	events     bool
	requests   bool
	money      bool
	quantities []string // those that the file has, in the meter's order
	references []string // our names of the reference's columns, in order
	rows       []meter.Row
	lineOf     map[meter.RowKey]int // to name both lines of a row that comes twice
}

// ownColumns are those that `bill` and `recompute` print and that say nothing about totals.
var ownColumns = []string{"window_start", "state", "revision", "amount_usd", "adjustment_usd", "price_source", "unpriced_requests",
	"set_hash", "overflow", "window_end_utc", "total_pico", "cells"}

// theirs is what the file calls a column of ours.
func (f *fileReader) theirs(ours string) string {
	if t, ok := f.opt.Columns[ours]; ok {
		return t
	}
	return ours
}

// learn takes the columns of the file and says what kind of side they make. has speaks the file's names.
func (f *fileReader) learn(names []string) error {
	has := func(ours string) bool { return slices.Contains(names, f.theirs(ours)) }
	for ours := range f.opt.Columns {
		if !f.known(ours) {
			return fmt.Errorf("--columns: %q is no column of ours: want account, window_end, time, reference, requests, total_usd or a quantity", ours)
		}
		if !has(ours) {
			return fmt.Errorf("--columns: there is no column %q", f.opt.Columns[ours])
		}
	}
	if !has("account") {
		return fmt.Errorf("there is no column %q (--columns account=NAME)", f.theirs("account"))
	}
	f.references = f.referenceColumns(has)
	switch {
	case has("window_end"):
	case has("time") && len(f.references) > 0:
		f.events = true
	default:
		return fmt.Errorf("neither totals (account, window_end) nor single events (account, time, reference): its columns are %s",
			printable(strings.Join(names, ", ")))
	}
	used := []string{"account"}
	if f.events {
		used = append(append(used, "time"), f.references...)
	} else {
		used = append(used, "window_end", "requests", "total_usd")
		f.requests, f.money = has("requests"), has("total_usd")
	}
	for _, q := range f.opt.Quantities {
		if has(q) {
			f.quantities = append(f.quantities, q)
			used = append(used, q)
		}
	}
	for i := range used {
		used[i] = f.theirs(used[i])
	}
	for _, n := range names {
		if !slices.Contains(used, n) && (f.events || !slices.Contains(ownColumns, n)) {
			f.side.Ignored = append(f.side.Ignored, n)
		}
	}
	if !f.events && !f.requests && !f.money && len(f.quantities) == 0 {
		return fmt.Errorf("totals without anything to compare: want requests, total_usd or a quantity of the meter (%s)", strings.Join(f.opt.Quantities, ", "))
	}
	return nil
}

func (f *fileReader) known(ours string) bool {
	return slices.Contains([]string{"account", "window_end", "time", "reference", "requests", "total_usd"}, ours) ||
		strings.HasPrefix(ours, "reference_") || slices.Contains(f.opt.Quantities, ours)
}

// referenceColumns is [reference], or [reference_1, reference_2, ...].
func (f *fileReader) referenceColumns(has func(string) bool) []string {
	if has("reference") {
		return []string{"reference"}
	}
	var columns []string
	for n := 1; has(fmt.Sprintf("reference_%d", n)); n++ {
		columns = append(columns, fmt.Sprintf("reference_%d", n))
	}
	return columns
}

// A lookup finds a column of the current line by its name in the file; false if it is not there or null.
type lookup func(theirs string) (field, bool)

// A field is one value as the file states it.
type field struct {
	text   string
	number bool    // a JSON number: text is its literal
	list   []field // a JSON list
	isList bool
}

// take reads one line.
func (f *fileReader) take(get lookup) error {
	account, err := f.textOf(get, "account")
	if err != nil {
		return err
	}
	quantities := make([]int64, len(f.quantities))
	for i, q := range f.quantities {
		if quantities[i], err = f.wholeOf(get, q); err != nil {
			return err
		}
	}
	if f.events {
		return f.takeEvent(get, account, quantities)
	}
	return f.takeTotals(get, account, quantities)
}

func (f *fileReader) takeEvent(get lookup, account string, quantities []int64) error {
	e := Event{Account: account, Quantities: quantities, Line: f.line}
	var err error
	if e.Time, err = f.timeOf(get, "time"); err != nil {
		return err
	}
	var parts []string
	for _, column := range f.references {
		v, ok := get(f.theirs(column))
		if !ok {
			return f.missing(column)
		}
		fields := v.list
		if !v.isList {
			fields = []field{v}
		}
		for _, p := range fields {
			if p.isList || p.text == "" {
				return fmt.Errorf("%s: an empty part: want the texts that name the event", column)
			}
			parts = append(parts, p.text)
		}
	}
	if len(parts) == 0 {
		return fmt.Errorf("reference: an empty list")
	}
	e.Reference = meter.NewID(parts...)
	f.side.Events = append(f.side.Events, e)
	return nil
}

func (f *fileReader) takeTotals(get lookup, account string, quantities []int64) error {
	end, err := f.timeOf(get, "window_end")
	if err != nil {
		return err
	}
	if f.opt.WindowSize > 0 && WindowEnd(end, f.opt.WindowSize)-f.opt.WindowSize != end {
		return fmt.Errorf("window_end: %s is not the end of a window of %d ms", timeText(end), f.opt.WindowSize)
	}
	row := meter.Row{RowKey: meter.RowKey{Account: account, WindowEnd: end}, Usage: meter.Usage{Quantities: quantities}}
	if f.requests {
		if row.Usage.Requests, err = f.wholeOf(get, "requests"); err != nil {
			return err
		}
	}
	if f.money {
		v, ok := get(f.theirs("total_usd"))
		if !ok {
			return f.missing("total_usd")
		}
		if row.Amount, err = parseMoney(v.text); err != nil {
			return fmt.Errorf("total_usd: %w", err)
		}
	}
	if first, twice := f.lineOf[row.RowKey]; twice {
		return fmt.Errorf("%s %s is in line %d already: one line a window", printable(account), timeText(end), first)
	}
	f.lineOf[row.RowKey] = f.line
	f.rows = append(f.rows, row)
	return nil
}

func (f *fileReader) missing(column string) error {
	return fmt.Errorf("%s is missing: every line has to have it, or none", column)
}

func (f *fileReader) textOf(get lookup, column string) (string, error) {
	v, ok := get(f.theirs(column))
	if !ok || v.text == "" || v.isList {
		return "", f.missing(column)
	}
	return v.text, nil
}

func (f *fileReader) wholeOf(get lookup, column string) (int64, error) {
	v, ok := get(f.theirs(column))
	if !ok || v.isList {
		return 0, f.missing(column)
	}
	n, err := parseWhole(v.text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", column, err)
	}
	return n, nil
}

func (f *fileReader) timeOf(get lookup, column string) (int64, error) {
	v, ok := get(f.theirs(column))
	if !ok || v.isList {
		return 0, f.missing(column)
	}
	t, err := parseTime(v.text, f.opt.MinTime)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", column, err)
	}
	return t, nil
}

// finish makes the side of what was read.
func (f *fileReader) finish() {
	s := f.side
	s.Name, s.Kind = f.name, Totals
	for _, q := range f.quantities {
		s.Quantities = append(s.Quantities, meter.Quantity{Name: q, PartOf: -1})
	}
	if f.events {
		s.Kind = Events
		return
	}
	s.Columns = Columns{Requests: f.requests, Money: f.money}
	slices.SortFunc(f.rows, func(a, b meter.Row) int { return a.RowKey.Compare(b.RowKey) })
	s.Rows = SliceRows(f.rows)
	for i, r := range f.rows {
		if i == 0 || s.Accounts[len(s.Accounts)-1] != r.Account {
			s.Accounts = append(s.Accounts, r.Account)
		}
		if i == 0 {
			s.From, s.To = r.WindowEnd-f.opt.WindowSize, r.WindowEnd
		}
		s.From, s.To = min(s.From, r.WindowEnd-f.opt.WindowSize), max(s.To, r.WindowEnd)
	}
}

// checkUTF8 refuses text that could not be matched with an account of ours (R2).
func checkUTF8(line []byte) error {
	if !utf8.Valid(line) {
		return fmt.Errorf("not UTF-8")
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return fmt.Errorf("a NUL byte")
	}
	return nil
}
