package tracetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

const sample = `R3. e1 twice and e2 late: by hand.
-- meter.yaml --
meter: taps
kind: events
event:
  format: json
  fields: {identity: [id], account: a, sku: {const: tap}, time: t}
  time_unit: s
  quantities: {taps: {const: 1}}
  max_ahead: 1h
  min_time: 1970-01-01T00:00:00Z
watermark: {max_out_of_orderness: 0s}
window: {size: 60s, allowed_lateness: 0s}
pricing: {rate_card: rates.yaml}
-- rates.yaml --
rates:
  - {sku: tap, tier: 0, quantity: taps, usd: "0.5", per: 1, effective_from: 1970-01-01T00:00:00Z}
-- log.jsonl --
{"trace":1,"topic":"t","partitions":[0]}
{"partition":0,"offset":0,"value":{"id":"e1","a":"a b","t":5}}
{"partition":0,"offset":2,"value":{"id":"e1","a":"a b","t":5}}
{"partition":0,"offset":3,"value":"no"}

{"partition":0,"offset":5,"value":{"id":"e0","a":"acme","t":60}}
{"partition":0,"offset":7,"value":{"id":"e2","a":"acme","t":5}}
-- want/rows --
"a b" 1970-01-01T00:01:00Z recomputed requests=1 taps=1 usd=0.500000000000 table
acme 1970-01-01T00:02:00Z recomputed requests=1 taps=1 usd=0.500000000000 table
-- want/bill --
"a b" 1970-01-01T00:01:00Z final rev=2 requests=1 taps=1 usd=0.500000000000 adj=0.000000000000 total=0.500000000000 table
acme 1970-01-01T00:02:00Z final rev=2 requests=1 taps=1 usd=0.500000000000 adj=0.000000000000 total=0.500000000000 table
-- want/journal --
main rev=1 "a b" 1970-01-01T00:01:00Z requests=1 total=0.500000000000 delta=0.500000000000
final rev=2 "a b" 1970-01-01T00:01:00Z requests=1 total=0.500000000000 delta=0.000000000000
main rev=1 acme 1970-01-01T00:02:00Z requests=1 total=0.500000000000 delta=0.500000000000
final rev=2 acme 1970-01-01T00:02:00Z requests=1 total=0.500000000000 delta=0.000000000000
-- want/items --
late 0@7 e2 event acme 1970-01-01T00:01:00Z requests=1 taps=1 usd=0.500000000000
-- want/dead --
0@3 bad_json
-- want/summary --
read=5 dead_letter.bad_json=1 event=4 counted=2 late=1 duplicate=1
`

func TestSample(t *testing.T) {
	c, err := Parse("sample.txtar", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	a, err := OracleAnswer(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Differences(a) {
		t.Error(d)
	}
}

// TestDifferencesAreSeen: whatever an engine gets wrong, the runner says which section.
func TestDifferencesAreSeen(t *testing.T) {
	for _, tc := range []struct {
		section string
		spoil   func(a *Answer)
	}{
		{Rows, func(a *Answer) { a.Rows = nil }},
		{Rows, func(a *Answer) { a.Rows[0].Amount = meter.From64(1) }},
		{Rows, func(a *Answer) { a.Rows[0].Usage.SetHash++ }},
		{Rows, func(a *Answer) { a.Rows[0].Cells[0].SKU = "other" }},
		{Rows, func(a *Answer) { a.Rows[1].Usage.Quantities[0]++ }},
		{Rows, func(a *Answer) { a.Rows[1].State = meter.Open }},
		{Rows, func(a *Answer) { a.Rows[1].Unpriced = 1 }},
		{Complete, func(a *Answer) { a.Complete[0].Usage.SetHash++ }},
		{Bill, func(a *Answer) { a.Bill[0].Revision++ }},
		{Bill, func(a *Answer) { a.Bill[0].Adjustment = meter.From64(1) }},
		{Journal, func(a *Answer) { a.Journal = a.Journal[1:] }},
		{Journal, func(a *Answer) { a.Journal[0].Delta.SetHash++ }},
		{Items, func(a *Answer) { a.Items[len(a.Items)-1].Offsets[0]++ }},
		{Items, func(a *Answer) { a.Items = nil }},
		{Dead, func(a *Answer) { a.Dead[0].Reason = meter.BadUTF8 }},
		{Summary, func(a *Answer) { a.Summary.Late++ }},
		{"complete truth", func(a *Answer) { a.CompleteSummary.Counted++ }},
	} {
		c, err := Parse("sample.txtar", []byte(sample))
		if err != nil {
			t.Fatal(err)
		}
		a, err := OracleAnswer(c)
		if err != nil {
			t.Fatal(err)
		}
		tc.spoil(a)
		if found := strings.Join(c.Differences(a), "\n"); !strings.Contains(found, tc.section+" differs") {
			t.Errorf("%s: not seen, only %q", tc.section, found)
		}
		a.Skip = append([]string{}, sections...)
		a.CompleteSummary = nil
		if found := c.Differences(a); found != nil {
			t.Errorf("%s: skipped, and yet %q", tc.section, found)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":         sample[strings.Index(sample, "-- meter"):],
		"no log":            strings.Replace(sample, "log.jsonl", "options", 1),
		"an unknown file":   strings.Replace(sample, "want/dead", "want/deaf", 1),
		"a file twice":      strings.Replace(sample, "want/dead", "want/items", 1),
		"a broken meter":    strings.Replace(sample, "kind: events", "kind: what", 1),
		"a broken rate":     strings.Replace(sample, `usd: "0.5"`, `usd: "x"`, 1),
		"no offset":         strings.Replace(sample, `"offset":7,`, "", 1),
		"no JSON":           strings.Replace(sample, `"offset":7,`, `"offset":7`, 1),
		"an unknown option": sample + "-- options --\ndrained\n",
	} {
		if _, err := Parse("x.txtar", []byte(text)); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder: not refused")
	}
}

// TestRewrite writes an answer over what is wanted, and nothing else.
func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "R3-sample.txtar")
	spoiled := strings.Replace(sample, "late=1", "late=2", 1)
	spoiled = strings.Replace(spoiled, "0@3 bad_json\n", "", 1)
	if err := os.WriteFile(path, []byte(spoiled), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := OracleAnswer(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Differences(a)) != 2 {
		t.Errorf("want two differences, got %q", c.Differences(a))
	}
	if err = c.rewrite(a); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != sample {
		t.Errorf("got:\n%s", got)
	}
}

func TestWrite(t *testing.T) {
	c, err := Parse("sample.txtar", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := os.ReadFile(c.Write(t, dir))
	if err != nil || string(log) != c.LogText() {
		t.Errorf("%v, %q", err, log)
	}
	if _, err = meter.Load(filepath.Join(dir, "gatewaymeter.yaml")); err != nil {
		t.Error(err)
	}
}
