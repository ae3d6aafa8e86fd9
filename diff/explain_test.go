package diff

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func life() *Life {
	start := meter.Event{Partition: 0, Offset: 3, LogTime: t0 + 10_200, HasLogTime: true, Bucket: meter.BucketEvent, Kind: meter.KindStart,
		ID: meter.NewID("r-17"), Account: "acme", SKU: "gpt", Time: t0 + 10_000, Quantities: []int64{10, 2, 0}, Present: 3}
	end := meter.Event{Partition: 0, Offset: 90, Bucket: meter.BucketEvent, Kind: meter.KindComplete, ID: meter.NewID("r-17"), Time: t0 + 20_000,
		Status: "ok", Quantities: []int64{0, 0, 7}, Present: 4}
	bad := meter.Event{Partition: 0, Offset: 91, Bucket: meter.BucketDeadLetter, Reason: meter.BadQuantity, Kind: meter.KindComplete}
	gone := request("r-17", 0, []int64{3}, "acme", 6, 10, 2, 0)
	gone.Abandoned, gone.Status, gone.Time, gone.Judged = true, "abandoned", t0+10_000+5*minute, t0+4*minute
	late := request("r-17", 0, []int64{90}, "acme", 1, 0, 0, 7)
	late.Verdict, late.Usage.Requests, late.Judged, late.Kind = meter.VerdictLateCompletion, 0, t0+9*minute, meter.KindComplete
	whole := request("r-17", 0, []int64{3, 90}, "acme", 1, 10, 2, 7)
	return &Life{ID: meter.NewID("r-17"), Meter: "tenant-cost", Topic: "requests", WindowSize: minute, Lateness: 2 * minute, AbandonAfter: 5 * minute,
		MaxOutOfOrderness: 20_000, Quantities: labQuantities, Prices: NewPriceBook(labCard(), nil),
		Records:    []LifeRecord{{start, meter.MinusInfinity}, {end, t0 + 9*minute}, {bad, t0 + 9*minute}},
		AsStreamed: []meter.Item{gone, late}, Complete: []meter.Item{whole},
		Ledger: labRows([]meter.Item{gone}, labCard(), []string{"prompt_tokens", "cached_tokens", "completion_tokens"})}
}

func TestExplainText(t *testing.T) {
	var out bytes.Buffer
	if err := life().WriteText(&out, 0); err != nil {
		t.Fatal(err)
	}
	want := `r-17 in tenant-cost
windows of 1m, lateness 2m, out-of-orderness 20s, abandoned after 5m

requests/0@3 start of 2026-01-01T00:00:10Z, logged 2026-01-01T00:00:10.2Z, met
no watermark yet
    acme gpt prompt_tokens=10 cached_tokens=2
    counted (R7): abandoned: no end by 2026-01-01T00:05:10Z (start + 5m); judged
    at watermark 2026-01-01T00:04:00Z, before its window is final at
    2026-01-01T00:08:00Z
requests/0@90 complete of 2026-01-01T00:00:20Z, met watermark
2026-01-01T00:09:00Z
    ok completion_tokens=7
    late_completion (R7): its request had been billed as abandoned, and it came
    too late to take that place
requests/0@91 complete, met watermark 2026-01-01T00:09:00Z
    dead_letter (R2): dead letter: bad_quantity; its bytes are kept

As streamed, by window end:
  counted acme 2026-01-01T00:06:00Z gpt
    requests/0@3
    requests=1 prompt_tokens=10 cached_tokens=2 completion_tokens=0
    8 prompt_tokens x $0.00000000015 (table) = $0.0000000012
    2 cached_tokens x $0.000000000015 (table) = $0.00000000003
    $0.00000000123
  late_completion acme 2026-01-01T00:01:00Z gpt
    requests/0@90
    requests=0 prompt_tokens=0 cached_tokens=0 completion_tokens=7
    7 completion_tokens x $0.0000000006 (table) = $0.0000000042
    $0.0000000042

Complete (nothing is late, nothing forgotten), by window end:
  counted acme 2026-01-01T00:01:00Z gpt
    requests/0@3 requests/0@90
    requests=1 prompt_tokens=10 cached_tokens=2 completion_tokens=7
    8 prompt_tokens x $0.00000000015 (table) = $0.0000000012
    2 cached_tokens x $0.000000000015 (table) = $0.00000000003
    7 completion_tokens x $0.0000000006 (table) = $0.0000000042
    $0.00000000543

Ledger, by window end:
  acme 2026-01-01T00:06:00Z final revision 0 requests=1 prompt_tokens=10
  cached_tokens=2 completion_tokens=0 $0.00000000123

Recompute, by window end:
  no row
`
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
}

func TestExplainJSON(t *testing.T) {
	l := life()
	l.ID = meter.NewID(hostile, "2")
	l.Records[0].Account = hostile
	var out, text bytes.Buffer
	if err := l.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var v struct {
		ID      []string
		Records []struct {
			Log, Verdict, Rule, Account string
			Watermark                   *string
			Quantities                  map[string]int64
		}
		AsStreamed []struct {
			Verdict   string
			AmountUSD string `json:"amount_usd"`
			Prices    []struct{ Quantity string }
		} `json:"as_streamed"`
		Complete, Ledger, Recompute []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if v.ID[0] != hostile || v.Records[0].Account != hostile || v.Records[0].Watermark != nil || *v.Records[1].Watermark != "2026-01-01T00:09:00Z" ||
		v.Records[1].Verdict != "late_completion" || len(v.Records[0].Quantities) != 2 || v.AsStreamed[0].AmountUSD != "0.000000001230" ||
		len(v.AsStreamed[0].Prices) != 2 || len(v.Ledger) != 1 || len(v.Recompute) != 0 || len(v.Complete) != 1 {
		t.Errorf("%+v", v)
	}
	if err := l.WriteText(&text, 0); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
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
