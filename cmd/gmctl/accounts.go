package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// accountName is the value of --account: an account's name is never empty (R2), so an empty one is a slip, such as an
// unset variable of a script, and must not mean everybody.
type accountName struct{ name *string }

func (a accountName) String() string { return "" }
func (a accountName) Type() string   { return "name" }
func (a accountName) Set(name string) error {
	if name == "" {
		return errors.New("it names no account; leave the flag out for all of them")
	}
	*a.name = name
	return nil
}

func accountFlag(flags *pflag.FlagSet, name *string) {
	flags.Var(accountName{name}, "account", "only this account")
}

// noteNothing says why nothing was found: the log came to nothing, or the account (unless "") is not in the ledger at all,
// and which ones it may have meant. Without a ledger, or in a range without rows, there is nothing to say.
func (a *app) noteNothing(ctx context.Context, o *folder, account string) (err error) {
	if o.Run.Ledger == "none" {
		return nil
	}
	r, err := openLedger(ctx, o)
	if errors.Is(err, sqlite.ErrMissing) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	positions, err := r.Positions(ctx)
	if err != nil {
		return err
	}
	sum := sumOfPositions(positions)
	a.noteNothingJudged(o.Meter, &sum)
	if account == "" {
		return nil
	}
	names, err := r.Accounts(ctx)
	if err != nil || slices.Contains(names, account) {
		return err
	}
	text := fmt.Sprintf("no account %s has rows in the ledger", quoted(account))
	if near := meter.Nearest(account, names); len(near) > 0 {
		text += "; did you mean " + quoted(near...) + "?"
	} else if len(names) > 0 {
		text += "; " + plural(len(names), "account") + " have, such as " + quoted(names[0])
	}
	a.note("%s", text)
	return nil
}

// noMeterSide says that archive:PATH names no file, and which meter files there are.
func noMeterSide(path string) error {
	err := fmt.Errorf("diff: side archive:%s: there is no such meter file", clip(path))
	found, _ := filepath.Glob("*.yaml") // a fixed pattern: no error
	found = slices.DeleteFunc(found, func(name string) bool {
		_, err := meter.Load(name)
		return err != nil
	})
	if len(found) == 0 {
		return hint(err, "archive:METER_FILE is what another meter would have billed")
	}
	return hint(err, "archive:METER_FILE is what another meter would have billed; here: %s", strings.Join(found, ", "))
}

// quoted are names from outside, fit for a sentence.
func quoted(names ...string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = `"` + clip(cell(name)) + `"`
	}
	return strings.Join(out, " or ")
}

// noteUnpriced says what the ledger could not price, and what to do.
func (a *app) noteUnpriced(ctx context.Context, o *folder, url string) (err error) {
	path, err := o.ledgerPath(url)
	if err != nil {
		return err
	}
	r, err := sqlite.OpenReader(ctx, path)
	if errors.Is(err, sqlite.ErrMissing) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	u, err := r.Unpriced(ctx)
	if err != nil || u.Requests == 0 {
		return err
	}
	var missing []string
	for _, m := range u.Missing {
		name := cell(m.SKU)
		if m.Tier > 0 {
			name += fmt.Sprintf(" tier %d", m.Tier)
		}
		missing = append(missing, name+" "+m.Quantity)
	}
	if more := len(missing) - 4; more > 0 {
		missing = append(missing[:4], plural(more, "other"))
	}
	a.note("%s unpriced, which the totals lack: no rate for %s. Add the rates to %s; 'gmctl recompute --prices card' prices the archive with them.",
		pluralVerb(u.Requests, "request", "is", "are"), strings.Join(missing, ", "), o.Pricing.RateCard)
	return nil
}
