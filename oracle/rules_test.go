package oracle_test

import (
	"testing"

	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// Each case is worked out by hand from the rule in its name. W(r) is the highest time before r, less 10.
var requestCases = []ruleCase{
	{why: "R3: a copy that is equal in all that is read is a duplicate; the end's account is not read",
		log: `
			S r1 0 in=5
			S r1 0 in=5
			C r1 5 out=2
			C r1 5 out=2 a=beta`,
		items: `
			counted 0@0,2 complete t=5 J=-10
			duplicate 0@1 start t=0 J=-10 lone
			duplicate 0@3 complete t=5 J=-5 lone`,
		rows: `acme 60 1 5 0 2 0 $7`},
	{why: "R3: any field that is read makes a conflict; E after C is one, with equal fields too; a missing quantity is its default",
		log: `
			S r1 0 in=5
			S r1 1 in=5
			S r1 0 in=5 agent=cli
			S r1 0 in=5 cached=0
			C r1 5 out=2
			E r1 5 out=2
			C r1 5 out=2 st=ok
			C r1 5 out=2 st=bad`,
		items: `
			counted 0@0,4 complete t=5 J=-9
			conflict 0@1 start t=1 J=-10 lone
			conflict 0@2 start t=0 J=-9 lone
			duplicate 0@3 start t=0 J=-9 lone
			conflict 0@5 error t=5 J=-5 lone
			duplicate 0@6 complete t=5 J=-5 lone
			conflict 0@7 complete t=5 J=-5 lone`,
		rows: `acme 60 1 5 0 2 0 $7`},
	{why: "R3: a copy of an end knows the account only of a start that came before it in the log",
		log: `
			C r1 5 out=2
			C r1 5 out=3
			S r1 0 in=5
			C r1 5 out=4`,
		items: `
			counted 0@0,2 complete t=5 J=-5
			conflict 0@1 complete t=5 J=-5 - lone
			conflict 0@3 complete t=5 J=-5 lone`,
		rows: `acme 60 1 5 0 2 0 $7`},
	{why: "R4: reach is the lesser of time and log time: a fast clock at 900 moves W to the log's 20 only",
		log: `
			S r1 900 log=20 in=1
			S r2 0 log=20 in=1
			C r2 5 log=21 out=1`,
		open: true,
		items: `
			open 0@0 start t=900 J=10 lone
			counted 0@1,2 complete t=5 J=10`,
		rows: `acme 60 1 1 0 1 0 $2 open`},
	{why: "R4: the record that moves W past D is itself applied under the W before",
		log: `
			S r1 0 in=5
			T 189
			C r1 500 out=1`,
		items: `counted 0@0,2 complete t=500 J=179`,
		rows:  `acme 540 1 5 0 1 0 $6`},
	{why: "R4, R7: W = D exactly: the timer has fired, judged by the W before the advance",
		log: `
			S r1 0 in=5
			T 100
			T 190`,
		open:  true,
		items: `counted 0@0 start t=180 J=90 abandoned`,
		rows:  `acme 240 1 5 0 0 0 $5 open`},
	{why: "R5: windows below zero are floored: -1 is in [-60, 0), -60 too, -61 is not",
		log: `
			S r1 -70 in=1
			C r1 -61 out=1
			S r2 -70 in=1
			C r2 -60 out=1
			S r3 -70 in=1
			C r3 -1 out=1`,
		items: `
			counted 0@0,1 complete t=-61 J=-80
			counted 0@2,3 complete t=-60 J=-71
			counted 0@4,5 complete t=-1 J=-70`,
		rows: `
			acme -60 1 1 0 1 0 $2
			acme 0 2 2 0 2 0 $4`},
	{why: "R6: J = end+L is late, J = end+L-1 is counted; a late record takes both with it",
		log: `
			S r1 0 in=1
			S r2 0 in=1
			T 129
			C r1 59 out=1
			T 130
			C r2 59 out=1`,
		items: `
			counted 0@0,3 complete t=59 J=119
			late 0@1,5 complete t=59 J=120`,
		rows: `acme 60 1 1 0 1 0 $2`},
	{why: "R7: the door of a start is W = end(D)+L = 300; of an end W = time+A; nothing behind it matches",
		log: `
			T 310
			S r1 0 in=1
			S r2 60 in=1
			C r2 110 out=1
			C r2 121 out=2
			C r3 120 out=1`,
		open: true,
		items: `
			late 0@1 start t=0 J=300 door lone
			counted 0@2 start t=240 J=300 abandoned
			late 0@3 complete t=110 J=300 door - lone
			late_completion 0@4 complete t=121 J=300 lone
			late 0@5 complete t=120 J=300 door - lone`,
		rows: `acme 300 1 1 0 0 0 $1 open`},
	{why: "R7: X before S, met while it is held: judged at W(S); W(S) = time(X)+A is too late",
		log: `
			C r1 20 out=1
			C r2 19 out=1
			T 209
			S r1 130 in=1
			S r2 130 in=1`,
		open: true,
		// D(r2) = 310. r2's end was an orphan at W = 199 and its life is over then: 19+180 = 199.
		items: `
			late 0@0,3 complete t=20 J=199
			orphan 0@1 complete t=19 J=10 -  lone
			open 0@4 start t=130 J=199 lone`,
		rows: ``},
	{why: "R7: an orphan stays the first end of a life that a copy prolongs: the start is abandoned, further ends are copies",
		log: `
			C r1 20 out=1
			C r1 90 out=1
			T 220
			S r1 100 in=1
			C r1 150 out=9
			T 290`,
		open: true,
		items: `
			orphan 0@0 complete t=20 J=80 - lone
			conflict 0@1 complete t=90 J=10 - lone
			counted 0@3 start t=280 J=210 abandoned
			conflict 0@4 complete t=150 J=210 lone`,
		rows: `acme 300 1 1 0 0 0 $1 open`},
	{why: "R7: abandoned with the greatest running totals of progress after S with W(P) < D; totals never add",
		log: `
			P r1 0 out=90
			S r1 0 in=5
			P r1 10 out=7 think=2
			P r1 20 out=3 think=3
			P r2 20 out=50
			T 190
			P r1 30 out=99`,
		items: `counted 0@1 start t=180 J=10 abandoned`,
		rows:  `acme 240 1 5 0 7 3 $12`},
	{why: "R7: of an abandoned request a whole is at least the sum of its parts, though no single record said so",
		log: `
			S r1 0 in=5
			P r1 10 out=4 think=4
			P r1 20 out=6 think=0
			P r1 30 out=6
			P r1 40 think=0
			T 400`,
		items: `counted 0@0 start t=180 J=20 abandoned`,
		rows:  `acme 240 1 5 0 6 4 $11`},
	{why: "R7: W(S) >= D at once: judged at W(S)",
		log: `
			T 200
			S r1 0 in=5`,
		open:  true,
		items: `counted 0@1 start t=180 J=190 abandoned`,
		rows:  `acme 240 1 5 0 0 0 $5 open`},
	{why: "R7: W(S) = D exactly is at once too, and not a moment before S was there",
		log: `
			T 100
			T 190
			S r1 0 in=5`,
		open:  true,
		items: `counted 0@2 start t=180 J=180 abandoned`,
		rows:  `acme 240 1 5 0 0 0 $5 open`},
	{why: "R7: an end supersedes while W < end(D)+L = 300 and W < end(time(X))+L",
		log: `
			S r1 0 in=5
			S r2 0 in=5
			S r3 0 in=5
			S r4 0 in=5
			S r4 60 in=5
			T 309
			C r1 180 out=1
			C r2 179 out=1
			T 310
			C r3 300 out=1
			C r4 300 out=1`,
		// W = 299: r1 is in [180, 240), final at 300: in time. r2 in [120, 180), final at 240: too late. W = 300: r3 is
		// forgotten (its horizon was 300), r4 remembered for its copy (360), and its end too late.
		items: `
			counted 0@0,6 complete t=180 J=299 superseded
			counted 0@1 start t=180 J=50 abandoned
			counted 0@2 start t=180 J=50 abandoned
			counted 0@3 start t=180 J=50 abandoned
			conflict 0@4 start t=60 J=-10 lone
			late_completion 0@7 complete t=179 J=299 lone
			orphan 0@9 complete t=300 J=300 - lone
			late_completion 0@10 complete t=300 J=300 lone`,
		rows: `acme 240 4 20 0 1 0 $21`},
	{why: "R7, R9: an end that supersedes and is filtered withdraws the abandoned record all the same",
		log: `
			S r1 0 in=5
			T 200
			C r1 190 out=1 st=broken`,
		items: `filtered 0@0,2 complete t=190 J=190 superseded filter=broken`,
		rows:  ``},
	{why: "R7: an abandoned record that was filtered cannot be superseded",
		log: `
			S r1 0 in=5 agent=bot/1
			T 200
			C r1 190 out=1`,
		items: `
			filtered 0@0 start t=180 J=-10 abandoned filter=bots
			late_completion 0@2 complete t=190 J=190 lone`,
		rows: ``},
	{why: "R8: a copy that passes the door prolongs the life: the third start is a copy at 300 (horizon 360), the fourth begins a new life",
		log: `
			S r1 0 in=5
			C r1 1 out=1
			S r1 60 in=5
			T 310
			S r1 0 in=5
			S r1 300 in=5
			T 420
			S r1 419 in=5`,
		open: true,
		// At 0@4 W = 300: the door of a start at 0. 0@5 has horizon end(480)+60 = 600: 0@7 is a copy of 0@0 still.
		items: `
			counted 0@0,1 complete t=1 J=-10
			conflict 0@2 start t=60 J=-9 lone
			late 0@4 start t=0 J=300 door lone
			conflict 0@5 start t=300 J=300 lone
			conflict 0@7 start t=419 J=410 lone`,
		rows: `acme 60 1 5 0 1 0 $6`},
	{why: "R8: when W has reached the horizon of every copy the next record is a new life",
		log: `
			S r1 0 in=5
			C r1 1 out=1
			T 309
			S r1 290 in=5
			S r2 0 in=5
			C r2 1 out=1
			T 310
			S r2 290 in=5`,
		open: true,
		// 0@3 meets W = 299 < 300. r2's 0@4 meets 299, so D = 180 has passed: abandoned at once; 0@5 is door-late.
		// 0@7 meets W = 300: r2 is forgotten.
		items: `
			counted 0@0,1 complete t=1 J=-10
			conflict 0@3 start t=290 J=299 lone
			counted 0@4 start t=180 J=299 abandoned
			late 0@5 complete t=1 J=299 door - lone
			open 0@7 start t=290 J=300 lone`,
		rows: `
			acme 60 1 5 0 1 0 $6
			acme 240 1 5 0 0 0 $5`},
	{why: "R9: tiers: a tier quantity over the threshold, not at it; a lone end has tier 0",
		log: `
			S r1 0 in=100
			C r1 1 out=0
			S r2 0 in=101
			C r2 1 out=0
			C r2 1 out=7`,
		items: `
			counted 0@0,1 complete t=1 J=-10
			counted 0@2,3 complete t=1 J=-9 tier=1
			conflict 0@4 complete t=1 J=-9 lone`,
		rows: `acme 60 2 201 0 0 0 $302`},
	{why: "R9, R10: the whole is billed less its parts, and what has no rate is kept unpriced",
		log: `
			S r1 0 in=10 cached=4
			C r1 1 out=3 think=3
			S r2 0 in=5 m=other
			C r2 1 out=0`,
		items: `
			counted 0@0,1 complete t=1 J=-10
			counted 0@2,3 complete t=1 J=-9`,
		rows: `acme 60 2 15 4 3 3 $13 unpriced=1`},
	{why: "R13: without draining a start and a held end stay open",
		log: `
			S r1 0 in=5
			C r2 0 out=1`,
		open: true,
		items: `
			open 0@0 start t=0 J=-10 lone
			open 0@1 complete t=0 J=-10 - lone`,
		rows: ``},
	{why: "R13: draining fires what is left, judged by the watermark before",
		log: `
			S r1 0 in=5
			C r2 0 out=1`,
		items: `
			counted 0@0 start t=180 J=-10 abandoned
			orphan 0@1 complete t=0 J=-10 - lone`,
		rows: `acme 240 1 5 0 0 0 $5`},
	{why: "R15: complete has no lateness and no door, matches ids across partitions, and bills a second life once",
		log: `
			S r1 0 in=5 log=0
			T 1000 log=1000
			C r1 500 out=1 log=1001
			S r2 0 in=5 log=5
			C r2 1 out=2 p=1 log=6
			S r1 900 in=7 log=1100`,
		complete: true,
		items: `
			counted 0@0,2 complete t=500 J=0
			counted 0@3,1@0 complete t=1 J=0
			conflict 0@4 start t=900 J=0 lone`,
		rows: `
			acme 60 1 5 0 2 0 $7
			acme 540 1 5 0 1 0 $6`},
	{why: "R15: the order is that of log time; a missing one is 0; all progress after the start counts",
		log: `
			S r1 1 in=9 log=9
			S r1 2 in=5 log=8
			P r1 3 out=4 log=7
			P r1 3 out=3 log=500
			S r2 0 in=1 log=1
			S r2 0 in=2`,
		complete: true,
		items: `
			conflict 0@0 start t=1 J=0 lone
			counted 0@1 start t=182 J=0 abandoned
			conflict 0@4 start t=0 J=0 lone
			counted 0@5 start t=180 J=0 abandoned`,
		rows: `acme 240 2 7 0 3 0 $10`},
	{why: "R15: not drained, a request is abandoned only once the last watermark of its start's partition is at D",
		log: `
			S r1 0 in=1 log=0
			S r2 1 in=1 log=1 p=1
			T 190 log=190
			T 190 log=190 p=1
			C r3 11 out=1 p=1 log=190
			C r4 0 out=1 p=1 log=190`,
		complete: true, open: true,
		items: `
			counted 0@0 start t=180 J=0 abandoned
			open 1@0 start t=1 J=0 lone
			open 1@2 complete t=11 J=0 - lone
			orphan 1@3 complete t=0 J=0 - lone`,
		rows: `acme 240 1 1 0 0 0 $1 open`},
}

var eventCases = []ruleCase{
	{why: "R7: the first of a life counts, judged at its own W; copies are duplicates or conflicts",
		log: `
			V e1 0 in=5
			V e1 0 in=5
			V e1 0 in=6`,
		items: `
			counted 0@0 event t=0 J=-inf
			duplicate 0@1 event t=0 J=-10
			conflict 0@2 event t=0 J=-10`,
		rows: `acme 60 1 5 0 $5`},
	{why: "R7, R8: a late event is not remembered; a copy past its own horizon is a copy while the id is remembered, and prolongs nothing",
		log: `
			V e1 0 in=5
			V e1 61 in=5
			T 130
			V e1 0 in=5
			T 190
			V e1 0 in=5
			V e1 0 in=5
			V e2 0 in=1
			V e2 130 in=1`,
		// e1's life: horizons 120, then 180. At 0@3 W = 120: 0@0 alone would be forgotten. At 0@5 W = 180: it is. 0@8 is not a copy of the late 0@7.
		items: `
			counted 0@0 event t=0 J=-inf
			conflict 0@1 event t=61 J=-10
			duplicate 0@3 event t=0 J=120
			late 0@5 event t=0 J=180
			late 0@6 event t=0 J=180
			late 0@7 event t=0 J=180
			counted 0@8 event t=130 J=180`,
		rows: `
			acme 60 1 5 0 $5
			acme 180 1 1 0 $1`},
	{why: "R9: filtered before late, under the first name that matches; a filtered id is remembered",
		log: `
			V e1 0 in=5000 agent=bot/x
			V e1 0 in=5000 agent=bot/x
			V e2 0 in=5000
			T 500
			V e3 0 in=1 agent=bot/
			V e4 0 in=1 agent=bo`,
		items: `
			filtered 0@0 event t=0 J=-inf filter=bots tier=1
			duplicate 0@1 event t=0 J=-10 tier=1
			filtered 0@2 event t=0 J=-10 filter=big tier=1
			filtered 0@4 event t=0 J=490 filter=bots
			late 0@5 event t=0 J=490`,
		rows: ``},
	{why: "R15: complete counts late events, and each id once across partitions",
		log: `
			T 500 log=1
			V e1 0 in=1 log=2
			V e1 0 in=1 p=1 log=1
			V e2 0 in=1 p=1 log=3`,
		complete: true,
		items: `
			duplicate 0@1 event t=0 J=0
			counted 1@0 event t=0 J=0
			counted 1@1 event t=0 J=0`,
		rows: `acme 60 2 2 0 $2`},
}

func TestRules(t *testing.T) {
	for _, c := range requestCases {
		t.Run(c.why, func(t *testing.T) { c.run(t, requestsMeter) })
	}
	for _, c := range eventCases {
		t.Run(c.why, func(t *testing.T) { c.run(t, eventsMeter) })
	}
}

// TestAuditHorizon (R15): records with a log time outside do not exist, those without one always do; both ends are
// inside. The watermark is that of the records inside too.
func TestAuditHorizon(t *testing.T) {
	m, card := small(t, requestsMeter)
	log := script(t, `
		S r1 0 in=1 log=99
		S r1 1 in=2 log=100
		C r1 2 out=1 log=200
		S r2 3 in=4 log=201
		S r3 4 in=8
		T 500 log=300`)
	r, err := oracle.Complete(m, card, nil, log, oracle.Options{AuditHorizon: &oracle.Range{From: 100_000, To: 200_000}})
	if err != nil {
		t.Fatal(err)
	}
	var items []string
	for i := range r.Items {
		items = append(items, showItem(&r.Items[i]))
	}
	compareLines(t, "items", `
		counted 0@1,2 complete t=2 J=0
		open 0@4 start t=4 J=0 lone`, items)
	if r.Summary.Read != 3 || r.Summary.Tick != 0 {
		t.Errorf("read %+v", r.Summary)
	}
}
