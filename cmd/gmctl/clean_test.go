package main

import "testing"

// TestClean: text from outside cannot move what stands beside it, nor end a line.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain \u00fc\n\tx": "plain \u00fc\n\tx",
		"a\u202eb":          `a\u202eb`,
		"a\u2028b\u2066c":   `a\u2028b\u2066c`,
		"\x1b[31m\r\x00":    `\x1b[31m\r\x00`,
		"\xff":              `\xff`,
	} {
		if got := clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
