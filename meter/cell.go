package meter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// CellKey names a cell (R9): the finest place that money is counted in.
type CellKey struct {
	Account   string
	WindowEnd int64 // ms, exclusive end of the window
	SKU       string
	Tier      int32
}

// Compare orders keys by account, window, sku, tier.
func (k CellKey) Compare(o CellKey) int {
	return cmp.Or(strings.Compare(k.Account, o.Account), cmp.Compare(k.WindowEnd, o.WindowEnd),
		strings.Compare(k.SKU, o.SKU), cmp.Compare(k.Tier, o.Tier))
}

// Row is the row the cell is a detail of.
func (k CellKey) Row() RowKey { return RowKey{Account: k.Account, WindowEnd: k.WindowEnd} }

// RowKey names a row (R11).
type RowKey struct {
	Account   string
	WindowEnd int64
}

// Compare orders keys by account, then window: the order of every output.
func (k RowKey) Compare(o RowKey) int {
	return cmp.Or(strings.Compare(k.Account, o.Account), cmp.Compare(k.WindowEnd, o.WindowEnd))
}

// Usage is what a cell or a row counts. Quantities are as the events stated them: a whole includes
// its parts. SetHash is the sum of id hashes mod 2^64 (R9).
type Usage struct {
	Requests   int64
	Quantities []int64
	SetHash    uint64
}

// Clone copies u deeply.
func (u Usage) Clone() Usage {
	u.Quantities = slices.Clone(u.Quantities)
	return u
}

// Equal compares all of u and v; missing quantities count as zero.
func (u Usage) Equal(v Usage) bool {
	if u.Requests != v.Requests || u.SetHash != v.SetHash {
		return false
	}
	for i := range max(len(u.Quantities), len(v.Quantities)) {
		if at(u.Quantities, i) != at(v.Quantities, i) {
			return false
		}
	}
	return true
}

// Plus returns u + v. An error means that a sum left int64 (R9 stops the partition then).
func (u Usage) Plus(v Usage) (Usage, error) { return u.combine(v, addChecked) }

// Minus returns u - v.
func (u Usage) Minus(v Usage) (Usage, error) {
	w, err := u.combine(v, subChecked)
	w.SetHash = u.SetHash - v.SetHash
	return w, err
}

func (u Usage) combine(v Usage, op func(a, b int64) (int64, bool)) (Usage, error) {
	w := Usage{Quantities: make([]int64, max(len(u.Quantities), len(v.Quantities))), SetHash: u.SetHash + v.SetHash}
	var ok bool
	if w.Requests, ok = op(u.Requests, v.Requests); !ok {
		return w, fmt.Errorf("R9: a sum of requests leaves int64")
	}
	for i := range w.Quantities {
		if w.Quantities[i], ok = op(at(u.Quantities, i), at(v.Quantities, i)); !ok {
			return w, fmt.Errorf("R9: a sum of quantity %d leaves int64", i)
		}
	}
	return w, nil
}

// IsZero reports whether nothing is counted in u: no cell to a reader (R9).
func (u Usage) IsZero() bool { return u.Equal(Usage{}) }

func at(q []int64, i int) int64 {
	if i < len(q) {
		return q[i]
	}
	return 0
}

func addChecked(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func subChecked(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

// A Cell is a key with what it counts.
type Cell struct {
	CellKey
	Usage
}

// A CellChange is what a partition tells the merge of one cell at a commit (R11): its running value
// and its value at the partition's previous commit.
type CellChange struct {
	CellKey
	Value, Was Usage
}
