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
		line = summaryText(sum)
	default:
		return nil
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// summaryText names every bucket that is not empty, and shows that they add up.
func summaryText(s *meter.Summary) string {
	doors := words(
		count{"dead letters", s.DeadLetters()}, count{"tombstones", s.Tombstone}, count{"ignored", s.Ignored}, count{"ticks", s.Tick}, count{"events", s.Event})
	verdicts := words(
		count{"counted", s.Counted}, count{"progress", s.Progress}, count{"filtered", s.Filtered}, count{"late", s.Late}, count{"duplicates", s.Duplicate},
		count{"conflicts", s.Conflict}, count{"orphans", s.Orphan}, count{"late completions", s.LateCompletion}, count{"open", s.Open})
	text := fmt.Sprintf("%d records = %s", s.Read, doors)
	if s.Event > 0 {
		text += fmt.Sprintf("; %d events = %s", s.Event, verdicts)
	}
	if s.Abandoned > 0 {
		text += fmt.Sprintf("; %d requests abandoned, %d of them superseded in time", s.Abandoned, s.Superseded)
	}
	return text
}

type count struct {
	what string
	n    int64
}

func words(counts ...count) string {
	var parts []string
	for _, c := range counts {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " + ")
}
