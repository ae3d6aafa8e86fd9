package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// version is the only version of the format so far.
const version = 1

// parseHeader reads a first line that is a header; nil for any other line. A header is an object whose first name is
// `trace`.
func parseHeader(line []byte) (*Header, error) {
	start, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte{'{'})
	if !ok || !bytes.HasPrefix(bytes.TrimLeft(start, " \t"), []byte(`"trace"`)) {
		return nil, nil
	}
	var h struct {
		Trace *int64 `json:"trace"`
		Header
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("header: something follows it on its line")
	}
	if h.Trace == nil || *h.Trace != version {
		return nil, fmt.Errorf(`header: want "trace":%d; this gmctl reads no other version`, version)
	}
	h.Stated = true
	return &h.Header, h.validate()
}

func (h *Header) validate() error {
	if h.Topic != "" && !IsTopic(h.Topic) {
		return fmt.Errorf("header: topic %q is no name; use at most 200 letters, digits, '.', '_' and '-'", h.Topic)
	}
	seen := map[int32]bool{}
	for _, p := range h.Partitions {
		if p < 0 || seen[p] {
			return fmt.Errorf("header: partition %d is below zero or stands twice", p)
		}
		seen[p] = true
	}
	return nil
}

// IsTopic reports whether a name may be a topic: it becomes the name of a folder.
func IsTopic(name string) bool {
	return name != "" && len(name) <= 200 && name != "." && name != ".." && strings.IndexFunc(name, noTopicRune) < 0
}

func noTopicRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
}

// TopicOf is the topic of a file that states none: its name without ending, with '_' for what no topic may hold.
func TopicOf(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ending)
	}
	if ext := filepath.Ext(name); ext != name {
		name = strings.TrimSuffix(name, ext)
	}
	name = strings.Map(func(r rune) rune {
		if noTopicRune(r) {
			return '_'
		}
		return r
	}, name)
	if name = name[:min(len(name), 200)]; !IsTopic(name) {
		return "log"
	}
	return name
}
