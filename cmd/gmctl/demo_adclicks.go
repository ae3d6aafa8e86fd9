package main

import (
	"context"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/story"
)

// adClicks tells why a partner's count and the bill never match.
func (t *teller) adClicks(ctx context.Context) error {
	t.title("Why do the counts never match?")
	t.say("Twenty kitchens pay one cent for each tap on a promoted menu, billed by the minute. The largest, %s, keeps its own log. For 12:00 to 12:10 it disagrees with the bill.", story.LargestPartner)
	t.title("1. The log is streamed twice")
	naive, err := t.stream(ctx, "naive.yaml", streamFlags{ledger: "sqlite:naive.db", archive: "none"})
	if err != nil {
		return err
	}
	t.say("The naive meter closes a minute 5 s after its end, drops what comes later and knows no ids: %s.", summaryText(&naive.Summary))
	right, err := t.stream(ctx, "gatewaymeter.yaml", streamFlags{rollRows: 1 << 20})
	if err != nil {
		return err
	}
	t.say("The corrected meter also waits 5 s for its first answer, then corrects it for ten minutes, and knows a click by its id: %s.", summaryText(&right.Summary))
	t.say("It keeps the raw log in Parquet too. The bots are nobody's taps; both meters filter them.")
	if err := t.tenMinutes(ctx); err != nil {
		return err
	}
	if err := t.dispute(ctx); err != nil {
		return err
	}
	return t.next("bill --account "+story.LargestPartner, "diff archive:naive.yaml partner.csv", "diff --truth complete", `query "from late"`, "archive verify")
}

// tenMinutes shows the dispute minute by minute, side by side.
func (t *teller) tenMinutes(ctx context.Context) error {
	t.title("2. Ten minutes, side by side")
	naive, err := t.ledgerRows(ctx, "naive.db", story.LargestPartner)
	if err != nil {
		return err
	}
	corrected, err := t.ledgerRows(ctx, "gatewaymeter.db", story.LargestPartner)
	if err != nil {
		return err
	}
	_, complete, err := t.recompute(ctx, batch.Complete)
	if err != nil {
		return err
	}
	own, err := t.partnerLog(ctx)
	if err != nil {
		return err
	}
	n, c, all := byWindowEnd(naive, story.LargestPartner), byWindowEnd(corrected, story.LargestPartner), byWindowEnd(complete.Rows, story.LargestPartner)
	table := newTable("window end", ">partner", ">naive bill", "", ">corrected", ">late", ">complete")
	var sum [4]int64
	wrong := 0
	for end := story.AdClicksFrom + 60_000; end <= story.AdClicksTo; end += 60_000 {
		counts := [4]int64{own[end], requests(n[end]), requests(c[end]), requests(all[end])}
		for i, v := range counts {
			sum[i] += v
		}
		note := ""
		if d := counts[1] - counts[0]; d != 0 {
			wrong++
			note = fmt.Sprintf("%+d wrong", d)
		}
		table.row(meter.Time(end)[11:16], text(counts[0]), text(counts[1]), note, text(counts[2]), text(counts[3]-counts[2]), text(counts[3]))
	}
	table.row("total", text(sum[0]), text(sum[1]), "", text(sum[2]), text(sum[3]-sum[2]), text(sum[3]))
	t.table(table)
	t.say("%d of the ten minutes are wrong, some high, some low. The totals nearly cancel, so nobody noticed.", wrong)
	return t.err
}

func requests(r *meter.Row) int64 {
	if r == nil {
		return 0
	}
	return r.Usage.Requests
}

// partnerLog counts the partner's own log by window.
func (t *teller) partnerLog(ctx context.Context) (map[int64]int64, error) {
	o, err := t.folder("gatewaymeter.yaml")
	if err != nil {
		return nil, err
	}
	side, err := (&sides{app: t.a, folder: o, flags: &diffFlags{}}).fileSide(ctx, t.path("partner.csv"))
	if err != nil {
		return nil, err
	}
	counts := map[int64]int64{}
	for _, e := range side.Events {
		counts[diff.WindowEnd(e.Time, o.Window.Size)]++
	}
	return counts, nil
}

// dispute lets the diff name the causes.
func (t *teller) dispute(ctx context.Context) error {
	t.title("3. The diff names every tap")
	report, err := t.compare(ctx, diffFlags{truth: string(batch.AsStreamed), prices: "archive"}, "archive:"+t.path("naive.yaml"), t.path("partner.csv"))
	if err != nil {
		return err
	}
	for _, c := range report.Summary.Causes {
		t.line("  %-20s %+4d   %s", c.Cause, c.Requests, causeWords[c.Cause])
		t.line("  %20s        such as %s", "", firstID(report, c.Cause))
	}
	t.line("  %-20s %+4d   %d - %d; unexplained: %s", "total", report.Summary.Delta.Requests, report.Summary.Left.Requests, report.Summary.Right.Requests, plural(int64(report.Summary.Unexplained), "row"))
	t.say("Duplicates are another problem than lateness: no waiting finds them, only the sender's id does.")
	t.title("4. Is the corrected meter right?")
	same, err := t.compare(ctx, diffFlags{truth: string(batch.AsStreamed), prices: "archive"}, "ledger", "recompute")
	if err != nil {
		return err
	}
	t.say("Its ledger against a recompute of the archive, an independent engine with the same rules: %d of %d rows are equal to the pico-dollar.", same.Summary.Matched, same.Summary.Compared)
	late, err := t.compare(ctx, diffFlags{truth: string(batch.Complete), prices: "archive"}, "ledger", "recompute")
	if err != nil {
		return err
	}
	t.say("And against the complete truth, where nothing is too late: %s. That is what the policy of ten minutes costs; each of those taps lies in the late output with its id, for the next invoice.", late.Summary.Delta.Pico.Dollars())
	return t.err
}

var causeWords = map[diff.Cause]string{
	diff.Late:             "came out of a tunnel after the minute was closed",
	diff.DuplicateCounted: "resent after a lost acknowledgement, counted twice",
}

// firstID is the first record that a cause names, by its reference.
func firstID(report *diff.Report, cause diff.Cause) string {
	for _, d := range report.Differences {
		for _, s := range d.Shares {
			if s.Cause == cause && len(s.IDs) > 0 {
				return fmt.Sprintf("%s at %s", s.IDs[0].Parts()[0], s.Log[0])
			}
		}
	}
	return "none"
}
