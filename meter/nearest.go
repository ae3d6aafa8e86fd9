package meter

import (
	"slices"
	"strings"
)

// Nearest are the names that somebody may have meant by a word, the likeliest first, at most three.
func Nearest(word string, names []string) []string {
	type near struct {
		name  string
		steps int
	}
	var all []near
	word = strings.ToLower(word)
	for _, name := range names {
		low := strings.ToLower(name)
		steps := edits(word, low)
		if word != "" && (strings.HasPrefix(low, word) || strings.HasPrefix(word, low)) {
			steps = min(steps, 1)
		}
		if steps <= max(1, min(3, len(word)/2)) {
			all = append(all, near{name, steps})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return a.steps - b.steps })
	var out []string
	for _, n := range all[:min(3, len(all))] {
		out = append(out, n.name)
	}
	return out
}

// edits is the number of letters to change, add or take away between two words; words longer than 64 letters are far apart.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
