package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// plural is a count with its noun: 1 row, 2 rows, 0 rows.
func plural[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// pluralVerb is a count with its noun and the verb that fits: 1 row is, 2 rows are.
func pluralVerb[N int | int64](n N, noun, one, many string) string {
	if n == 1 {
		many = one
	}
	return plural(n, noun) + " " + many
}

// textWidth is the number of columns of what is written where no terminal says otherwise.
const textWidth = 80

// wrap breaks text into lines of at most width columns, between words.
func wrap(text string, width int) string { return hang(text, width, 0) }

// hang is wrap with every line after the first set in by so many columns.
func hang(text string, width, indent int) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String()
}

// refold breaks the lines of text that are wider than width, each part after the first set in under the line's text; a
// line that stands as "name   what it is" is set in under what it is.
func refold(text string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, " \n")
		if utf8.RuneCountInString(body) <= width {
			out.WriteString(body)
			if strings.HasSuffix(line, "\n") {
				out.WriteByte('\n')
			}
			continue
		}
		trimmed := strings.TrimLeft(body, " ")
		indent := len(body) - len(trimmed)
		name, what, listed := strings.Cut(trimmed, "   ")
		if listed && indent > 0 {
			out.WriteString(strings.Repeat(" ", indent) + name + "\n")
			trimmed, indent = strings.TrimSpace(what), indent+4
		}
		pad := strings.Repeat(" ", indent)
		out.WriteString(pad + strings.ReplaceAll(wrap(trimmed, max(10, width-indent)), "\n", "\n"+pad))
		if strings.HasSuffix(line, "\n") {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
