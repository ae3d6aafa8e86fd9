package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra" // the field's usual command line: completion and grouped help built in

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Exit codes (gmctl help exit-codes).
const (
	exitDone        = 0
	exitFound       = 1
	exitTrouble     = 2
	exitInterrupted = 130
)

// app is what every verb shares.
type app struct {
	stdin     io.Reader
	stdout    io.Writer
	stderr    io.Writer
	meterPath string // -m
}

// found is the error of a verb whose job is to look, when it found something: exit 1, already reported.
type found struct{ what string }

func (f found) Error() string { return f.what }

// hinted is an error with what to do now.
type hinted struct {
	err  error
	hint string
}

func (h hinted) Error() string { return h.err.Error() }
func (h hinted) Unwrap() error { return h.err }

func hint(err error, format string, args ...any) error {
	return hinted{err, fmt.Sprintf(format, args...)}
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var f found
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &f):
		if f.what != "" {
			a.say("gmctl: %s", f.what)
		}
		return exitFound
	case errors.Is(err, context.Canceled):
		a.say("gmctl: interrupted")
		return exitInterrupted
	}
	a.report(err)
	return exitTrouble
}

// report prints an error and at most one hint; faults stand one a line, as file:line: text.
func (a *app) report(err error) {
	var faults meter.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			a.say("%s", f)
		}
	} else {
		a.say("gmctl: %s", clean(err.Error()))
	}
	var h hinted
	if errors.As(err, &h) {
		a.say("gmctl: hint: %s", h.hint)
	}
}

// say writes one message line to stderr.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", args...)
}

// clean keeps control characters of untrusted text off the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0) {
			return '\uFFFD'
		}
		return r
	}, s)
}

const (
	groupDaily = "daily"
	groupAudit = "audit"
	groupSetup = "setup"
	groupLab   = "lab"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "gmctl",
		Short: "Meter an event log, archive it, recompute it, and name the cause of every difference",
		Long: `gmctl meters usage for billing: a streaming counter makes per-minute amounts, an archiver keeps the raw log in
Parquet, a batch recompute with the same rules is the audit, and a diff reconciles the two to the pico-dollar.

It works in a folder with a gatewaymeter.yaml (-m names another file).`,
		Example: `  gmctl init demo && cd demo
  gmctl stream && gmctl recompute && gmctl diff
  gmctl bill --by account`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVarP(&a.meterPath, "meter", "m", "gatewaymeter.yaml", "the meter file; relative paths in it are relative to its folder")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return hint(err, "run '%s --help'", cmd.CommandPath()) })
	root.AddGroup(
		&cobra.Group{ID: groupDaily, Title: "Daily:"},
		&cobra.Group{ID: groupAudit, Title: "Audit:"},
		&cobra.Group{ID: groupSetup, Title: "Setup:"},
		&cobra.Group{ID: groupLab, Title: "Lab:"},
	)
	root.SetCompletionCommandGroupID(groupSetup)
	root.AddCommand(a.verbs()...)
	root.AddCommand(exitCodesTopic())
	for _, cmd := range root.Commands() {
		strict(cmd)
	}
	return root
}

// strict makes an unknown word after a verb an error: a typo is never ignored.
func strict(cmd *cobra.Command) {
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return hint(fmt.Errorf("%s: unknown command %q", cmd.CommandPath(), clip(args[0])), "run '%s --help'", cmd.CommandPath())
		}
	} else if cmd.Args == nil && cmd.RunE != nil {
		cmd.Args = cobra.NoArgs
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `0    agree, or done
1    a verb whose job is to look found a difference or a fault: diff, archive verify, validate, rates check
2    trouble: usage, a bad meter or input file in any other verb, a gap in the archive, a broken engine;
     the closing summary line is never printed then, so a cut-off output cannot pass for a whole one
130  interrupted`,
	}
}
