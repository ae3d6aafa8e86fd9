package main

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"syscall"
	"unicode/utf8"
)

// errReaderGone ends a verb whose only work is its output when nobody reads it any more: that is no trouble.
var errReaderGone = errors.New("the reader of standard output has gone")

// A pipe is standard output whose reader may go before the end (gmctl demo | head). What is written then is dropped, so
// that a verb ends as it would have ended, with its work done and its exit code right; after endWithReader the writer is
// told, and stops.
type pipe struct {
	w             io.Writer
	err           error // the first failed write, such as to a full disk
	gone          bool
	endWithReader bool
}

func (p *pipe) Write(b []byte) (int, error) {
	if !p.gone {
		n, err := p.w.Write(b)
		if !errors.Is(err, syscall.EPIPE) {
			if p.err == nil {
				p.err = err
			}
			return n, err
		}
		p.gone = true
	}
	if p.endWithReader {
		return 0, errReaderGone
	}
	return len(b), nil
}

// rowsOut is standard output for rows without end: the verb stops when nobody reads them.
func (a *app) rowsOut() io.Writer {
	a.stdout.endWithReader = true
	return a.stdout
}

// page is standard output for text that people read: on a terminal that is narrower than the text its lines are folded.
func (a *app) page() io.Writer {
	if columns := terminalWidth(a.stdout); columns > 0 && columns < textWidth {
		return &foldWriter{w: a.stdout, width: max(20, columns)}
	}
	return a.stdout
}

// foldWriter folds lines that are wider than a terminal between words, set in; it needs whole lines, or a flush.
type foldWriter struct {
	w     io.Writer
	width int
	line  []byte
}

func (f *foldWriter) Write(b []byte) (int, error) {
	for _, c := range b {
		f.line = append(f.line, c)
		if c != '\n' {
			continue
		}
		text := foldLine(string(f.line[:len(f.line)-1]), f.width) + "\n"
		f.line = f.line[:0]
		if _, err := io.WriteString(f.w, text); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// foldLine breaks a line that is too wide: the gaps of a table shrink to two spaces, what does not fit stands below.
func foldLine(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := min(len(line)-len(text), width/4)
	const gap = "\x00" // before a word that stood apart
	text = wideGap.ReplaceAllString(text, " "+gap)
	pad := strings.Repeat(" ", indent)
	text = pad + strings.ReplaceAll(wrap(text, width-indent-2), "\n", "\n"+pad+"  ")
	return strings.ReplaceAll(strings.ReplaceAll(text, "  "+gap, "  "), gap, " ")
}

var wideGap = regexp.MustCompile(` {2,}`)
