package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: (\\S+))?\n(.*?)^```$")

// Every command of the documents runs as printed: files are written, sh blocks run line by line with the exit code that
// a comment names (0 without one), sql blocks run in DuckDB; a text or json block is what the block before it printed, or
// a part of that ("..." stands for what is left out).
func TestDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command of the documents")
	}
	bin := buildGmctl(t)
	for _, doc := range []string{"docs/tutorial.md", "docs/audit.md", "docs/duckdb.md", "docs/meter.md", "README.md"} {
		t.Run(doc, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../..", doc))
			if err != nil {
				t.Fatal(err)
			}
			d := &docRun{t: t, bin: bin, dir: t.TempDir()}
			if doc == "docs/duckdb.md" {
				d.sh("gmctl init bill --story gateway\ncd bill\ngmctl stream")
			}
			blocks := fence.FindAllSubmatch(text, -1)
			for _, b := range blocks {
				switch kind, name, body := string(b[1]), string(b[2]), string(b[3]); kind {
				case "file":
					if err := os.WriteFile(filepath.Join(d.dir, name), []byte(body), 0o644); err != nil {
						t.Fatal(err)
					}
				case "sh":
					d.printed.Reset()
					d.sh(body)
				case "sql":
					d.printed.Reset()
					d.run(0, "gmctl", "query", body)
				case "text", "json":
					d.printedBefore(body)
				}
			}
			if d.commands < 4 {
				t.Errorf("only %d commands found", d.commands)
			}
		})
	}
}

func buildGmctl(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "gmctl"), ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

type docRun struct {
	t        *testing.T
	bin, dir string
	commands int
	printed  bytes.Buffer // by the last block of commands
}

// printedBefore checks that a block of output is what the commands above it print.
func (d *docRun) printedBefore(block string) {
	d.t.Helper()
	rest := trimLines(d.printed.String())
	for part := range strings.SplitSeq("\n"+trimLines(block), "\n...\n") {
		part = strings.Trim(part, "\n")
		_, after, found := strings.Cut("\n"+rest, "\n"+part+"\n")
		if !found {
			d.t.Errorf("not printed:\n%s\nbut:\n%s", part, rest)
			return
		}
		rest = after
	}
}

// trimLines drops the spaces at the ends of lines.
func trimLines(text string) string { return lineEnd.ReplaceAllString(text, "\n") }

var lineEnd = regexp.MustCompile(` *\n`)

func (d *docRun) sh(block string) {
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		command, comment, _ := strings.Cut(line, " # ")
		command = strings.TrimSpace(command)
		if dir, ok := strings.CutPrefix(command, "cd "); ok {
			d.dir = filepath.Join(d.dir, dir)
			continue
		}
		if command == "" || strings.HasPrefix(command, "make ") {
			continue // the build and the test suite itself: the CI script runs those
		}
		command = strings.TrimPrefix(strings.TrimPrefix(command, "../"), "bin/")
		command = strings.Replace(command, "go run ./cmd/gmctl", "gmctl", 1)
		want := 0
		if strings.HasPrefix(strings.TrimSpace(comment), "exit 1") {
			want = 1
		}
		d.run(want, "bash", "-c", command)
	}
}

func (d *docRun) run(want int, name string, args ...string) {
	d.t.Helper()
	d.commands++
	if name == "gmctl" {
		name = filepath.Join(d.bin, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "PATH="+d.bin+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	d.printed.Write(out.Bytes())
	if got := cmd.ProcessState.ExitCode(); got != want {
		d.t.Errorf("%s %v: exit %d (%v), want %d\n%s", name, args, got, err, want, out.Bytes())
	}
}
