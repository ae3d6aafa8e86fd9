package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/run"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// streamFlags are the flags of `gmctl stream`; what is not given is taken from the meter's `run:` part.
type streamFlags struct {
	source, format, topic, archive, ledger string
	drain, noDrain, follow, acceptLoss     bool
	commitEvery, rollEvery                 time.Duration
	rollRows                               int64
	pace                                   float64
	stage, http                            string
	summary                                summaryFormat
}

func (a *app) stream() *cobra.Command {
	var f streamFlags
	cmd := &cobra.Command{
		Use:     "stream",
		GroupID: groupDaily,
		Short:   "Count a log, archive it and write the ledger; started again it goes on",
		Long: `stream reads the log of run.source, counts it (docs/SEMANTICS.md), writes every
record to the archive and rows, journal and side outputs to the ledger. Every
--commit-every rows, journal, side outputs and the position in the log become
durable in one act. Kill it at any moment and start it again: the result is the
same. SIGTERM archives and commits all that was read, and ends with 0.

The archive follows: its files become durable one by one, as they are closed by
--archive-every, --archive-rows, the end of the log or SIGTERM. Until then their
records are in the log alone, and a process that was killed reads them there
again: keep the log up to what 'gmctl status' calls archived.

A file drains by default: at its end all windows close, and the log is
finished. Use --no-drain for a file that will grow: windows and requests stay
open, and a last line that has no line end yet is left unread.`,
		Example: `  gmctl stream
  gmctl stream --source trace.jsonl.gz --no-drain
  gmctl stream --ledger none                # only archive
  gmctl stream --summary json | tail -1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.open()
			if err != nil {
				return err
			}
			config, err := f.config(a, o)
			if err != nil {
				return err
			}
			if err := a.runStream(cmd.Context(), config, &f); err != nil {
				return err
			}
			if url := orElse(f.ledger, o.Run.Ledger); url != "none" {
				// After SIGTERM too, which has ended the context: what it stopped is whole, and so are its words.
				return a.noteUnpriced(context.WithoutCancel(cmd.Context()), o, url)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.source, "source", "", "file (.gz, .zst too) or - for standard input (default run.source)")
	fl.StringVar(&f.format, "source-format", "", "trace, or values: plain event lines (default run.source_format)")
	fl.StringVar(&f.topic, "topic", "", "name of the log, where its file does not state one")
	fl.StringVar(&f.archive, "archive", "", "folder of the archive, or none (default run.archive)")
	fl.StringVar(&f.ledger, "ledger", "", "sqlite:FILE, or none: only archive (default run.ledger)")
	fl.BoolVar(&f.drain, "drain", false, "close all windows at the end of the file: the log is finished (the default without --follow)")
	fl.BoolVar(&f.noDrain, "no-drain", false, "leave windows and requests open at the end of the file: it will grow")
	fl.BoolVar(&f.follow, "follow", false, "wait for more at the end of the file; implies --no-drain")
	fl.BoolVar(&f.acceptLoss, "accept-loss", false, "go on although a part of the log is gone; what is lost is written down")
	fl.DurationVar(&f.commitEvery, "commit-every", time.Second, "how often rows and position become durable")
	fl.DurationVar(&f.rollEvery, "archive-every", time.Minute, "close an archive file after so long, and make it durable")
	fl.Int64Var(&f.rollRows, "archive-rows", 1<<20, "close an archive file after so many records, and make it durable")
	fl.Float64Var(&f.pace, "pace", 0, "replay the log at this multiple of the speed at which it was written (0: as fast as it goes)")
	fl.StringVar(&f.stage, "stage", "", "count or merge: for scaled-out Kafka, not built yet")
	fl.StringVar(&f.http, "http", "", "address of the live page, not built yet")
	f.summary.flags(cmd)
	return cmd
}

// config makes the run's configuration of flags and meter file.
func (f *streamFlags) config(a *app, o *folder) (*run.Config, error) {
	switch {
	case f.stage != "" || f.http != "":
		return nil, errors.New("stream: --stage and --http are not built yet")
	case f.drain && f.noDrain:
		return nil, errors.New("stream: --drain and --no-drain exclude each other")
	}
	if err := f.summary.check(); err != nil {
		return nil, err
	}
	source, format := orElse(f.source, o.Run.Source), orElse(f.format, o.Run.SourceFormat)
	if source == "" {
		return nil, hint(errors.New("stream: no source"), "write run.source into the meter file, or use --source FILE")
	}
	if isURL(source) {
		return nil, fmt.Errorf("stream: source %s: Kafka is not built yet; name a trace file", clip(source))
	}
	if f.source == "" {
		source = o.path(source)
	}
	if format != string(trace.Trace) && format != string(trace.Values) {
		return nil, fmt.Errorf("stream: --source-format %q: want trace or values", clip(format))
	}
	c := &run.Config{
		Meter: o.Meter, Card: o.card.RateCard, List: o.listCard(), CardText: o.card.Text, ParseCard: o.parseCard,
		Source:      run.Source{Path: source, Format: trace.Format(format), Topic: f.topic, Follow: f.follow, FollowEvery: 200 * time.Millisecond},
		CommitEvery: f.commitEvery, Drain: f.drain || !f.noDrain && !f.follow, Pace: f.pace, AcceptLoss: f.acceptLoss,
		Clock: wallClock{}, Workers: runtime.NumCPU(), Fail: failpoint(os.Getenv("GMCTL_FAILPOINT")),
	}
	if o.list != nil {
		c.ListText = o.list.Text
	}
	return c, f.places(c, o)
}

// places sets where archive and ledger are.
func (f *streamFlags) places(c *run.Config, o *folder) error {
	if where := orElse(f.ledger, o.Run.Ledger); where != "none" {
		path, err := o.ledgerPath(where)
		if err != nil {
			return err
		}
		c.Ledger = func(ctx context.Context) (run.Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: path, Meter: o.Meter, Fail: c.Fail})
		}
	}
	if where := orElse(f.archive, o.Run.Archive); where != "none" {
		dir, err := o.archivePath(where)
		if err != nil {
			return err
		}
		c.Archive = &run.Archive{FS: run.FailFS(archive.Dir(dir), c.Fail), Version: release, MaxRows: f.rollRows, MaxBytes: 512 << 20, MaxAge: f.rollEvery}
	}
	return nil
}

func (a *app) runStream(ctx context.Context, c *run.Config, f *streamFlags) error {
	p := newProgress(a.stderr, "stream")
	c.Progress = func(at run.Progress) { p.show(at.Records, at.Replayed > 0 && at.Records == 0) }
	out, err := run.Run(ctx, *c)
	p.done()
	var refused *run.Refusal
	switch {
	case errors.As(err, &refused):
		return hint(err, "%s", refused.Hint)
	case errors.Is(err, sqlite.ErrLocked), errors.Is(err, sqlite.ErrFenced):
		return hint(err, "one gmctl stream writes to a ledger at a time; find the other one, or name another ledger")
	case diskFull(err):
		return hint(err, "free space and run the same command again: what was committed stands")
	case err != nil:
		return err
	}
	if err := out.Summary.Check(); err != nil {
		return fmt.Errorf("stream: the buckets do not add up: %w", err)
	}
	switch {
	case out.Finished:
		a.say("gmctl: %s was finished and drained before; nothing to do", cell(out.Topic))
	case out.Stopped:
		a.say("gmctl: stopped with everything committed; start it again to go on")
	}
	if out.Unread > 0 {
		a.note("%s ends within a line: its last %s are left unread until the line has its end", sourceName(c.Source.Path), plural(out.Unread, "byte"))
	}
	a.sayPrices(out.Repriced)
	a.sayLoss(c, &out)
	if n := out.Summary.DeadLetters(); n > 0 {
		a.note("%s: kept with bytes and reason: %s; see 'gmctl query \"from dead_letters\"'", plural(n, "dead letter"), clean(reasonsText(c.Meter, &out.Summary)))
	}
	if !f.summary.json() {
		a.tell("%s: %s read by this run, %s, %s", cell(out.Topic), plural(out.Records, "record"), plural(out.Firings, "firing"), plural(out.Files, "archive file"))
	}
	if err := f.summary.print(a.stdout, &out.Summary); err != nil {
		return err
	}
	a.noteNothingJudged(c.Meter, &out.Summary) // last, where it is seen
	return nil
}

// diskFull reports whether err is about a disk without room, of the archive or of the ledger.
func diskFull(err error) bool {
	const sqliteFull = 13
	var coded interface{ Code() int }
	return errors.Is(err, syscall.ENOSPC) || errors.As(err, &coded) && coded.Code()&0xff == sqliteFull
}

// sourceName is how messages call a source.
func sourceName(path string) string {
	if path == "-" {
		return trace.Stdin
	}
	return clean(path)
}

// sayPrices says what other prices than before did, and did not (R10).
func (a *app) sayPrices(r *run.Repriced) {
	switch {
	case r == nil:
	case r.Nothing:
		a.note("the prices have changed (%s was %s): every window is final and keeps its price, nothing is rated again; "+
			"'gmctl recompute --prices card' says what the card at hand would make", priceName(r.Now), priceName(r.Was))
	default:
		a.note("the prices have changed (%s was %s): they are those of the windows that end after %s; what is final keeps its price",
			priceName(r.Now), priceName(r.Was), meter.Time(r.Now.From))
	}
}

func priceName(use meter.PriceUse) string {
	if use.List == "" {
		return "card " + use.Card
	}
	return "card " + use.Card + " and list " + use.List
}

// sayLoss says what --accept-loss went on without, in this run or before.
func (a *app) sayLoss(c *run.Config, out *run.Outcome) {
	if r := out.Replaced; r != nil {
		a.note("the first %s of %s are not those that were counted: what was counted of them stands", plural(r.Bytes, "byte"), sourceName(c.Source.Path))
		for _, p := range r.Reread {
			a.note("lost: partition %d, the bytes of offsets [%d, %d) as they were counted: the archive gets the new ones, and 'gmctl diff' shows what they change",
				p.Partition, p.From, p.To)
		}
		if len(out.Lost)+len(r.Reread) == 0 {
			a.note("lost: no record; the archive has what was counted, and the rest of the log is there")
		}
	}
	for _, l := range out.Lost {
		a.note("lost: partition %d, offsets [%d, %d): rows of windows that end after %s and by %s may miss them and are incomplete",
			l.Partition, l.From, l.To, bound(l.WindowFrom), bound(l.WindowTo))
	}
}

// bound is one end of a range of times.
func bound(ms int64) string {
	switch {
	case ms <= meter.MinusInfinity:
		return "the beginning"
	case ms >= meter.PlusInfinity:
		return "the end"
	}
	return meter.Time(ms)
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// wallClock is the time outside.
type wallClock struct{}

func (wallClock) Now() time.Time                         { return time.Now() }
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// failpoint lets tests end this process at a named point of the run: "point" kills it there, "point@3" the third time that
// it comes there, "" never.
func failpoint(spec string) func(at string) error {
	if spec == "" {
		return nil
	}
	point, nth, _ := strings.Cut(spec, "@")
	hit := int64(1)
	if n, err := strconv.ParseInt(nth, 10, 64); err == nil {
		hit = n
	}
	var hits atomic.Int64
	return func(at string) error {
		if at == point && hits.Add(1) == hit {
			kill()
		}
		return nil
	}
}

// kill ends this process at once, without a chance to tidy up.
func kill() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		os.Exit(137)
	}
	select {}
}
