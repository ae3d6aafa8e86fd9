package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func TestReadTotals(t *testing.T) {
	opt := FileOptions{Quantities: []string{"taps", "spins"}, WindowSize: minute}
	want := []meter.Row{
		{RowKey: meter.RowKey{Account: "acme", WindowEnd: t0 + minute}, Amount: meter.From64(110_000_000_000), Usage: meter.Usage{Requests: 11, Quantities: []int64{11}}},
		{RowKey: meter.RowKey{Account: "be,ta\n", WindowEnd: t0}, Amount: meter.From64(100_000), Usage: meter.Usage{Requests: 1000, Quantities: []int64{0}}},
	}
	files := map[string]string{
		"a.csv": "\ufeffwindow_end,account,requests,taps,total_usd,requsts\r\n1767225600000,\"be,ta\r\n\",1e3,0,1e-7,9\r\n2026-01-01T02:01:00+02:00,acme,11,11.0,0.11,9",
		"b.json": `{"account":"be,ta\n","window_end":1767225600000,"requests":1000,"quantities":{"taps":0},"total_usd":0.0000001,"requsts":9}` + "\n\n" +
			`{"account":"acme","window_end":"2026-01-01T00:01:00Z","requests":11,"quantities":{"taps":11},"total_usd":"0.110000000000","requsts":{"x":[1]}}`,
	}
	for name, text := range files {
		f, err := ReadFile(name, strings.NewReader(text), opt)
		if err != nil {
			t.Fatal(err)
		}
		var got []meter.Row
		for {
			var r meter.Row
			if f.Rows.Next(&r) != nil {
				break
			}
			got = append(got, r)
		}
		if len(got) != 2 {
			t.Fatalf("%s: %+v", name, got)
		}
		for i := range want {
			if got[i].RowKey != want[i].RowKey || got[i].Amount != want[i].Amount || !got[i].Usage.Equal(want[i].Usage) {
				t.Errorf("%s: got %+v, want %+v", name, got[i], want[i])
			}
		}
		if f.Kind != Totals || !f.Columns.Requests || !f.Columns.Money || f.Columns.SetHash || len(f.Quantities) != 1 || !slices.Equal(f.Ignored, []string{"requsts"}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestReadEvents(t *testing.T) {
	opt := FileOptions{Quantities: []string{"taps"}, Columns: map[string]string{"time": "at", "reference": "click"}}
	for name, text := range map[string]string{
		"a.csv":    "click,at,account,taps\nc-17,2026-01-01T00:00:00.5Z,k,2\n17,1767225600000,k,0\n",
		"a.jsonl":  `{"click":"c-17","at":"2026-01-01T00:00:00.5Z","account":"k","taps":2}` + "\n" + `{"click":17,"at":1767225600000,"account":"k","taps":0}`,
		"a.ndjson": `{"click":["c-17"],"at":"2026-01-01T00:00:00.5Z","account":"k","taps":2}` + "\n" + `{"click":[17],"at":1767225600000,"account":"k","taps":0}`,
	} {
		f, err := ReadFile(name, strings.NewReader(text), opt)
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != Events || len(f.Events) != 2 || f.Events[0].Time != t0+500 || f.Events[0].Reference != meter.NewID("c-17") ||
			f.Events[0].Quantities[0] != 2 || f.Events[1].Reference != meter.NewID("17") || f.Events[1].Line != f.Events[0].Line+1 {
			t.Errorf("%s: %+v", name, f.Events)
		}
	}
	f, err := ReadFile("two.csv", strings.NewReader("reference_1,reference_2,time,account\na,b,1767225600000,k\n"), FileOptions{})
	if err != nil || f.Events[0].Reference != meter.NewID("a", "b") {
		t.Errorf("%v %+v", err, f)
	}
}

func TestReadRefusals(t *testing.T) {
	opt := FileOptions{Quantities: []string{"taps"}, WindowSize: minute}
	head := "account,window_end,requests,total_usd\n"
	cases := []struct{ name, text, want string }{
		{"a.csv", "", "diff: read a.csv: empty"},
		{"a.json", "", "diff: read a.json: empty"},
		{"a.txt", "x", "cannot tell its format"},
		{"a.csv", "account,requests\n", "a.csv:1: neither totals"},
		{"a.csv", "account,window_end\n", "a.csv:1: totals without anything to compare"},
		{"a.csv", "window_end,requests\n", `a.csv:1: there is no column "account"`},
		{"a.csv", "account,account,window_end,requests\n", `"account" comes twice`},
		{"a.csv", head + "k,2026-01-01T00:01:00,1,1\n", "a.csv:2: window_end:"},
		{"a.csv", head + "k,2026-01-01T00:01:30Z,1,1\n", "a.csv:2: window_end: 2026-01-01T00:01:30Z is not the end of a window"},
		{"a.csv", head + "k,1767225660,1,1\n", "a.csv:2: window_end: \"1767225660\" is not plausible"},
		{"a.csv", head + "k,1767225660000,1.5,1\n", "a.csv:2: requests:"},
		{"a.csv", head + "k,1767225660000,-1,1\n", "a.csv:2: requests:"},
		{"a.csv", head + "k,1767225660000,99999999999999999999,1\n", "a.csv:2: requests:"},
		{"a.csv", head + "k,1767225660000,1,0.0000000000001\n", "a.csv:2: total_usd:"},
		{"a.csv", head + "k,1767225660000,1,$1\n", "a.csv:2: total_usd:"},
		{"a.csv", head + "k,1767225660000,1,NaN\n", "a.csv:2: total_usd:"},
		{"a.csv", head + "k,1767225660000,1,\n", "a.csv:2: total_usd is missing"},
		{"a.csv", head + ",1767225660000,1,1\n", "a.csv:2: account is missing"},
		{"a.csv", head + "k,1767225660000,1\n", "a.csv:2: wrong number of fields"},
		{"a.csv", head + "k,1767225660000,1,1\n\"a\n\",1767225660000,1,1\nk,2026-01-01T00:01:00Z,2,1\n", "a.csv:5: k 2026-01-01T00:01:00Z is in line 2 already"},
		{"a.csv", head + "\xff,1767225660000,1,1\n", "a.csv:2: not UTF-8"},
		{"a.json", `{"account":"k","window_end":1767225660000,"requests":1}` + "\n{", "a.json:2: not JSON"},
		{"a.json", `{"account":"k","window_end":1767225660000,"requests":1}` + "\n[]", "a.json:2: not a JSON object"},
		{"a.json", `{"account":"k","window_end":1767225660000,"requests":1}{}`, "a.json:1: more than one"},
		{"a.json", `{"account":"k","window_end":1767225660000,"requests":1}` + "\n" + `{"account":"k","window_end":1767225720000}`, "a.json:2: requests is missing"},
		{"a.json", `{"account":"k","account":"k","window_end":1767225660000,"requests":1}`, `a.json:1: "account" comes twice`},
		{"a.json", `{"account":"k","time":1767225660000,"reference":[]}`, "a.json:1: reference: an empty list"},
		{"a.json", `{"account":"k","time":1767225660000,"reference":["a",null]}`, "a.json:1: reference: an empty part"},
	}
	for _, c := range cases {
		_, err := ReadFile(c.name, strings.NewReader(c.text), opt)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.want)
		}
	}
	opt.Columns = map[string]string{"tiem": "at"}
	if _, err := ReadFile("a.csv", strings.NewReader(head), opt); err == nil || !strings.Contains(err.Error(), "tiem") {
		t.Error(err)
	}
	opt.Columns = map[string]string{"requests": "calls"}
	if _, err := ReadFile("a.csv", strings.NewReader(head), opt); err == nil || !strings.Contains(err.Error(), "calls") {
		t.Error(err)
	}
}

func TestPlainDecimal(t *testing.T) {
	for in, want := range map[string]string{"1": "1", "-0.5": "-0.5", "1e3": "1000", "1.25e1": "12.5", "125e-2": "1.25", "1e-7": "0.0000001",
		"-12.5E-3": "-0.0125", "1e+2": "100", "0.001e3": "0001"} {
		if got, err := plainDecimal(in); err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-", ".", "1.", ".5", "1e", "e5", "1e99", "0x1", "1_0", "+1", "--1", "1.2.3", "∞"} {
		if got, err := plainDecimal(in); err == nil {
			t.Errorf("%q: got %s", in, got)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add("a.csv", "account,window_end,requests\nk,1767225660000,1\n")
	f.Add("a.json", `{"account":"k","time":1767225660000,"reference":["a"],"quantities":{"taps":1}}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		side, err := ReadFile(name, strings.NewReader(text), FileOptions{Quantities: []string{"taps"}})
		if err != nil {
			return
		}
		for _, e := range side.Events {
			if e.Account == "" || len(e.Reference) == 0 || e.Quantities == nil && len(side.Quantities) > 0 {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// The last plausible event is of 2199; its window, and the window of its abandonment, may end in 2200.
func TestWindowsThatEndIn2200(t *testing.T) {
	if ms, err := parseTime("2200-01-01T00:01:50Z", 0); err != nil || ms != 7258118510000 {
		t.Errorf("got %d, %v", ms, err)
	}
	if _, err := parseTime("7258118510000000", 0); err == nil {
		t.Error("microseconds pass for milliseconds")
	}
}
