package meter

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestIDParts(t *testing.T) {
	if NewID("a-b", "c") == NewID("a", "b-c") || NewID("", "a") == NewID("a", "") {
		t.Error("different parts give one id")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(rapid.String(), 2, 2).Draw(t, "a"), rapid.SliceOfN(rapid.String(), 2, 2).Draw(t, "b")
		ida, idb := NewID(a...), NewID(b...)
		if p := ida.Parts(); len(p) != 2 || p[0] != a[0] || p[1] != a[1] {
			t.Fatalf("%q comes back as %q", a, p)
		}
		same := a[0] == b[0] && a[1] == b[1]
		if (ida == idb) != same || ida.Less(idb) && idb.Less(ida) || !same && !ida.Less(idb) && !idb.Less(ida) {
			t.Fatalf("order or equality of %q and %q", a, b)
		}
	})
}

// The layout of R9, byte for byte: XXH3-64 over each part after its length as 4 bytes little-endian.
func TestHash64Layout(t *testing.T) {
	if id := NewID("req-1"); string(id) != "\x05\x00\x00\x00req-1" {
		t.Errorf("id bytes %q", string(id))
	}
	if PositionID(3, 17) != NewID("3", "17") {
		t.Error("identity none is partition and offset as decimal text")
	}
}

func TestUsageStopsAtInt64(t *testing.T) {
	a, b := Usage{Quantities: []int64{math.MaxInt64}}, Usage{Quantities: []int64{1}}
	if _, err := a.Plus(b); err == nil {
		t.Error("a sum past int64 has to be an error")
	}
	if _, err := (Usage{Quantities: []int64{math.MinInt64}}).Minus(b); err == nil {
		t.Error("a difference past int64 has to be an error")
	}
	sum, err := Usage{Requests: 1, SetHash: math.MaxUint64, Quantities: []int64{1}}.Plus(Usage{Requests: 2, SetHash: 3, Quantities: []int64{4}})
	if err != nil || !sum.Equal(Usage{Requests: 3, SetHash: 2, Quantities: []int64{5}}) {
		t.Errorf("got %+v, %v", sum, err)
	}
	diff, err := sum.Minus(sum)
	if err != nil || !diff.IsZero() {
		t.Errorf("got %+v, %v", diff, err)
	}
}

func TestRowJSON(t *testing.T) {
	m, err := Parse("m.yaml", []byte(gatewayMeter))
	if err != nil {
		t.Fatal(err)
	}
	row := Row{RowKey: RowKey{"acme", 1767225660000}, State: Final, Revision: 2, Usage: Usage{12, []int64{1000, 200, 300}, 0xf3a1},
		Amount: From64(4_310_000_000), Source: PriceTable}
	want := `{"account":"acme","window_start":"2026-01-01T00:00:00Z","window_end":"2026-01-01T00:01:00Z","state":"final","revision":2,"requests":12,` +
		`"quantities":{"prompt_tokens":1000,"cached_tokens":200,"completion_tokens":300},"amount_usd":"0.004310000000","adjustment_usd":"0.000000000000",` +
		`"total_usd":"0.004310000000","price_source":"table","unpriced_requests":0,"set_hash":"000000000000f3a1"}`
	if got := string(AppendRow(nil, m, &row, false)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	row.Amount = Mul64(math.MaxInt64, 2)
	if got := AppendRow(nil, m, &row, false); !json.Valid(got) || !bytes.HasSuffix(got, []byte(`,"overflow":true}`)) {
		t.Errorf("overflow: %s", got)
	}
}

func TestSummary(t *testing.T) {
	s := Summary{Read: 5, Tombstone: 1, Tick: 1, Event: 2, Counted: 1, Late: 1}
	s.DeadLetter[BadJSON] = 1
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	var twice Summary
	twice.Add(&s)
	twice.Add(&s)
	if twice.Read != 10 || twice.Check() != nil || !json.Valid(s.AppendJSON(nil)) {
		t.Errorf("sum %+v", twice)
	}
	s.Counted++
	if s.Check() == nil {
		t.Error("a record with two verdicts goes unnoticed")
	}
}

func TestTextIsSafeOnATerminal(t *testing.T) {
	const evil = "a\x1b[31m\u009b31m\x7f\"<é\u2028"
	text := AppendText(nil, evil)
	if bytes.ContainsAny(text, "\x1b\x7f\u009b") {
		t.Errorf("controls stand in %q", text)
	}
	var back string
	if err := json.Unmarshal(text, &back); err != nil || back != evil {
		t.Errorf("%s comes back as %q, %v", text, back, err)
	}
}
