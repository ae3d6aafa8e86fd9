package mutants

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	run  = flag.Bool("mutants", false, "run the tests on every mutant; without it only the tables are checked")
	only = flag.String("mutant", "", "run only mutants whose name contains this")
)

const root = "../.."

// runSuite checks a table, and with -mutants requires each mutant to be noticed, or argued to be equivalent.
func runSuite(t *testing.T, s *Suite, atLeast int) {
	t.Helper()
	if n := len(s.Mutants); n < atLeast {
		t.Errorf("%d mutants, at least %d are wanted", n, atLeast)
	}
	names := map[string]bool{}
	for i := range s.Mutants {
		m := &s.Mutants[i]
		if names[m.Name] || m.Name == "" {
			t.Errorf("the name %q is empty or stands twice", m.Name)
		}
		names[m.Name] = true
		t.Run(m.Name, func(t *testing.T) {
			if _, err := s.Apply(m); err != nil {
				t.Fatal(err)
			}
			if *run && strings.Contains(m.Name, *only) {
				runMutant(t, s, m)
			}
		})
	}
}

func runMutant(t *testing.T, s *Suite, m *Mutant) {
	o, err := s.Run(t.Context(), m)
	switch {
	case err != nil:
		t.Fatal(err)
	case !o.Noticed && m.Equivalent == "":
		t.Errorf("not noticed, after %.1f s:\n%s", o.Took.Seconds(), o.Output)
	case o.Noticed && m.Equivalent != "":
		t.Errorf("argued to be equivalent (%s), but noticed by %s:\n%s", m.Equivalent, o.By, o.Output)
	case o.Noticed:
		t.Logf("noticed by %s after %.1f s", o.By, o.Took.Seconds())
	default:
		t.Logf("equivalent: %s", m.Equivalent)
	}
}

// TestRunner: a runner that calls everything noticed, or nothing, would prove nothing. The module it runs in is
// made here: a constant, an embedded text, and tests of both.
func TestRunner(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26\n",
		"m.go":      "package m\n\nimport _ \"embed\"\n\n//go:embed q.sql\nvar Query string\n\nconst Two = 2\n\nconst Unused = 7\n",
		"q.sql":     "select 1\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif Two != 2 {\n\t\t\tt.Fatal(Two)\n\t\t}\n\t})\n}\n\nfunc TestQuery(t *testing.T) {\n\tif Query != \"select 1\\n\" {\n\t\tt.Fatal(Query)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Suite{Root: dir, Package: ".", Stages: [][]string{{"-test.run=TestTwo"}, {"-test.run=TestQuery"}}}
	for _, c := range []struct {
		mutant  Mutant
		noticed bool
		by      string
	}{
		{Mutant{Name: "code", File: "m.go", Old: "Two = 2", New: "Two = 3"}, true, "TestTwo/two"},
		{Mutant{Name: "embedded", File: "q.sql", Old: "1", New: "2"}, true, "TestQuery"},
		{Mutant{Name: "survivor", File: "m.go", Old: "Unused = 7", New: "Unused = 8"}, false, ""},
	} {
		o, err := s.Run(t.Context(), &c.mutant)
		if err != nil || o.Noticed != c.noticed || o.By != c.by {
			t.Errorf("%s: %+v, %v", c.mutant.Name, o, err)
		}
	}
	if _, err := s.Run(t.Context(), &Mutant{Name: "broken", File: "m.go", Old: "Two = 2", New: "Two = x"}); err == nil || !strings.Contains(err.Error(), "compile") {
		t.Errorf("a mutant that does not compile: %v", err)
	}
	for _, old := range []string{"absent", "Two", "= 7"} {
		_, err := s.Run(t.Context(), &Mutant{Name: old, File: "m.go", Old: old, New: "= 7"})
		if stale := slices.Contains([]string{"absent", "= 7"}, old); errors.Is(err, ErrStale) != stale {
			t.Errorf("%q: %v", old, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "m.go"))
	if err != nil || !strings.Contains(string(text), "Two = 2") {
		t.Errorf("the tree was changed: %s %v", text, err)
	}
}
