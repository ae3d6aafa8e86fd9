package meter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3" // the YAML organisation's maintained line of yaml.v3; its nodes carry line numbers
)

// A YAML reads one file into nouns and collects every fault with its line. The words follow the
// YAML 1.2 core schema: `on` and `yes` are words. Anchors, aliases and merge keys are refused:
// what decides money stands where it is read.
type YAML struct {
	File   string
	Faults Faults
}

// Root is the file's one mapping, nil (with a fault) where there is none.
func (y *YAML) Root(text []byte) *yaml.Node {
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		y.syntax(text, err)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil: // it would be ignored in silence
		y.Faults = append(y.Faults, Fault{y.File, second.Line, "a second YAML document begins here: a file has one"})
		return nil
	case !errors.Is(err, io.EOF):
		y.syntax(text, err)
		return nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		y.Faults = append(y.Faults, Fault{y.File, 1, "the file is no mapping of keys to values"})
		return nil
	}
	return doc.Content[0]
}

// syntax turns the library's "yaml: line 3: ..." into a fault.
func (y *YAML) syntax(file []byte, err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if n, what, ok := strings.Cut(rest, ": "); ok {
			if v, err := strconv.Atoi(n); err == nil {
				line, text = v, what
			}
		}
	}
	if tab := tabIndent(file); tab > 0 && (strings.Contains(text, "cannot start any token") || strings.Contains(text, "tab character")) {
		line, text = tab, "a tab stands where only spaces may: set lines in with spaces"
	}
	y.Faults = append(y.Faults, Fault{y.File, line, "not YAML: " + text})
}

// tabIndent is the first line that is set in with a tab; 0 without one.
func tabIndent(file []byte) int {
	line := 0
	for text := range bytes.Lines(file) {
		line++
		if rest := bytes.TrimLeft(text, " "); bytes.HasPrefix(rest, []byte("\t")) && len(bytes.TrimSpace(rest)) > 0 {
			return line
		}
	}
	return 0
}

// Faultf adds a fault at n.
func (y *YAML) Faultf(n *yaml.Node, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.Line
	}
	y.Faults = append(y.Faults, Fault{y.File, line, fmt.Sprintf(format, args...)})
}

// A Mapping is a YAML mapping whose keys are known.
type Mapping struct {
	Node *yaml.Node
	y    *YAML
	what string
	keys map[string]*yaml.Node
}

// Mapping reads n as a mapping with these keys; any other key is a fault. Always usable: where n is no
// mapping (a fault) or nil, it is empty.
func (y *YAML) Mapping(n *yaml.Node, what string, known ...string) Mapping {
	m := Mapping{n, y, what, map[string]*yaml.Node{}}
	y.each(n, what, func(key, value *yaml.Node) {
		if !slices.Contains(known, key.Value) {
			meant := ""
			if near := Nearest(key.Value, known); len(near) > 0 {
				meant = fmt.Sprintf("; did you mean %q?", near[0])
			}
			y.Faultf(key, "%s: unknown key %q%s; known: %s", what, clip(key.Value), meant, strings.Join(known, ", "))
			return
		}
		m.keys[key.Value] = value
	})
	return m
}

// Names reads n as a mapping with free names, in order.
func (y *YAML) Names(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	y.each(n, what, each)
}

func (y *YAML) each(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		y.Faultf(n, "%s: want a mapping", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || value.Kind == yaml.AliasNode || value.Anchor != "" {
			y.Faultf(key, "%s: anchors, aliases and merge keys are not read; write the value out", what)
			continue
		}
		if line, dup := seen[key.Value]; dup {
			y.Faultf(key, "%s: key %q stands twice (first on line %d)", what, clip(key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		each(key, value)
	}
}

// Get is the value of a key, nil where it is missing or null.
func (m Mapping) Get(key string) *yaml.Node {
	n := m.keys[key]
	if n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
}

// Need is Get with a fault where the key is missing; hint says what to write.
func (m Mapping) Need(key, hint string) *yaml.Node {
	n := m.Get(key)
	if n == nil && (m.Node == nil || m.Node.Kind == yaml.MappingNode) {
		m.y.Faultf(m.Node, "%s: %q is missing: %s", m.what, key, hint)
	}
	return n
}

// Refuse adds a fault if the key is there.
func (m Mapping) Refuse(key, why string) {
	if n := m.Get(key); n != nil {
		m.y.Faultf(n, "%s: %q %s", m.what, key, why)
	}
}

// Text is a non-empty scalar; "" (with a fault unless n is nil) for anything else.
func (y *YAML) Text(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		y.Faultf(n, "%s: want a word", what)
		return ""
	}
	return n.Value
}

// Word is one of a list of words.
func (y *YAML) Word(n *yaml.Node, what string, words ...string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(words, n.Value) {
		y.Faultf(n, "%s: %q is none of %s", what, clip(n.Value), strings.Join(words, ", "))
		return ""
	}
	return n.Value
}

// Int is a whole number in plain digits within [low, high].
func (y *YAML) Int(n *yaml.Node, what string, low, high int64) int64 {
	if n == nil {
		return low
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < low || v > high {
		y.Faultf(n, "%s: %q is no whole number from %d to %d", what, clip(n.Value), low, high)
		return low
	}
	return v
}

// maxDuration keeps sums of durations and times far from the ends of int64.
const maxDuration = 10 * 366 * 24 * time.Hour

// Duration is a time span such as 20s, 2m, 1h30m or 7d, in whole milliseconds.
func (y *YAML) Duration(n *yaml.Node, what string, low time.Duration) int64 {
	if n == nil {
		return low.Milliseconds()
	}
	d, err := parseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		y.Faultf(n, "%s: %q is no duration; write 500ms, 20s, 2m, 1h or 7d", what, clip(n.Value))
	case d%time.Millisecond != 0:
		y.Faultf(n, "%s: %q is finer than a millisecond", what, clip(n.Value))
	case d < low:
		y.Faultf(n, "%s: %q is less than %s", what, clip(n.Value), low)
	case d > maxDuration:
		y.Faultf(n, "%s: %q is more than ten years", what, clip(n.Value))
	default:
		return d.Milliseconds()
	}
	return low.Milliseconds()
}

func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(s)
}

// Path is a dotted field path.
func (y *YAML) Path(n *yaml.Node, what string) FieldPath {
	text := y.Text(n, what)
	if text == "" {
		return nil
	}
	path := strings.Split(text, ".")
	if slices.Contains(path, "") {
		y.Faultf(n, "%s: %q is no path; write names joined by dots, such as payload.status", what, clip(text))
		return nil
	}
	return path
}

// Paths is a non-empty list of paths.
func (y *YAML) Paths(n *yaml.Node, what string) []FieldPath {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		y.Faultf(n, "%s: want a list of paths such as [request_id]", what)
		return nil
	}
	var paths []FieldPath
	for _, item := range n.Content {
		paths = append(paths, y.Path(item, what))
	}
	return paths
}

// Source is a path or {const: WORD}.
func (y *YAML) Source(n *yaml.Node, what string) Source {
	if n == nil || n.Kind == yaml.ScalarNode {
		return Source{Path: y.Path(n, what)}
	}
	m := y.Mapping(n, what, "const")
	text := y.Text(m.Need("const", "write a path, or {const: WORD}"), what)
	if len(text) > maxText {
		y.Faultf(n, "%s: a word of over %d bytes", what, maxText)
	}
	return Source{Const: text, IsConst: true}
}

// maxText is the longest text of an identity part, account, sku, status or attribute (R2).
const maxText = 512

// Time is an RFC 3339 time or a date, in ms.
func (y *YAML) Time(n *yaml.Node, what string) int64 {
	if n == nil {
		return 0
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, n.Value); err == nil {
			if t.Nanosecond()%1_000_000 != 0 {
				y.Faultf(n, "%s: %q is finer than a millisecond", what, clip(n.Value))
			}
			return t.UnixMilli()
		}
	}
	y.Faultf(n, "%s: %q is no time; write 2026-01-01T00:00:00Z or 2026-01-01", what, clip(n.Value))
	return 0
}
