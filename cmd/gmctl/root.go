package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra" // the field's usual command line: completion and grouped help built in
	"github.com/spf13/pflag"

	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/run"
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
	stdout    *pipe
	stderr    io.Writer
	program   string // as it was invoked, for commands that are printed
	chdir     string // -C
	meterPath string // -m

	ledgerURL, archiveDir string // --ledger and --archive of the verbs that read them
}

const defaultMeter = "gatewaymeter.yaml"

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
	a := &app{stdin: stdin, stdout: &pipe{w: stdout}, stderr: stderr, program: program(os.Args[0])}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var f found
	if failed := a.stdout.err; failed != nil && (err == nil || errors.As(err, &f)) {
		err = fmt.Errorf("the output is not whole: %w", failed)
	}
	switch {
	case err == nil, errors.Is(err, errReaderGone):
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
			a.say("%s", clean(f.String()))
		}
	} else {
		a.say("gmctl: %s", clean(err.Error()))
	}
	var h hinted
	var refusal *run.Refusal
	var damaged *duckdb.FileError
	switch {
	case errors.As(err, &h):
		a.say("gmctl: hint: %s", clean(a.asInvoked(h.hint)))
	case errors.As(err, &refusal):
		a.say("gmctl: hint: %s", clean(refusal.Hint))
	case errors.As(err, &damaged):
		a.say("gmctl: hint: %s", a.asInvoked("'gmctl archive verify' names every fault of the archive; bring that file back"))
	}
}

// say writes one message line to stderr.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", args...)
}

// note is a message about what a verb has done, on stderr: wrapped, its commands as this process was invoked.
func (a *app) note(format string, args ...any) {
	a.say("%s", hang("gmctl: "+a.asInvoked(fmt.Sprintf(format, args...)), columnsFor(a.stderr), 2))
}

// tell is a sentence about what a verb has done, on stdout, wrapped.
func (a *app) tell(format string, args ...any) {
	fmt.Fprintln(a.stdout, hang(fmt.Sprintf(format, args...), columnsFor(a.stdout), 2))
}

// clean makes untrusted text safe to print, as the diff does (diff.Printable): what a terminal could take for a command or
// that moves other text becomes a visible escape. Lines and tabs are ours.
func clean(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		words := strings.Split(line, "\t")
		for j := range words {
			words[j] = diff.Printable(words[j])
		}
		lines[i] = strings.Join(words, "\t")
	}
	return strings.Join(lines, "\n")
}

const (
	groupDaily = "daily"
	groupAudit = "audit"
	groupSetup = "setup"
	groupLab   = "lab"
)

func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false // --help lists the verbs in the order of verbs()
	root := &cobra.Command{
		Use:   "gmctl",
		Short: "Meter an event log, archive it, recompute it, and name the cause of every difference",
		Long: `gmctl meters usage for billing: a streaming counter makes amounts by account and
minute, an archiver keeps the raw log in Parquet, a batch recompute with the
same rules is the audit, and a diff reconciles the two to the pico-dollar.

It works in a folder with a gatewaymeter.yaml (-C names another folder, -m
another file).`,
		Example: `  gmctl demo
  gmctl init my-meter && cd my-meter
  gmctl stream && gmctl recompute && gmctl diff
  gmctl bill --by account`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.enter() },
	}
	root.PersistentFlags().StringVarP(&a.chdir, "chdir", "C", "", "work as if started in this folder")
	root.PersistentFlags().StringVarP(&a.meterPath, "meter", "m", defaultMeter, "the meter file; relative paths in it are relative to its folder")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupDaily, Title: "Daily:"},
		&cobra.Group{ID: groupAudit, Title: "Audit:"},
		&cobra.Group{ID: groupSetup, Title: "Setup:"},
		&cobra.Group{ID: groupLab, Title: "Lab:"},
	)
	root.AddCommand(a.verbs()...)
	root.AddCommand(exitCodesTopic())
	a.helpful(root)
	root.Args = cobra.ArbitraryArgs
	strict(root)
	return root
}

// enter goes to the folder of -C.
func (a *app) enter() error {
	if a.chdir == "" {
		return nil
	}
	if err := os.Chdir(a.chdir); err != nil {
		return hint(err, "-C names the folder to work in")
	}
	return nil
}

// strict makes an unknown word after a verb an error: a typo is never ignored.
func strict(cmd *cobra.Command) {
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			hints := fmt.Sprintf("run '%s --help'", cmd.CommandPath())
			if near := meter.Nearest(args[0], names); len(near) > 0 {
				hints = fmt.Sprintf("'%s %s'?", cmd.CommandPath(), near[0])
			}
			return hint(fmt.Errorf("%sunknown command %q", verbPath(cmd), clip(args[0])), "%s", hints)
		}
	} else if cmd.RunE != nil {
		count := cmd.Args
		if count == nil {
			count = cobra.NoArgs
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := count(cmd, args); err != nil {
				return hint(fmt.Errorf("%s%s", verbPath(cmd), wrongArguments(cmd, count, args)), "usage: %s; run '%s --help'", cmd.UseLine(), cmd.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// wrongArguments says which argument is too many, or that some are missing.
func wrongArguments(cmd *cobra.Command, count cobra.PositionalArgs, args []string) string {
	for n := len(args) - 1; n >= 0; n-- {
		if count(cmd, args[:n]) == nil {
			return fmt.Sprintf("unexpected argument %q", clip(args[n]))
		}
	}
	_, wanted, _ := strings.Cut(cmd.Use, " ")
	return "arguments are missing: " + wanted
}

// flagError says which flag an unknown one may have meant.
func flagError(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := meter.Nearest(name, names); unknown && len(near) > 0 {
		return hint(err, "did you mean --%s? run '%s --help'", near[0], cmd.CommandPath())
	}
	return hint(err, "run '%s --help'", cmd.CommandPath())
}

// verbPath is the beginning of a verb's message: "archive verify: "; of gmctl's own, "".
func verbPath(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": "
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
