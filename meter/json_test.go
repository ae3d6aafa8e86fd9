package meter

import (
	"encoding/json"
	"testing"
)

// A plain text is written as encoding/json writes it.
func TestPlainTextIsItsOwnJSON(t *testing.T) {
	for c := range 0x100 {
		s := "a" + string(rune(c)) + "b"
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if isPlain(s) && string(want) != `"`+s+`"` {
			t.Errorf("%q is taken for plain, its JSON is %s", s, want)
		}
	}
	if !isPlain("gpt-4.1 mini_x/y:z") || isPlain("é") {
		t.Error("what is plain?")
	}
}
