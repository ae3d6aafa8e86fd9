package meter

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"noodle-bar", "naan-nook", "acme", "acme-eu", "birch"}
	for word, want := range map[string]string{"noodle-ba": "noodle-bar", "NOODLE-BAR": "noodle-bar", "amce": "acme", "acm": "acme acme-eu", "nobody": "", "": ""} {
		if got := strings.Join(Nearest(word, names), " "); got != want && !(word == "amce" && strings.HasPrefix(got, want)) {
			t.Errorf("nearest to %q: %q, want %q", word, got, want)
		}
	}
}
