package main

import (
	"runtime/debug"
	"testing"
)

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"0 rows": plural(0, "row"), "1 row": plural(1, "row"), "2 rows": plural(int64(2), "row"),
		"1 request is": pluralVerb(1, "request", "is", "are"), "3 requests are": pluralVerb(3, "request", "is", "are"),
		"1 conflict + 2 orphans + 1 open": words(count{"conflict", 1}, count{"orphan", 2}, count{"late", 0}, count{"open", 1}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBreakCommand(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"  gmctl -C x bill", "  gmctl -C x bill"},
		{`  gmctl -C folder query "from late"`, "  gmctl -C folder query \\\n    \"from late\""},
	} {
		if got := breakCommand(c.line, 30); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestFoldLine(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"short", "short"},
		{"  2026-03-02T12:01:00Z        44     41    +3     +$0.030000", "  2026-03-02T12:01:00Z  44  41  +3\n    +$0.030000"},
	} {
		if got := foldLine(c.line, 40); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"my-meter/a.yaml": "my-meter/a.yaml", "my meter": "'my meter'", "it's": `'it'\''s'`} {
		if got := shellWord(word); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A hint's commands are those of this invocation: program, folder and meter file.
func TestAsInvoked(t *testing.T) {
	a := &app{program: "./bin/gmctl", chdir: "lab", meterPath: "other.yaml"}
	for text, want := range map[string]string{
		"run 'gmctl stream' first": "run './bin/gmctl -C lab -m other.yaml stream' first",
		"run 'gmctl bill --help'":  "run './bin/gmctl bill --help'",
		"or 'gmctl init DIR'":      "or './bin/gmctl init DIR'",
		"gmctl is a word":          "gmctl is a word",
	} {
		if got := a.asInvoked(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got, want := a.command("x", "bill"), "./bin/gmctl -C lab/x bill"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRevision(t *testing.T) {
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}
	info.Main.Version = "(devel)"
	if got := revisionOf(info); got != "abc+changes" {
		t.Error(got)
	}
	info.Settings = nil
	if got := revisionOf(info); got != "" {
		t.Error(got)
	}
	info.Main.Version = "v0.1.0"
	if got := revisionOf(info); got != "v0.1.0" {
		t.Error(got)
	}
}

// A program is called by its name on PATH, by a path, or by go run.
func TestProgram(t *testing.T) {
	for called, want := range map[string]string{
		"gmctl": "gmctl", "bin/gmctl": "bin/gmctl", "../my bin/gmctl": "'../my bin/gmctl'", "/tmp/go-build12/b001/exe/gmctl": "go run .", "/root/.cache/go-build/ab/cd-d/gmctl": "go run .",
	} {
		if got := program(called); got != want {
			t.Errorf("%s: %s, want %s", called, got, want)
		}
	}
	t.Chdir("../..")
	if got, want := program("/tmp/go-build12/b001/exe/gmctl"), "go run ./cmd/gmctl"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Chdir(t.TempDir())
	if got, want := program("/tmp/go-build12/b001/exe/gmctl"), "gmctl"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
