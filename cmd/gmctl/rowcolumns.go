package main

import (
	"database/sql/driver"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A rowColumn is a column of rows in CSV and Parquet.
type rowColumn struct {
	name, sqlType string
	isTime        bool                            // ms in Parquet, RFC 3339 in CSV
	of            func(r *meter.Row) driver.Value // text, int64, or nil
}

// rowColumns are the columns of rows; Parquet has the total as an integer of pico-dollars too (null where it does not fit).
func rowColumns(m *meter.Meter, by grouping, parquet bool) []rowColumn {
	word := func(name string, of func(r *meter.Row) string) rowColumn {
		return rowColumn{name: name, sqlType: "VARCHAR", of: func(r *meter.Row) driver.Value { return of(r) }}
	}
	number := func(name string, of func(r *meter.Row) int64) rowColumn {
		return rowColumn{name: name, sqlType: "BIGINT", of: func(r *meter.Row) driver.Value { return of(r) }}
	}
	moment := func(name string, of func(r *meter.Row) int64) rowColumn {
		c := number(name, of)
		c.isTime = true
		return c
	}
	head := []rowColumn{word("account", func(r *meter.Row) string { return r.Account })}
	if by == bySKU {
		tier := number("tier", func(r *meter.Row) int64 { return int64(r.Cells[0].Tier) })
		tier.sqlType = "INTEGER"
		head = append(head, word("sku", func(r *meter.Row) string { return r.Cells[0].SKU }), tier)
	}
	head = append(head,
		moment("window_start", func(r *meter.Row) int64 { return r.WindowStart(m) }),
		moment("window_end", func(r *meter.Row) int64 { return r.WindowEnd }),
		word("state", func(r *meter.Row) string { return r.State.String() }),
		number("revision", func(r *meter.Row) int64 { return r.Revision }),
		number("requests", func(r *meter.Row) int64 { return r.Usage.Requests }))
	tail := []rowColumn{
		word("amount_usd", func(r *meter.Row) string { return r.Amount.USD() }),
		word("adjustment_usd", func(r *meter.Row) string { return r.Adjustment.USD() }),
		word("total_usd", func(r *meter.Row) string { return r.Total().USD() }),
	}
	if parquet {
		tail = append(tail, rowColumn{name: "total_pico", sqlType: "BIGINT", of: func(r *meter.Row) driver.Value {
			if pico, fits := r.Total().Int64(); fits {
				return pico
			}
			return nil
		}})
	}
	tail = append(tail,
		word("price_source", func(r *meter.Row) string { return r.Source }),
		number("unpriced_requests", func(r *meter.Row) int64 { return r.Unpriced }),
		word("set_hash", func(r *meter.Row) string { return fmt.Sprintf("%016x", r.Usage.SetHash) }))
	taken := []string{"sku", "tier"}
	for _, c := range append(head[:len(head):len(head)], tail...) {
		taken = append(taken, c.name)
	}
	columns := head
	for i, name := range m.QuantityColumns(taken...) {
		columns = append(columns, number(name, func(r *meter.Row) int64 { return r.Usage.Quantities[i] }))
	}
	return append(columns, tail...)
}
