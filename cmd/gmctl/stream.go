package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
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
--commit-every all of that and the position in the log become durable in one
act: kill it at any moment and start it again, and the result is the same.
SIGTERM commits and ends with 0.

A file drains by default: at its end all windows close, and the log is
finished. Use --no-drain for a file that will grow.`,
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
				return a.noteUnpriced(cmd.Context(), o, url)
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
	fl.DurationVar(&f.commitEvery, "commit-every", time.Second, "how often rows, position and archive become durable")
	fl.DurationVar(&f.rollEvery, "archive-every", time.Minute, "close an archive file after so long")
	fl.Int64Var(&f.rollRows, "archive-rows", 1<<20, "close an archive file after so many records")
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
	if f.source == "" {
		source = o.path(source)
	}
	if isURL(source) {
		return nil, fmt.Errorf("stream: source %s: Kafka is not built yet; name a trace file", clip(source))
	}
	if format != string(trace.Trace) && format != string(trace.Values) {
		return nil, fmt.Errorf("stream: --source-format %q: want trace or values", clip(format))
	}
	c := &run.Config{
		Meter: o.Meter, Card: o.card.RateCard, List: o.listCard(), CardText: o.card.Text,
		Source:      run.Source{Path: source, Format: trace.Format(format), Topic: f.topic, Follow: f.follow, FollowEvery: 200 * time.Millisecond},
		CommitEvery: f.commitEvery, Drain: f.drain || !f.noDrain && !f.follow, Pace: f.pace, AcceptLoss: f.acceptLoss,
		Clock: wallClock{}, Workers: runtime.NumCPU(),
	}
	if o.list != nil {
		c.ListText = o.list.Text
	}
	if err := f.places(c, o); err != nil {
		return nil, err
	}
	failpoints(c)
	return c, nil
}

// places sets where archive and ledger are.
func (f *streamFlags) places(c *run.Config, o *folder) error {
	if where := orElse(f.ledger, o.Run.Ledger); where != "none" {
		path, err := o.ledgerPath(where)
		if err != nil {
			return err
		}
		fail := c.Fail
		c.Ledger = func(ctx context.Context) (run.Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: path, Meter: o.Meter, Fail: fail})
		}
	}
	if where := orElse(f.archive, o.Run.Archive); where != "none" {
		dir, err := o.archivePath(where)
		if err != nil {
			return err
		}
		c.Archive = &run.Archive{FS: archive.Dir(dir), Version: release, MaxRows: f.rollRows, MaxBytes: 512 << 20, MaxAge: f.rollEvery}
	}
	return nil
}

func (a *app) runStream(ctx context.Context, c *run.Config, f *streamFlags) error {
	p := newProgress(a.stderr, "stream")
	c.Progress = func(at run.Progress) { p.show(at.Records, at.Replayed > 0 && at.Records == 0) }
	out, err := run.Run(ctx, *c)
	p.done()
	switch {
	case errors.Is(err, sqlite.ErrLocked), errors.Is(err, sqlite.ErrFenced):
		return hint(err, "one gmctl stream writes to a ledger at a time; find the other one, or name another ledger")
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
	for _, lost := range out.Lost {
		a.say("gmctl: lost: partition %d, offsets %d to %d; rows that may miss them are incomplete", lost.Partition, lost.From, lost.To)
	}
	if n := out.Summary.DeadLetters(); n > 0 {
		a.note("%s: kept with bytes and reason; see 'gmctl query \"from dead_letters\"'", plural(n, "dead letter"))
	}
	if !f.summary.json() {
		a.tell("%s: %s read by this run, %s, %s", cell(out.Topic), plural(out.Records, "record"), plural(out.Firings, "firing"), plural(out.Files, "archive file"))
	}
	return f.summary.print(a.stdout, &out.Summary)
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

// failpoints lets tests end this process at a named point of the run: GMCTL_FAILPOINT=point kills it there.
func failpoints(c *run.Config) {
	point := os.Getenv("GMCTL_FAILPOINT")
	if point == "" {
		return
	}
	c.Fail = func(at string) error {
		if at == point {
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
