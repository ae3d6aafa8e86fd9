package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

var tapQuantities = []meter.Quantity{{Name: "taps", IsConst: true, Const: 1, PartOf: -1}}

// tap is a click of a meter without identity: its id is its position, its reference the click.
func tap(click string, offset int64, account string, time int64) meter.Item {
	id := meter.PositionID(0, offset)
	return meter.Item{Verdict: meter.VerdictCounted, Offsets: []int64{offset}, ID: id, Reference: meter.NewID(click), Kind: meter.KindEvent,
		Account: account, SKU: "tap", Time: time, WindowEnd: time - time%minute + minute, Status: "ok",
		Usage: meter.Usage{Requests: 1, Quantities: []int64{1}, SetHash: id.Hash64()}}
}

func naiveSide(items []meter.Item, dead ...Dead) *Side {
	s := pricedSide("archive:naive.yaml", items, labCard(), tapQuantities, dead...)
	s.Kind, s.Identity, s.Topic, s.ConstSKU = Archive, "none", "taps", "tap"
	return s
}

func partner(events ...Event) *Side { return &Side{Name: "partner.csv", Kind: Events, Events: events} }

func click(ref string, account string, time int64) Event {
	return Event{Account: account, Time: time, Reference: meter.NewID(ref)}
}

// The first story, made small by hand: ten minutes, 422 taps in the partner's log. 28 came late and were dropped, 17
// were sent again and billed twice: 411. Minutes 3 and 7 have neither.
func storyOne() (*Side, *Side) {
	lateIn := [10]int{4, 3, 5, 0, 2, 6, 1, 0, 4, 3}  // 28
	twiceIn := [10]int{1, 2, 0, 0, 5, 1, 4, 0, 1, 3} // 17
	var items []meter.Item
	var events []Event
	offset := int64(0)
	for m := range int64(10) {
		taps := 42
		if m == 0 {
			taps = 44
		}
		for n := range taps {
			name := fmt.Sprintf("c-%d-%02d", m, n)
			at := t0 + m*minute + int64(n)*1000
			events = append(events, click(name, "kitchen-1", at))
			it := tap(name, offset, "kitchen-1", at)
			offset++
			if n < lateIn[m] {
				it.Verdict = meter.VerdictLate
			} else if n >= taps-twiceIn[m] {
				items = append(items, tap(name, offset, "kitchen-1", at))
				offset++
			}
			items = append(items, it)
		}
		// Another partner, of whom this log says nothing.
		items = append(items, tap(fmt.Sprintf("other-%d", m), offset, "kitchen-2", t0+m*minute))
		offset++
	}
	return naiveSide(items), partner(events...)
}

func TestStoryOne(t *testing.T) {
	l, r := storyOne()
	rep := mustCompare(t, l, r, Options{})
	s := rep.Summary
	if s.Left.Requests != 411 || s.Right.Requests != 422 || s.Delta.Requests != -11 || s.Delta.Pico.USD() != "-0.110000000000" {
		t.Errorf("left %d, right %d, delta %d, %s", s.Left.Requests, s.Right.Requests, s.Delta.Requests, s.Delta.Pico.USD())
	}
	if s.Matched != 2 || s.Mismatched != 8 || s.NotCompared != 10 || s.Unexplained != 0 || len(s.Causes) != 2 {
		t.Errorf("%+v", s)
	}
	if c := s.Causes[0]; c.Cause != Late || c.Requests != -28 || c.Pico.USD() != "-0.280000000000" {
		t.Errorf("%+v", c)
	}
	if c := s.Causes[1]; c.Cause != DuplicateCounted || c.Requests != 17 || c.Pico.USD() != "0.170000000000" {
		t.Errorf("%+v", c)
	}
	if got := outline(rep)[1]; got != "kitchen-1 1 mismatched duplicate_counted requests=+1 q=[1] usd=0.010000000000 ids=[c-0-43] log=[taps/0@44]" {
		t.Error(got)
	}
	if len(rep.Differences[0].Shares[0].IDs) != 4 {
		t.Error("four late ids in the first minute")
	}
	// The other way round every sign turns.
	l, r = storyOne()
	back := mustCompare(t, r, l, Options{})
	if back.Summary.Delta.Requests != 11 || back.Summary.Causes[0].Requests != 28 {
		t.Errorf("%+v", back.Summary)
	}
}

func TestPartnerEvents(t *testing.T) {
	at := func(m, s int64) int64 { return t0 + m*minute + s*1000 }
	late := func(it meter.Item) meter.Item { return as(meter.VerdictLate, it) }
	cases := []struct {
		name   string
		items  []meter.Item
		dead   []Dead
		events []Event
		lost   []Range
		want   []string
	}{
		{name: "agree", items: []meter.Item{tap("a", 0, "k", at(0, 1))}, events: []Event{click("a", "k", at(0, 1))}},
		{name: "not in our log", items: []meter.Item{tap("a", 0, "k", at(0, 1))}, events: []Event{click("a", "k", at(0, 1)), click("b", "k", at(0, 2))},
			want: []string{"k 1 mismatched missing_in_stream requests=-1 q=[-1] usd=-0.010000000000 ids=[b] log=[]"}},
		{name: "not in theirs", items: []meter.Item{tap("a", 0, "k", at(0, 1)), tap("b", 1, "k", at(0, 1))}, events: []Event{click("a", "k", at(0, 1))},
			want: []string{"k 1 mismatched unexplained requests=+1 q=[1] usd=0.010000000000 ids=[b] log=[taps/0@1]"}},
		{name: "dead letter", items: []meter.Item{tap("a", 0, "k", at(0, 1))}, dead: []Dead{{Offset: 5, Reason: meter.FutureTime, Reference: meter.NewID("b")}},
			events: []Event{click("a", "k", at(0, 1)), click("b", "k", at(0, 2))},
			want:   []string{"k 1 mismatched dead_letter requests=-1 q=[-1] usd=-0.010000000000 ids=[b] log=[taps/0@5]"}},
		{name: "filtered", items: []meter.Item{as(meter.VerdictFiltered, tap("b", 1, "k", at(0, 1)))}, events: []Event{click("b", "k", at(0, 2))},
			want: []string{"k 1 missing filtered requests=-1 q=[-1] usd=-0.010000000000 ids=[b] log=[taps/0@1]"}},
		{name: "late, and its copy with a fresh time billed in the next minute", items: []meter.Item{late(tap("a", 0, "k", at(0, 1))), tap("a", 3, "k", at(1, 1))},
			events: []Event{click("a", "k", at(0, 1))},
			want: []string{"k 1 missing late requests=-1 q=[-1] usd=-0.010000000000 ids=[a] log=[taps/0@0]",
				"k 2 extra duplicate_counted requests=+1 q=[1] usd=0.010000000000 ids=[a] log=[taps/0@3]"}},
		{name: "billed in another minute", items: []meter.Item{tap("a", 0, "k", at(1, 0))}, events: []Event{click("a", "k", at(0, 59))},
			want: []string{"k 1 missing unexplained requests=-1 q=[-1] usd=-0.010000000000 ids=[a] log=[taps/0@0]",
				"k 2 extra unexplained requests=+1 q=[1] usd=0.010000000000 ids=[a] log=[taps/0@0]"}},
		{name: "cancelling causes in one minute are seen", items: []meter.Item{late(tap("a", 0, "k", at(0, 1))), tap("b", 1, "k", at(0, 1)), tap("b", 2, "k", at(0, 1))},
			events: []Event{click("a", "k", at(0, 1)), click("b", "k", at(0, 1))},
			want: []string{"k 1 mismatched late requests=-1 q=[-1] usd=-0.010000000000 ids=[a] log=[taps/0@0]",
				"k 1 mismatched duplicate_counted requests=+1 q=[1] usd=0.010000000000 ids=[b] log=[taps/0@2]"}},
		{name: "a late copy beside a billed one is no loss", items: []meter.Item{tap("b", 1, "k", at(0, 1)), late(tap("b", 2, "k", at(0, 1)))},
			events: []Event{click("b", "k", at(0, 1))}},
		{name: "twice on both sides", items: []meter.Item{tap("b", 1, "k", at(0, 1)), tap("b", 2, "k", at(0, 1))},
			events: []Event{click("b", "k", at(0, 1)), click("b", "k", at(0, 1))}},
		{name: "perhaps lost", items: []meter.Item{tap("a", 0, "k", at(0, 1))}, lost: []Range{{First: 5, Next: 7, From: t0, To: t0 + minute}},
			events: []Event{click("a", "k", at(0, 1)), click("b", "k", at(0, 2)), click("c", "k", at(1, 2))},
			want: []string{"k 1 mismatched lost_range requests=-1 q=[-1] usd=-0.010000000000 ids=[b] log=[taps/0@5-6]",
				"k 2 missing missing_in_stream requests=-1 q=[-1] usd=-0.010000000000 ids=[c] log=[]"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := naiveSide(c.items, c.dead...)
			l.Lost = c.lost
			wantOutline(t, mustCompare(t, l, partner(c.events...), Options{}), c.want...)
		})
	}
}

// A partner of a requests meter who states tokens: the halves of a request are put together.
func TestPartnerRequests(t *testing.T) {
	late := request("x", 0, []int64{1}, "acme", 1, 10, 0, 0)
	late.Verdict, late.Kind, late.Usage.Requests, late.Usage.SetHash = meter.VerdictLate, meter.KindStart, 0, 0
	orphan := request("x", 0, []int64{2}, "", 1, 0, 0, 5)
	orphan.Verdict, orphan.SKU, orphan.Usage.Requests, orphan.Usage.SetHash = meter.VerdictOrphan, "", 0, 0
	l := ownSide("ledger", []meter.Item{request("a", 0, []int64{3, 4}, "acme", 1, 7, 0, 1), late, orphan})
	r := partner(Event{Account: "acme", Time: t0 + 1, Reference: meter.NewID("x"), Quantities: []int64{5}, Line: 2},
		Event{Account: "acme", Time: t0 + 2, Reference: meter.NewID("a"), Quantities: []int64{3}, Line: 3})
	r.Quantities = []meter.Quantity{{Name: "completion_tokens", PartOf: -1}}
	rep := mustCompare(t, l, r, Options{})
	wantOutline(t, rep, "acme 1 mismatched late requests=-1 q=[-10 0 -5] usd=-0.000000004500 ids=[x] log=[requests/0@1 requests/0@2]",
		"acme 1 mismatched unexplained requests=+0 q=[0 0 -2] usd=-0.000000001200 ids=[a] log=[requests/0@3 requests/0@4]")
	if why := rep.Differences[0].Shares[1].Why[0]; !strings.Contains(why, "partner.csv:3") {
		t.Error(why)
	}
}

func TestTotals(t *testing.T) {
	items := []meter.Item{request("a", 0, []int64{0, 1}, "acme", 1, 10, 2, 3), as(meter.VerdictLate, request("l", 0, []int64{2, 3}, "acme", 1, 5, 0, 1)),
		as(meter.VerdictFiltered, request("f", 0, []int64{4, 5}, "acme", 1, 9, 0, 1)), as(meter.VerdictLate, request("m", 0, []int64{6, 7}, "acme", 2, 5, 0, 1))}
	totals := func(requests, tokens int64, usd string) *Side {
		amount, err := meter.ParseUSD128(usd)
		if err != nil {
			t.Fatal(err)
		}
		return &Side{Name: "t.csv", Kind: Totals, Columns: Columns{Requests: true, Money: true}, Quantities: []meter.Quantity{{Name: "prompt_tokens", PartOf: -1}},
			Rows: SliceRows([]meter.Row{{RowKey: meter.RowKey{Account: "acme", WindowEnd: t0 + minute}, Amount: amount,
				Usage: meter.Usage{Requests: requests, Quantities: []int64{tokens}}}})}
	}
	base := "0.000000003030" // 8 x 150 + 2 x 15 + 3 x 600
	cases := []struct {
		name             string
		requests, tokens int64
		usd              string
		want             []string
	}{
		{"equal", 1, 10, base, nil},
		{"they bill the late one", 2, 15, "0.000000004380",
			[]string{"acme 1 mismatched late requests=-1 q=[-5 0 0] usd=-0.000000001350 ids=[l] log=[requests/0@2 requests/0@3]"}},
		{"they bill the filtered one too", 3, 24, "0.000000006330",
			[]string{"acme 1 mismatched late requests=-1 q=[-5 0 0] usd=-0.000000001350 ids=[l] log=[requests/0@2 requests/0@3]",
				"acme 1 mismatched filtered requests=-1 q=[-9 0 0] usd=-0.000000001950 ids=[f] log=[requests/0@4 requests/0@5]"}},
		{"nearly", 2, 15, "0.000000004381",
			[]string{"acme 1 mismatched unexplained requests=-1 q=[-5 0 0] usd=-0.000000001351 ids=[] log=[]"}},
		{"another amount", 1, 10, "0.000000003031",
			[]string{"acme 1 mismatched unexplained requests=+0 q=[0 0 0] usd=-0.000000000001 ids=[] log=[]"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wantOutline(t, mustCompare(t, ownSide("ledger", items), totals(c.requests, c.tokens, c.usd), Options{}), c.want...)
			back := mustCompare(t, totals(c.requests, c.tokens, c.usd), ownSide("ledger", items), Options{})
			back.mirror()
			wantOutline(t, back, c.want...)
		})
	}
	// Two ways to explain it: the one of fewer causes is named, the other told.
	rivals := []meter.Item{items[0], as(meter.VerdictConflict, request("c", 0, []int64{8}, "acme", 1, 14, 0, 0)),
		as(meter.VerdictLate, request("l", 0, []int64{2}, "acme", 1, 5, 0, 0)), as(meter.VerdictFiltered, request("f", 0, []int64{4}, "acme", 1, 9, 0, 0))}
	tokens := totals(0, 24, base)
	tokens.Columns = Columns{}
	rep := mustCompare(t, ownSide("ledger", rivals), tokens, Options{})
	wantOutline(t, rep, "acme 1 mismatched conflict requests=+0 q=[-14 0 0] usd=0.000000000000 ids=[c] log=[requests/0@8]")
	if why := rep.Differences[0].Shares[0].Why[0]; !strings.Contains(why, "late and filtered") {
		t.Error(why)
	}
	// The complete truth explains a request that we abandoned and they completed.
	gone := request("x", 0, []int64{20}, "acme", 1, 10, 0, 0)
	gone.Abandoned = true
	completion := request("x", 0, []int64{29}, "acme", 1, 0, 0, 5)
	completion.Verdict, completion.Usage.Requests, completion.Usage.SetHash = meter.VerdictLateCompletion, 0, 0
	l := ownSide("ledger", []meter.Item{gone, completion})
	l.Complete = SliceItems([]meter.Item{request("x", 0, []int64{20, 29}, "acme", 1, 10, 0, 5)}, nil)
	wantOutline(t, mustCompare(t, l, totals(1, 10, "0.000000004500"), Options{}),
		"acme 1 mismatched abandoned_then_completed requests=+0 q=[0 0 0] usd=-0.000000003000 ids=[x] log=[requests/0@20 requests/0@29]")
	// Final rows without their adjustments.
	l = ownSide("ledger", items[:1])
	rows := labRows(items[:1], labCard(), []string{"prompt_tokens", "cached_tokens", "completion_tokens"})
	rows[0].Amount, rows[0].Adjustment = rows[0].Amount.Sub(meter.From64(30)), meter.From64(30)
	l.Rows = SliceRows(rows)
	wantOutline(t, mustCompare(t, l, totals(1, 10, "0.000000003000"), Options{}),
		"acme 1 mismatched adjustment requests=+0 q=[0 0 0] usd=0.000000000030 ids=[] log=[]")
}
