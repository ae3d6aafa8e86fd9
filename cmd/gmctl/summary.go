package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// summaryFormat is --summary: how the closing line with the buckets of R14 looks.
type summaryFormat struct{ format string }

func (s *summaryFormat) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.format, "summary", "text", "the closing line with every bucket: text, json or none")
}

func (s *summaryFormat) check() error {
	switch s.format {
	case "text", "json", "none":
		return nil
	}
	return hint(fmt.Errorf("--summary %q is unknown", clip(s.format)), "use text, json or none")
}

func (s *summaryFormat) json() bool { return s.format == "json" }

// print writes the summary as the last line of stdout.
func (s *summaryFormat) print(w io.Writer, sum *meter.Summary) error {
	var line string
	switch s.format {
	case "json":
		line = string(sum.AppendJSON(nil))
	case "text":
		var lines []string
		for _, part := range summaryParts(sum) {
			lines = append(lines, hang(part, columnsFor(w), 2))
		}
		line = strings.Join(lines, "\n")
	default:
		return nil
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// summaryText is the summary in one sentence.
func summaryText(s *meter.Summary) string { return strings.Join(summaryParts(s), "; ") }

// summaryParts names every bucket that is not empty, and shows that they add up.
func summaryParts(s *meter.Summary) []string {
	parts := []string{plural(s.Read, "record") + " = " + doorWords(s)}
	if s.Event > 0 {
		parts = append(parts, plural(s.Event, "event")+" = "+words(
			count{"counted", s.Counted}, count{"progress", s.Progress}, count{"filtered", s.Filtered}, count{"late", s.Late}, count{"duplicate", s.Duplicate},
			count{"conflict", s.Conflict}, count{"orphan", s.Orphan}, count{"late completion", s.LateCompletion}, count{"open", s.Open}))
	}
	if s.Abandoned > 0 {
		parts = append(parts, fmt.Sprintf("%s abandoned, %d of them superseded in time", plural(s.Abandoned, "request"), s.Superseded))
	}
	return parts
}

// doorWords are the buckets at the door (R2).
func doorWords(s *meter.Summary) string {
	return words(count{"dead letter", s.DeadLetters()}, count{"tombstone", s.Tombstone}, count{"ignored record", s.Ignored}, count{"tick", s.Tick}, count{"event", s.Event})
}

// count is how many records went one way; what is a noun, or a word that has no plural.
type count struct {
	what string
	n    int64
}

var noPlural = map[string]bool{"counted": true, "progress": true, "filtered": true, "late": true, "open": true}

func words(counts ...count) string {
	var parts []string
	for _, c := range counts {
		switch {
		case c.n > 0 && noPlural[c.what]:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		case c.n > 0:
			parts = append(parts, plural(c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " + ")
}
