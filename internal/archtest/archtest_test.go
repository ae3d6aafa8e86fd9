// Package archtest keeps the import rules of docs/ARCHITECTURE.md: engines share nouns, never rules, and cgo
// stays below batch/duckdb.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gatewaymeter/gatewaymeter/"

// allowed lists, for each room, the rooms that its product code (not its tests) may import. A room that is not
// listed may not exist.
var allowed = map[string][]string{
	"meter":         {},
	"schemas":       {"meter"},
	"pricing":       {"meter"},
	"stream":        {"meter"},
	"oracle":        {"meter"},
	"diff":          {"meter"},
	"trace":         {"meter"},
	"story":         {"meter", "trace"},
	"archive":       {"meter", "schemas", "internal/filelock"},
	"batch":         {"meter", "schemas"},
	"batch/duckdb":  {"meter", "schemas", "batch", "internal/plainjson"},
	"ledger/sqlite": {"meter", "schemas", "run", "stream", "internal/filelock", "internal/plainjson"},
	"run":           {"meter", "schemas", "stream", "trace", "archive"},
	"cmd/gmctl":     {"*"},

	"internal/archtest":      {},
	"internal/bench":         {},
	"internal/filelock":      {},
	"internal/plainjson":     {},
	"internal/mutants":       {},
	"internal/tracetest":     {"meter", "trace", "pricing", "oracle"},
	"internal/tracetest/gen": {"meter", "trace", "pricing", "oracle", "internal/tracetest"},
}

// outside lists which modules a pure room may import beside the standard library.
var outside = map[string][]string{
	"meter":   {"go.yaml.in/yaml/v3", "github.com/zeebo/xxh3"},
	"pricing": {"go.yaml.in/yaml/v3"},
	"stream":  {"github.com/zeebo/xxh3"},
	"oracle":  {},
	"diff":    {},
	"batch":   {},
}

type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		rooms, known := allowed[room]
		if !known {
			t.Errorf("%s: a new room has to be argued for in docs/ARCHITECTURE.md and listed here", room)
			continue
		}
		for _, imported := range p.Imports {
			other, ours := strings.CutPrefix(imported, module)
			switch {
			case ours && !slices.Contains(rooms, other) && !slices.Contains(rooms, "*"):
				t.Errorf("%s imports %s; allowed: %v", room, other, rooms)
			case !ours && strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
				if mods, pure := outside[room]; pure && !slices.Contains(mods, imported) {
					t.Errorf("%s imports %s; allowed: %v", room, imported, mods)
				}
				if strings.Contains(imported, "duckdb") && room != "batch/duckdb" {
					t.Errorf("%s imports %s: cgo stays below batch/duckdb", room, imported)
				}
			}
		}
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s has cgo files", room)
		}
	}
}

// The pure rooms read no clock, roll no dice, start no goroutine.
func TestPureRooms(t *testing.T) {
	forbidden := regexp.MustCompile(`time\.(Now|Since|After|Tick|Sleep)\(|math/rand|\bgo func|\bgo [a-z]+\(|float(32|64)\b`)
	for _, room := range []string{"meter", "stream", "oracle", "batch", "diff", "pricing"} {
		files, err := os.ReadDir("../../" + room)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile("../../" + room + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if m := forbidden.FindString(code); m != "" {
					t.Errorf("%s/%s:%d: %s in a pure room", room, f.Name(), i+1, m)
				}
			}
		}
	}
}

// A path in backquotes in docs/ARCHITECTURE.md exists.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`([a-z][A-Za-z0-9_.-]*/[A-Za-z0-9_./-]*)`").FindAllStringSubmatch(string(text), -1)
	if len(paths) < 10 {
		t.Fatalf("only %d paths named", len(paths))
	}
	for _, p := range paths {
		if _, err := os.Stat("../../" + p[1]); err != nil && !strings.Contains(p[1], "=") {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", p[1])
		}
	}
}
