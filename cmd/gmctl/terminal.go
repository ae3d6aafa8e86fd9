package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term" // the Go project's own
)

// isTerminal reports whether w is a terminal that understands movement: progress and colour are for those only.
func isTerminal(w io.Writer) bool { return terminalWidth(w) > 0 && os.Getenv("TERM") != "dumb" }

// terminalWidth is the number of columns of a terminal, as COLUMNS or the terminal itself says; 0 for anything else.
func terminalWidth(w io.Writer) int {
	if p, ok := w.(*pipe); ok {
		w = p.w
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return textWidth
	}
	return columns
}

// columnsFor is the width of what a person reads on w: the terminal's where it has fewer columns than textWidth.
func columnsFor(w io.Writer) int {
	if columns := terminalWidth(w); columns > 0 {
		return min(textWidth, columns)
	}
	return textWidth
}
