package diff

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// madeRows makes n rows of 400 accounts as they are asked for. Every row of number k*wrong+7 is one request too many.
type madeRows struct {
	accounts []string
	n, next  int
	wrong    int
	cells    bool
	q        [3]int64
	cell     [1]meter.PricedCell
}

func makeRows(n, wrong int, cells bool) *madeRows {
	m := &madeRows{n: n, wrong: wrong, cells: cells}
	for a := range 400 {
		m.accounts = append(m.accounts, fmt.Sprintf("tenant-%03d", a))
	}
	return m
}

func (m *madeRows) Next(r *meter.Row) error {
	if m.next == m.n {
		return io.EOF
	}
	i := int64(m.next)
	per := m.n / len(m.accounts)
	m.q = [3]int64{i % 1000, i % 10, i % 500}
	u := meter.Usage{Requests: 1 + i%20, Quantities: m.q[:], SetHash: uint64(i) * 0x9e3779b97f4a7c15}
	amount := meter.From64(i * 1000)
	if m.wrong > 0 && m.next%m.wrong == 7 {
		u.Requests++
	}
	key := meter.RowKey{Account: m.accounts[min(m.next/per, len(m.accounts)-1)], WindowEnd: t0 + i*minute}
	*r = meter.Row{RowKey: key, State: meter.Final, Usage: u, Amount: amount}
	if m.cells {
		m.cell[0] = meter.PricedCell{Cell: meter.Cell{CellKey: meter.CellKey{Account: key.Account, WindowEnd: key.WindowEnd, SKU: "gpt"}, Usage: u},
			Priced: meter.Priced{Amount: amount}}
		r.Cells = m.cell[:]
	}
	m.next++
	return nil
}

func madeSide(name string, n, wrong int, cells bool) *Side {
	return &Side{Name: name, Kind: Recompute, WindowSize: minute, Quantities: labQuantities, Identity: "id", Columns: AllColumns,
		Rows: makeRows(n, wrong, cells)}
}

// BenchmarkCompare walks two sides of 5 M rows, of which 50 differ; the target is 4 s.
func BenchmarkCompare(b *testing.B) {
	for _, cells := range []bool{false, true} {
		b.Run(fmt.Sprintf("cells=%v", cells), func(b *testing.B) {
			const rows, wrong = 5_000_000, 100_000
			for range b.N {
				rep, err := Compare(context.Background(), madeSide("a", rows, 0, cells), madeSide("b", rows, wrong, cells), Options{})
				if err != nil {
					b.Fatal(err)
				}
				if s := rep.Summary; s.Compared != rows || s.Mismatched != rows/wrong || s.Delta.Requests != -rows/wrong || s.Delta.Pico.Sign() != 0 {
					b.Fatalf("%+v", s)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkExplain names the causes of 100,000 late records in a thousand rows.
func BenchmarkExplain(b *testing.B) {
	const n = 100_000
	left, right := make([]meter.Item, n), make([]meter.Item, n)
	for i := range n {
		right[i] = request(fmt.Sprint("r", i), 0, []int64{int64(2 * i), int64(2*i + 1)}, "acme", int64(i%1000), 10, 0, 5)
		left[i] = as(meter.VerdictLate, right[i])
		if i%2 == 0 {
			left[i] = right[i]
		}
	}
	for b.Loop() {
		rep, err := Compare(context.Background(), ownSide("a", left), ownSide("b", right), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if s := rep.Summary; len(s.Causes) != 1 || s.Causes[0].Cause != Late || s.Causes[0].Requests != -n/2 {
			b.Fatalf("%+v", s)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
