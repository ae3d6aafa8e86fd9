package oracle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// Publication (R11) on the small events meter: Z = 60, L = 60, B = 10. A journal line is `kind rev account end
// total delta` in dollars; a bill line `account end state rev amount adjustment`.
func TestPublication(t *testing.T) {
	for _, c := range []struct {
		why, log      string
		lateness      string // instead of 60s
		open          bool
		journal, bill string
	}{
		{why: "main at G >= end, a correction at the next crossing, final at G >= end+L with delta 0",
			log: `
				V e1 0 in=1
				V e2 70 in=0
				V e3 10 in=2
				V e4 125 in=0
				V e5 20 in=3
				V e6 130 in=0`,
			open: true,
			// G = 60 after e2: main 1. e3 is counted at W = 60, taken when G = 115 crosses nothing (120 is next) but at e6, G = 120,
			// together with e5: one correction of 5; then mains before finals at 120: e2's row is all zeros but it counts a request.
			journal: `
				main 1 acme 60 $1 +1
				correction 2 acme 60 $6 +5
				main 1 acme 120 $0 +0
				final 3 acme 60 $6 +0`,
			bill: `
				acme 60 final 3 $6 $0
				acme 120 main 1 $0 $0
				acme 180 running 0 $0 $0`},
		{why: "a change between end and end+L that no crossing takes is final's: correction first, then final",
			log: `
				V e1 0 in=1
				T 129
				V e2 0 in=1
				T 130`,
			open: true,
			journal: `
				main 1 acme 60 $1 +1
				correction 2 acme 60 $2 +1
				final 3 acme 60 $2 +0`,
			bill: `acme 60 final 3 $2 $0`},
		{why: "main and final in one step of G: mains before finals of the same time, times in order, accounts in order",
			log: `
				V e1 0 in=1 a=beta
				V e2 0 in=1
				V e3 60 in=1
				T 1000`,
			open: true,
			journal: `
				main 1 acme 60 $1 +1
				main 1 beta 60 $1 +1
				main 1 acme 120 $1 +1
				final 2 acme 60 $1 +0
				final 2 beta 60 $1 +0
				final 2 acme 120 $1 +0`,
			bill: `
				acme 60 final 2 $1 $0
				acme 120 final 2 $1 $0
				beta 60 final 2 $1 $0`},
		{why: "a partition of the header that is silent holds G at minus infinity; draining moves it too",
			log: `
				partitions 0 1
				V e1 0 in=1
				T 1000`,
			journal: `
				main 1 acme 60 $1 +1
				final 2 acme 60 $1 +0`,
			bill: `acme 60 final 2 $1 $0`},
		{why: "a silent partition of the header: nothing is published without draining",
			log: `
				partitions 0 1
				V e1 0 in=1
				T 1000`,
			open: true,
			bill: `acme 60 running 0 $1 $0`},
		{why: "marked idle it holds no more; what it says when it returns is an adjustment, taken at the next publication",
			log: `
				partitions 0 1
				V e1 0 in=1
				T 1000
				idle 1
				V e2 0 in=2 p=1
				V e3 10 in=4 p=1
				T 2000
				T 2000 p=1`,
			open: true,
			// e2 wakes partition 1 at W = -10; G stays 990. It is taken when G moves on: with partition 1 at 1990.
			journal: `
				main 1 acme 60 $1 +1
				final 2 acme 60 $1 +0
				adjustment 2 acme 60 $7 +6`,
			bill: `acme 60 final 2 $1 $6`},
		{why: "a row first seen when its window is final: a final of zero, revision 1, and an adjustment",
			log: `
				partitions 0 1
				T 1000
				idle 1
				V e2 0 in=2 p=1
				T 2000
				T 2000 p=1`,
			open: true,
			journal: `
				final 1 acme 60 $0 +0
				adjustment 1 acme 60 $2 +2`,
			bill: `acme 60 final 1 $0 $2`},
		{why: "before a record of an idle partition everything is taken; a record that moves nothing does not wake it",
			log: `
				partitions 0 1
				V e1 0 in=1
				V e2 100 in=1 p=1
				T 75
				idle 1
				V e3 50 in=2
				V e4 70 in=4 p=1
				V e5 50 in=8
				T 130`,
			open: true,
			// G = 65 after T 75 (partition 1 has 90). e3 is taken before e4, of an idle partition; e4 (reach 70) does not wake it. So T 130 moves
			// G to 120 alone.
			journal: `
				main 1 acme 60 $1 +1
				correction 2 acme 60 $3 +2
				correction 3 acme 60 $11 +8
				main 1 acme 120 $5 +5
				final 4 acme 60 $11 +0`,
			bill: `
				acme 60 final 4 $11 $0
				acme 120 main 1 $5 $0`},
		{why: "before a record of a new partition everything is taken; it holds G from then on, and G does not go back",
			log: `
				V e1 0 in=1
				T 75
				V e2 50 in=2
				X - 0 p=1
				T 500
				V e3 50 in=4 p=1`,
			open: true,
			journal: `
				main 1 acme 60 $1 +1
				correction 2 acme 60 $3 +2`,
			bill: `acme 60 corrected 2 $7 $0`},
		{why: "an idle line takes everything even if it moves nothing; with all idle G stays",
			log: `
				V e1 0 in=1
				T 75
				V e2 50 in=2
				idle 0
				V e3 50 in=4`,
			open: true,
			journal: `
				main 1 acme 60 $1 +1
				correction 2 acme 60 $3 +2`,
			bill: `acme 60 corrected 2 $7 $0`},
		{why: "a crossing of a window's end by G takes everything, though no row has that end",
			log: `
				V e1 300 in=1
				T 380
				V e2 340 in=2
				V e3 395 in=0 a=beta
				T 429`,
			open: true,
			// G = 370 at T 380: main of [300, 360). e2 is taken at G = 419? 420 is not crossed. So it is not.
			journal: `main 1 acme 360 $1 +1`,
			bill: `
				acme 360 main 1 $3 $0
				beta 420 running 0 $0 $0`},
		{why: "G at end+L exactly: a row first seen then is final already",
			log: `
				partitions 0 1
				T 130
				idle 1
				V e1 0 in=2 p=1
				T 1000
				T 1000 p=1`,
			open: true,
			journal: `
				final 1 acme 60 $0 +0
				adjustment 1 acme 60 $2 +2`,
			bill: `acme 60 final 1 $0 $2`},
		{why: "L that is no multiple of Z: G crossing an end takes all, and so does G crossing an end plus L",
			lateness: "90s",
			log: `
				V e1 0 in=1
				T 75
				V e2 1 in=2
				T 100
				V e3 2 in=4
				T 130
				V e4 3 in=8
				T 159
				V e5 4 in=16
				T 160`,
			open: true,
			// G = 65, 90 (an end plus L: that of [-60, 0)), 120 (an end), 149 (neither), 150 (the row's own end plus L).
			journal: `
				main 1 acme 60 $1 +1
				correction 2 acme 60 $3 +2
				correction 3 acme 60 $7 +4
				correction 4 acme 60 $31 +24
				final 5 acme 60 $31 +0`,
			bill: `acme 60 final 5 $31 $0`},
		{why: "a changed total only: an empty publication says nothing",
			log: `
				V e1 0 in=1
				T 75
				idle 7
				idle 7`,
			open:    true,
			journal: `main 1 acme 60 $1 +1`,
			bill:    `acme 60 main 1 $1 $0`},
	} {
		t.Run(c.why, func(t *testing.T) {
			text := eventsMeter
			if c.lateness != "" {
				text = strings.Replace(text, "allowed_lateness: 60s", "allowed_lateness: "+c.lateness, 1)
			}
			m, card := small(t, text)
			r, err := oracle.AsStreamed(m, card, nil, script(t, c.log), !c.open)
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, "journal", c.journal, showJournal(r.Journal))
			compareLines(t, "bill", c.bill, showBill(r.Bill))
		})
	}
}

func dollars(v meter.Int128) string { return strings.TrimSuffix(v.USD(), ".000000000000") }

func showJournal(journal []meter.Firing) []string {
	var lines []string
	for i := range journal {
		f := &journal[i]
		sign := "+"
		if f.DeltaPico.Sign() < 0 {
			sign = ""
		}
		lines = append(lines, fmt.Sprintf("%s %d %s %d $%s %s%s", f.Kind, f.Revision, f.Account, f.WindowEnd/1000, dollars(f.TotalPico), sign, dollars(f.DeltaPico)))
	}
	return lines
}

func showBill(bill []meter.Row) []string {
	var lines []string
	for i := range bill {
		r := &bill[i]
		lines = append(lines, fmt.Sprintf("%s %d %s %d $%s $%s", r.Account, r.WindowEnd/1000, r.State, r.Revision, dollars(r.Amount), dollars(r.Adjustment)))
	}
	return lines
}

// A row that is back at zero after it was published says so in the journal, and is no row of the bill.
func TestPublicationOfSupersededRows(t *testing.T) {
	m, card := small(t, requestsMeter)
	// Abandoned at 180, in [180, 240): main at G = 240. Then r1 ends at 250, in [240, 300), while W = 250 < 300.
	log := script(t, `
		S r1 0 in=1
		T 250
		T 260
		C r1 250 out=1
		T 311`)
	r, err := oracle.AsStreamed(m, card, nil, log, false)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, "journal", `
		main 1 acme 240 $1 +1
		correction 2 acme 240 $0 -1
		main 1 acme 300 $2 +2
		final 3 acme 240 $0 +0`, showJournal(r.Journal))
	compareLines(t, "bill", `acme 300 main 1 $2 $0`, showBill(r.Bill))
}
