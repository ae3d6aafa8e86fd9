package meter

import "slices"

// FoldAccounts folds the windows of each account into one row: sums of usage and money, the span of its
// windows, the least finished state. Rows have to be ordered by account, then window.
func FoldAccounts(m *Meter, rows []Row) ([]Row, error) {
	var out []Row
	for _, r := range rows {
		last := len(out) - 1
		if last < 0 || out[last].Account != r.Account {
			r.Usage, r.Cells, r.Revision, r.Span = r.Usage.Clone(), nil, 0, m.Window.Size
			out = append(out, r)
			continue
		}
		sum, f := &out[last], r
		usage, err := sum.Usage.Plus(f.Usage)
		if err != nil {
			return nil, err
		}
		sum.Span = max(sum.WindowEnd, f.WindowEnd) - (sum.WindowEnd - sum.Span)
		sum.Usage, sum.WindowEnd = usage, max(sum.WindowEnd, f.WindowEnd)
		sum.Amount, sum.Adjustment = sum.Amount.Add(f.Amount), sum.Adjustment.Add(f.Adjustment)
		sum.Unpriced += f.Unpriced
		sum.Source = MergeSources(sum.Source, f.Source)
		sum.State = leastFinished(sum.State, f.State)
	}
	return out, nil
}

// leastFinished is the state that a person must know of: incomplete before anything, then the least finished.
func leastFinished(a, b State) State {
	if a == Incomplete || b == Incomplete {
		return Incomplete
	}
	if a == Open || b == Open {
		return Open
	}
	return min(a, b)
}

// MergeSources is the price source of two amounts together (R10); "" is no amount.
func MergeSources(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return PriceMixed
}

// SplitCells makes one row of each cell of the rows. The amount is the cell's part of the total: adjustments
// are of rows, not of cells.
func SplitCells(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		for _, c := range r.Cells {
			row := Row{RowKey: r.RowKey, State: r.State, Revision: r.Revision, Usage: c.Usage, Amount: c.Amount, Source: c.Source, Cells: []PricedCell{c}}
			if len(c.Unpriced) > 0 {
				row.Unpriced = c.Requests
			}
			out = append(out, row)
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		if c := a.RowKey.Compare(b.RowKey); c != 0 {
			return c
		}
		return a.Cells[0].CellKey.Compare(b.Cells[0].CellKey)
	})
	return out
}
