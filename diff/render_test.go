package diff

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

const hostile = "\x1b[2J\u202eevil\u009b31m\r\nrow\t\u0301" + "ＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥＷＩＤＥ|\"',=1+1"

func hostileReport(t *testing.T) *Report {
	items := []meter.Item{request(hostile, 0, []int64{1, 2}, hostile, 1, 1_000_000_000_000, 0, 999_999_999_999), request("ok", 0, []int64{3, 4}, hostile, 1, 1, 0, 0)}
	right := []meter.Item{as(meter.VerdictLate, items[0]), items[1], request("moved", 0, []int64{8}, "acme", 1, 1, 0, 0)}
	left := append(items, request("moved", 0, []int64{8}, hostile, 2, 1, 0, 0))
	l, r := ownSide(hostile, left), ownSide("recompute", right)
	r.MissingArchive = []Range{{Partition: 3, First: 100, Next: 200}}
	r.Fingerprint = "other"
	return mustCompare(t, l, r, Options{})
}

// Untrusted text never breaks the table: no line over 80 columns, nothing but visible text and line ends.
func TestTableIsSafe(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport(t).WriteTable(&out, TableOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if width(line) > 80 {
			t.Errorf("%d columns: %q", width(line), line)
		}
		for _, r := range line {
			if r != ' ' && (!unicode.IsGraphic(r) || unicode.IsMark(r)) {
				t.Errorf("%q in %q", r, line)
			}
		}
	}
}

func TestTable(t *testing.T) {
	late := request("b-2", 1, []int64{2, 3}, "acme", 1, 5, 0, 1)
	left := []meter.Item{request("a-1", 0, []int64{0, 1}, "acme", 1, 10, 2, 3), as(meter.VerdictLate, late), request("c-3", 0, []int64{4, 5}, "beta", 2, 1, 0, 0)}
	right := []meter.Item{left[0], late}
	var out bytes.Buffer
	if err := mustCompare(t, ownSide("ledger", left), ownSide("recompute complete", right), Options{}).WriteTable(&out, TableOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `ledger against recompute complete

  window end                      left      right  requests         left - right
acme
  2026-01-01T00:01:00Z               1          2        -1      -$0.00000000135
    -5 prompt_tokens, -1 completion_tokens
    late                     b-2                         -1      -$0.00000000135
        -5 prompt_tokens, -1 completion_tokens
beta
  2026-01-01T00:02:00Z               1       none        +1      +$0.00000000015
    +1 prompt_tokens
    unexplained              c-3                         +1      +$0.00000000015
        +1 prompt_tokens
        ledger bills it, recompute complete has no verdict on it

cause                                              requests         left - right
late                                                     -1      -$0.00000000135
unexplained                1 row                         +1      +$0.00000000015
total                                                    +0       -$0.0000000012

2 rows compared: 0 matched, 1 mismatched, 0 missing on the left, 1 extra on the
left, 0 incomplete. 0 open (not final yet, not judged). 0 rows not compared.
left $0.00000000318, right $0.00000000438, left - right -$0.0000000012
The two sides differ, and 1 row is not explained.
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestJSON(t *testing.T) {
	items := []meter.Item{tap("c-17", 422, "acme", t0+1), tap("c-16", 421, "acme", t0+1)}
	items[0].Verdict = meter.VerdictLate
	r := mustCompare(t, naiveSide(items), partner(click("c-17", "acme", t0+1), click("c-16", "acme", t0+2)), Options{})
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"account":"acme","window_end":"2026-01-01T00:01:00Z","state":"mismatched","left":{"requests":1,"quantities":{"taps":1},"total_usd":"0.010000000000","set_hash":"HASH"},"right":{"requests":2,"quantities":{"taps":2},"total_usd":"0.020000000000"},"delta":{"requests":-1,"quantities":{"taps":-1},"total_usd":"-0.010000000000"},"causes":[{"cause":"late","requests":-1,"quantities":{"taps":-1},"delta_usd":"-0.010000000000","ids":[["c-17"]],"log":["taps/0@422"]}]}
{"summary":{"left":"archive:naive.yaml","right":"partner.csv","compared":1,"matched":0,"mismatched":1,"missing":0,"extra":0,"open":0,"incomplete":0,"not_compared":0,"left_usd":"0.010000000000","right_usd":"0.020000000000","delta_usd":"-0.010000000000","delta":{"requests":-1,"quantities":{"taps":-1},"total_usd":"-0.010000000000"},"causes":{"late":{"requests":-1,"quantities":{"taps":-1},"delta_usd":"-0.010000000000"}},"unexplained_usd":"0.000000000000","unexplained_rows":0,"valued":["taps","total_usd"]}}
`
	at := strings.Index(out.String(), `"set_hash":"`) + len(`"set_hash":"`)
	got := out.String()[:at] + "HASH" + out.String()[at+16:]
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Hostile text is exact for a parser and harmless on a terminal.
func TestJSONIsExactAndSafe(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport(t).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && r != ' ' && !unicode.IsGraphic(r) {
			t.Fatalf("%q on the wire", r)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	found := false
	for _, line := range lines {
		var v struct {
			Account string
			Causes  []struct{ IDs [][]string }
			Summary *struct {
				Left     string
				Findings []struct{ Log []string }
			}
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, c := range v.Causes {
			for _, id := range c.IDs {
				found = found || v.Account == hostile && id[0] == hostile
			}
		}
		if v.Summary != nil && (v.Summary.Left != hostile || v.Summary.Findings[0].Log[0] != "requests/3@100-199") {
			t.Errorf("%+v", v.Summary)
		}
	}
	if !found {
		t.Error("the id did not survive")
	}
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	r := hostileReport(t)
	if err := r.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	shares := 0
	for _, d := range r.Differences {
		shares += len(d.Shares)
	}
	if len(lines) != shares+1 || strings.Join(lines[0], " ") != "account window_end state cause requests prompt_tokens cached_tokens completion_tokens delta_usd ids log why" {
		t.Errorf("%d lines, %d shares: %v", len(lines), shares, lines[0])
	}
}

// What only one side states is not in the delta, and is named.
func TestColumnsNotCompared(t *testing.T) {
	right := &Side{Name: "t.csv", Kind: Totals, Columns: Columns{Requests: true}, Rows: SliceRows([]meter.Row{
		{RowKey: meter.RowKey{Account: "acme", WindowEnd: t0 + minute}, Usage: meter.Usage{Requests: 2}}})}
	r := mustCompare(t, ownSide("ledger", []meter.Item{request("a", 0, []int64{0}, "acme", 1, 1, 0, 0)}), right, Options{})
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"right":{"requests":2}`, `"delta":{"requests":-1},"causes":[{"cause":"unexplained","requests":-1,"ids":[],"log":[],"why":[`,
		`"columns_not_compared":["prompt_tokens","cached_tokens","completion_tokens","total_usd"]`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "right_usd") {
		t.Error("the right side states no money")
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"plain": "plain", "Küche": "Küche", "a\x1bb": `a\x1bb`, "a\nb": `a\nb`, "\xff": `\xff`,
		"\u202e": `\u202e`, "e\u0301": `e\u0301`, "\u00a0": `\u00a0`, `a\b`: `a\b`} {
		if got := printable(in); got != want || printable(got) != got {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// On a narrow terminal prose is wrapped once, at its width: no line is folded a second time.
func TestTableProseWidth(t *testing.T) {
	var out bytes.Buffer
	if err := hostileReport(t).WriteTable(&out, TableOptions{Columns: 40}); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSpace(out.String()), "\n\n")
	lines := strings.Split(parts[len(parts)-1], "\n")
	if len(lines) < 4 {
		t.Fatalf("the verdict is %q", lines)
	}
	for i, line := range lines {
		if width(line) > 40 {
			t.Errorf("wider than 40: %q", line)
		}
		if i+1 < len(lines) && i < 3 && width(line)+1+width(strings.Fields(lines[i+1])[0]) <= 40 {
			t.Errorf("broken too early: %q before %q", line, lines[i+1])
		}
	}
}
