package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// maxFaults bounds how many faults of a kind are named.
const maxFaults = 20

// Audit holds the ledger against itself (R11): the journal is numbered without a gap, the deltas of each row add up to what
// was published of it, which its last firing states, and its state and revision are those of its firings and of g, the
// merge's watermark. It returns what is wrong, a line each.
func (r *Reader) Audit(ctx context.Context, g int64) ([]string, error) {
	faults, err := r.auditNumbers(ctx)
	if err != nil {
		return nil, r.failed("the journal's numbers", err)
	}
	rows, err := r.auditRows(ctx, g)
	if err != nil {
		return nil, r.failed("rows against the journal", err)
	}
	return append(faults, rows...), nil
}

func (r *Reader) auditNumbers(ctx context.Context) (faults []string, err error) {
	var count, low, high int64
	err = r.tx.QueryRowContext(ctx, `SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM gm_firing`).Scan(&count, &low, &high)
	if err != nil || low == 1 && high == count {
		return nil, err
	}
	if low != 1 {
		faults = append(faults, fmt.Sprintf("the journal begins at seq %d", low))
	}
	err = each(ctx, r.tx, `SELECT f.seq FROM gm_firing AS f WHERE f.seq < ? AND NOT EXISTS (SELECT 1 FROM gm_firing AS n WHERE n.seq = f.seq + 1) LIMIT ?`,
		[]any{high, maxFaults}, func(scan func(...any) error) error {
			var seq int64
			err := scan(&seq)
			faults = append(faults, fmt.Sprintf("the journal has no seq %d", seq+1))
			return err
		})
	return faults, err
}

// halves sums a column of 64 bits in two halves, so that no sum can leave 64 bits.
func halves(column, as string) string {
	return "sum(" + column + " >> 32) AS " + as + "_high, sum(" + column + " & 4294967295) AS " + as + "_low"
}

// isSum is SQL: the halves come to the column, modulo 2^64.
func isSum(halves, column string) string {
	return "((" + halves + "_high + (" + halves + "_low >> 32)) & 4294967295) = ((" + column + " >> 32) & 4294967295) AND (" +
		halves + "_low & 4294967295) = (" + column + " & 4294967295)"
}

func (r *Reader) auditRows(ctx context.Context, g int64) ([]string, error) {
	quantities, sums := "", "1"
	for i := range r.About.Quantities {
		q := fmt.Sprintf("q%d", i)
		quantities += fmt.Sprintf(", sum(delta_quantities ->> %d) AS %s", i, q)
		sums += fmt.Sprintf(" AND %s = (r.published_quantities ->> %d)", q, i)
	}
	checks := []struct{ what, ok string }{
		{"the journal speaks of it, and there is no such row", `r.account IS NOT NULL`},
		{"the journal's deltas do not sum to the requests that were published", `j.requests = r.published_requests`},
		{"the journal's deltas do not sum to the quantities that were published", `(` + sums + `)`},
		{"the journal's deltas do not sum to the amount that was published", `j.texts > 0 OR typeof(r.published) = 'text' OR (` + isSum("j.delta", "r.published") + `)`},
		{"the journal's deltas do not sum to the set_hash that was published", `(` + isSum("j.hash", "r.published_set_hash") + `)`},
		{"its last firing states another total than was published", `(j.last_total = r.published AND j.last_requests = r.published_requests AND
			j.last_quantities = r.published_quantities AND j.last_hash = r.published_set_hash)`},
		{"its revision is not that of its firings", `r.revision = j.revision`},
		{"its state is not that of its firings", `r.state = CASE WHEN j.finals = 1 THEN 'final' WHEN j.finals > 1 THEN 'final twice'
			WHEN j.corrections > 0 THEN 'corrected' ELSE 'main' END`},
		{"its state is not that of the watermark", `r.revision = 0 OR (r.state = 'final') = (r.window_end + ?1 <= ?2)`},
		{"nothing of it waits to be published, and it is not what was published", `r.live = 1 OR (r.requests = r.published_requests AND r.quantities = r.published_quantities AND
			r.set_hash = r.published_set_hash AND (r.overflow IS NOT NULL OR typeof(r.published) = 'text' OR r.amount + r.adjustment = r.published))`},
	}
	var cases, bad []string
	for i, c := range checks {
		cases = append(cases, fmt.Sprintf("WHEN (%s) IS NOT TRUE THEN %d", c.ok, i))
		bad = append(bad, "("+c.ok+") IS NOT TRUE")
	}
	var faults []string
	err := each(ctx, r.tx, `WITH j AS (SELECT account, window_end, version, count(*) AS n, max(seq) AS last, revision, -- of the last one, as SQLite has it beside a lone max

		sum(kind = 'final') AS finals, sum(kind = 'correction') AS corrections, sum(delta_requests) AS requests, sum(typeof(delta) = 'text') AS texts,
		`+halves("delta", "delta")+`, `+halves("delta_set_hash", "hash")+`, total AS last_total, requests AS last_requests, quantities AS last_quantities, set_hash AS last_hash`+quantities+`
		FROM gm_firing GROUP BY account, window_end, version)
	SELECT j.account, j.window_end, j.last, CASE `+strings.Join(cases, " ")+` END
	FROM j LEFT JOIN gm_row AS r ON r.account = j.account AND r.window_end = j.window_end AND r.version = j.version
	WHERE `+strings.Join(bad, " OR ")+` LIMIT ?3`, []any{r.About.Lateness, g, maxFaults}, func(scan func(...any) error) error {
		var account string
		var end, seq, check int64
		if err := scan(&account, &end, &seq, &check); err != nil {
			return err
		}
		faults = append(faults, fmt.Sprintf("row %q %s, journal up to seq %d: %s", account, meter.Time(end), seq, checks[check].what))
		return nil
	})
	if err != nil {
		return nil, err
	}
	unspoken, err := r.auditUnspoken(ctx)
	return append(faults, unspoken...), err
}

// auditUnspoken finds published rows without a journal. It looks for them only if there are not as many published rows as
// first firings: revision 1, but for the adjustments that follow it.
func (r *Reader) auditUnspoken(ctx context.Context) (faults []string, err error) {
	var rows, firsts int64
	err = r.tx.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM gm_row WHERE revision <> 0),
		(SELECT count(*) FROM gm_firing WHERE revision = 1 AND kind <> 'adjustment')`).Scan(&rows, &firsts)
	if err == nil {
		err = each(ctx, r.tx, `SELECT account, window_end, state FROM gm_row WHERE revision = 0 AND state <> 'running' LIMIT ?`, []any{maxFaults}, func(scan func(...any) error) error {
			var account, state string
			var end int64
			err := scan(&account, &end, &state)
			faults = append(faults, fmt.Sprintf("row %q %s: its state is %q, and it was never published", account, meter.Time(end), state))
			return err
		})
	}
	if err != nil || rows == firsts {
		return faults, err
	}
	err = each(ctx, r.tx, `SELECT account, window_end FROM gm_row AS r WHERE revision <> 0 AND NOT EXISTS
		(SELECT 1 FROM (SELECT DISTINCT account, window_end, version FROM gm_firing) AS j
		WHERE j.account = r.account AND j.window_end = r.window_end AND j.version = r.version) LIMIT ?`, []any{maxFaults}, func(scan func(...any) error) error {
		var account string
		var end int64
		err := scan(&account, &end)
		faults = append(faults, fmt.Sprintf("row %q %s: it says that it was published, and the journal has nothing of it", account, meter.Time(end)))
		return err
	})
	return faults, err
}

// AuditRows holds rows against their own cells and against the rates that the ledger says it used (R9, R10).
func AuditRows(m *meter.Meter, rows []meter.StoredRow, used []meter.PriceUsed) []string {
	a := rowAudit{meter: m, used: map[rateName]bool{}}
	for _, u := range used {
		a.used[rateName{u.SKU, u.Tier, u.Quantity, u.Revision}] = true
	}
	var faults []string
	for i := range rows {
		if what := a.row(&rows[i]); what != "" && len(faults) < maxFaults {
			faults = append(faults, fmt.Sprintf("row %q %s: %s", rows[i].Account, meter.Time(rows[i].WindowEnd), what))
		}
	}
	return faults
}

type rateName struct {
	sku      string
	tier     int32
	quantity string
	revision string
}

type rowAudit struct {
	meter *meter.Meter
	used  map[rateName]bool
}

func (a *rowAudit) row(r *meter.StoredRow) string {
	sum := meter.Usage{Quantities: make([]int64, len(a.meter.Event.Quantities))}
	var amount meter.Int128
	var unpriced int64
	source, missing := "", ""
	for i := range r.Cells {
		c := &r.Cells[i]
		var err error
		if sum, err = sum.Plus(c.Usage); err != nil {
			return err.Error()
		}
		amount = amount.Add(c.Amount)
		if len(c.Unpriced) > 0 {
			unpriced += c.Requests
		}
		switch source {
		case "", c.Source:
			source = c.Source
		default:
			source = meter.PriceMixed
		}
		if missing == "" {
			missing = a.rates(r, c)
		}
	}
	if source == "" {
		source = meter.PriceTable
	}
	switch {
	case !sum.Equal(r.Usage):
		return "its cells do not sum to its usage"
	case amount != r.Total():
		return fmt.Sprintf("its cells cost %s, it says %s", amount.USD(), r.Total().USD())
	case source != r.Source:
		return fmt.Sprintf("its price_source is %q, that of its cells %q", r.Source, source)
	case unpriced != r.Unpriced:
		return fmt.Sprintf("it says %d unpriced requests, its cells %d", r.Unpriced, unpriced)
	}
	return missing
}

// rates checks that the ledger has the rate of what a cell bills.
func (a *rowAudit) rates(r *meter.StoredRow, c *meter.PricedCell) string {
	for i, q := range a.meter.Event.Quantities {
		billed := c.Quantities[i]
		for j := range a.meter.Event.Quantities {
			if a.meter.Event.Quantities[j].PartOf == i {
				billed -= c.Quantities[j]
			}
		}
		card, list := rateName{c.SKU, c.Tier, q.Name, r.Card}, rateName{c.SKU, c.Tier, q.Name, r.List}
		if billed == 0 || a.used[card] || a.used[list] || slices.Contains(c.Unpriced, q.Name) {
			continue
		}
		return fmt.Sprintf("it bills %s of %q, and the ledger's prices have no rate of it of card %s", q.Name, c.SKU, r.Card)
	}
	return ""
}
