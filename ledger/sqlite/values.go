package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// raw runs a query in the reader's snapshot and hands over row after row as the driver has them: for hundreds of thousands of rows what
// database/sql does between is half the time.
func (r *Reader) raw(ctx context.Context, query string, do func(v *values) error) error {
	return r.conn.Raw(func(c any) (err error) {
		rows, err := c.(driver.QueryerContext).QueryContext(ctx, query, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		v := values{row: make([]driver.Value, len(rows.Columns()))}
		for {
			switch err := rows.Next(v.row); {
			case errors.Is(err, io.EOF):
				return ctx.Err()
			case err != nil:
				return err
			}
			v.next = 0
			if err := do(&v); err != nil {
				return err
			}
		}
	})
}

// values are those of a row, taken one after the other; what they are valid for ends with the next row. The first value that is not
// what was asked for is the error.
type values struct {
	row  []driver.Value
	next int
	err  error
}

func (v *values) take() driver.Value {
	v.next++
	return v.row[v.next-1]
}

func (v *values) note(err error) {
	if v.err == nil {
		v.err = err
	}
}

// failed is the error of the row, which the format names.
func (v *values) failed(format string, args ...any) error {
	if v.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), v.err)
}

func (v *values) whole() int64 {
	n, ok := v.take().(int64)
	if !ok {
		v.note(fmt.Errorf("%.40q is no whole number", fmt.Sprint(v.row[v.next-1])))
	}
	return n
}

func (v *values) text() string {
	s, ok := v.take().(string)
	if !ok {
		v.note(fmt.Errorf("%.40q is no text", fmt.Sprint(v.row[v.next-1])))
	}
	return s
}

// optional is a text, "" for a null.
func (v *values) optional() string {
	if v.row[v.next] == nil {
		v.next++
		return ""
	}
	return v.text()
}

// amount reads what amount wrote.
func (v *values) amount() (n meter.Int128) {
	v.note(scanAmount{&n}.Scan(v.take()))
	return n
}

// ints reads what ints wrote: as many numbers as to has.
func (v *values) ints(to []int64) {
	clear(to)
	v.addInts(to)
}

// addInts adds what ints wrote to sums.
func (v *values) addInts(sums []int64) {
	text := v.text()
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	ok := opened && closed
	for i := range sums {
		word, rest, more := strings.Cut(inner, ",")
		n, err := strconv.ParseInt(word, 10, 64)
		ok = ok && err == nil && more == (i < len(sums)-1)
		sums[i] += n
		inner = rest
	}
	if !ok || inner != "" {
		v.note(fmt.Errorf("%.40q is no list of %d integers", text, len(sums)))
	}
}
