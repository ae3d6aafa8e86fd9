package sqlite

import (
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

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
