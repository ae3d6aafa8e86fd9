package oracle

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		number string
		whole  bool
		value  int64
		fits   bool
	}{
		{"0", true, 0, true},
		{"-0", true, 0, true},
		{"0.000", true, 0, true},
		{"0e999999999999999999999", true, 0, true},
		{"17", true, 17, true},
		{"-17", true, -17, true},
		{"1e3", true, 1000, true},
		{"10.0", true, 10, true},
		{"1.50e1", true, 15, true},
		{"1.5", false, 0, false},
		{"15e-1", false, 0, false},
		{"150e-1", true, 15, true},
		{"1e-1000000000", false, 0, false},
		{"1e1000000000", true, 0, false},
		{"1e99999999999999999999999999", true, 0, false},
		{"1e-99999999999999999999999999", false, 0, false},
		{"1E+0000000000000000000000002", true, 100, true},
		{"9223372036854775807", true, math.MaxInt64, true},
		{"9223372036854775808", true, 0, false},
		{"-9223372036854775808", true, math.MinInt64, true},
		{"9007199254740993", true, 9007199254740993, true}, // a float has lost the last digit
		{strings.Repeat("9", 1<<20), true, 0, false},
		{"0." + strings.Repeat("0", 1<<20) + "1e1048577", true, 1, true},
	} {
		d := parseDecimal(c.number)
		v, fits := d.int64()
		if d.whole() != c.whole || v != c.value || fits != c.fits {
			t.Errorf("%.40s: whole %v, %d, fits %v", c.number, d.whole(), v, fits)
		}
	}
}

func TestTime(t *testing.T) {
	bad := moment{}
	at := func(ms int64) moment { return moment{ms: ms, ok: true} }
	for _, c := range []struct {
		unit meter.TimeUnit
		json string
		want moment
	}{
		{meter.UnitMs, `1767225600000`, at(1767225600000)},
		{meter.UnitMs, `1.767225600e12`, at(1767225600000)},
		{meter.UnitMs, `1767225600000.5`, bad},
		{meter.UnitMs, `"1767225600000"`, bad}, // never a digit string
		{meter.UnitMs, `"2026-01-01T00:00:00Z"`, bad},
		{meter.UnitMs, `null`, bad},
		{meter.UnitMs, `true`, bad},
		{meter.UnitMs, `-1`, at(-1)},
		{meter.UnitMs, `1e30`, moment{huge: true}},
		{meter.UnitMs, `1e1000000000`, moment{huge: true}},
		{meter.UnitS, `1767225600`, at(1767225600000)},
		{meter.UnitS, `1767225600.123`, at(1767225600123)},
		{meter.UnitS, `1767225600.1230`, at(1767225600123)},
		{meter.UnitS, `1767225600.1234`, bad},
		{meter.UnitUs, `1999`, at(1)},
		{meter.UnitUs, `-1`, at(-1)}, // floored, below zero too
		{meter.UnitUs, `1.5`, bad},
		{meter.UnitNs, `-1000001`, at(-2)},
		{meter.UnitNs, `1767225600000999999`, at(1767225600000)},
		{meter.UnitNs, `9223372036854775808`, at(9223372036854)}, // past int64 in ns, a fine time in ms
		{meter.UnitRFC3339, `1767225600000`, bad},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00Z"`, at(1767225600000)},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00.9999Z"`, at(1767225600999)},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00.1Z"`, at(1767225600100)},
		{meter.UnitRFC3339, `"2026-01-31T23:30:00-02:00"`, at(1769909400000)},
		{meter.UnitRFC3339, `"2026-01-01T05:30:00+05:30"`, at(1767225600000)},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00-00:00"`, at(1767225600000)},
		{meter.UnitRFC3339, `"1969-12-31T23:59:59.9995Z"`, at(-1)},
		{meter.UnitRFC3339, `"0000-01-01T00:00:00Z"`, at(-62167219200000)},
		{meter.UnitRFC3339, `"2016-12-31T23:59:60Z"`, at(1483228799999)},
		{meter.UnitRFC3339, `"2016-12-31T23:59:60.000Z"`, at(1483228799999)},
		{meter.UnitRFC3339, `"2017-01-01T05:29:60+05:30"`, at(1483228799999)},
		{meter.UnitRFC3339, `"2016-12-31T22:59:60Z"`, bad},
		{meter.UnitRFC3339, `"2016-12-31T23:59:60+01:00"`, bad},
		{meter.UnitRFC3339, `"2016-12-31T23:59:61Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-01t00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00z"`, bad},
		{meter.UnitRFC3339, `"2026-01-01 00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00"`, bad},
		{meter.UnitRFC3339, `"2026-01-01T00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00.Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T10:00:00,500Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T1:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T10:00:00+24:00"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T10:00:00+00:60"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T10:00:00+0100"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T24:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-05T10:60:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-02-29T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2024-02-29T00:00:00Z"`, at(1709164800000)},
		{meter.UnitRFC3339, `"2100-02-29T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-00-01T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-13-01T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-00T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-32T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"+026-01-01T00:00:00Z"`, bad},
		{meter.UnitRFC3339, `"2026-01-01T00:00:00ZZ"`, bad},
		{meter.UnitRFC3339, `""`, bad},
	} {
		dec := json.NewDecoder(strings.NewReader(c.json))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		got := readTime(c.unit, v)
		if c.want.huge {
			got.ok, got.ms = false, 0 // which time a huge one is does not matter
		}
		if got != c.want {
			t.Errorf("%s under %s: got %+v, want %+v", c.json, c.unit, got, c.want)
		}
	}
}

func TestReadObject(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct {
		name, raw string
		want      meter.Reason
	}{
		{"an object", `{"a":1}`, meter.ReasonNone},
		{"blanks around", " \t\r\n{} ", meter.ReasonNone},
		{"no byte", "", meter.Empty},
		{"blank", " ", meter.BadJSON},
		{"no object", `[]`, meter.BadJSON},
		{"a text", `"a"`, meter.BadJSON},
		{"null as text", `null`, meter.BadJSON},
		{"two objects", `{}{}`, meter.BadJSON},
		{"a comma too many", `{"a":1,}`, meter.BadJSON},
		{"a mark of byte order", "\ufeff{}", meter.BadJSON},
		{"a raw control character", "{\"a\":\"\x01\"}", meter.BadJSON},
		{"a leading zero", `{"a":01}`, meter.BadJSON},
		{"not a number", `{"a":NaN}`, meter.BadJSON},
		{"bad UTF-8 in a text", "{\"a\":\"\xff\"}", meter.BadUTF8},
		{"bad UTF-8 behind bad JSON", "{]\xff", meter.BadUTF8},
		{"an encoded surrogate", "{\"a\":\"\xed\xa0\x80\"}", meter.BadUTF8},
		{"a pair", `{"a":"\ud83d\ude00"}`, meter.ReasonNone},
		{"a high surrogate alone", `{"a":"\ud83d"}`, meter.BadJSON},
		{"a low surrogate alone", `{"a":"\ude00"}`, meter.BadJSON},
		{"a pair the wrong way", `{"a":"\ude00\ud83d"}`, meter.BadJSON},
		{"a high one before another escape", `{"a":"\ud83d\n"}`, meter.BadJSON},
		{"a high one before a high one", `{"a":"\ud83d\ud83d\ude00"}`, meter.BadJSON},
		{"an unpaired one in a name", `{"\ud83d":1}`, meter.BadJSON},
		{"an escaped backslash before u", `{"a":"\\ud83d"}`, meter.ReasonNone},
		{"a name twice", `{"a":1,"a":1}`, meter.DuplicateKey},
		{"a name twice, escaped", `{"a":1,"\u0061":2}`, meter.DuplicateKey},
		{"a name twice, deep in an array", `{"x":[[{"a":1,"b":2,"a":3}]]}`, meter.DuplicateKey},
		{"the empty name twice", `{"":1,"":2}`, meter.DuplicateKey},
		{"the same name in two objects", `{"a":{"a":1},"b":{"a":1}}`, meter.ReasonNone},
		{"names that differ in case", `{"a":1,"A":1}`, meter.ReasonNone},
		{"a name twice and an unpaired surrogate", `{"a":1,"a":"\ud83d"}`, meter.BadJSON},
		{"a name twice, then too deep", `{"a":1,"a":` + nested(1000) + `}`, meter.BadJSON},
		{"1000 deep", nested(1000), meter.ReasonNone},
		{"1001 deep", nested(1001), meter.BadJSON},
		{"999 arrays in the object", `{"a":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}`, meter.ReasonNone},
		{"1000 arrays in the object", `{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, meter.BadJSON},
		{"10,001 deep", nested(10001), meter.BadJSON},
		{"400,000 deep", strings.Repeat("[", 400000), meter.BadJSON},
		{"too large", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, meter.TooLarge},
	} {
		if _, got := readObject([]byte(c.raw), 1<<20); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{"a", "a"}, {"", ""}, {nil, ""}, {true, ""}, {map[string]any{}, ""}, {[]any{"a"}, ""},
		{"a\x00b", ""}, {strings.Repeat("x", 512), strings.Repeat("x", 512)}, {strings.Repeat("x", 513), ""},
		{json.Number("17"), "17"}, {json.Number("-5"), "-5"}, {json.Number("1e3"), ""}, {json.Number("10.0"), ""},
		{json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		{json.Number(strings.Repeat("9", 513)), ""},
	} {
		if got := text(c.in); got != c.want {
			t.Errorf("%.20v: got %.20q", c.in, got)
		}
	}
}

func TestWindowEnd(t *testing.T) {
	for _, c := range []struct{ z, t, want int64 }{
		{60, 0, 60}, {60, 59, 60}, {60, 60, 120}, {60, -1, 0}, {60, -60, 0}, {60, -61, -60}, {7, 20, 21}, {7, 21, 28}, {7, -7, 0}, {7, -8, -7},
	} {
		r := ruling{m: &meter.Meter{Window: meter.Window{Size: c.z}}}
		if got := r.windowEnd(c.t); got != c.want {
			t.Errorf("Z=%d t=%d: got %d, want %d", c.z, c.t, got, c.want)
		}
	}
}

// FuzzDecode: no bytes stop the decoder, every record has one bucket, and a dead letter has nothing but its reason.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"k":"S","id":"r1","a":"acme","m":"gpt","t":5,"in":7,"cached":2}`, `{"k":"C","id":7,"t":1e3,"out":2,"st":"ok","lat":5}`,
		`{"k":"P","id":"r","t":1,"think":1}`, `{"k":"T","t":1e1000000000}`, `[`, ``, "{\"\xff\":1}", `{"k":"\ud800"}`} {
		f.Add([]byte(s), false)
	}
	text := `
meter: fuzz
kind: requests
event:
  format: json
  fields: {kind: k, identity: [id], account: a, sku: m, time: t, status: st, received: t}
  time_unit: ms
  kinds: {start: S, progress: P, complete: C, error: E, tick: T}
  latency: lat
  quantities:
    in: {path: in, on: start}
    cached: {path: cached, part_of: in, default: 0}
    out: {path: out, on: end, default: 0}
    think: {path: think, part_of: out, default: 0}
  max_ahead: 5m
  min_time: 1970-01-01T00:00:00Z
watermark: {max_out_of_orderness: 10s}
window: {size: 1m, allowed_lateness: 1m}
assembly: {abandon_after: 3m}
pricing: {rate_card: rates.yaml}
`
	m, err := meter.Parse("fuzz.yaml", []byte(text))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte, received bool) {
		r := meter.Record{Value: slices.Clone(raw), Received: received, LogTime: 10, HasLogTime: !received}
		e := Decode(m, &r)
		if e.Bucket == 0 || (e.Bucket == meter.BucketDeadLetter) != (e.Reason != meter.ReasonNone) {
			t.Fatalf("bucket %v, reason %v", e.Bucket, e.Reason)
		}
		if e.Bucket == meter.BucketDeadLetter && (e.ID != "" || e.Time != 0 || e.Quantities != nil) {
			t.Fatalf("a dead letter says %+v", e)
		}
		if e.Bucket == meter.BucketEvent && (e.ID == "" || len(e.Quantities) != 4 || (e.Account == "") != (e.Kind != meter.KindStart)) {
			t.Fatalf("an event says %+v", e)
		}
		if string(raw) != string(r.Value) {
			t.Fatal("the record's bytes were changed")
		}
	})
}
