package main

import (
	"io"
	"os"

	"golang.org/x/term" // the Go project's own
)

// isTerminal reports whether w is a terminal that understands movement: progress and colour are for those only.
func isTerminal(w io.Writer) bool { return terminalWidth(w) > 0 }

// terminalWidth is the number of columns of a terminal, 0 for anything else.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}
