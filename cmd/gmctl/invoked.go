package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// program is how this process was called, so that a command that it prints can be pasted where its user stands: the
// path that was typed, gmctl where the shell found it, go run where Go built it for one run.
func program(called string) string {
	if strings.Contains(filepath.ToSlash(called), "/go-build") {
		if dir := sourceFolder(); dir != "" {
			return "go run " + shellWord(dir)
		}
		return "gmctl"
	}
	if !strings.ContainsRune(called, filepath.Separator) {
		return "gmctl"
	}
	return shellWord(called)
}

// sourceFolder is the folder of this program's source as seen from the working folder, "" outside the repository.
func sourceFolder() string {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	for root := here; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "cmd", "gmctl", "invoked.go")); err == nil {
			dir, err := filepath.Rel(here, filepath.Join(root, "cmd", "gmctl"))
			if err != nil {
				return ""
			}
			if dir != "." && !strings.HasPrefix(dir, "..") {
				dir = "./" + dir
			}
			return filepath.ToSlash(dir)
		}
		if root == filepath.Dir(root) {
			return ""
		}
	}
}

var plainShellWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellWord quotes a word where a shell would take it apart.
func shellWord(word string) string {
	if plainShellWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// command is a command line of this program for the meter folder dir, to be pasted where the user stands.
func (a *app) command(dir, verb string) string {
	line := a.program
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.chdir, dir)
	}
	if dir != "." && dir != "" {
		line += " -C " + shellWord(dir)
	}
	return line + " " + verb
}

var quotedCommand = regexp.MustCompile(`'gmctl ([a-z][^']*)'`)

// asInvoked writes the commands of a hint, which the code has as 'gmctl VERB', as this process was invoked.
func (a *app) asInvoked(text string) string {
	return quotedCommand.ReplaceAllStringFunc(text, func(quoted string) string {
		rest := quotedCommand.FindStringSubmatch(quoted)[1]
		line := a.program
		verb, _, _ := strings.Cut(rest, " ")
		if inFolder := usesMeter(verb) && !strings.HasSuffix(rest, "--help"); inFolder {
			if a.chdir != "" {
				line += " -C " + shellWord(a.chdir)
			}
			if a.meterPath != defaultMeter {
				line += " -m " + shellWord(a.meterPath)
			}
		}
		return "'" + line + " " + rest + "'"
	})
}

// breakCommand breaks a command line that is wider than a terminal as a shell allows it: a backslash at the line's end.
func breakCommand(line string, width int) string {
	var out strings.Builder
	column, quote := 0, rune(0)
	words := strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		}
		return r == ' ' && quote == 0
	})
	out.WriteString(line[:len(line)-len(strings.TrimLeft(line, " "))])
	column = out.Len()
	for i, word := range words {
		switch {
		case i > 0 && column+len(word)+3 > width:
			out.WriteString(" \\\n    ")
			column = 4
		case i > 0:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}
