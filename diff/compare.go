package diff

import (
	"context"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Options say what is compared.
type Options struct {
	// From and To, in ms, keep to windows that end in (From, To]; nil is no bound.
	From, To *int64
	// Accounts keeps to these; nil is all, or, against an Events side, those it names: a partner speaks for itself.
	Accounts []string
	// AllAccounts compares every account with an Events side: one it does not name has no events there.
	AllAccounts bool
	// Comparable reports whether windows that end at end can be judged ([Finality]); nil: all can.
	Comparable func(end int64) bool
	// AllowLost forgives what lost ranges explain.
	AllowLost bool
}

// Compare compares left with right. An error means that it could not: a side could not be read, or the two cannot be
// compared at all. Rows of both sides are read once, to their end.
func Compare(ctx context.Context, left, right *Side, opt Options) (*Report, error) {
	if left.Kind >= Totals && right.Kind < Totals {
		// Somebody else's side is always held against ours: so the mirrored report is the report mirrored.
		r, err := Compare(ctx, right, left, opt)
		if err != nil {
			return nil, err
		}
		r.mirror()
		return r, nil
	}
	c, err := newComparison(ctx, left, right, opt)
	if err != nil {
		return nil, fmt.Errorf("diff: compare %s with %s: %w", left.Name, right.Name, err)
	}
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("diff: compare %s with %s: %w", left.Name, right.Name, err)
	}
	return c.report, nil
}

// A comparison is the work of one Compare.
type comparison struct {
	ctx    context.Context
	sides  [2]*Side // left, right
	opt    Options
	report *Report
	cols   columns
	window int64
	// whole: composition cannot be seen in the rows, so every row and every record is looked at.
	whole    bool
	accounts map[string]bool // nil: all
	open     map[int64]bool  // memory of Options.Comparable

	rows  []*pair // kept rows, in order
	byKey map[meter.RowKey]*pair
	dead  [2]deadLetters
	shown map[[2]UsedRate]bool // rates that differ and that a row shows
	found map[place]*[2][]sideRate
}

// A pair is a row of both sides with what explains its difference.
type pair struct {
	key   meter.RowKey
	row   [2]*meter.Row // nil where a side has none
	parts []part
	// puzzling: what the row states is not what its records make.
	puzzling bool
	events   Value // what the events of an Events side come to; valid if row[1] is of one
}

func newComparison(ctx context.Context, left, right *Side, opt Options) (*comparison, error) {
	c := &comparison{ctx: ctx, sides: [2]*Side{left, right}, opt: opt, byKey: map[meter.RowKey]*pair{}, open: map[int64]bool{},
		shown: map[[2]UsedRate]bool{}, found: map[place]*[2][]sideRate{}}
	c.window = max(left.WindowSize, right.WindowSize)
	for _, s := range c.sides {
		if s.WindowSize != 0 && s.WindowSize != c.window {
			return nil, fmt.Errorf("windows of %d ms and of %d ms have no row in common", left.WindowSize, right.WindowSize)
		}
		if s.Kind == Events && c.window <= 0 {
			return nil, fmt.Errorf("%s has single events, and no side says how long a window is", s.Name)
		}
	}
	c.cols = newColumns(left, right)
	c.report = c.cols.newReport(left, right, opt)
	if !c.cols.any() {
		return nil, fmt.Errorf("they have no column in common")
	}
	c.whole = right.Kind == Events || !c.cols.setHash && left.Items != nil && right.Items != nil
	c.limitAccounts()
	return c, nil
}

// limitAccounts keeps to the accounts that were asked for, or that a partner's log names.
func (c *comparison) limitAccounts() {
	switch events := c.sides[1]; {
	case c.opt.Accounts != nil:
		c.accounts = map[string]bool{}
		for _, a := range c.opt.Accounts {
			c.accounts[a] = true
		}
	case events.Kind == Events && !c.opt.AllAccounts:
		c.accounts = map[string]bool{}
		for _, e := range events.Events {
			c.accounts[e.Account] = true
		}
	}
}

func (c *comparison) run() error {
	if err := c.scan(); err != nil {
		return err
	}
	if err := c.loadCells(); err != nil {
		return err
	}
	if err := c.explainRecords(); err != nil {
		return err
	}
	unexplained := c.judge()
	c.find()
	return c.sayMore(unexplained)
}

// explainRecords names causes for records; what rows state beyond them is judged later.
func (c *comparison) explainRecords() error {
	switch {
	case len(c.rows) == 0:
		return nil
	case c.sides[1].Kind == Events:
		return c.explainEvents()
	case c.sides[1].Kind == Totals:
		return c.explainTotals()
	}
	return c.explainItems()
}

func (c *comparison) inRange(k meter.RowKey) bool {
	return (c.opt.From == nil || k.WindowEnd > *c.opt.From) && (c.opt.To == nil || k.WindowEnd <= *c.opt.To)
}

func (c *comparison) named(account string) bool { return c.accounts == nil || c.accounts[account] }

func (c *comparison) comparable(end int64) bool {
	if c.opt.Comparable == nil {
		return true
	}
	ok, known := c.open[end]
	if !known {
		ok = c.opt.Comparable(end)
		c.open[end] = ok
	}
	return ok
}

// loadCells asks the sides for the cells of the rows that were kept.
func (c *comparison) loadCells() error {
	if len(c.rows) == 0 {
		return nil
	}
	for i, s := range c.sides {
		if s.Detail == nil {
			continue
		}
		var keys []meter.RowKey
		for _, p := range c.rows {
			if p.row[i] != nil && len(p.row[i].Cells) == 0 {
				keys = append(keys, p.key)
			}
		}
		if len(keys) == 0 {
			continue
		}
		rows, err := s.Detail(c.ctx, keys)
		if err != nil {
			return fmt.Errorf("cells of %s: %w", s.Name, err)
		}
		for _, r := range rows {
			if p := c.byKey[r.RowKey]; p != nil && p.row[i] != nil {
				p.row[i].Cells = slices.Clone(r.Cells)
			}
		}
	}
	return nil
}

// disagreements are the rates that a ledger says it used, that the other side states differently, and that no row shows.
func (c *comparison) disagreements() [][2]UsedRate {
	if c.sides[0].Kind != Ledger && c.sides[1].Kind != Ledger {
		return nil
	}
	all := c.sides[0].Prices.disagreements(c.sides[1].Prices)
	return slices.DeleteFunc(all, func(d [2]UsedRate) bool { return c.shown[d] })
}

// find adds what no row shows.
func (c *comparison) find() {
	r := c.report
	for _, s := range c.sides {
		r.Findings = append(r.Findings, s.Findings...)
		for _, m := range s.MissingArchive {
			r.Findings = append(r.Findings, Finding{MissingInArchive, "the archive lacks log positions that the ledger counted", []string{c.rangeName(m)}})
		}
		for _, m := range s.Lost {
			r.Findings = append(r.Findings, Finding{LostRange, s.Name + " accepted the loss of these log positions", []string{c.rangeName(m)}})
		}
	}
	for _, d := range c.disagreements() {
		r.Findings = append(r.Findings, Finding{Cause: RateRevision, Text: fmt.Sprintf(
			"%s of %s, tier %d, from %s: %s states %s a unit, %s %s", printable(d[0].Quantity), printable(d[0].SKU), d[0].Tier,
			timeText(d[0].EffectiveFrom), c.sides[0].Name, meter.From64(d[0].Pico).Dollars(), c.sides[1].Name, meter.From64(d[1].Pico).Dollars())})
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(a.Cause) - int(b.Cause) })
	r.Findings = slices.CompactFunc(r.Findings, func(a, b Finding) bool {
		return a.Cause == b.Cause && a.Text == b.Text && slices.Equal(a.Log, b.Log)
	})
}
