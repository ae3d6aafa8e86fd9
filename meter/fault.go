package meter

import (
	"fmt"
	"strings"
)

// A Fault is one thing wrong with a file that a person wrote: where, what, and what to do.
type Fault struct {
	File string
	Line int // 1-based; 0 where it has no place
	Text string
}

// String is `file:line: text`.
func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// Faults is every fault of a file at once, as an error.
type Faults []Fault

// Error lists the faults, one a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}
