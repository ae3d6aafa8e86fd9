package tracetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar" // the format of the exam's files; by the Go team, no dependencies

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
)

// A Case is one trace, read.
type Case struct {
	Name  string // file name without .txtar
	Meter *meter.Meter
	Card  *meter.RateCard
	List  *meter.RateCard // nil without list-rates.yaml
	Log   *meter.Log
	Drain bool
	// Values: the log is of plain event lines (source_format values).
	Values bool
	// Files are the trace's files by name: meter.yaml, rates.yaml, log.jsonl and so on, as they stand.
	Files map[string]string

	path string
	text *txtar.Archive
}

// Load reads every trace of a folder. None is an error.
func Load(dir string) ([]*Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, fmt.Errorf("tracetest: list %s: %w", dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("tracetest: list %s: there is no trace in it; the exam would pass unasked", dir)
	}
	cases := make([]*Case, len(paths))
	for i, path := range paths {
		if cases[i], err = ReadFile(path); err != nil {
			return nil, err
		}
	}
	return cases, nil
}

// ReadFile reads one trace.
func ReadFile(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tracetest: %w", err)
	}
	c, err := Parse(path, text)
	if err != nil {
		return nil, fmt.Errorf("tracetest: read %s: %w", path, err)
	}
	return c, nil
}

// New makes a case of files, in the order in which traces have them.
func New(name, why string, files map[string]string) (*Case, error) {
	a := &txtar.Archive{Comment: []byte(why + "\n")}
	for _, file := range strings.Fields(knownFiles) {
		if text, ok := files[file]; ok {
			a.Files = append(a.Files, txtar.File{Name: file, Data: []byte(text)})
		}
	}
	return Parse(name+".txtar", txtar.Format(a))
}

// Text is the case as a trace.
func (c *Case) Text() string { return string(txtar.Format(c.text)) }

// GoString is Text: property tests print a failing case so that it can be put into the exam.
func (c *Case) GoString() string { return "\n" + c.Text() }

var knownFiles = "meter.yaml rates.yaml list-rates.yaml log.jsonl values.jsonl options " + strings.Join(sections, " ")

// Parse reads the text of a trace.
func Parse(path string, text []byte) (*Case, error) {
	c := &Case{Name: strings.TrimSuffix(filepath.Base(path), ".txtar"), Drain: true, Files: map[string]string{},
		path: path, text: txtar.Parse(text)}
	for _, f := range c.text.Files {
		if _, twice := c.Files[f.Name]; twice || !strings.Contains(" "+knownFiles+" ", " "+f.Name+" ") {
			return nil, fmt.Errorf("file %s is twice in it, or unknown; known are %s", f.Name, knownFiles)
		}
		c.Files[f.Name] = string(f.Data)
	}
	if strings.TrimSpace(string(c.text.Comment)) == "" {
		return nil, fmt.Errorf("it does not say why its answer is right")
	}
	if err := c.parseConfig(); err != nil {
		return nil, err
	}
	return c, c.parseLog()
}

func (c *Case) parseConfig() error {
	var err error
	if c.Meter, err = meter.Parse("meter.yaml", []byte(c.Files["meter.yaml"])); err != nil {
		return err
	}
	if c.Card, err = pricing.Parse(c.Meter, "rates.yaml", []byte(c.Files["rates.yaml"])); err != nil {
		return err
	}
	if list, ok := c.Files["list-rates.yaml"]; ok {
		if c.List, err = pricing.Parse(c.Meter, "list-rates.yaml", []byte(list)); err != nil {
			return err
		}
	}
	for _, word := range strings.Fields(c.Files["options"]) {
		if word != "no-drain" {
			return fmt.Errorf("options: unknown word %q; known is no-drain", word)
		}
		c.Drain = false
	}
	return nil
}

func (c *Case) parseLog() error {
	log, isTrace := c.Files["log.jsonl"]
	values, isValues := c.Files["values.jsonl"]
	if isTrace == isValues {
		return fmt.Errorf("want either log.jsonl or values.jsonl")
	}
	var err error
	if isValues {
		c.Values = true
		c.Log, err = readValues(values)
	} else {
		c.Log, err = readTrace(log)
	}
	return err
}

// LogText is the log as it stands in the trace.
func (c *Case) LogText() string { return c.Files["log.jsonl"] + c.Files["values.jsonl"] }

// Write puts the case's meter, rates and log into a folder, as the command expects them, and returns the log's
// path. The meter file is gatewaymeter.yaml.
func (c *Case) Write(t testing.TB, dir string) (logPath string) {
	t.Helper()
	for name, text := range c.Files {
		switch {
		case strings.HasPrefix(name, "want/") || name == "options":
			continue
		case name == "meter.yaml":
			name = "gatewaymeter.yaml"
		case strings.HasSuffix(name, ".jsonl"):
			logPath = filepath.Join(dir, name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return logPath
}
