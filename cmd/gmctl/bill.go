package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

func (a *app) bill() *cobra.Command {
	var rng timeRange
	format := rowFormat{more: "parquet"}
	var account, by string
	var asOf int64
	cmd := &cobra.Command{
		Use:     "bill",
		GroupID: groupDaily,
		Short:   "What stands in the ledger: final or running rows with their adjustments",
		Example: `  gmctl bill --account acme
  gmctl bill --by account --format json
  gmctl bill --from 2026-01-01T00:00:00Z --to 2026-01-01T01:00:00Z --by sku
  gmctl bill --as-of 120   # as it stood after firing 120 of the journal`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if by != "" && by != string(byAccount) && by != string(bySKU) {
				return hint(fmt.Errorf("--by %q is unknown", clip(by)), "use --by account or --by sku")
			}
			if asOf < 0 || asOf > 0 && by == string(bySKU) {
				return errors.New("bill: --as-of wants a number of the journal from 1 on, and has no cells for --by sku")
			}
			o, err := a.open()
			if err != nil {
				return err
			}
			from, to, err := a.bounds(&rng, o.Window.Size)
			if err != nil {
				return err
			}
			rows, err := billRows(cmd.Context(), o, sqlite.Range{From: from, To: to, Account: account}, asOf)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				if err := a.noteNothing(cmd.Context(), o, account); err != nil {
					return err
				}
			}
			if rows, err = group(o.Meter, rows, grouping(by)); err != nil {
				return err
			}
			return format.print(cmd.Context(), a.rowsOut(), o.Meter, rows, grouping(by))
		},
	}
	rng.flags(cmd)
	a.ledgerFlag(cmd)
	format.flags(cmd)
	accountFlag(cmd.Flags(), &account)
	cmd.Flags().StringVar(&by, "by", "", "account: one row an account, its windows folded; sku: one row a sku and tier")
	cmd.Flags().Int64Var(&asOf, "as-of", 0, "what stood after this number of the journal (published rows only)")
	return cmd
}

// group folds or splits rows as --by says.
func group(m *meter.Meter, rows []meter.Row, by grouping) ([]meter.Row, error) {
	switch by {
	case byAccount:
		return meter.FoldAccounts(m, rows)
	case bySKU:
		return meter.SplitCells(rows), nil
	}
	return rows, nil
}

// openLedger opens the folder's ledger for reading and checks that it is of this meter.
func openLedger(ctx context.Context, o *folder) (*sqlite.Reader, error) {
	r, err := openAnyLedger(ctx, o)
	if err != nil {
		return nil, err
	}
	if !ofMeter(r, o) {
		err := fmt.Errorf("ledger %s holds verdicts of another version of the meter (%.16s, the file says %.16s)", o.Run.Ledger, r.About.Fingerprint, o.Fingerprint)
		return nil, errors.Join(hint(err, "restore the meter file, or name a new file in run.ledger (sqlite:NEW.db) and run 'gmctl stream'"), r.Close())
	}
	return r, nil
}

// openAnyLedger opens the folder's ledger whatever meter it is of.
func openAnyLedger(ctx context.Context, o *folder) (*sqlite.Reader, error) {
	path, err := o.ledgerPath(o.Run.Ledger)
	if err != nil {
		return nil, err
	}
	r, err := sqlite.OpenReader(ctx, path)
	if errors.Is(err, sqlite.ErrMissing) {
		return nil, hint(err, "run 'gmctl stream' first")
	}
	return r, err
}

func ofMeter(r *sqlite.Reader, o *folder) bool { return r.About.Fingerprint == o.Fingerprint }

func billRows(ctx context.Context, o *folder, g sqlite.Range, asOf int64) (rows []meter.Row, err error) {
	r, err := openLedger(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if asOf > r.About.LastFiring {
		return nil, hint(fmt.Errorf("bill: --as-of %d: the journal ends at %d", asOf, r.About.LastFiring), "its numbers: 'gmctl query \"from journal\"'")
	}
	return r.Bill(ctx, g, asOf)
}
