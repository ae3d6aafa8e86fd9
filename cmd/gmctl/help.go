package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// withoutMeter are the verbs that read no meter: their help does not offer -m.
var withoutMeter = map[string]bool{"init": true, "demo": true, "version": true, "completion": true, "trace": true, "exit-codes": true, "help": true}

func usesMeter(verb string) bool { return !withoutMeter[verb] }

// topVerb is the word after gmctl of a command.
func topVerb(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.Name()
}

// helpful gives every verb one way to print its help: at most 80 columns, fewer on a narrow terminal.
func (a *app) helpful(root *cobra.Command) {
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [VERB]",
		Short:   "Say how a verb is used",
		Example: "  gmctl help stream\n  gmctl help exit-codes",
		GroupID: groupSetup,
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return hint(fmt.Errorf("help: no verb %q", clip(strings.Join(args, " "))), "run 'gmctl --help'")
			}
			return cmd.Help()
		},
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		io.WriteString(a.stdout, helpText(cmd, columnsFor(a.stdout)))
	})
}

// helpText is the help of a verb in so many columns.
func helpText(cmd *cobra.Command, columns int) string {
	var b strings.Builder
	part := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			b.WriteString("\n" + title + ":\n" + refold(text+"\n", columns))
		}
	}
	what := cmd.Long
	if what == "" {
		what = wrap(cmd.Short+".", columns)
	}
	b.WriteString(refold(what+"\n", columns))
	if cmd.Runnable() && !cmd.HasSubCommands() {
		part("Usage", "  "+cmd.UseLine())
	} else if cmd.HasSubCommands() {
		part("Usage", "  "+cmd.CommandPath()+" VERB [flags]")
	}
	part("Examples", cmd.Example)
	for _, g := range cmd.Groups() {
		part(strings.TrimSuffix(g.Title, ":"), verbList(cmd, g.ID, columns))
	}
	if len(cmd.Groups()) == 0 {
		part("Verbs", verbList(cmd, "", columns))
	} else {
		part("More", verbList(cmd, "", columns))
	}
	part("Flags", cmd.LocalNonPersistentFlags().FlagUsagesWrapped(columns))
	part("Flags of every verb", everyVerbsFlags(cmd).FlagUsagesWrapped(columns))
	if cmd.HasSubCommands() {
		b.WriteString("\n" + wrap("'"+cmd.CommandPath()+" VERB --help' says more of a verb.", columns) + "\n")
	}
	return b.String()
}

// everyVerbsFlags are the flags of the root, but for -m where it means nothing.
func everyVerbsFlags(cmd *cobra.Command) *pflag.FlagSet {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "meter" || !cmd.HasParent() || usesMeter(topVerb(cmd)) {
			shown.AddFlag(f)
		}
	})
	return shown
}

// verbList lists the verbs of a group with what they do.
func verbList(cmd *cobra.Command, group string, columns int) string {
	var b strings.Builder
	below := "\n" + strings.Repeat(" ", 14)
	for _, sub := range cmd.Commands() {
		if sub.GroupID == group && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
			b.WriteString("  " + sub.Name() + strings.Repeat(" ", max(1, 12-len(sub.Name()))) + strings.ReplaceAll(wrap(sub.Short, columns-14), "\n", below) + "\n")
		}
	}
	return b.String()
}

func completion() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		GroupID:   groupSetup,
		Short:     "Print what teaches a shell to complete gmctl's verbs and flags",
		Example:   "  source <(gmctl completion bash)\n  gmctl completion fish > ~/.config/fish/completions/gmctl.fish",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return hint(fmt.Errorf("completion: no shell %q", clip(args[0])), "use bash, zsh, fish or powershell")
		},
	}
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `0    agree, or done
1    a verb whose job is to look found a difference or a fault: diff, archive
     verify, validate, rates check
2    trouble: usage, a bad meter or input file in any other verb, a gap in the
     archive, a broken engine; the closing summary line is never printed then,
     so a cut-off output cannot pass for a whole one
130  interrupted`,
		Example: "  gmctl diff --format json > report.jsonl; echo $?",
	}
}
