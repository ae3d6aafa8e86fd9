package diff

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// scan walks both sides once, in order, and keeps the rows that differ (all of them if c.whole).
func (c *comparison) scan() error {
	var cur [2]cursor
	for i, s := range c.sides {
		rows := s.Rows
		if s.Kind == Events {
			rows = c.eventRows(s)
		}
		if rows == nil {
			return fmt.Errorf("%s has no rows", s.Name)
		}
		cur[i] = cursor{c: c, side: i, rows: rows}
		if err := cur[i].advance(); err != nil {
			return err
		}
	}
	l, r := &cur[0], &cur[1]
	for l.ok || r.ok {
		order := 0
		switch {
		case !r.ok:
			order = -1
		case !l.ok:
			order = 1
		default:
			order = l.row.RowKey.Compare(r.row.RowKey)
		}
		var left, right *meter.Row
		if order <= 0 {
			left = &l.row
		}
		if order >= 0 {
			right = &r.row
		}
		c.meet(left, right)
		if left != nil {
			if err := l.advance(); err != nil {
				return err
			}
		}
		if right != nil {
			if err := r.advance(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A cursor reads one side, checks its order and drops what the options leave out.
type cursor struct {
	c    *comparison
	side int
	rows RowReader
	row  meter.Row
	ok   bool
	last meter.RowKey
	read bool
}

func (k *cursor) advance() error {
	for {
		if err := k.rows.Next(&k.row); err != nil {
			k.ok = false
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read %s: %w", k.c.sides[k.side].Name, err)
		}
		key := k.row.RowKey
		if k.read && k.last.Compare(key) >= 0 {
			return fmt.Errorf("read %s: row %q %s comes twice or out of order", k.c.sides[k.side].Name, key.Account, timeText(key.WindowEnd))
		}
		k.read, k.last = true, key
		if k.c.inRange(key) && !k.c.nothing(k.side, &k.row) {
			k.ok = true
			return nil
		}
	}
}

// nothing reports whether a row counts nothing: to a reader it is no row (R9, R11).
func (c *comparison) nothing(side int, r *meter.Row) bool {
	if !c.sides[side].Columns.Requests || r.Usage.Requests != 0 || r.State == meter.Incomplete || !r.Total().IsZero() {
		return false
	}
	for _, q := range r.Usage.Quantities {
		if q != 0 {
			return false
		}
	}
	return true
}

// meet judges one key at first sight.
func (c *comparison) meet(l, r *meter.Row) {
	key := keyOf(l, r)
	sum := &c.report.Summary
	if !c.named(key.Account) {
		if c.opt.Accounts == nil { // nobody asked to leave it out
			sum.NotCompared++
		}
		return
	}
	if !c.comparable(key.WindowEnd) {
		sum.Open++
		return
	}
	sum.Compared++
	if c.whole || !c.plainlyEqual(l, r) {
		p := &pair{key: key, row: [2]*meter.Row{keep(l), keep(r)}}
		c.rows = append(c.rows, p)
		c.byKey[key] = p
		return
	}
	sum.Matched++
	c.addTo(&sum.Left, 0, l)
	c.addTo(&sum.Right, 1, r)
}

// plainlyEqual reports whether both rows are there, complete, equal, and sound in themselves.
func (c *comparison) plainlyEqual(l, r *meter.Row) bool {
	return l != nil && r != nil && l.State != meter.Incomplete && r.State != meter.Incomplete &&
		c.cols.sameRow(l, r) && sound(l) && sound(r) && sameCells(l, r)
}

// sound reports whether the cells of a row, if it brings them, make up the row.
func sound(r *meter.Row) bool {
	if len(r.Cells) == 0 {
		return true
	}
	var requests int64
	var hash uint64
	var amount meter.Int128
	for i := range r.Cells {
		cell := &r.Cells[i]
		requests += cell.Requests
		hash += cell.SetHash
		amount = amount.Add(cell.Amount)
	}
	if requests != r.Usage.Requests || hash != r.Usage.SetHash || amount != r.Total() {
		return false
	}
	for q, want := range r.Usage.Quantities {
		for i := range r.Cells {
			want -= quantityAt(r.Cells[i].Quantities, q)
		}
		if want != 0 {
			return false
		}
	}
	return true
}

// sameCells reports whether two equal rows have the same cells, if both bring them in the same number and order.
// Otherwise the rows' own equality has to do.
func sameCells(l, r *meter.Row) bool {
	if len(l.Cells) == 0 || len(r.Cells) == 0 || len(l.Cells) != len(r.Cells) {
		return true
	}
	for i := range l.Cells {
		a, b := &l.Cells[i], &r.Cells[i]
		if a.CellKey != b.CellKey || a.Amount != b.Amount || !sameUsage(&a.Usage, &b.Usage) {
			return false
		}
	}
	return true
}

func sameUsage(u, v *meter.Usage) bool {
	return u.Requests == v.Requests && slices.Equal(u.Quantities, v.Quantities)
}

func keyOf(l, r *meter.Row) meter.RowKey {
	if l != nil {
		return l.RowKey
	}
	return r.RowKey
}

// keep copies a row that its reader may reuse.
func keep(r *meter.Row) *meter.Row {
	if r == nil {
		return nil
	}
	k := *r
	k.Usage = r.Usage.Clone()
	k.Cells = slices.Clone(r.Cells)
	for i := range k.Cells {
		k.Cells[i].Usage = k.Cells[i].Usage.Clone()
	}
	return &k
}

// addTo adds a row to a sum without making a Value of it: this runs for every row.
func (c *comparison) addTo(sum *Value, side int, r *meter.Row) {
	if r == nil {
		return
	}
	sum.Requests += r.Usage.Requests
	sum.Pico = sum.Pico.Add(r.Total())
	for i, at := range c.cols.at[side] {
		sum.Quantities[i] += quantityAt(r.Usage.Quantities, at)
	}
}
