package diff

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// timeText is RFC 3339 in UTC, with milliseconds only where there are some.
func timeText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z")
}

// printable makes text from outside safe to print: control and format characters (escape codes, bidirectional marks,
// line ends) and combining marks become visible escapes. What is printable already is not changed.
func printable(s string) string {
	clean := true
	for _, r := range s {
		clean = clean && shown(r)
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[0])|0x100, 16)[1:])
		case shown(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// Printable is text from outside as reports and tables print it.
func Printable(s string) string { return printable(s) }

// shown reports whether a rune takes its own place and does nothing else.
func shown(r rune) bool {
	return r == ' ' || unicode.IsGraphic(r) && !unicode.IsMark(r) && !unicode.IsSpace(r)
}

// width is how many columns printable text takes: East Asian wide characters take two.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	wide := r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 ||
		r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd
	if wide {
		return 2
	}
	return 1
}

// fit cuts printable text to at most n columns, with a mark where something is missing.
func fit(s string, n int) string {
	if width(s) <= n {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		if used+runeWidth(r) > n-1 {
			break
		}
		used += runeWidth(r)
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// pad fills s up to n columns on the right; padLeft on the left.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-width(s))) }

func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-width(s))) + s }
