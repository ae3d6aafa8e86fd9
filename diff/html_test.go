package diff

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func htmlOf(t *testing.T, r *Report, opt HTMLOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// aReport has one row a minute for an hour, each later by one cent, every tenth with the other sign.
func aReport(account string) *Report {
	r := &Report{Left: "ledger", Right: "recompute as-streamed", HasRequests: true, HasMoney: true}
	s := &r.Summary
	s.Causes = []Share{{Cause: Late}}
	for i := range int64(60) {
		pico := meter.From64((i + 1) * 10_000_000_000)
		if i%10 == 9 {
			pico = pico.Neg()
		}
		delta := Value{Requests: 1, Pico: pico}
		r.Differences = append(r.Differences, Difference{RowKey: meter.RowKey{Account: account, WindowEnd: 1767225600000 + i*60_000}, State: Mismatched,
			Left: &delta, Right: &Value{}, Delta: delta,
			Shares: []Share{{Cause: Late, Value: delta, IDs: []meter.ID{meter.NewID("r-" + string(rune('a'+i)))}, Log: []string{"requests/0@7"}}}})
		s.Mismatched, s.Compared = s.Mismatched+1, s.Compared+1
		s.Delta, s.Left = s.Delta.plus(delta), s.Left.plus(delta)
		s.Causes[0].Value = s.Causes[0].plus(delta)
	}
	return r
}

func TestHTML(t *testing.T) {
	page := htmlOf(t, aReport("acme"), HTMLOptions{Facts: [][2]string{{"meter", "tenant-cost"}}})
	for _, want := range []string{"The two sides differ. Every difference is explained.", "<td class=\"word\">late</td>", "tenant-cost",
		"2026-01-01T00:00:00Z", "one bar is 1 minute of window ends", "the tallest is -$0.600000", "requests/0@7", Late.Advice()} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, "<title>2026"); n != 60 {
		t.Errorf("%d bars, want 60", n)
	}
	if n := strings.Count(page, `class="down" x="`); n != 6 {
		t.Errorf("%d bars go down, want 6", n)
	}
	// It needs nothing else, and it is whole.
	for _, never := range []string{"<script", "http:", "https:", "ZgotmplZ"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	if !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
		t.Error("the page is cut off")
	}
}

func TestHTMLRows(t *testing.T) {
	r := aReport("acme")
	for _, c := range []struct{ max, want int }{{0, 60}, {7, 7}, {-1, 60}} {
		page := htmlOf(t, r, HTMLOptions{MaxRows: c.max})
		if n := strings.Count(page, "<td>mismatched</td>"); n != c.want {
			t.Errorf("MaxRows %d: %d rows, want %d", c.max, n, c.want)
		}
		if strings.Contains(page, "more rows") != (c.want < 60) {
			t.Errorf("MaxRows %d: what is left out is not said", c.max)
		}
	}
}

// Text from outside becomes neither markup nor a change of direction.
func TestHTMLIsSafe(t *testing.T) {
	page := htmlOf(t, aReport("<img src=x onerror=alert(1)>\u202e\x1b[31m"), HTMLOptions{Facts: [][2]string{{"topic", "</table><script>"}}})
	for _, never := range []string{"<img", "<script", "\u202e", "\x1b"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	svg := page[strings.LastIndex(page, "<svg"):]
	d := xml.NewDecoder(strings.NewReader(svg[:strings.Index(svg, "</svg>")+6]))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the picture is broken: %v", err)
		}
	}
}

func TestHTMLVerdicts(t *testing.T) {
	agree := &Report{Left: "ledger", Right: "recompute as-streamed", HasMoney: true, Summary: Summary{Compared: 3, Matched: 3}}
	nothing := &Report{Left: "ledger", Right: "recompute as-streamed", Summary: Summary{Open: 3}}
	bad := aReport("acme")
	bad.Summary.Unexplained = 1
	for want, r := range map[string]*Report{"The two sides agree.": agree, "Nothing was judged": nothing, "1 row is not explained": bad} {
		if page := htmlOf(t, r, HTMLOptions{}); !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A difference of one window has no picture, a tiny one a bar that can be seen.
func TestTimeline(t *testing.T) {
	r := aReport("acme")
	r.Differences = r.Differences[:1]
	if newTimeline(r) != nil {
		t.Error("a picture of one window")
	}
	r = aReport("acme")
	r.Differences[0].Delta.Pico = meter.From64(1)
	if line := newTimeline(r); line.Bars[0].H != 1 {
		t.Errorf("a pico-dollar has a bar of %d, want 1", line.Bars[0].H)
	}
}

func TestEveryCauseHasAdvice(t *testing.T) {
	for _, c := range Causes() {
		if c.Meaning() == "" || c.Advice() == "" {
			t.Errorf("%s has no advice", c)
		}
	}
}
