package duckdb_test

import (
	"testing"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// TestTraces lets the SQL sit the exam. A bill and a journal it does not have.
func TestTraces(t *testing.T) {
	tracetest.Run(t, "../../testdata/traces", func(c *tracetest.Case) (*tracetest.Answer, error) {
		return answer(t, t.TempDir(), c, 7)
	})
}

// answer runs both truths on the case's log, archived in files of perFile rows.
func answer(tb testing.TB, dir string, c *tracetest.Case, perFile int) (*tracetest.Answer, error) {
	a := archiveLog(tb, dir, c.Meter, c.Log, perFile)
	engine := duckdb.New(duckdb.Config{Threads: 1})
	job := a.job(c.Card, c.List, batch.AsStreamed, c.Drain)
	streamed, err := engine.Recompute(tb.Context(), job)
	if err != nil {
		return nil, err
	}
	items, err := engine.Items(tb.Context(), job, batch.ItemFilter{})
	if err != nil {
		return nil, err
	}
	complete, err := engine.Recompute(tb.Context(), a.job(c.Card, c.List, batch.Complete, c.Drain))
	if err != nil {
		return nil, err
	}
	got := &tracetest.Answer{Skip: []string{tracetest.Bill, tracetest.Journal}, Rows: streamed.Rows, Complete: complete.Rows,
		Items: items, Summary: streamed.Summary, CompleteSummary: &complete.Summary}
	if got.Prices, err = pricesOf(c, items); err != nil {
		return nil, err
	}
	for _, p := range a.parts {
		for i := range a.events[p] {
			if e := &a.events[p][i]; e.Bucket == meter.BucketDeadLetter {
				got.Dead = append(got.Dead, tracetest.DeadLetter{Partition: e.Partition, Offset: e.Offset, Reason: e.Reason})
			}
		}
	}
	return got, nil
}

// pricesOf is what the items would have cost (R3).
func pricesOf(c *tracetest.Case, items []meter.Item) ([]meter.Priced, error) {
	pricer := batch.NewPricer(c.Meter, c.Card, c.List)
	prices := make([]meter.Priced, len(items))
	for i := range items {
		it := &items[i]
		var err error
		if prices[i], err = pricer.Price(&meter.Cell{Usage: it.Usage,
			CellKey: meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}}); err != nil {
			return nil, err
		}
	}
	return prices, nil
}
