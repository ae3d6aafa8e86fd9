package duckdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Store writes rows as a Parquet file: one row a (account, window), integers for counts and pico-dollars, text where an
// amount leaves 64 bits, and the provenance as key-value metadata. The same rows and provenance give the same table. The
// file appears under path as a whole only if path's folder is the caller's alone: write aside and rename.
func (e *Engine) Store(ctx context.Context, path string, m *meter.Meter, rows []meter.Row, provenance map[string]string) error {
	columns := []string{"account VARCHAR", "window_start BIGINT", "window_end BIGINT", "window_end_utc TIMESTAMP", "state VARCHAR", "requests BIGINT"}
	for _, q := range m.Event.Quantities {
		columns = append(columns, `"`+q.Name+`" BIGINT`)
	}
	columns = append(columns, "total_pico BIGINT", "total_usd VARCHAR", "overflow BOOLEAN", "price_source VARCHAR", "unpriced_requests BIGINT", "set_hash VARCHAR")
	return e.WriteParquet(ctx, path, columns, "account, window_end", len(rows), func(i int) []driver.Value { return storedRow(m, &rows[i]) }, provenance)
}

func storedRow(m *meter.Meter, r *meter.Row) []driver.Value {
	values := []driver.Value{r.Account, r.WindowEnd - m.Window.Size, r.WindowEnd, utc(r.WindowEnd), r.State.String(), r.Usage.Requests}
	for i := range m.Event.Quantities {
		values = append(values, r.Usage.Quantities[i])
	}
	total := r.Total()
	pico, fits := total.Int64()
	var amount driver.Value
	if fits {
		amount = pico
	}
	return append(values, amount, total.USD(), !fits, r.Source, r.Unpriced, fmt.Sprintf("%016x", r.Usage.SetHash))
}

func utc(ms int64) driver.Value { return time.UnixMilli(ms).UTC() }
