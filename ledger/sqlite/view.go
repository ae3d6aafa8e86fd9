package sqlite

import (
	"context"
	"fmt"
	"slices"
)

// Views lists the names of the documented views.
func Views() []string {
	return []string{"bill", "bill_by_sku", "journal", "late", "conflicts", "orphans", "late_completions", "filtered",
		"dead_letters", "positions_view", "prices", "lost_ranges", "about"}
}

// View reads a documented view whole: its columns, and rows of int64, string, []byte or nil.
func (r *Reader) View(ctx context.Context, name string) (columns []string, rows [][]any, err error) {
	if !slices.Contains(Views(), name) {
		return nil, nil, fmt.Errorf("ledger: %s has no view %q", r.path, name)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("ledger: read view %s of %s: %w", name, r.path, err)
		}
	}()
	found, err := r.tx.QueryContext(ctx, "SELECT * FROM "+name)
	if err != nil {
		return nil, nil, err
	}
	defer found.Close()
	if columns, err = found.Columns(); err != nil {
		return nil, nil, err
	}
	for found.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := found.Scan(to...); err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
	}
	return columns, rows, found.Err()
}
