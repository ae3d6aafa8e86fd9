package schemas

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

const (
	logTime = 1767225600500 // 2026-01-01T00:00:00.5Z
	start   = `{"event_type":"RequestStarted","request_id":"r1","tenant_id":"acme","model":"gpt-x","ts":1767225600000,"payload":{"prompt_tokens":100,"cached_tokens":40,"agent":"sdk/1"}}`
	end     = `{"event_type":"RequestCompleted","request_id":"r1","ts":1767225600400,"payload":{"completion_tokens":7,"latency_ms":400,"status":"ok"}}`
)

func decode(m *meter.Meter, value string) meter.Event {
	var e meter.Event
	NewDecoder(m).Decode(&meter.Record{Partition: 3, Offset: 17, LogTime: logTime, HasLogTime: true, Byte: 99, Value: []byte(value)}, &e)
	return e
}

// with replaces one part of a text that must be there once.
func with(t *testing.T, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q stands %d times in %s", old, strings.Count(text, old), text)
	}
	return strings.Replace(text, old, new, 1)
}

func verdictOf(e *meter.Event) string {
	if e.Bucket == meter.BucketDeadLetter {
		return e.Reason.String()
	}
	return e.Bucket.String()
}

func TestStart(t *testing.T) {
	e := decode(requestsMeter(), start)
	if e.Bucket != meter.BucketEvent || e.Kind != meter.KindStart || e.ID != meter.NewID("r1") || e.IDHash != e.ID.Hash64() || e.Reference != e.ID ||
		e.Account != "acme" || e.SKU != "gpt-x" || e.Time != 1767225600000 || e.Status != "" || !slices.Equal(e.Quantities, []int64{100, 40, 0}) ||
		e.Present != 0b011 || !slices.Equal(e.Attributes, []string{"sdk/1"}) || e.HasLatency || e.PayloadHash == 0 ||
		e.Partition != 3 || e.Offset != 17 || e.Byte != 99 || e.LogTime != logTime || !e.HasLogTime {
		t.Errorf("%+v", e)
	}
}

func TestEnd(t *testing.T) {
	e := decode(requestsMeter(), end)
	if e.Bucket != meter.BucketEvent || e.Kind != meter.KindComplete || e.Account != "" || e.SKU != "" || e.Status != "ok" ||
		!slices.Equal(e.Quantities, []int64{0, 0, 7}) || e.Present != 0b100 || e.Latency != 400 || !e.HasLatency || e.Attributes[0] != "" {
		t.Errorf("%+v", e)
	}
	e = decode(requestsMeter(), with(t, end, "RequestCompleted", "ModelError"))
	if e.Kind != meter.KindError || e.Status != "error" || e.Latency != 400 {
		t.Errorf("%+v", e)
	}
}

func TestTick(t *testing.T) {
	e := decode(requestsMeter(), `{"event_type":"Heartbeat","ts":1767225600000,"request_id":null,"payload":{"prompt_tokens":-1}}`)
	if e.Bucket != meter.BucketTick || e.Kind != meter.KindTick || e.Time != 1767225600000 || e.ID != "" || e.PayloadHash != 0 {
		t.Errorf("%+v", e)
	}
	if e := decode(requestsMeter(), `{"event_type":"Heartbeat"}`); verdictOf(&e) != "bad_time" || e.Kind != meter.KindTick {
		t.Errorf("%+v", e)
	}
}

func TestTombstone(t *testing.T) {
	var e meter.Event
	NewDecoder(requestsMeter()).Decode(&meter.Record{Offset: 1, Null: true, LogTime: 5, HasLogTime: true}, &e)
	if e.Bucket != meter.BucketTombstone || e.LogTime != 5 || !e.HasLogTime {
		t.Errorf("%+v", e)
	}
}

// TestReasons breaks one thing of a good start at a time (R2).
func TestReasons(t *testing.T) {
	m := requestsMeter()
	for _, c := range []struct{ old, new, want string }{
		{`"RequestStarted"`, `"RequestStarted"`, "event"},
		{start, ``, "empty"},
		{start, ` `, "bad_json"},
		{start, `null`, "bad_json"},
		{start, `[]`, "bad_json"},
		{`"sdk/1"`, "\"\xff\"", "bad_utf8"},
		{`"sdk/1"`, "\"\xff\\q\"", "bad_utf8"}, // though the JSON is broken before and after
		{`{"event_type"`, `{"x":1,"x":2,"y":"\ud800","event_type"`, "bad_json"},
		{`"sdk/1"`, `"sdk/1","cached_tokens":40`, "duplicate_key"},
		{`"sdk/1"`, `"sdk/1","\u0063ached_tokens":40`, "duplicate_key"},
		{`"sdk/1"`, `"sdk/1","deep":[{"x":{"y":1,"y":1}}]`, "duplicate_key"},
		{`"sdk/1"`, `"sdk/1","Cached_Tokens":400`, "event"}, // names match exactly
		{`"RequestStarted"`, `"requeststarted"`, "ignored"},
		{`"RequestStarted"`, `"Other"`, "ignored"},
		{`"RequestStarted"`, `1`, "ignored"},
		{`"RequestStarted"`, `null`, "ignored"},
		{`"RequestStarted"`, `{"event_type":"RequestStarted"}`, "ignored"},
		{`"event_type"`, `"type"`, "ignored"},
		{`"RequestStarted"`, `"Request\u0053tarted"`, "event"},
		{`"r1"`, `null`, "missing_id"},
		{`"r1"`, `""`, "missing_id"},
		{`"r1"`, `1.0`, "missing_id"},
		{`"r1"`, `1e3`, "missing_id"},
		{`"r1"`, `true`, "missing_id"},
		{`"r1"`, `["r1"]`, "missing_id"},
		{`"r1"`, `"a\u0000"`, "missing_id"},
		{`"r1"`, `"` + strings.Repeat("x", 512) + `"`, "event"},
		{`"r1"`, `"` + strings.Repeat("x", 513) + `"`, "missing_id"},
		{`"r1"`, `"` + strings.Repeat("é", 256) + `"`, "event"},
		{`"r1"`, `"` + strings.Repeat(`\u00e9`, 257) + `"`, "missing_id"},
		{`"r1"`, strings.Repeat("9", 512), "event"},
		{`"r1"`, strings.Repeat("9", 513), "missing_id"},
		{`"r1"`, `-5`, "event"},
		{`"acme"`, `null`, "missing_account"},
		{`"acme"`, `""`, "missing_account"},
		{`"acme"`, `7`, "event"},
		{`"gpt-x"`, `false`, "missing_sku"},
		{`"ts":1767225600000`, `"ts":null`, "bad_time"},
		{`"ts":1767225600000`, `"ts":"1767225600000"`, "bad_time"},
		{`"ts":1767225600000`, `"ts":"2026-01-01T00:00:00Z"`, "bad_time"},
		{`"ts":1767225600000`, `"ts":1767225600000.5`, "bad_time"},
		{`"ts":1767225600000`, `"ts":1e-400`, "bad_time"},
		{`"ts":1767225600000`, `"ts":1.7672256e12`, "event"},
		{`"ts":1767225600000`, `"ts":946684800000`, "event"},
		{`"ts":1767225600000`, `"ts":946684799999`, "implausible_time"},
		{`"ts":1767225600000`, `"ts":7258118400000`, "implausible_time"},
		{`"ts":1767225600000`, `"ts":0`, "implausible_time"},
		{`"ts":1767225600000`, `"ts":1e400`, "implausible_time"},
		{`"ts":1767225600000`, `"ts":-9223372036854775809`, "implausible_time"},
		{`"ts":1767225600000`, fmt.Sprintf(`"ts":%d`, logTime+300_000), "event"},
		{`"ts":1767225600000`, fmt.Sprintf(`"ts":%d`, logTime+300_001), "future_time"},
		{`"ts":1767225600000`, `"ts":7258118399999`, "future_time"},
		{`:100`, `:null`, "bad_quantity"},
		{`"prompt_tokens":100,`, ``, "bad_quantity"},
		{`:100`, `:"100"`, "bad_quantity"},
		{`:100`, `:-1`, "bad_quantity"},
		{`:100`, `:100.5`, "bad_quantity"},
		{`:100`, `:true`, "bad_quantity"},
		{`:100`, `:1000000000001`, "bad_quantity"},
		{`:100`, `:1000000000000`, "event"},
		{`:100`, `:18446744073709551716`, "bad_quantity"}, // 100 modulo 2^64
		{`:100`, `:1e400`, "bad_quantity"},
		{`:100`, `:1e2`, "event"},
		{`:100`, `:100.0`, "event"},
		{`"cached_tokens":40`, `"cached_tokens":null`, "event"},
		{`"cached_tokens":40`, `"cached_tokens":-0`, "event"},
		{`"cached_tokens":40`, `"cached_tokens":100`, "event"},
		{`"cached_tokens":40`, `"cached_tokens":101`, "bad_usage"},
		{`"cached_tokens":40`, `"cached_tokens":40,"status":5`, "event"}, // not read on a start
		{`"cached_tokens":40`, `"cached_tokens":40,"completion_tokens":-5`, "event"},
		{`"payload":{`, `"payload":[{}],"x":{`, "bad_quantity"}, // a path into what is no object leads nowhere
	} {
		e := decode(m, with(t, start, c.old, c.new))
		if got := verdictOf(&e); got != c.want {
			t.Errorf("%.40s -> %.40s: %s, want %s", c.old, c.new, got, c.want)
		}
		if e.Bucket == meter.BucketDeadLetter && (e.ID != "" || e.Account != "" || e.Time != 0 || e.Present != 0 || e.Quantities[0] != 0) {
			t.Errorf("%.40s -> %.40s: a dead letter says more than its reason: %+v", c.old, c.new, e)
		}
	}
	for status, want := range map[string]string{`"ok"`: "event", `null`: "event", `"failed"`: "event", `""`: "event", `200`: "bad_status", `["ok"]`: "bad_status", `false`: "bad_status",
		`"a\u0000b"`: "bad_status", `"` + strings.Repeat("x", 513) + `"`: "bad_status"} {
		if e := decode(m, with(t, end, `"ok"`, status)); verdictOf(&e) != want {
			t.Errorf("status %.20s is %s, want %s", status, verdictOf(&e), want)
		}
	}
}

// TestOrderOfReasons: of a record with everything wrong, the first reason of R2 is named; mended one by one, the next.
func TestOrderOfReasons(t *testing.T) {
	text := "PAD{\"event_type\":\"RequestCompleted\",\"request_id\":ID,\"ts\":TS,\"payload\":{\"completion_tokens\":OUT,\"status\":1},\"z\":BAD,\"z\":Z}"
	m := parse(strings.NewReplacer("completion_tokens: {path: payload.completion_tokens, on: end, default: 0}",
		"completion_tokens: {path: payload.completion_tokens, on: end}\n    reasoning_tokens: {path: reasoning, part_of: completion_tokens, default: 9}",
		"max_ahead: 5m", "max_ahead: 5m\n  max_bytes: 400").Replace(requestsYAML))
	mend := func(old, new string) { text = with(t, text, old, new) }
	expect := func(want string) {
		t.Helper()
		if e := decode(m, text); verdictOf(&e) != want {
			t.Errorf("%s, want %s: %.300q", verdictOf(&e), want, text)
		}
	}
	mend("PAD", strings.Repeat(" ", 400))
	expect("too_large")
	mend(strings.Repeat(" ", 400), "")
	mend("BAD", "nope\xff")
	expect("bad_utf8")
	mend("\xff", "")
	expect("bad_json")
	mend("nope", "1")
	expect("bad_json") // names are words still
	mend("ID", "null")
	mend("TS", `"soon"`)
	mend("OUT", "-1")
	mend("Z}", "2}")
	expect("duplicate_key")
	mend(`,"z":2`, "")
	expect("missing_id")
	mend("null", `"r1"`)
	expect("bad_time")
	mend(`"soon"`, "12345")
	expect("implausible_time")
	mend("12345", "2000000000000")
	expect("future_time")
	mend("2000000000000", "1767225600000")
	expect("bad_quantity")
	mend("-1", "8")
	expect("bad_usage")
	mend(":8", ":9")
	expect("bad_status")
	mend(`"status":1`, `"status":"1"`)
	expect("event")

	starts := with(t, start, `"acme","model":"gpt-x"`, `"","model":""`)
	for _, want := range []string{"missing_account", "missing_sku", "event"} {
		if e := decode(requestsMeter(), starts); verdictOf(&e) != want {
			t.Errorf("%s, want %s", verdictOf(&e), want)
		}
		starts = strings.Replace(starts, `""`, `"x"`, 1)
	}
}

func TestProgress(t *testing.T) {
	m := parse(strings.Replace(requestsYAML, "completion_tokens: {path: payload.completion_tokens, on: end, default: 0}",
		"completion_tokens: {path: payload.completion_tokens, on: end, default: 0}\n    reasoning_tokens: {path: payload.reasoning, part_of: completion_tokens, default: 0}", 1))
	for payload, want := range map[string]string{
		`{}`:                                    "event 0000",
		`{"completion_tokens":null}`:            "event 0000",
		`{"completion_tokens":5}`:               "event 0100",
		`{"completion_tokens":5,"reasoning":5}`: "event 1100",
		`{"completion_tokens":5,"reasoning":6}`: "bad_usage 0000",
		`{"reasoning":0}`:                       "bad_usage 0000", // a part without its whole exceeds it
		`{"completion_tokens":-5}`:              "bad_quantity 0000",
		`{"completion_tokens":5,"status":7}`:    "event 0100", // no status is read
	} {
		e := decode(m, `{"event_type":"TokensStreamed","request_id":"r1","ts":1767225600000,"payload":`+payload+`}`)
		if got := fmt.Sprintf("%s %04b", verdictOf(&e), e.Present); got != want || e.PayloadHash != 0 {
			t.Errorf("%s: %s, want %s", payload, got, want)
		}
	}
}

// TestNumbers is K11.1: numbers are what their digits say.
func TestNumbers(t *testing.T) {
	m := requestsMeter()
	ids := map[meter.ID]bool{}
	for _, id := range []string{"9007199254740993", "9007199254740992", `"9007199254740994"`, "-9007199254740993"} {
		e := decode(m, with(t, start, `"r1"`, id))
		if e.ID != meter.NewID(strings.Trim(id, `"`)) {
			t.Errorf("id %s is %q", id, e.ID)
		}
		ids[e.ID] = true
	}
	if len(ids) != 4 {
		t.Errorf("ids are one that are not: %v", ids)
	}
	if a, b := decode(m, with(t, start, `"r1"`, "17")), decode(m, with(t, start, `"r1"`, `"17"`)); a.ID != b.ID {
		t.Error("17 does not count as that text")
	}
	for _, c := range []struct {
		out  string
		want int64
	}{
		{"1e3", 1000}, {"10.0", 10}, {"1.5e1", 15}, {"1500e-2", 15}, {"0e99999999999999999999", 0}, {"0.0e-5", 0}, {"-0", 0}, {"-0.0", 0}, {"1E12", 1e12}, {"000", -1},
		{"0.5e1", 5}, {"1.5", -1}, {`"NaN"`, -1}, {"NaN", -1}, {"-1", -1}, {"1e400", -1}, {"1e-1", -1}, {"1e13", -1}, {"1e99999999999999999999", -1}, {"1e-99999999999999999999", -1},
		{strings.Repeat("9", 100_000), -1}, {"1" + strings.Repeat("0", 12) + "." + strings.Repeat("0", 100_000), 1e12}, {"0." + strings.Repeat("0", 100_000) + "7e100001", 7},
	} {
		e := decode(m, with(t, end, `"completion_tokens":7`, `"completion_tokens":`+c.out))
		if ok := e.Bucket == meter.BucketEvent; ok != (c.want >= 0) || ok && e.Quantities[2] != c.want {
			t.Errorf("out=%.40s: %s %v, want %d", c.out, verdictOf(&e), e.Quantities, c.want)
		}
	}
	for text, want := range map[string]int64{"5": 5, "-5": -5, "1e3": 1000, "9223372036854775807": 9223372036854775807, "-9223372036854775808": -9223372036854775808} {
		if e := decode(m, with(t, end, ":400,", ":"+text+",")); !e.HasLatency || e.Latency != want {
			t.Errorf("latency %s: %d %v", text, e.Latency, e.HasLatency)
		}
	}
	for _, text := range []string{"9223372036854775808", "-9223372036854775809", "1.5", `"5"`, "null", "1e400", "true"} {
		if e := decode(m, with(t, end, ":400,", ":"+text+",")); e.HasLatency || e.Bucket != meter.BucketEvent {
			t.Errorf("latency %s: %+v", text, e)
		}
	}
}

func TestTimesInUnits(t *testing.T) {
	const bad, far = "bad_time", "implausible_time"
	for _, c := range []struct {
		unit, text string
		ms         int64
		reason     string
	}{
		{"ms", "1767225600123", 1767225600123, ""}, {"ms", "1767225600123.0", 1767225600123, ""}, {"ms", "17672256001230e-1", 1767225600123, ""}, {"ms", "1767225600123.4", 0, bad},
		{"s", "1767225600", 1767225600000, ""}, {"s", "1767225600.123", 1767225600123, ""}, {"s", "1767225600.1230", 1767225600123, ""}, {"s", "1767225600.1234", 0, bad}, {"s", "1e400", 0, far},
		{"us", "1767225600123999", 1767225600123, ""}, {"us", "1767225600123999.5", 0, bad}, {"us", "-1", 0, far}, {"us", "99999999999999999999", 0, far},
		{"ns", "1767225600123999999", 1767225600123, ""}, {"ns", "1.767225600123999999e18", 1767225600123, ""}, {"ns", "9223372036854775808", 0, far}, {"ns", "1e400", 0, far}, {"ns", "1e-400", 0, bad},
		{"rfc3339", `"2026-01-01T00:00:00Z"`, 1767225600000, ""}, {"rfc3339", `"2026-01-01T00:00:00.1239Z"`, 1767225600123, ""}, {"rfc3339", `"2026-01-01T00:00:00.1Z"`, 1767225600100, ""},
		{"rfc3339", `"2026-01-01T05:30:00+05:30"`, 1767225600000, ""}, {"rfc3339", `"2025-12-31T16:00:00-08:00"`, 1767225600000, ""}, {"rfc3339", `"2026-01-01T00:00:00-00:00"`, 1767225600000, ""},
		{"rfc3339", `"2026-01-0\u0031T00:00:00Z"`, 1767225600000, ""}, {"rfc3339", `"2024-02-29T12:00:00Z"`, 1709208000000, ""}, {"rfc3339", `"2000-02-29T00:00:00Z"`, 951782400000, ""},
		{"rfc3339", `"2025-12-31T23:59:60Z"`, 1767225599999, ""}, {"rfc3339", `"2025-12-31T23:59:60.5Z"`, 1767225599999, ""}, {"rfc3339", `"2025-12-31T18:59:60-05:00"`, 1767225599999, ""},
		{"rfc3339", `"2025-12-31T23:59:60+01:00"`, 0, bad}, {"rfc3339", `"2025-12-31T23:58:60Z"`, 0, bad}, {"rfc3339", `"2025-12-31T23:59:61Z"`, 0, bad},
		{"rfc3339", `"2026-01-01t00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00:00z"`, 0, bad}, {"rfc3339", `"2026-01-01 00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00:00"`, 0, bad},
		{"rfc3339", `"2026-01-01T00:00:00.Z"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00:00,5Z"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00Z"`, 0, bad}, {"rfc3339", `"2026-01-01"`, 0, bad},
		{"rfc3339", `"2025-02-29T00:00:00Z"`, 0, bad}, {"rfc3339", `"1900-02-29T00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-13-01T00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-00-01T00:00:00Z"`, 0, bad},
		{"rfc3339", `"2026-01-00T00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-04-31T00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-01-01T24:00:00Z"`, 0, bad}, {"rfc3339", `"2026-01-01T00:60:00Z"`, 0, bad},
		{"rfc3339", `"2026-01-01T00:00:00+24:00"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00:00+0100"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00:00+01:60"`, 0, bad}, {"rfc3339", `"+026-01-01T00:00:00Z"`, 0, bad},
		{"rfc3339", `"-026-01-01T00:00:00Z"`, 0, bad}, {"rfc3339", `"20260-01-01T00:00:00Z"`, 0, bad}, {"rfc3339", `"2026-1-01T00:00:00.0Z"`, 0, bad}, {"rfc3339", `"2026-01-01T00:00:00ZZ"`, 0, bad},
		{"rfc3339", `1767225600000`, 0, bad}, {"rfc3339", `"1767225600000"`, 0, bad}, {"rfc3339", `""`, 0, bad}, {"rfc3339", `"0000-01-01T00:00:00Z"`, 0, far}, {"rfc3339", `"9999-12-31T23:59:59Z"`, 0, far},
		{"rfc3339", `"0000-01-01T00:00:00+23:59"`, 0, far}, {"rfc3339", `"2026-01-01T00:00:00.` + strings.Repeat("9", 5000) + `Z"`, 1767225600999, ""},
	} {
		m := parse(strings.Replace(requestsYAML, "time_unit: ms", "time_unit: "+c.unit, 1))
		e := decode(m, with(t, start, "1767225600000", c.text))
		if e.Time != c.ms || e.Reason.String() != c.reason {
			t.Errorf("%s %.60s: %d %s, want %d %s", c.unit, c.text, e.Time, e.Reason, c.ms, c.reason)
		}
	}
}

// TestTimesBefore1970 are floored like all others, where min_time admits them.
func TestTimesBefore1970(t *testing.T) {
	for unit, cases := range map[string]map[string]int64{
		"us":      {"-1": -1, "-1000": -1, "-1001": -2, "-1e3": -1, "-1.5e3": -2},
		"ns":      {"-1": -1, "-1000000": -1, "-1000001": -2},
		"rfc3339": {`"1969-12-31T23:59:59.9991Z"`: -1, `"1969-12-31T23:59:59.999Z"`: -1},
	} {
		for text, want := range cases {
			m := parse(strings.Replace(requestsYAML, "time_unit: ms", "time_unit: "+unit+"\n  min_time: 1960-01-01", 1))
			if e := decode(m, with(t, start, "1767225600000", text)); e.Time != want || e.Bucket != meter.BucketEvent {
				t.Errorf("%s %s: %d %s", unit, text, e.Time, verdictOf(&e))
			}
		}
	}
}

func TestReceived(t *testing.T) {
	d := NewDecoder(eventsMeter())
	for _, c := range []struct {
		text    string
		verdict string
		logTime int64 // 0: none
	}{
		{`{"click_id":"c","partner":"p","phone_time":"2026-01-01T00:00:00Z","server_time":"2026-01-01T00:00:01Z"}`, "event", 1767225601000},
		{`{"click_id":"c","partner":"p","phone_time":"2026-01-01T00:00:00Z","server_time":"soon"}`, "event", 0},
		{`{"click_id":"c","partner":"p","phone_time":"2026-01-01T00:00:00Z","server_time":1767225601000}`, "event", 0},
		{`{"click_id":"c","partner":"p","phone_time":"2026-01-01T00:00:00Z"}`, "event", 0},
		{`{"click_id":"c","partner":"p","phone_time":"2026-01-01T00:00:00Z","server_time":"2025-12-31T23:54:59.999Z"}`, "future_time", 1767225299999},
		{`{"click_id":"","partner":"p","phone_time":"2026-01-01T00:00:00Z","server_time":"2026-01-01T00:00:01Z"}`, "missing_id", 1767225601000},
		{`{"click_id":"c","click_id":"c","server_time":"2026-01-01T00:00:01Z"}`, "duplicate_key", 0},
	} {
		var e meter.Event
		d.Decode(&meter.Record{Received: true, LogTime: 77, HasLogTime: true, Value: []byte(c.text)}, &e)
		if verdictOf(&e) != c.verdict || e.HasLogTime != (c.logTime != 0) || e.LogTime != c.logTime {
			t.Errorf("%s: %s %d %v", c.text, verdictOf(&e), e.LogTime, e.HasLogTime)
		}
	}
}

func TestEventsMeter(t *testing.T) {
	const tap = `{"click_id":"c-1","partner":"luigi","phone_time":"2026-01-01T00:00:00Z","status":"paid","out":3,"latency":5,"agent":"bot/1"}`
	e := decode(eventsMeter(), tap)
	if e.Kind != meter.KindEvent || e.SKU != "tap" || e.Account != "luigi" || e.Status != "paid" || !slices.Equal(e.Quantities, []int64{1, 3}) ||
		e.Present != 3 || e.Attributes[0] != "bot/1" || e.Latency != 5 || e.Reference != e.ID {
		t.Errorf("%+v", e)
	}
	if e := decode(eventsMeter(), with(t, tap, `"out":3,`, ``)); e.Quantities[1] != 7 || e.Present != 3 || e.Status != "paid" {
		t.Errorf("%+v", e)
	}
	e = decode(eventsMeter(), with(t, with(t, tap, `"bot/1"`, `""`), `"status":"paid",`, ``))
	if e.Attributes[0] != "" || e.Status != "ok" {
		t.Errorf("%+v", e)
	}
	none := parse(strings.Replace(strings.Replace(eventsYAML, "identity: [click_id]", "identity: none", 1), "reference: [click_id]", "reference: [click_id, phone.id]", 1))
	e = decode(none, tap)
	if e.ID != meter.PositionID(3, 17) || e.IDHash != e.ID.Hash64() || e.Reference != meter.NewID("c-1", "") {
		t.Errorf("%+v", e)
	}
}

// TestPayloadHash: equal exactly if every field that R3 compares is equal.
func TestPayloadHash(t *testing.T) {
	m := requestsMeter()
	hash := func(text string) uint64 { e := decode(m, text); return e.PayloadHash }
	s, x := hash(start), hash(end)
	for _, same := range [][2]string{{`"r1"`, `"r2"`}, {`:100`, `:1.0e2`}, {`"agent":"sdk/1"`, `"agent":"sdk/\u0031","status":7`}, {`"tenant_id":"acme","model":"gpt-x"`, `"model":"gpt-x","other":1,"tenant_id":"acme"`}} {
		if hash(with(t, start, same[0], same[1])) != s {
			t.Errorf("%s -> %s changes the hash", same[0], same[1])
		}
	}
	seen := map[uint64]string{s: "itself"}
	for _, other := range [][2]string{{`"acme"`, `"acm"`}, {`"acme","model":"gpt-x"`, `"acmeg","model":"pt-x"`}, {`"gpt-x"`, `"gpt-y"`}, {`"ts":1767225600000`, `"ts":1767225600001`}, {`:100`, `:101`}, {`:40`, `:41`},
		{`,"agent":"sdk/1"`, ``}, {`"sdk/1"`, `"sdk/2"`}} {
		h := hash(with(t, start, other[0], other[1]))
		if before, dup := seen[h]; dup {
			t.Errorf("%s -> %s has the hash of %s", other[0], other[1], before)
		}
		seen[h] = other[1]
	}
	for _, other := range [][2]string{{`400,"payload"`, `401,"payload"`}, {`:7`, `:8`}, {`"latency_ms":400,`, ``}, {`"latency_ms":400`, `"latency_ms":0`}, {`"ok"`, `""`}, {`"ok"`, `"error"`}} {
		if hash(with(t, end, other[0], other[1])) == x {
			t.Errorf("%s -> %s does not change the hash", other[0], other[1])
		}
	}
	if hash(with(t, end, `,"status":"ok"`, ``)) != x {
		t.Error("a missing status is not ok")
	}
	if hash(with(t, end, `"ts"`, `"tenant_id":"x","ts"`)) != x {
		t.Error("an end's account is read")
	}
}

// TestDecodeOwnsNothing: an event outlives the record's bytes, and *e is reused.
func TestDecodeOwnsNothing(t *testing.T) {
	d := NewDecoder(requestsMeter())
	value := []byte(with(t, start, `"acme"`, `"ac\u006de"`))
	e := meter.Event{Quantities: make([]int64, 1, 9), Attributes: make([]string, 5), Latency: 4, Status: "x"}
	d.Decode(&meter.Record{Value: value}, &e)
	clear(value)
	if e.Account != "acme" || e.SKU != "gpt-x" || e.ID != meter.NewID("r1") || e.Attributes[0] != "sdk/1" || len(e.Attributes) != 1 || len(e.Quantities) != 3 || e.Status != "" || e.Latency != 0 {
		t.Errorf("%+v", e)
	}
	if n := testing.AllocsPerRun(100, func() {
		d.Decode(&meter.Record{Value: []byte(end)}, &e)
	}); n > 2 { // the test's own copy of the text, and the id
		t.Errorf("%v allocations for a record", n)
	}
}

func TestLargeRecords(t *testing.T) {
	m := requestsMeter()
	pad := func(n int) string { return with(t, start, `"sdk/1"`, `"sdk/1","pad":"`+strings.Repeat("x", n)+`"`) }
	base := len(pad(0))
	for n, want := range map[int]string{1<<20 - base: "event", 1<<20 - base + 1: "too_large"} {
		if e := decode(m, pad(n)); verdictOf(&e) != want {
			t.Errorf("%d bytes: %s, want %s", base+n, verdictOf(&e), want)
		}
	}
	deep := strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000)
	if e := decode(m, with(t, start, `"sdk/1"`, `"sdk/1","deep":`+deep)); verdictOf(&e) != "bad_json" {
		t.Error(verdictOf(&e))
	}
}

// TestPathsThatMeet: a path may lead through what another one ends at, and fields may share a path.
func TestPathsThatMeet(t *testing.T) {
	m := requestsMeter()
	m.Event.Account.Path = meter.FieldPath{"who"}
	m.Event.SKU.Path = meter.FieldPath{"who", "model"}
	m.Event.Attributes[0].Path = meter.FieldPath{"request_id"}
	text := with(t, start, `"tenant_id":"acme","model":"gpt-x"`, `"who":WHO`)
	for who, want := range map[string]string{`"acme"`: "missing_sku", `{"model":"gpt-x"}`: "missing_account"} {
		if e := decode(m, with(t, text, "WHO", who)); verdictOf(&e) != want {
			t.Errorf("who %s: %s, want %s", who, verdictOf(&e), want)
		}
	}
	m.Event.Account = meter.Source{Const: "all", IsConst: true}
	if e := decode(m, with(t, text, "WHO", `{"model":"gpt-x"}`)); e.Account != "all" || e.SKU != "gpt-x" || e.Attributes[0] != "r1" {
		t.Errorf("%+v", e)
	}
}

// TestUnusualNames: names that JSON has to escape, that are not ASCII, or that begin alike.
func TestUnusualNames(t *testing.T) {
	m := requestsMeter()
	names := []string{`a"b`, "a\\b", "a\nb", "é", "prompt_tokens_1", "prompt_tokens_2", "prompt_t", "p", ""}
	m.Event.Attributes = nil
	for _, n := range names {
		m.Event.Attributes = append(m.Event.Attributes, meter.Attribute{Name: "x", Path: meter.FieldPath{n}})
	}
	text := `"a\"b":"0","a\\b":"1","a\nb":"2","\u00e9":"3","prompt_tokens_1":"4","prompt_tokens_2":"5","prompt_t":"6","p":"7","":"8"`
	for _, text := range []string{text, strings.Replace(text, `"p"`, `"\u0070"`, 1), strings.Replace(text, `\u00e9`, `é`, 1)} {
		e := decode(m, with(t, start, `"event_type"`, text+`,"event_type"`))
		if !slices.Equal(e.Attributes, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}) {
			t.Errorf("%s: %q", text, e.Attributes)
		}
	}
}

func TestArchiveColumns(t *testing.T) {
	var got []string
	for _, c := range ArchiveColumns(requestsMeter()) {
		name := c.Name
		if c.Optional {
			name += "?"
		}
		got = append(got, name+" "+c.Type.SQL())
	}
	want := "log_offset BIGINT, log_time? BIGINT, bucket VARCHAR, reason? VARCHAR, kind? VARCHAR, id_1? VARCHAR, id_hash? BIGINT, account? VARCHAR, sku? VARCHAR, " +
		"event_time? BIGINT, prior_max_reach? BIGINT, prompt_tokens? BIGINT, cached_tokens? BIGINT, completion_tokens? BIGINT, attr_agent? VARCHAR, status? VARCHAR, latency? BIGINT, payload_hash? BIGINT, raw? BLOB"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("columns:\n%s\nwant\n%s", s, want)
	}
	m := eventsMeter()
	m.Event.Identity = nil
	names := map[string]bool{}
	for _, c := range ArchiveColumns(m) {
		names[c.Name] = true
	}
	if !names["id_1"] || !names["id_2"] || names["id_3"] || !names["ref_1"] || names["ref_2"] {
		t.Errorf("%v", names)
	}
}
