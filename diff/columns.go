package diff

import (
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// columns maps the columns of both sides onto those of the report.
type columns struct {
	names    []string
	at       [2][]int // per side and report column: the side's column, or -1
	partOf   []int    // per report column: the whole's report column, or -1
	samePart bool     // the sides agree on partOf where both have the column

	requests, money, setHash bool   // compared
	quantity                 []bool // compared, per report column
	stated                   [2][]bool
}

func newColumns(left, right *Side) columns {
	var k columns
	for _, s := range []*Side{left, right} {
		for _, q := range s.Quantities {
			if !slices.Contains(k.names, q.Name) {
				k.names = append(k.names, q.Name)
			}
		}
	}
	for i, s := range []*Side{left, right} {
		for _, n := range k.names {
			at := slices.IndexFunc(s.Quantities, func(q meter.Quantity) bool { return q.Name == n })
			k.at[i] = append(k.at[i], at)
			k.stated[i] = append(k.stated[i], at >= 0)
		}
	}
	k.samePart = true
	for i := range k.names {
		l, inLeft := k.wholeOf(left, 0, i)
		r, inRight := k.wholeOf(right, 1, i)
		// Files do not know about parts: theirs say -1 for all.
		if inLeft && inRight && l != r && right.Kind < Totals {
			k.samePart = false
		}
		if !inLeft {
			l = r
		}
		k.partOf = append(k.partOf, l)
		// An events side is given our value where it states none.
		k.quantity = append(k.quantity, inLeft && (inRight || right.Kind == Events))
	}
	k.requests = left.Columns.Requests && (right.Columns.Requests || right.Kind == Events)
	k.money = left.Columns.Money && (right.Columns.Money || right.Kind == Events && left.Prices != nil)
	k.setHash = left.Columns.SetHash && right.Columns.SetHash && left.Identity == right.Identity
	return k
}

// wholeOf is the report column of the whole of report column i, as side s (number side) has it.
func (k *columns) wholeOf(s *Side, side, i int) (whole int, has bool) {
	at := k.at[side][i]
	if at < 0 {
		return -1, false
	}
	if part := s.Quantities[at].PartOf; part >= 0 {
		return slices.Index(k.names, s.Quantities[part].Name), true
	}
	return -1, true
}

func (k *columns) any() bool {
	return k.requests || k.money || slices.Contains(k.quantity, true)
}

func (k *columns) newReport(left, right *Side, opt Options) *Report {
	r := &Report{Left: left.Name, Right: right.Name, Quantities: k.names, HasRequests: k.requests, HasMoney: k.money,
		HasQuantity: k.quantity, allowLost: opt.AllowLost}
	for i, s := range []*Side{left, right} {
		r.States[i] = Stated{Requests: s.Columns.Requests, Money: s.Columns.Money, SetHash: s.Columns.SetHash, Quantities: slices.Clone(k.stated[i])}
	}
	if right.Kind == Events {
		r.States[1].Requests = true
		for i, n := range k.names {
			if k.quantity[i] && !k.stated[1][i] {
				r.Valued = append(r.Valued, n)
				r.States[1].Quantities[i] = true
			}
		}
		if k.money {
			r.Valued = append(r.Valued, "total_usd")
			r.States[1].Money = true
		}
	}
	r.Summary.Left, r.Summary.Right, r.Summary.Delta = k.zero(), k.zero(), k.zero()
	return r
}

func (k *columns) zero() Value { return Value{Quantities: make([]int64, len(k.names))} }

// widen puts a side's quantities into the report's columns.
func (k *columns) widen(side int, q []int64) []int64 {
	w := make([]int64, len(k.names))
	for i, at := range k.at[side] {
		if at >= 0 && at < len(q) {
			w[i] = q[at]
		}
	}
	return w
}

// usage is what u states, without money.
func (k *columns) usage(side int, u *meter.Usage) Value {
	return Value{Requests: u.Requests, Quantities: k.widen(side, u.Quantities), SetHash: u.SetHash}
}

// rowValue is what a row states; zero for no row.
func (k *columns) rowValue(side int, r *meter.Row) Value {
	if r == nil {
		return k.zero()
	}
	v := k.usage(side, &r.Usage)
	v.Pico = r.Total()
	return v
}

// compared sets to zero what is not compared.
func (k *columns) compared(v Value) Value {
	w := Value{Quantities: make([]int64, len(k.names))}
	if k.requests {
		w.Requests = v.Requests
	}
	if k.money {
		w.Pico = v.Pico
	}
	if k.setHash {
		w.SetHash = v.SetHash
	}
	for i, on := range k.quantity {
		if on {
			w.Quantities[i] = v.Quantities[i]
		}
	}
	return w
}

// sameRow reports whether two rows state the same in all that is compared.
func (k *columns) sameRow(l, r *meter.Row) bool {
	if k.requests && l.Usage.Requests != r.Usage.Requests || k.setHash && l.Usage.SetHash != r.Usage.SetHash ||
		k.money && l.Total() != r.Total() {
		return false
	}
	for i, on := range k.quantity {
		if on && quantityAt(l.Usage.Quantities, k.at[0][i]) != quantityAt(r.Usage.Quantities, k.at[1][i]) {
			return false
		}
	}
	return true
}

func quantityAt(q []int64, i int) int64 {
	if i >= 0 && i < len(q) {
		return q[i]
	}
	return 0
}

// billed is what of v is billed per column: a whole less its parts (R9).
func (k *columns) billed(q []int64) []int64 {
	b := slices.Clone(q)
	for i, whole := range k.partOf {
		if whole >= 0 {
			b[whole] -= q[i]
		}
	}
	return b
}

// Arithmetic of values. Sums of rows stay far inside int64: no row states a negative usage.

func (v Value) plus(w Value) Value {
	s := Value{Requests: v.Requests + w.Requests, Pico: v.Pico.Add(w.Pico), SetHash: v.SetHash + w.SetHash, Quantities: slices.Clone(v.Quantities)}
	for i := range s.Quantities {
		s.Quantities[i] += w.Quantities[i]
	}
	return s
}

func (v Value) minus(w Value) Value { return v.plus(w.neg()) }

func (v Value) neg() Value {
	n := Value{Requests: -v.Requests, Pico: v.Pico.Neg(), SetHash: -v.SetHash, Quantities: slices.Clone(v.Quantities)}
	for i := range n.Quantities {
		n.Quantities[i] = -n.Quantities[i]
	}
	return n
}

func (v Value) times(sign int64) Value {
	if sign < 0 {
		return v.neg()
	}
	return v
}

// usageZero reports whether v states no requests and no quantity.
func (v Value) usageZero() bool {
	return v.Requests == 0 && !slices.ContainsFunc(v.Quantities, func(q int64) bool { return q != 0 })
}

func (v Value) isZero() bool { return v.usageZero() && v.Pico.IsZero() }

func (v Value) equal(w Value) bool {
	return v.Requests == w.Requests && v.Pico == w.Pico && slices.Equal(v.Quantities, w.Quantities)
}
