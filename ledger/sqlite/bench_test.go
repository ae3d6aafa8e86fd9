package sqlite

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// benchCommits are commits as a gateway's day makes them: ten minutes of 400 accounts each, the first with 30 cells, the
// others with five; a row is written while it runs and again when it is final; two firings a row.
func benchCommits(n int) []*meter.Commit {
	const accounts = 400
	commits := make([]*meter.Commit, n)
	for k := range commits {
		c := &meter.Commit{Topic: "requests", InForce: meter.PriceUses{{Card: "fbbe5338ee2ab6f6", From: meter.MinusInfinity}}}
		for w := max(k*10-3, 0); w < k*10+10; w++ {
			end := minute(0) + int64(w)*60_000
			for a := range accounts {
				final := w < k*10+7
				r := meter.StoredRow{Row: meter.Row{RowKey: meter.RowKey{Account: fmt.Sprintf("tenant-%03d", a), WindowEnd: end}, State: meter.Running, Source: meter.PriceTable},
					Live: !final, Card: c.InForce[0].Card}
				cells := 5
				if a == 0 {
					cells = 30
				}
				for i := range cells {
					cell := meter.PricedCell{Cell: meter.Cell{CellKey: meter.CellKey{Account: r.Account, WindowEnd: end, SKU: fmt.Sprintf("model-%02d", i+1)},
						Usage: meter.Usage{Requests: 1, Quantities: []int64{int64(63_080 + a), int64(24_773 + w)}, SetHash: uint64(a+1) * 0x9E3779B97F4A7C15}},
						Priced: meter.Priced{Amount: meter.From64(333_751_750_000), Source: meter.PriceTable}}
					r.Cells = append(r.Cells, cell)
					r.Usage.Requests += cell.Requests
					r.Amount = r.Amount.Add(cell.Amount)
				}
				r.Usage.Quantities = []int64{int64(cells * 63_080), int64(cells * 24_773)}
				if final {
					r.State, r.Revision, r.Published, r.PublishedPico = meter.Final, 2, r.Usage, r.Amount
					for kind, delta := range map[meter.FiringKind]meter.Int128{meter.MainFiring: r.Amount, meter.FinalFiring: {}} {
						c.Firings = append(c.Firings, meter.Firing{RowKey: r.RowKey, Kind: kind, Revision: 1, Total: r.Usage, TotalPico: r.Amount, Delta: r.Usage, DeltaPico: delta, Source: r.Source})
					}
				}
				c.Rows = append(c.Rows, r)
			}
		}
		c.Positions = []meter.Position{position(1, int64(k+1)*1000)}
		c.Positions[0].CommitNo = int64(k + 1)
		commits[k] = c
	}
	return commits
}

func cpuSeconds() float64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}

// BenchmarkCommit prints what a row written and a firing cost together, and what the file takes.
func BenchmarkCommit(b *testing.B) {
	n := 10
	if testing.Short() {
		n = 3
	}
	commits := benchCommits(n)
	var rows, firings int
	var want meter.Int128
	seen := map[meter.RowKey]bool{}
	for _, c := range commits {
		rows, firings = rows+len(c.Rows), firings+len(c.Firings)
		for i := range c.Rows {
			if r := &c.Rows[i]; !seen[r.RowKey] {
				seen[r.RowKey], want = true, want.Add(r.Amount)
			}
		}
	}
	for b.Loop() {
		path := newPath(b)
		begun := cpuSeconds()
		l := openLedger(b, path)
		for _, c := range commits {
			if err := l.Commit(ctx, c); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((cpuSeconds()-begun)*1e6/float64(rows), "cpu-us/row")
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/float64(len(seen)), "bytes/row")
		b.ReportMetric(float64(firings)/float64(rows), "firings/row")
		bill, err := openReader(b, path).Bill(ctx, Range{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		var got meter.Int128
		for i := range bill {
			got = got.Add(bill[i].Total())
		}
		if len(bill) != len(seen) || got != want {
			b.Fatalf("%d rows of %s, want %d of %s", len(bill), got.USD(), len(seen), want.USD())
		}
	}
}
