package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/run"
)

func (a *app) demo() *cobra.Command {
	var name, dir string
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupSetup,
		Short:   "The whole loop in one command, told as a story; leaves a folder to go on in",
		Long: `demo makes a small log, streams, archives, recomputes and compares it with the
real engines, and tells what each side says and why.
  ad-clicks   a partner's own log says 422 taps, the bill said 411: why do the
              counts never match?
  gateway     an LLM gateway: a minute billed $4.10, then $4.31; abandoned, late
              and doubled requests`,
		Example: "  gmctl demo\n  gmctl demo --story gateway --dir lab",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				dir = "gmctl-demo-" + name
			}
			if err := a.writeStarter(dir, name, "demo --story "+name+" --dir"); err != nil {
				return err
			}
			tell := newTeller(a, dir).adClicks
			if name == "gateway" {
				tell = newTeller(a, dir).gateway
			}
			err := tell(cmd.Context())
			if err != nil {
				err = errors.Join(err, os.RemoveAll(dir)) // made by this run and not finished
			}
			return err
		},
	}
	cmd.Flags().StringVar(&name, "story", "ad-clicks", "ad-clicks or gateway")
	cmd.Flags().StringVar(&dir, "dir", "", "new folder to work in (default gmctl-demo-STORY here)")
	return cmd
}

// A teller tells a story: everything it says of a side is read from what the engines wrote.
type teller struct {
	a     *app
	dir   string
	w     io.Writer
	width int
	bold  func(string) string
	err   error // the first failed write
}

func newTeller(a *app, dir string) *teller {
	t := &teller{a: a, dir: dir, w: a.stdout, width: max(20, columnsFor(a.stdout)-2), bold: func(s string) string { return s }}
	if isTerminal(a.stdout) && os.Getenv("NO_COLOR") == "" {
		t.bold = func(s string) string { return "\x1b[1m" + s + "\x1b[0m" }
	}
	return t
}

// title begins a part of the story.
func (t *teller) title(text string) {
	t.line("")
	t.line("%s", t.bold(text))
}

// say is a paragraph, wrapped.
func (t *teller) say(format string, args ...any) {
	for line := range strings.Lines(wrap(fmt.Sprintf(format, args...), t.width)) {
		t.line("%s", strings.TrimSuffix(line, "\n"))
	}
}

// aside is a paragraph, set in.
func (t *teller) aside(text string) {
	for line := range strings.Lines(wrap(text, t.width-8) + "\n") {
		t.line("        %s", strings.TrimSuffix(line, "\n"))
	}
}

// line is one line, folded where the terminal is narrower.
func (t *teller) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, foldLine(fmt.Sprintf(format, args...), t.width+2))
	}
}

func (t *teller) path(name string) string { return filepath.Join(t.dir, name) }

// folder opens a meter of the story's folder.
func (t *teller) folder(name string) (*folder, error) { return openMeter(t.path(name)) }

// stream runs a meter over the story's log; archive and ledger are as flags say.
func (t *teller) stream(ctx context.Context, meterFile string, f streamFlags) (*run.Outcome, error) {
	o, err := t.folder(meterFile)
	if err != nil {
		return nil, err
	}
	f.source, f.summary.format, f.commitEvery = t.path("trace.jsonl"), "none", time.Second
	c, err := f.config(t.a, o)
	if err != nil {
		return nil, err
	}
	out, err := run.Run(ctx, *c)
	return &out, err
}

// result is the recompute of one truth of the story's archive.
func (t *teller) recompute(ctx context.Context, truth batch.Truth) (*audit, *batch.Result, error) {
	o, err := t.folder("gatewaymeter.yaml")
	if err != nil {
		return nil, nil, err
	}
	u, err := openAudit(ctx, o, "archive")
	if err != nil {
		return nil, nil, err
	}
	res, err := u.recompute(ctx, u.job(scope{truth: truth}), "duckdb")
	return u, res, err
}

// compare is `gmctl diff LEFT RIGHT` in the story's folder.
func (t *teller) compare(ctx context.Context, f diffFlags, left, right string) (report *diff.Report, err error) {
	o, err := t.folder("gatewaymeter.yaml")
	if err != nil {
		return nil, err
	}
	s := &sides{app: t.a, folder: o, flags: &f}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, left, right); err != nil {
		return nil, err
	}
	l, err := s.side(ctx, left)
	if err != nil {
		return nil, err
	}
	r, err := s.side(ctx, right)
	if err != nil {
		return nil, err
	}
	return diff.Compare(ctx, l, r, diff.Options{Comparable: s.comparable(left, right)})
}

// ledgerRows reads rows of an account from a ledger of the story's folder.
func (t *teller) ledgerRows(ctx context.Context, file, account string) (rows []meter.Row, err error) {
	r, err := sqlite.OpenReader(ctx, t.path(file))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Bill(ctx, sqlite.Range{Account: account}, 0)
}

// byWindow indexes the rows of one account.
func byWindowEnd(rows []meter.Row, account string) map[int64]*meter.Row {
	m := map[int64]*meter.Row{}
	for i := range rows {
		if rows[i].Account == account {
			m[rows[i].WindowEnd] = &rows[i]
		}
	}
	return m
}

// next says how to go on.
func (t *teller) next(verbs ...string) error {
	t.title("Go on")
	t.say("The folder %s holds the log, the archive and the ledger:", t.dir)
	for _, v := range verbs {
		t.command("  " + t.a.command(t.dir, v))
	}
	return t.err
}

// command is a line to be pasted: one that is too wide for the terminal is broken as a shell allows it.
func (t *teller) command(line string) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, breakCommand(line, t.width+2))
	}
}

// table is a table of the story, set in.
func (t *teller) table(rows *table) {
	if t.err == nil {
		t.err = rows.indented(t.w, t.width)
	}
}

func text(n int64) string { return strconv.FormatInt(n, 10) }
