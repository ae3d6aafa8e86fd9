package main

import (
	"fmt"
	"io"
	"time"
)

// progress is one line on a terminal that tells how far long work has come; off a terminal it is silent.
type progress struct {
	w     io.Writer
	what  string
	begun time.Time
	last  time.Time
	shown bool
}

func newProgress(w io.Writer, what string) *progress {
	p := &progress{what: what, begun: time.Now()}
	if isTerminal(w) {
		p.w = w
	}
	return p
}

// show says how many records have been done, at most four times a second.
func (p *progress) show(records int64, replaying bool) {
	now := time.Now()
	if p.w == nil || now.Sub(p.last) < 250*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	doing := ""
	if replaying {
		doing = " (replaying)"
	}
	per := records * int64(time.Second) / max(1, int64(now.Sub(p.begun)))
	fmt.Fprintf(p.w, "\r\x1b[K%s: %d records, %d/s%s", p.what, records, per, doing)
}

// done clears the line.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
