package plainjson

import "strings"

// Words keeps one copy of each word, so that a word does not keep the text that it was read from alive.
type Words map[string]string

// Get is the copy of word.
func (w Words) Get(word string) string {
	if known, ok := w[word]; ok {
		return known
	}
	word = strings.Clone(word)
	w[word] = word
	return word
}
