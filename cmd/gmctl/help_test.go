package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Every verb, parents too, says what it does, shows how it is used, and fits a terminal of 80 columns and one of 40.
func TestHelp(t *testing.T) {
	root := (&app{stdout: &pipe{}}).root()
	verbs := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		verbs++
		for _, columns := range []int{80, 40} {
			for line := range strings.Lines(helpText(cmd, columns)) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > columns && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s: a line of %d columns, for %d: %q", cmd.CommandPath(), n, columns, line)
				}
			}
		}
		text := helpText(cmd, 80)
		if cmd.Example == "" || !strings.Contains(text, "Examples:\n"+cmd.Example+"\n") {
			t.Errorf("%s: no examples in %q", cmd.CommandPath(), text)
		}
		if shown := strings.Contains(text, "--meter"); cmd.HasParent() && shown != usesMeter(topVerb(cmd)) {
			t.Errorf("%s: --meter shown: %v", cmd.CommandPath(), shown)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if verbs < 20 {
		t.Errorf("only %d verbs found", verbs)
	}
}

// An example of a verb is a command line that it takes: its flags exist.
func TestExamplesParse(t *testing.T) {
	root := (&app{stdout: &pipe{}}).root()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(line, " # ")
			for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("&|;<>()", r) }) {
				words := strings.Fields(part)
				if len(words) == 0 || words[0] != "gmctl" {
					continue
				}
				found, rest, err := root.Find(words[1:])
				if err != nil {
					t.Errorf("%s: %s: %v", cmd.CommandPath(), part, err)
					continue
				}
				for _, word := range rest {
					name, isLong := strings.CutPrefix(word, "--")
					name, _, _ = strings.Cut(name, "=")
					if isLong && found.Flag(name) == nil && root.PersistentFlags().Lookup(name) == nil && name != "help" {
						t.Errorf("%s: %s: no flag --%s", cmd.CommandPath(), strings.TrimSpace(part), name)
					}
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
