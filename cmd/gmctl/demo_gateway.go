package main

import (
	"context"
	"errors"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/story"
)

// gateway tells the moments of an LLM gateway's bill.
func (t *teller) gateway(ctx context.Context) (err error) {
	t.title("An LLM gateway bills each tenant by the minute")
	out, err := t.stream(ctx, "gatewaymeter.yaml", streamFlags{rollRows: 1 << 20})
	if err != nil {
		return err
	}
	t.say("Half an hour of log is streamed into a ledger and a Parquet archive: %s.", summaryText(&out.Summary))
	r, err := sqlite.OpenReader(ctx, t.path("gatewaymeter.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := t.twoAnswers(ctx, r); err != nil {
		return err
	}
	if err := t.sideOutputs(ctx, r); err != nil {
		return err
	}
	if err := t.defended(ctx); err != nil {
		return err
	}
	return t.next("bill --account acme", "explain stuck", "diff --truth complete", `query "from journal"`, "status")
}

// twoAnswers: main, then correction, and what an append-and-sum reader would have billed.
func (t *teller) twoAnswers(ctx context.Context, r *sqlite.Reader) error {
	t.title("1. One minute, two answers")
	from, to := story.GatewayStart+60_000, story.GatewayStart+120_000
	journal, err := r.Journal(ctx, sqlite.Range{From: &from, To: &to, Account: "acme"})
	if err != nil {
		return err
	}
	var summed, stands meter.Int128
	for _, f := range journal {
		t.line("  firing %3d  %-10s  revision %d  total %s  delta %s", f.Seq, f.Kind, f.Revision, f.TotalPico.Dollars(), f.DeltaPico.Dollars())
		if f.Kind != meter.FinalFiring {
			summed = summed.Add(f.TotalPico)
		}
		stands = f.TotalPico
	}
	t.say("acme's minute that ends at 10:02 was first billed without a request that sat in the retry buffer for 50 s; then the row was corrected. A reader that appends and sums both would have billed %s. The row says its revision, total and delta: %s stands.", summed.Dollars(), stands.Dollars())
	return t.err
}

// moments are the ids of the story's side outputs, in words.
var moments = []struct{ id, words string }{
	{"too-late", "reached the log after its minute was final: late, kept and priced"},
	{"stuck", "billed as abandoned; the news of its end was stuck until too late"},
	{"disputed", "its end came twice with different counts: billed once, the other in money"},
	{"lost-start", "an end whose start never came: an orphan"},
}

func (t *teller) sideOutputs(ctx context.Context, r *sqlite.Reader) error {
	t.title("2. Nothing is dropped in silence")
	for _, m := range moments {
		items, err := r.Items(ctx, sqlite.ItemFilter{IDs: []meter.ID{meter.NewID(m.id)}})
		if err != nil {
			return err
		}
		for _, it := range items {
			t.line("  %-11s %-16s %s", m.id, it.Verdict, it.Amount.Dollars())
			t.aside(m.words)
		}
	}
	t.title("3. What happened to the others")
	for _, m := range []struct{ id, words string }{
		{"gone", "the client went away: billed for its prompt, five minutes later"},
		{"overtaken", "its end came before its start: held, then counted"},
		{"slow", "abandoned, then completed in time: the completed one took its place"},
		{"twice", "start and end were sent twice: counted once"},
	} {
		if err := t.counted(ctx, m.id, m.words); err != nil {
			return err
		}
	}
	return t.err
}

// counted shows the billed record of an id, by the recompute's verdict.
func (t *teller) counted(ctx context.Context, id, words string) error {
	o, err := t.folder("gatewaymeter.yaml")
	if err != nil {
		return err
	}
	u, err := openAudit(ctx, o, "archive")
	if err != nil {
		return err
	}
	items, err := u.engine().Items(ctx, u.job(scope{truth: batch.AsStreamed}), batch.ItemFilter{IDs: []meter.ID{meter.NewID(id)}, Verdicts: []meter.Verdict{meter.VerdictCounted}})
	if err != nil {
		return err
	}
	pricer := batch.NewPricer(o.Meter, o.card.RateCard, o.listCard())
	for _, it := range items {
		priced, err := pricer.Price(&meter.Cell{CellKey: meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}, Usage: it.Usage})
		if err != nil {
			return err
		}
		t.line("  %-11s %-9s in the minute to %s  %s", id, it.Status, meter.Time(it.WindowEnd)[11:16], priced.Amount.Dollars())
		t.aside(words)
	}
	return t.err
}

// defended: the diff of both truths.
func (t *teller) defended(ctx context.Context) error {
	t.title("4. The bill, defended")
	same, err := t.compare(ctx, diffFlags{truth: string(batch.AsStreamed), prices: "archive"}, "ledger", "recompute")
	if err != nil {
		return err
	}
	t.say("Ledger against the recompute of the archive: %d of %d rows are equal to the pico-dollar, %d unexplained. Ten quiet minutes at the end were closed by ticks.", same.Summary.Matched, same.Summary.Compared, same.Summary.Unexplained)
	late, err := t.compare(ctx, diffFlags{truth: string(batch.Complete), prices: "archive"}, "ledger", "recompute")
	if err != nil {
		return err
	}
	t.say("Against the complete truth, where nothing is too late: %s. Itemised, by account and window end:", late.Summary.Delta.Pico.Dollars())
	for _, d := range late.Differences {
		for _, s := range d.Shares {
			t.line("  %-8s %s  %-24s %-12s %s", d.Account, meter.Time(d.WindowEnd)[11:16], s.Cause, s.Pico.Dollars(), s.IDs[0].Parts()[0])
		}
	}
	return t.err
}
