package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// diffFlags are the flags of `gmctl diff`.
type diffFlags struct {
	rng         timeRange
	format      rowFormat
	truth       string
	account     string
	prices      string
	columns     []string
	allowLost   bool
	allAccounts bool
	allRows     bool
}

func (a *app) diff() *cobra.Command {
	f := diffFlags{format: rowFormat{more: "html"}}
	cmd := &cobra.Command{
		Use:     "diff [LEFT RIGHT]",
		GroupID: groupAudit,
		Short:   "Compare two sides to the pico-dollar and name the cause of every difference",
		Long: `diff compares what two sides say of each account and window, and splits every
difference into causes that sum to it exactly, each with its record ids and log
positions. Exit 0: they agree. Exit 1: they differ, explained or not.

Without arguments: the ledger against the recompute of the archive. A side is
  ledger               what the stream wrote
  recompute            the archive, recomputed (--truth as-streamed or complete)
  archive:METER_FILE   what another meter would have billed on the same archive
  FILE                 CSV, JSON lines or Parquet: totals (account, window_end
                       and any of requests, total_usd, quantities), or single
                       events (account, time, reference): a partner's own log.
                       --columns time=at maps other names.`,
		Example: `  gmctl diff
  gmctl diff --truth complete                # what lateness costs, itemised
  gmctl diff archive:naive.yaml partner.csv  # why a partner's count differs
  gmctl diff ledger totals.jsonl --format json
  gmctl diff --format html > report.html     # one page with pictures, to send`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				args = []string{"ledger", "recompute"}
			case 1:
				both := "ledger " + shellWord(args[0])
				if args[0] == "ledger" {
					both = "ledger recompute"
				}
				return hint(errors.New("diff: two sides are needed"), "such as 'gmctl diff %s'", both)
			}
			return a.runDiff(cmd.Context(), &f, args[0], args[1])
		},
	}
	f.rng.flags(cmd)
	a.archiveFlag(cmd)
	a.ledgerFlag(cmd)
	f.format.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.truth, "truth", string(batch.AsStreamed), "of the recompute: as-streamed (is the stream right?) or complete (what does the lateness policy cost?)")
	accountFlag(fl, &f.account)
	fl.StringVar(&f.prices, "prices", "archive", "of the recompute: archive (what each row was priced with) or card (the rate card at hand)")
	fl.StringSliceVar(&f.columns, "columns", nil, "names of a file's columns, as ours=theirs: time=at,reference=click")
	fl.BoolVar(&f.allowLost, "allow-lost", false, "forgive what ranges that were accepted as lost explain")
	fl.BoolVar(&f.allAccounts, "all-accounts", false, "against a file of single events: compare accounts that it does not name, too")
	fl.BoolVar(&f.allRows, "all-rows", false, "print every differing row: a table has the first 50, a page the first 1000")
	return cmd
}

func (f *diffFlags) check() error {
	if f.truth != string(batch.AsStreamed) && f.truth != string(batch.Complete) {
		return hint(fmt.Errorf("--truth %q is unknown", clip(f.truth)), "use as-streamed or complete")
	}
	return f.format.check()
}

func (a *app) runDiff(ctx context.Context, f *diffFlags, left, right string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	o, err := a.open()
	if err != nil {
		return err
	}
	for _, side := range []string{left, right} { // before anything is recomputed
		if _, err := os.Stat(side); isFile(side) && errors.Is(err, os.ErrNotExist) {
			return noSide(side)
		}
	}
	s := &sides{app: a, folder: o, flags: f}
	defer func() { err = errors.Join(err, s.close()) }()
	from, to, err := a.bounds(&f.rng, o.Window.Size)
	if err != nil {
		return err
	}
	if err := s.open(ctx, left, right); err != nil {
		return err
	}
	l, err := s.side(ctx, left)
	if err != nil {
		return err
	}
	r, err := s.side(ctx, right)
	if err != nil {
		return err
	}
	options := diff.Options{From: from, To: to, AllAccounts: f.allAccounts, Comparable: s.comparable(left, right), AllowLost: f.allowLost}
	if f.account != "" {
		options.Accounts = []string{f.account}
	}
	report, err := diff.Compare(ctx, l, r, options)
	if err != nil {
		return err
	}
	if report.Summary.Compared == 0 {
		if err := a.noteNothing(ctx, o, f.account); err != nil {
			return err
		}
	}
	a.noteWiderThan(s.totals, report, f)
	return a.printReport(f, report, s.facts(from, to))
}

// noteWiderThan says how to keep to what a file of totals speaks of, where ours has rows beyond it.
func (a *app) noteWiderThan(file *diff.File, report *diff.Report, f *diffFlags) {
	if file == nil || len(file.Accounts) == 0 {
		return
	}
	var beyond, accounts, windows int
	for i := range report.Differences {
		d := &report.Differences[i]
		other := !slices.Contains(file.Accounts, d.Account)
		outside := d.WindowEnd <= file.From || d.WindowEnd > file.To
		switch {
		case d.Left != nil && d.Right != nil || !other && !outside:
			continue
		case other:
			accounts++
		}
		if outside {
			windows++
		}
		beyond++
	}
	var flags []string
	if accounts > 0 && len(file.Accounts) == 1 && f.account == "" {
		flags = append(flags, "--account "+shellWord(file.Accounts[0]))
	}
	if windows > 0 {
		flags = append(flags, "--from "+meter.Time(file.From), "--to "+meter.Time(file.To))
	}
	if beyond > 0 && len(flags) > 0 {
		a.note("%s of accounts or windows that %s does not speak of: %s keeps to those that it does", pluralVerb(beyond, "row", "is", "are"), clean(file.Name), clean(strings.Join(flags, " ")))
	}
}

func (a *app) printReport(f *diffFlags, report *diff.Report, facts [][2]string) error {
	var err error
	switch f.format.format {
	case "html":
		options := diff.HTMLOptions{Facts: facts}
		if f.allRows {
			options.MaxRows = -1
		}
		err = report.WriteHTML(a.stdout, options)
	case "json":
		err = report.WriteJSON(a.stdout)
	case "csv":
		err = report.WriteCSV(a.stdout)
	default:
		options := diff.TableOptions{Columns: columnsFor(a.stdout)}
		if f.allRows {
			options.MaxRows = -1
		}
		err = report.WriteTable(a.page(), options)
	}
	if err != nil {
		return fmt.Errorf("diff: write the report: %w", err)
	}
	if !report.Agree() {
		return found{}
	}
	return nil
}

func isFile(side string) bool {
	return side != "ledger" && side != "recompute" && !strings.HasPrefix(side, "archive:") && !strings.HasPrefix(side, "topic:")
}

func noSide(path string) error {
	return hint(fmt.Errorf("diff: side %s: there is no such file", clip(path)), "a side is ledger, recompute, archive:METER_FILE, or a file in .csv, .jsonl or .parquet")
}

// fileSide reads a partner's file.
func (s *sides) fileSide(ctx context.Context, path string) (*diff.Side, error) {
	columns := map[string]string{}
	for _, c := range s.flags.columns {
		ours, theirs, ok := strings.Cut(c, "=")
		if !ok || ours == "" || theirs == "" {
			return nil, hint(fmt.Errorf("--columns %q", clip(c)), "write ours=theirs, such as --columns time=at,reference=click")
		}
		columns[ours] = theirs
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, noSide(path)
	} else if err != nil {
		return nil, err
	}
	lines, format := io.Reader(file), ""
	if strings.HasSuffix(strings.ToLower(path), ".parquet") {
		lines, format = parquetLines(ctx, s.audit.engine(), path), "json"
	}
	side, err := diff.ReadFile(path, lines, diff.FileOptions{Format: format, Columns: columns, Quantities: s.QuantityNames(), WindowSize: s.Window.Size, MinTime: s.Event.MinTime})
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if len(side.Ignored) > 0 {
		s.app.say("gmctl: %s: columns not compared: %s", path, clean(strings.Join(side.Ignored, ", ")))
	}
	if side.Kind == diff.Totals {
		s.totals = side
	}
	return &side.Side, nil
}
