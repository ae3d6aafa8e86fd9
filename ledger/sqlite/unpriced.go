package sqlite

import "context"

// Unpriced is what stands in a ledger without a price (R10).
type Unpriced struct {
	Requests int64         // of cells with an unpriced quantity
	Missing  []MissingRate // the rates that are missing: of the first rows only, sorted
}

// MissingRate is a rate that no card has.
type MissingRate struct {
	SKU      string
	Tier     int32
	Quantity string
}

// mostUnpricedRows bounds the rows that are searched for the names of missing rates.
const mostUnpricedRows = 1000

// Unpriced counts the requests that have a quantity without a price, and names rates that are missing.
func (r *Reader) Unpriced(ctx context.Context) (Unpriced, error) {
	var u Unpriced
	if err := r.tx.QueryRowContext(ctx, `SELECT coalesce(sum(unpriced), 0) FROM gm_row`).Scan(&u.Requests); err != nil || u.Requests == 0 {
		return u, r.failed("unpriced requests", err)
	}
	err := each(ctx, r.tx, `SELECT DISTINCT c.value ->> 'sku', c.value ->> 'tier', q.value
FROM (SELECT cells FROM gm_row WHERE unpriced > 0 LIMIT ?) AS r, json_each(r.cells) AS c, json_each(c.value, '$.unpriced') AS q
ORDER BY 1, 2, 3`, []any{mostUnpricedRows}, func(scan func(...any) error) error {
		var n MissingRate
		if err := scan(&n.SKU, &n.Tier, &n.Quantity); err != nil {
			return err
		}
		u.Missing = append(u.Missing, n)
		return nil
	})
	return u, r.failed("missing rates", err)
}

// Accounts names the accounts in which something is counted, sorted.
func (r *Reader) Accounts(ctx context.Context) (names []string, err error) {
	err = each(ctx, r.tx, `SELECT DISTINCT account FROM gm_row WHERE requests <> 0 ORDER BY account`, nil, func(scan func(...any) error) error {
		var name string
		if err := scan(&name); err != nil {
			return err
		}
		names = append(names, name)
		return nil
	})
	return names, r.failed("accounts", err)
}
