package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// recomputeFlags are the flags of `gmctl recompute`.
type recomputeFlags struct {
	rng              timeRange
	format           rowFormat
	summary          summaryFormat
	truth, engine    string
	account, horizon string
	output, prices   string
	drain, noDrain   bool
	dryRun, printSQL bool
	by               string
}

func (a *app) recompute() *cobra.Command {
	f := recomputeFlags{format: rowFormat{more: "parquet"}}
	cmd := &cobra.Command{
		Use:     "recompute",
		GroupID: groupAudit,
		Short:   "Recompute the bill from the archive alone, with the same rules: the audit oracle",
		Long: `recompute reads the archive and nothing else. --truth as-streamed gives the
verdicts of the stream, lateness included: it has to equal the ledger to the
pico-dollar. --truth complete leaves nothing out for being late: the difference
is what the lateness policy costs.

It writes recompute/ (Parquet, with provenance) and prints a summary; -o -
prints the rows instead. A range is pruned exactly: only what can matter to its
windows is read. 'gmctl diff' takes the stored rows while archive, prices, meter
and program are those they were made with, and runs it again otherwise.`,
		Example: `  gmctl recompute
  gmctl recompute --from 2026-01-01 --to 2026-01-02 -o - --format json
  gmctl recompute --truth complete --account acme -o -
  gmctl recompute --engine oracle      # the naive engine, from the raw bytes
  gmctl recompute --print-sql | duckdb # the same with a plain DuckDB`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runRecompute(cmd.Context(), &f) },
	}
	f.rng.flags(cmd)
	a.archiveFlag(cmd)
	a.ledgerFlag(cmd)
	f.format.flags(cmd)
	f.summary.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.truth, "truth", string(batch.AsStreamed), "as-streamed or complete")
	fl.StringVar(&f.engine, "engine", "duckdb", "duckdb, or oracle: naive, slow, from the raw bytes")
	accountFlag(fl, &f.account)
	fl.StringVar(&f.horizon, "audit-horizon", "", "with --truth complete and a range: only records with a log time within so much of the range, such as 24h")
	fl.StringVarP(&f.output, "output", "o", "", "file to write, or - to print the rows (default recompute/ beside the meter file)")
	fl.StringVar(&f.prices, "prices", "archive", "archive: what each row was priced with; card: the rate card at hand")
	fl.BoolVar(&f.drain, "drain", false, "the log has ended: close all windows (default: as the archive's mark says)")
	fl.BoolVar(&f.noDrain, "no-drain", false, "the log goes on: leave windows and requests open")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be read, and read nothing")
	fl.BoolVar(&f.printSQL, "print-sql", false, "print the SQL, for a plain DuckDB")
	fl.StringVar(&f.by, "by", "", "with -o -: account or sku")
	return cmd
}

// scope is what the flags ask for.
func (f *recomputeFlags) scope(a *app, o *folder) (scope, error) {
	s := scope{truth: batch.Truth(f.truth), account: f.account, unpruned: f.engine == "oracle"}
	if s.truth != batch.AsStreamed && s.truth != batch.Complete {
		return s, hint(fmt.Errorf("--truth %q is unknown", clip(f.truth)), "use as-streamed or complete")
	}
	if f.drain && f.noDrain {
		return s, errors.New("recompute: --drain and --no-drain exclude each other")
	}
	if f.drain || f.noDrain {
		s.drain = &f.drain
	}
	var err error
	if s.from, s.to, err = a.bounds(&f.rng, o.Window.Size); err != nil {
		return s, err
	}
	if f.horizon == "" {
		return s, nil
	}
	h, err := time.ParseDuration(f.horizon)
	switch {
	case err != nil || h < 0:
		return s, fmt.Errorf("--audit-horizon %q is no duration such as 24h", clip(f.horizon))
	case s.truth != batch.Complete || s.from == nil || s.to == nil:
		return s, errors.New("--audit-horizon bounds the complete truth of a range: it needs --truth complete, --from and --to")
	}
	s.horizon = &batch.Horizon{FromLog: *s.from - h.Milliseconds(), ToLog: *s.to + h.Milliseconds()}
	return s, nil
}

func (f *recomputeFlags) check() error {
	if err := errors.Join(f.format.check(), f.summary.check()); err != nil {
		return err
	}
	switch {
	case f.by != "" && f.by != string(byAccount) && f.by != string(bySKU):
		return hint(fmt.Errorf("--by %q is unknown", clip(f.by)), "use --by account or --by sku")
	case f.engine == "spark":
		return errors.New("--engine spark is not built yet; --print-sql gives the SQL")
	case f.engine != "duckdb" && f.engine != "oracle":
		return hint(fmt.Errorf("--engine %q is unknown", clip(f.engine)), "use duckdb or oracle")
	}
	return nil
}

func (a *app) runRecompute(ctx context.Context, f *recomputeFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	o, err := a.open()
	if err != nil {
		return err
	}
	s, err := f.scope(a, o)
	if err != nil {
		return err
	}
	u, err := openAudit(ctx, o, f.prices)
	if err != nil {
		return err
	}
	if err := u.refuseGaps(); err != nil {
		return err
	}
	job := u.job(s)
	switch {
	case f.printSQL:
		text, err := duckdb.Script(job)
		if err == nil {
			fmt.Fprint(a.stdout, text)
		}
		return err
	case f.dryRun:
		a.describe(u, job)
		return nil
	}
	res, err := u.recompute(ctx, job, f.engine)
	if err != nil {
		return err
	}
	if err := res.Summary.Check(); err != nil {
		return fmt.Errorf("recompute: the buckets do not add up: %w", err)
	}
	if err := a.deliver(ctx, u, job, s, f, res); err != nil || len(res.Rows) > 0 {
		return err
	}
	if s.from == nil && s.to == nil && nothingJudged(o.Meter, &res.Summary) != "" {
		a.noteNothingJudged(o.Meter, &res.Summary)
		return nil
	}
	return a.noteNothing(ctx, o, f.account)
}

// recompute runs a job on an engine.
func (u *audit) recompute(ctx context.Context, job *batch.Job, engine string) (*batch.Result, error) {
	if engine == "oracle" {
		return u.oracle(ctx, job)
	}
	res, err := u.engine().Recompute(ctx, job)
	if err != nil {
		return nil, err
	}
	return res, u.reprice(res.Rows)
}

// describe says what a job would read.
func (a *app) describe(u *audit, job *batch.Job) {
	var rows int64
	for _, file := range job.Files {
		rows += file.Rows
	}
	fmt.Fprintf(a.stdout, "%s of %s: %d files, %d rows\n", job.Truth, cell(u.topic), len(job.Files), rows)
	for _, p := range job.Parts {
		end := "the end"
		if p.End != batch.Everything {
			end = fmt.Sprint(p.End)
		}
		fmt.Fprintf(a.stdout, "  partition %d: offsets from %d to %s, drained: %v\n", p.Partition, p.Begin, end, p.Drained)
	}
}

// deliver prints the rows, or writes them and says what was found.
func (a *app) deliver(ctx context.Context, u *audit, job *batch.Job, s scope, f *recomputeFlags, res *batch.Result) error {
	if f.output == "-" {
		rows, err := group(u.Meter, res.Rows, grouping(f.by))
		if err != nil {
			return err
		}
		if err := f.format.print(ctx, a.rowsOut(), u.Meter, rows, grouping(f.by)); err != nil {
			return err
		}
		if f.summary.json() {
			return f.summary.print(a.stdout, &res.Summary)
		}
		return nil
	}
	path, err := u.store(ctx, job, s, f, res)
	if err != nil {
		return err
	}
	var total meter.Int128
	var requests, open, unpriced int64
	for i := range res.Rows {
		total, requests = total.Add(res.Rows[i].Total()), requests+res.Rows[i].Usage.Requests
		unpriced += res.Rows[i].Unpriced
		if res.Rows[i].State == meter.Open {
			open++
		}
	}
	if !f.summary.json() {
		a.tell("recompute %s: %s (%d open), %s, %s", job.Truth, plural(len(res.Rows), "row"), open, plural(requests, "request"), total.Dollars())
		fmt.Fprintf(a.stdout, "written to %s\n", path)
		if h := job.Horizon; h != nil {
			a.tell("audit horizon: records with log time from %s to %s, and those without", meter.Time(h.FromLog), meter.Time(h.ToLog))
		}
		if unpriced > 0 {
			fmt.Fprintf(a.stdout, "incomplete: %s a quantity without a price\n", pluralVerb(unpriced, "request", "has", "have"))
		}
		a.sayMark(job)
		if f.summary.format == "text" && (s.from != nil || s.to != nil || s.account != "") {
			a.tell("all that was read, whatever its window and account:")
		}
	}
	return f.summary.print(a.stdout, &res.Summary)
}

// sayMark says whether the log was taken as finished (R13).
func (a *app) sayMark(job *batch.Job) {
	var drained int
	for _, p := range job.Parts {
		if p.Drained {
			drained++
		}
	}
	a.tell("%d of %s taken as finished and drained", drained, pluralVerb(len(job.Parts), "partition", "is", "are"))
}
