package duckdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Store writes rows as a Parquet file: one row a (account, window), integers for counts and pico-dollars, text where an
// amount leaves 64 bits, and the provenance as key-value metadata. The same rows and provenance give the same table. The
// file appears under path as a whole only if path's folder is the caller's alone: write aside and rename.
func (e *Engine) Store(ctx context.Context, path string, m *meter.Meter, rows []meter.Row, provenance map[string]string) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	columns := []string{"account VARCHAR", "window_start BIGINT", "window_end BIGINT", "window_end_utc TIMESTAMP", "state VARCHAR", "requests BIGINT"}
	for _, q := range m.Event.Quantities {
		columns = append(columns, `"`+q.Name+`" BIGINT`)
	}
	columns = append(columns, "total_pico BIGINT", "total_usd VARCHAR", "overflow BOOLEAN", "price_source VARCHAR", "unpriced_requests BIGINT", "set_hash VARCHAR")
	err = s.load(ctx, "stored", columns, len(rows), func(i int) []driver.Value { return storedRow(m, &rows[i]) })
	if err != nil {
		return err
	}
	var pairs []string
	for key, value := range provenance {
		pairs = append(pairs, quote(key)+": "+quote(value))
	}
	slices.Sort(pairs)
	text := "COPY (SELECT * FROM stored ORDER BY account, window_end) TO " + quote(path) + " (FORMAT parquet, COMPRESSION zstd, KV_METADATA {" + strings.Join(pairs, ", ") + "})"
	if err := s.exec(ctx, text); err != nil {
		return fmt.Errorf("duckdb: write %s: %w", path, err)
	}
	return nil
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
