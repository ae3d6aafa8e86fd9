package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// maxDepth is how deep objects and arrays may nest (R2); the record's own object is the first level.
const maxDepth = 1000

// A walk goes through the tokens of a valid JSON text, and sees what encoding/json does not report: names that
// occur twice in an object, and nesting that is too deep.
type walk struct {
	dec                *json.Decoder
	duplicate, tooDeep bool
}

func newWalk(raw []byte) *walk {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // no float ever
	return &walk{dec: dec}
}

// value reads the next value: map[string]any, []any, string, json.Number, bool or nil. depth is the number of
// objects and arrays around it. It gives up, and says so, where nesting is too deep.
func (w *walk) value(depth int) any {
	tok := w.token()
	delim, composite := tok.(json.Delim)
	if !composite {
		return tok
	}
	if depth == maxDepth {
		w.tooDeep = true
		return nil
	}
	if delim == '[' {
		array := []any{}
		for !w.tooDeep && w.dec.More() {
			array = append(array, w.value(depth+1))
		}
		w.closing()
		return array
	}
	object := map[string]any{}
	for !w.tooDeep && w.dec.More() {
		name, _ := w.token().(string)
		if _, seen := object[name]; seen {
			w.duplicate = true
		}
		object[name] = w.value(depth + 1)
	}
	w.closing()
	return object
}

func (w *walk) closing() {
	if !w.tooDeep {
		w.token()
	}
}

func (w *walk) token() json.Token {
	tok, err := w.dec.Token()
	if err != nil {
		panic(fmt.Sprintf("oracle: read a token of valid JSON: %v", err))
	}
	return tok
}

// unpairedSurrogate reports whether a valid JSON text has a surrogate escape that is not one of a pair: RFC 8259
// allows it in the grammar, and no Unicode text can hold it.
func unpairedSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the escaped character
		if raw[i] != 'u' {
			continue
		}
		switch unit := hex4(raw[i+1:]); {
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return true
		case unit >= 0xD800 && unit <= 0xDBFF:
			rest := raw[i+5:]
			if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
				return true
			}
			if low := hex4(rest[2:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

func hex4(s []byte) uint64 {
	v, err := strconv.ParseUint(string(s[:4]), 16, 16)
	if err != nil {
		panic(fmt.Sprintf("oracle: read an escape of valid JSON: %v", err))
	}
	return v
}
