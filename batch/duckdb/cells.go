package duckdb

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A cellReader collects cells small, sorts them by numbers instead of words, and only then makes nouns of them: there may be as many
// cells as requests.
type cellReader struct {
	quantities     int
	usual          string // the manner that is left out
	accounts, skus words
	count          int
	rows           [][]cellRow // in blocks of cellBlock
	values         [][]int64   // their quantities, one row after another
}

// cellBlock is how many rows are kept together: what grows by blocks is never copied.
const cellBlock = 1 << 12

type cellRow struct {
	account, sku, tier int32
	at                 int32 // which row it was
	windowEnd          int64
	requests           int64
	hash               uint64
}

func newCellReader(m *meter.Meter) *cellReader {
	return &cellReader{quantities: len(m.Event.Quantities), usual: batch.UsualManner(m), accounts: newWords(), skus: newWords()}
}

// readAll runs cells.sql: it collects the cells that were asked for and counts every verdict in the summary.
func (c *cellReader) readAll(ctx context.Context, s *session, query string, sum *meter.Summary) error {
	err := s.each(ctx, query, func(v []driver.Value) error {
		if v[3] == nil {
			return judge(sum, meter.ParseVerdict(text(v[0])), text(v[1]), whole(v[6]))
		}
		c.read(v)
		manner := c.usual
		if v[1] != nil {
			manner = text(v[1])
		}
		return judge(sum, meter.VerdictCounted, manner, whole(v[6]))
	})
	if err != nil {
		return fmt.Errorf("duckdb: recompute: %w", err)
	}
	return nil
}

// read reads one row of cells.sql.
func (c *cellReader) read(v []driver.Value) {
	block := c.count / cellBlock
	if block == len(c.rows) {
		c.rows = append(c.rows, make([]cellRow, 0, cellBlock))
		c.values = append(c.values, make([]int64, 0, cellBlock*c.quantities))
	}
	c.rows[block] = append(c.rows[block], cellRow{account: c.accounts.number(text(v[2])), sku: c.skus.number(text(v[4])), tier: int32(whole(v[5])), at: int32(c.count),
		windowEnd: whole(v[3]), requests: whole(v[6]), hash: uint64(whole(v[7]))<<32 + uint64(whole(v[8]))})
	for _, q := range v[9:] {
		c.values[block] = append(c.values[block], whole(q))
	}
	c.count++
}

// quantitiesOf are the quantities of row at.
func (c *cellReader) quantitiesOf(at int32) []int64 {
	from := int(at) % cellBlock * c.quantities
	return c.values[at/cellBlock][from : from+c.quantities : from+c.quantities]
}

// cells is what was read, ordered; rows of one cell are put together.
func (c *cellReader) cells() ([]meter.PricedCell, error) {
	accounts, accountRank := c.accounts.sorted()
	skus, skuRank := c.skus.sorted()
	for _, block := range c.rows {
		for i := range block {
			block[i].account, block[i].sku = accountRank[block[i].account], skuRank[block[i].sku]
		}
	}
	rows := c.byAccount(len(accounts))
	c.rows = nil // they are copied
	cells := make([]meter.PricedCell, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		usage := meter.Usage{Requests: r.requests, Quantities: c.quantitiesOf(r.at), SetHash: r.hash}
		if i == 0 || compareRows(rows[i-1], *r) != 0 {
			cells = append(cells, meter.PricedCell{Cell: meter.Cell{Usage: usage,
				CellKey: meter.CellKey{Account: accounts[r.account], WindowEnd: r.windowEnd, SKU: skus[r.sku], Tier: r.tier}}})
			continue
		}
		last := &cells[len(cells)-1]
		var err error
		if last.Usage, err = last.Plus(usage); err != nil {
			return nil, fmt.Errorf("duckdb: recompute %s at window end %d: %w: %w", last.Account, last.WindowEnd, batch.ErrSum, err)
		}
	}
	return cells, nil
}

// byAccount sorts rows: counted out by account first, for accounts are few, and sorted within each.
func (c *cellReader) byAccount(accounts int) []cellRow {
	next := make([]int, accounts+1)
	for _, block := range c.rows {
		for i := range block {
			next[block[i].account+1]++
		}
	}
	for a := range accounts {
		next[a+1] += next[a]
	}
	sorted := make([]cellRow, c.count)
	for _, block := range c.rows {
		for i := range block {
			a := block[i].account
			sorted[next[a]] = block[i]
			next[a]++
		}
	}
	from := 0
	for a := range accounts {
		slices.SortFunc(sorted[from:next[a]], compareRows)
		from = next[a]
	}
	return sorted
}

// compareRows compares what makes a cell.
func compareRows(a, b cellRow) int {
	switch {
	case a.account != b.account:
		return cmp.Compare(a.account, b.account)
	case a.windowEnd != b.windowEnd:
		return cmp.Compare(a.windowEnd, b.windowEnd)
	case a.sku != b.sku:
		return cmp.Compare(a.sku, b.sku)
	}
	return cmp.Compare(a.tier, b.tier)
}

// words numbers words in the order in which they come.
type words struct{ numbers map[string]int32 }

func newWords() words { return words{numbers: map[string]int32{}} }

func (w words) number(word string) int32 {
	n, ok := w.numbers[word]
	if !ok {
		n = int32(len(w.numbers))
		w.numbers[word] = n
	}
	return n
}

// sorted lists the words in order, and the place in it of each number.
func (w words) sorted() (list []string, rank []int32) {
	list = slices.Sorted(maps.Keys(w.numbers))
	rank = make([]int32, len(list))
	for i, word := range list {
		rank[w.numbers[word]] = int32(i)
	}
	return list, rank
}

// rowsOf folds cells in order into priced rows. final is the last window end that is final everywhere.
func rowsOf(job *batch.Job, cells []meter.PricedCell, final int64) ([]meter.Row, error) {
	pricer := batch.NewPricer(job.Meter, job.Card, job.List)
	rows := make([]meter.Row, 0, countRows(cells))
	for len(cells) > 0 {
		n := rowLength(cells)
		row, err := pricer.Row(cells[0].Row(), cells[:n:n])
		if err != nil {
			return nil, err
		}
		row.State = meter.Recomputed
		if row.WindowEnd > final {
			row.State = meter.Open
		}
		rows = append(rows, row)
		cells = cells[n:]
	}
	return rows, nil
}

// rowLength is how many cells the first row has.
func rowLength(cells []meter.PricedCell) int {
	n := 1
	for n < len(cells) && cells[n].WindowEnd == cells[0].WindowEnd && cells[n].Account == cells[0].Account {
		n++
	}
	return n
}

func countRows(cells []meter.PricedCell) int {
	rows := 0
	for len(cells) > 0 {
		rows++
		cells = cells[rowLength(cells):]
	}
	return rows
}
