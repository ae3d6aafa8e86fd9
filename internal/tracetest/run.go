package tracetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// The sections of an answer.
const (
	Rows     = "want/rows"
	Complete = "want/complete"
	Bill     = "want/bill"
	Journal  = "want/journal"
	Items    = "want/items"
	Dead     = "want/dead"
	Summary  = "want/summary"
)

var sections = []string{Rows, Complete, Bill, Journal, Items, Dead, Summary}

// An Answer is what an engine says of a case. A section that the engine does not produce is named in Skip, and
// then not compared; every other section is, empty or not.
type Answer struct {
	Skip     []string
	Rows     []meter.Row // as-streamed recompute; without set hashes and cells only what the text shows is compared
	Complete []meter.Row
	Bill     []meter.Row
	Journal  []meter.Firing
	Items    []meter.Item // side outputs; items with other verdicts are left out of the comparison
	// Prices has what each item would have cost (R3); nil: the oracle says it.
	Prices  []meter.Priced
	Dead    []DeadLetter
	Summary meter.Summary
	// CompleteSummary is compared with the oracle's; nil: not produced.
	CompleteSummary *meter.Summary
}

// A DeadLetter is a record's position and why it was not admitted.
type DeadLetter struct {
	Partition int32
	Offset    int64
	Reason    meter.Reason
}

// An Engine answers a case.
type Engine func(c *Case) (*Answer, error)

var rewrite = flag.Bool("rewrite", false, "write what the oracle says into the traces; only in its own test")

// Run lets an engine sit every trace of the folder, each as a subtest.
func Run(t *testing.T, dir string, engine Engine) {
	t.Helper()
	if *rewrite {
		t.Fatal("traces are blessed by the oracle alone: go test ./oracle -run Traces -rewrite")
	}
	sit(t, dir, engine)
}

// Bless is Run for the oracle: with -rewrite it writes the engine's answers into the traces instead of comparing
// them. It fails in any other package's test.
func Bless(t *testing.T, dir string, engine Engine) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil || filepath.Base(here) != "oracle" {
		t.Fatalf("traces are blessed by the oracle's own test alone, not in %s (%v)", here, err)
	}
	if !*rewrite {
		sit(t, dir, engine)
		return
	}
	for _, c := range mustLoad(t, dir) {
		answer, err := engine(c)
		if err == nil {
			err = c.rewrite(answer)
		}
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func mustLoad(t *testing.T, dir string) []*Case {
	t.Helper()
	cases, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func sit(t *testing.T, dir string, engine Engine) {
	t.Helper()
	for _, c := range mustLoad(t, dir) {
		t.Run(c.Name, func(t *testing.T) {
			answer, err := engine(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range c.Differences(answer) {
				t.Error(d)
			}
		})
	}
}

// Differences compares an answer with what the trace wants, and with the oracle where no hand can compute it: one
// text for each section that differs.
func (c *Case) Differences(a *Answer) []string {
	var found []string
	for _, name := range sections {
		want, stated := c.Files[name]
		if !stated && (name == Rows || name == Summary) {
			found = append(found, "the trace has no "+name+", which is required")
		}
		if !stated || slices.Contains(a.Skip, name) {
			continue
		}
		got, err := c.render(name, a)
		if err != nil {
			found = append(found, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		if d := diffLines(splitLines(want), got); d != "" {
			found = append(found, fmt.Sprintf("%s differs (- the trace wants, + the engine says):\n%s", name, d))
		}
	}
	d, err := c.DiffOracle(a)
	if err != nil {
		found = append(found, err.Error())
	}
	if d != "" {
		found = append(found, d)
	}
	return found
}

// render prints a section of the answer.
func (c *Case) render(name string, a *Answer) ([]string, error) {
	switch name {
	case Rows:
		return RenderRows(c.Meter, a.Rows), nil
	case Complete:
		return RenderRows(c.Meter, a.Complete), nil
	case Bill:
		return RenderBill(c.Meter, a.Bill), nil
	case Journal:
		return RenderJournal(a.Journal), nil
	case Dead:
		return RenderDead(a.Dead), nil
	case Summary:
		return RenderSummary(&a.Summary), nil
	}
	prices := a.Prices
	if prices == nil {
		for i := range a.Items {
			p, err := c.price(&a.Items[i])
			if err != nil {
				return nil, err
			}
			prices = append(prices, p)
		}
	}
	return RenderItems(c.Meter, a.Items, prices), nil
}

func (c *Case) price(it *meter.Item) (meter.Priced, error) {
	return oracle.Price(c.Meter, c.Card, c.List, meter.Cell{
		CellKey: meter.CellKey{Account: it.Account, WindowEnd: it.WindowEnd, SKU: it.SKU, Tier: it.Tier}, Usage: it.Usage})
}

// DiffOracle compares the answer with the oracle's, section by section, cells and set hashes too: "" if they are
// equal, else what differs. Property tests use it on drawn cases.
func (c *Case) DiffOracle(a *Answer) (string, error) {
	want, err := OracleAnswer(c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range sections {
		if slices.Contains(a.Skip, name) {
			continue
		}
		wanted, err := c.renderFull(name, want, a)
		if err != nil {
			return "", err
		}
		got, err := c.renderFull(name, a, a)
		if err != nil {
			return "", err
		}
		if d := diffLines(wanted, got); d != "" {
			fmt.Fprintf(&b, "%s differs (- the oracle, + the engine):\n%s", name, d)
		}
	}
	if a.CompleteSummary != nil && *a.CompleteSummary != *want.CompleteSummary {
		fmt.Fprintf(&b, "the summary of the complete truth differs (- the oracle, + the engine):\n%s",
			diffLines(RenderSummary(want.CompleteSummary), RenderSummary(a.CompleteSummary)))
	}
	return b.String(), nil
}

// renderFull is render with cells and set hashes; cells only where the engine's rows have them.
func (c *Case) renderFull(name string, a, engine *Answer) ([]string, error) {
	switch name {
	case Rows:
		return fullRows(c.Meter, a.Rows, haveCells(engine.Rows)), nil
	case Complete:
		return fullRows(c.Meter, a.Complete, haveCells(engine.Complete)), nil
	case Bill:
		return fullRows(c.Meter, a.Bill, haveCells(engine.Bill)), nil
	case Journal:
		lines := RenderJournal(a.Journal)
		for i, f := range a.Journal {
			lines[i] += fmt.Sprintf(" %s delta of %s set_hash=%016x+%016x %s unpriced=%d", usage(c.Meter, f.Total), usage(c.Meter, f.Delta),
				f.Total.SetHash, f.Delta.SetHash, f.Source, f.Unpriced)
		}
		return lines, nil
	}
	return c.render(name, a)
}

// OracleAnswer is the oracle as an engine.
func OracleAnswer(c *Case) (*Answer, error) {
	streamed, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, c.Drain)
	if err != nil {
		return nil, err
	}
	complete, err := oracle.Complete(c.Meter, c.Card, c.List, c.Log, oracle.Options{Drain: c.Drain})
	if err != nil {
		return nil, err
	}
	a := &Answer{Rows: streamed.Rows, Complete: complete.Rows, Bill: streamed.Bill, Journal: streamed.Journal,
		Items: streamed.Items, Summary: streamed.Summary, CompleteSummary: &complete.Summary}
	for _, d := range streamed.DeadLetters {
		a.Dead = append(a.Dead, DeadLetter{Partition: d.Partition, Offset: d.Offset, Reason: d.Reason})
	}
	return a, nil
}

// DiffRows compares rows with all that they hold, cells and set hashes too: "" if they are equal, else the lines
// that differ. Rows without cells are compared without.
func DiffRows(m *meter.Meter, want, got []meter.Row) string {
	cells := haveCells(got)
	return diffLines(fullRows(m, want, cells), fullRows(m, got, cells))
}

func haveCells(rows []meter.Row) bool {
	return !slices.ContainsFunc(rows, func(r meter.Row) bool { return r.Cells == nil })
}

func fullRows(m *meter.Meter, rows []meter.Row, cells bool) []string {
	lines := RenderBill(m, rows)
	for i := range rows {
		lines[i] += fmt.Sprintf(" set_hash=%016x", rows[i].Usage.SetHash)
		for _, c := range rows[i].Cells {
			if !cells {
				break
			}
			lines[i] += fmt.Sprintf(" [%s tier=%d %s usd=%s %s set_hash=%016x unpriced=%v]", word(c.SKU), c.Tier, usage(m, c.Usage), c.Amount.USD(),
				c.Source, c.SetHash, c.Unpriced)
		}
	}
	return lines
}

// rewrite writes the answer into the trace: the sections it has, and rows and summary.
func (c *Case) rewrite(a *Answer) error {
	for _, name := range sections {
		i := slices.IndexFunc(c.text.Files, func(f txtar.File) bool { return f.Name == name })
		if i < 0 && name != Rows && name != Summary {
			continue
		}
		lines, err := c.render(name, a)
		if err != nil {
			return err
		}
		var text string
		if len(lines) > 0 {
			text = strings.Join(lines, "\n") + "\n"
		}
		if i < 0 {
			c.text.Files = append(c.text.Files, txtar.File{Name: name, Data: []byte(text)})
		} else {
			c.text.Files[i].Data = []byte(text)
		}
	}
	return os.WriteFile(c.path, txtar.Format(c.text), 0o644)
}

func splitLines(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// diffLines shows the lines that are only in want (-) or only in got (+), with those they share where the order
// alone differs; "" if both are equal.
func diffLines(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	var b strings.Builder
	same := 0
	for same < len(want) && same < len(got) && want[same] == got[same] {
		same++
	}
	tail := 0
	for tail < len(want)-same && tail < len(got)-same && want[len(want)-1-tail] == got[len(got)-1-tail] {
		tail++
	}
	if same > 0 {
		fmt.Fprintf(&b, "  (%d equal lines)\n", same)
	}
	for _, l := range want[same : len(want)-tail] {
		fmt.Fprintf(&b, "- %s\n", l)
	}
	for _, l := range got[same : len(got)-tail] {
		fmt.Fprintf(&b, "+ %s\n", l)
	}
	if tail > 0 {
		fmt.Fprintf(&b, "  (%d equal lines)\n", tail)
	}
	return b.String()
}
