package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

func (a *app) trace() *cobra.Command {
	cmd := &cobra.Command{Use: "trace", GroupID: groupLab, Short: "Make, count, replay and fingerprint trace files",
		Example: "  gmctl trace gen --seed 7 --duration 10m -o trace.jsonl\n  gmctl trace stat trace.jsonl"}
	cmd.AddCommand(a.traceGen(), a.traceStat(), a.traceReplay(), a.traceHash())
	return cmd
}

func (a *app) traceGen() *cobra.Command {
	var kind, out, start, format string
	var lab bool
	var duration, lateBy, tick time.Duration
	g := trace.NewGen(meter.Requests)
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Make up a trace: the same flags and seed give the same bytes on every machine",
		Example: `  gmctl trace gen --seed 7 --duration 10m --rate 50 -o trace.jsonl
  gmctl trace gen --kind events --accounts 20 -o taps.jsonl.gz
  gmctl trace gen --lab -o lab.jsonl        # the rehearsal's log`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base := trace.NewGen(meter.MeterKind(kind))
			if lab {
				base = trace.NewLab()
			}
			set := func(name string, do func()) {
				if cmd.Flags().Changed(name) {
					do()
				}
			}
			set("seed", func() { base.Seed = g.Seed })
			set("rate", func() { base.PerSecond = g.PerSecond })
			set("partitions", func() { base.Partitions = g.Partitions })
			set("accounts", func() { base.Accounts = g.Accounts })
			set("models", func() { base.SKUs = g.SKUs })
			set("topic", func() { base.Topic = g.Topic })
			set("duration", func() { base.Duration = duration.Milliseconds() })
			set("late", func() { base.Late = g.Late })
			set("late-by", func() { base.LateBy = lateBy.Milliseconds() })
			set("tick-every", func() { base.TickEvery = tick.Milliseconds() })
			set("duplicates", func() { base.Duplicate = g.Duplicate })
			set("conflicts", func() { base.Conflict = g.Conflict })
			set("abandoned", func() { base.Abandoned = g.Abandoned })
			set("broken", func() { base.Broken = g.Broken })
			set("progress", func() { base.Progress = g.Progress })
			set("progress-most", func() { base.ProgressMost = g.ProgressMost })
			set("format", func() {
				if base.Format = trace.Format(format); base.Format == trace.Values && !cmd.Flags().Changed("partitions") {
					base.Partitions = 1 // plain event lines have one
				}
			})
			if at, err := parseTime("--start", start, time.Now()); err != nil {
				return err
			} else if at != nil {
				base.Start = *at
			}
			if err := base.Validate(); err != nil {
				return err
			}
			return a.writeTo(out, func(w io.Writer) error {
				n, err := base.Write(w)
				if err == nil && out != "-" {
					a.note("%s: %s", out, plural(n, "record"))
				}
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "requests", "requests or events")
	f.BoolVar(&lab, "lab", false, "the rehearsal: 20 requests/s for four minutes, six tenants, 5 % of the requests 60 s late")
	f.StringVarP(&out, "output", "o", "-", "file to write (never over an existing one; .gz compresses), or - for standard output")
	f.Uint64Var(&g.Seed, "seed", 1, "seed")
	f.StringVar(&start, "start", "", "event time of the first request (default 2026-01-01T00:00:00Z)")
	f.DurationVar(&duration, "duration", time.Duration(g.Duration)*time.Millisecond, "how long requests begin")
	f.Int64Var(&g.PerSecond, "rate", g.PerSecond, "requests or taps per second")
	f.Int32Var(&g.Partitions, "partitions", g.Partitions, "partitions")
	f.IntVar(&g.Accounts, "accounts", g.Accounts, "accounts; the first has 40 % of the traffic of a requests log")
	f.IntVar(&g.SKUs, "models", g.SKUs, "models")
	f.StringVar(&g.Topic, "topic", "", "topic in the header")
	f.IntVar(&g.Late, "late", g.Late, "per mille that come late")
	f.DurationVar(&lateBy, "late-by", time.Duration(g.LateBy)*time.Millisecond, "how late those come")
	f.DurationVar(&tick, "tick-every", time.Duration(g.TickEvery)*time.Millisecond, "a tick to every partition so often, in a requests log; 0: none")
	f.IntVar(&g.Duplicate, "duplicates", g.Duplicate, "per mille that come twice")
	f.IntVar(&g.Conflict, "conflicts", g.Conflict, "per mille that come again with other numbers")
	f.IntVar(&g.Abandoned, "abandoned", g.Abandoned, "per mille of requests without an end")
	f.IntVar(&g.Broken, "broken", g.Broken, "per mille that come also as broken JSON")
	f.IntVar(&g.Progress, "progress", g.Progress, "per mille of requests that stream progress records")
	f.IntVar(&g.ProgressMost, "progress-most", g.ProgressMost, "progress records of such a request: one to so many")
	f.StringVar(&format, "format", "trace", "trace, or values: plain event lines of an events log")
	return cmd
}

// writeTo opens the output of a lab verb: a new file (compressed by its name), or standard output.
func (a *app) writeTo(path string, do func(io.Writer) error) (err error) {
	if path == "-" {
		return do(a.rowsOut())
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return hint(err, "it is left alone; name another file")
	} else if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if !strings.HasSuffix(path, ".gz") {
		return do(f)
	}
	z := gzip.NewWriter(f)
	if err := do(z); err != nil {
		return err
	}
	return z.Close()
}

// openTrace opens a trace named on the command line; - is standard input.
func (a *app) openTrace(path, format string) (*trace.Reader, func() error, error) {
	f := trace.Format(format)
	if f != trace.Trace && f != trace.Values {
		return nil, nil, fmt.Errorf("--source-format %q: want trace or values", clip(format))
	}
	if path == "-" {
		r, err := trace.NewReader(a.stdin, trace.Stdin, trace.Options{Format: f})
		return r, func() error { return nil }, err
	}
	r, err := trace.Open(path, trace.Options{Format: f})
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

// withTrace runs do over the trace that the one argument names.
func (a *app) withTrace(use, short, example string, do func(ctx context.Context, r *trace.Reader) error) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r, closeTrace, err := a.openTrace(args[0], format)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeTrace()) }()
			return do(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&format, "source-format", "trace", "trace, or values: plain event lines")
	return cmd
}

func (a *app) traceHash() *cobra.Command {
	return a.withTrace("hash FILE", "Fingerprint what a trace states: the same for a plain and a compressed file", "  gmctl trace hash trace.jsonl.gz",
		func(ctx context.Context, r *trace.Reader) error {
			sum, err := trace.Hash(ctx, r)
			if err == nil {
				fmt.Fprintln(a.stdout, sum)
			}
			return err
		})
}

func (a *app) traceStat() *cobra.Command {
	var word string
	cmd := a.withTrace("stat FILE", "Count a trace: records by partition and by kind, time range", "  gmctl trace stat trace.jsonl --by event_type",
		func(ctx context.Context, r *trace.Reader) error {
			s, err := trace.Count(ctx, r, trace.WordAt(strings.Split(word, ".")...))
			if err != nil {
				return err
			}
			a.printStat(s, word)
			return nil
		})
	cmd.Flags().StringVar(&word, "by", "event_type", "path of the word that records are counted by")
	return cmd
}

func (a *app) printStat(s *trace.Stat, word string) {
	line := fmt.Sprintf("topic %s: %s, %s", cell(s.Topic), plural(s.Lines-s.Idle, "record"), plural(s.Bytes, "byte"))
	if s.Idle > 0 {
		line += ", " + plural(s.Idle, "idle line")
	}
	if s.HasTime {
		line += fmt.Sprintf(", log time %s to %s", meter.Time(s.First), meter.Time(s.Last))
	}
	a.tell("%s", line)
	for _, p := range s.Partitions {
		if p.Records == 0 {
			fmt.Fprintf(a.stdout, "  partition %d: silent\n", p.Partition)
			continue
		}
		fmt.Fprintf(a.stdout, "  partition %d: %s, offsets %d to %d\n", p.Partition, plural(p.Records, "record"), p.First, p.Last)
	}
	names := make([]string, 0, len(s.Words))
	for name := range s.Words {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(a.stdout, "  %s %s: %d\n", cell(word), cell(name), s.Words[name])
	}
	if s.Unreadable > 0 {
		fmt.Fprintf(a.stdout, "  no %s: %d\n", cell(word), s.Unreadable)
	}
	if s.Tombstones > 0 {
		fmt.Fprintf(a.stdout, "  tombstones: %d\n", s.Tombstones)
	}
}

func (a *app) traceReplay() *cobra.Command {
	var pace float64
	var out string
	cmd := a.withTrace("replay FILE", "Copy a trace at the pace at which it was written", "  gmctl trace replay trace.jsonl --pace 10 -o live.jsonl &\n  gmctl stream --source live.jsonl --follow",
		func(ctx context.Context, r *trace.Reader) error {
			return a.writeTo(out, func(w io.Writer) error {
				begun := time.Now()
				tw := trace.NewWriter(w)
				err := trace.Replay(ctx, r, tw, pace, func(ctx context.Context, since time.Duration) error {
					wait := time.NewTimer(time.Until(begun.Add(since)))
					defer wait.Stop()
					select {
					case <-wait.C:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				return errors.Join(err, tw.Flush())
			})
		})
	cmd.Flags().Float64Var(&pace, "pace", 1, "multiple of the speed at which it was written; 0: as fast as it goes")
	cmd.Flags().StringVarP(&out, "output", "o", "-", "file to write, or - for standard output")
	return cmd
}
