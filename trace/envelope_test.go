package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func TestRecordLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want meter.Record
	}{
		{`{"partition":0,"offset":17,"log_time":1767225600123,"key":"req-1","value":{"a":1}}`,
			meter.Record{Offset: 17, LogTime: 1767225600123, HasLogTime: true, Key: []byte("req-1"), Value: []byte(`{"a":1}`)}},
		{` { "offset" : 9223372036854775806 , "value" : { "a" : "}" } , "partition" : 2147483647 } `,
			meter.Record{Partition: 2147483647, Offset: 9223372036854775806, Value: []byte(`{ "a" : "}" }`)}},
		{`{"partition":0,"offset":0,"log_time":null,"key":null,"value":null}`, meter.Record{Null: true}},
		{`{"partition":0,"offset":0,"log_time":-5,"value":"text \"\u00e9\ud83d\ude00\n"}`, meter.Record{LogTime: -5, HasLogTime: true, Value: []byte("text \"é😀\n")}},
		{`{"partition":0,"offset":0,"value":""}`, meter.Record{Value: []byte{}}},
		{`{"partition":0,"offset":0,"value_base64":"AP+A"}`, meter.Record{Value: []byte{0, 0xFF, 0x80}}},
		{`{"partition":0,"offset":0,"value_base64":""}`, meter.Record{Value: []byte{}}},
		{`{"partition":0,"offset":0,"key_base64":"/w==","value":{}}`, meter.Record{Key: []byte{0xFF}, Value: []byte("{}")}},
		{`{"part\u0069tion":4,"offset":1,"key":"\u0000\"","value":{}}`, meter.Record{Partition: 4, Offset: 1, Key: []byte("\x00\""), Value: []byte("{}")}},
		// The value is the world's: whatever stands there never fails the line.
		{`{"partition":0,"offset":0,"value":{"a":1,"a":2}}`, meter.Record{Value: []byte(`{"a":1,"a":2}`)}},
		{`{"partition":0,"offset":0,"value":{a:nope,[}}`, meter.Record{Value: []byte(`{a:nope,[}`)}},
		{`{"partition":0,"offset":0,"value":{"\q":"\"}{"}}`, meter.Record{Value: []byte(`{"\q":"\"}{"}`)}},
		{"{\"partition\":0,\"offset\":0,\"value\":{\"\xff\":\"\x00\"}}", meter.Record{Value: []byte("{\"\xff\":\"\x00\"}")}},
		{`{"partition":0,"offset":0,"value":[{"a":1}]}`, meter.Record{Value: []byte(`[{"a":1}]`)}},
		{`{"partition":0,"offset":0,"value":1.5}`, meter.Record{Value: []byte(`1.5`)}},
		{`{"partition":0,"offset":0,"value":nul}`, meter.Record{Value: []byte(`nul`)}},
		{`{"partition":0,"offset":0,"value":true}`, meter.Record{Value: []byte(`true`)}},
		{`{"partition":0,"offset":0,"value":"\ud800 \q"}`, meter.Record{Value: []byte("\xed\xa0\x80 \\q")}},
		{`{"partition":0,"offset":0,"value":"\u12G4\ud83d\u0041"}`, meter.Record{Value: []byte("\\u12G4\xed\xa0\xbdA")}},
		{"{\"partition\":0,\"offset\":0,\"value\":\"\xff\x01\"}", meter.Record{Value: []byte("\xff\x01")}},
		{`{"partition":0,"offset":0,"value":` + strings.Repeat(`{"a":`, 10_000) + `{` + strings.Repeat(`}`, 10_001) + `}`,
			meter.Record{Value: []byte(strings.Repeat(`{"a":`, 10_000) + `{` + strings.Repeat(`}`, 10_001))}},
		{`{"partition":0,"offset":0,"value":` + strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000) + `}`,
			meter.Record{Value: []byte(strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000))}},
	} {
		var r meter.Record
		idle, err := ParseLine([]byte(c.line), &r)
		if err != nil || idle != nil || !reflect.DeepEqual(r, c.want) {
			t.Errorf("%.200s:\n%+v %v %v, want\n%+v", c.line, r, idle, err, c.want)
		}
	}
}

func TestIdleLines(t *testing.T) {
	for line, want := range map[string][]int32{`{"idle":[1]}`: {1}, `{"idle":[]}`: {}, ` { "idle" : [ 0 , 2 ] } `: {0, 2}} {
		var r meter.Record
		if idle, err := ParseLine([]byte(line), &r); err != nil || idle == nil || !reflect.DeepEqual(idle, want) {
			t.Errorf("%s: %v %v", line, idle, err)
		}
	}
}

func TestLinesThatAreNone(t *testing.T) {
	for line, want := range map[string]string{
		``:                           "not a record",
		` `:                          "not a record",
		`null`:                       "not a record",
		`[]`:                         "not a record",
		`x`:                          "not a record",
		"\ufeff{}":                   "not a record",
		`{}`:                         "no partition",
		`{"offset":1,"value":{}}`:    "no partition",
		`{"partition":0,"value":{}}`: "no offset",
		`{"partition":0,"offset":1}`: "no value",
		`{"partition":0,"offset":1,"value":{},"value_base64":""}`:           "exclude",
		`{"partition":0,"offset":1,"key":"","key_base64":"","value":1}`:     "exclude",
		`{"partition":0,"partition":0,"offset":1,"value":{}}`:               "stands twice",
		`{"partition":0,"offset":1,"value":{},"value":{}}`:                  "stands twice",
		`{"partition":0,"offset":1,"value":{},"Value":{}}`:                  `"Value" is no name`,
		`{"partition":0,"offset":1,"headers":{},"value":{}}`:                `"headers" is no name`,
		`{"partition":-1,"offset":1,"value":{}}`:                            "out of range",
		`{"partition":2147483648,"offset":1,"value":{}}`:                    "out of range",
		`{"partition":"0","offset":1,"value":{}}`:                           "plain digits",
		`{"partition":0.0,"offset":1,"value":{}}`:                           "plain digits",
		`{"partition":00,"offset":1,"value":{}}`:                            "plain digits",
		`{"partition":null,"offset":1,"value":{}}`:                          "plain digits",
		`{"partition":0,"offset":-1,"value":{}}`:                            "out of range",
		`{"partition":0,"offset":9223372036854775807,"value":{}}`:           "out of range",
		`{"partition":0,"offset":92233720368547758070,"value":{}}`:          "out of range",
		`{"partition":0,"offset":1e3,"value":{}}`:                           "plain digits",
		`{"partition":0,"offset":1,"log_time":"x","value":{}}`:              "plain digits",
		`{"partition":0,"offset":1,"log_time":1.5,"value":{}}`:              "plain digits",
		`{"partition":0,"offset":1,"log_time":1767225600123000,"value":{}}`: "out of range", // microseconds
		`{"partition":0,"offset":1,"key":7,"value":{}}`:                     "want a string",
		`{"partition":0,"offset":1,"key":"\ud800","value":{}}`:              "escapes",
		"{\"partition\":0,\"offset\":1,\"key\":\"\xff\",\"value\":{}}":      "UTF-8",
		"{\"partition\":0,\"offset\":1,\"key\":\"\x01\",\"value\":{}}":      "control",
		`{"partition":0,"offset":1,"value_base64":"AP"}`:                    "base64",
		`{"partition":0,"offset":1,"value_base64":"AP+"}`:                   "base64",
		`{"partition":0,"offset":1,"value_base64":"A P="}`:                  "base64",
		`{"partition":0,"offset":1,"value_base64":"AP-A"}`:                  "base64",
		`{"partition":0,"offset":1,"value_base64":null}`:                    "want a string",
		`{"partition":0,"offset":1,"value":{}`:                              "comma or }",
		`{"partition":0,"offset":1,"value":{}}}`:                            "end of the line",
		`{"partition":0,"offset":1,"value":{}} {}`:                          "end of the line",
		`{"partition":0,"offset":1,"value":{}},`:                            "end of the line",
		`{"partition":0,"offset":1,"value":{},}`:                            "want a string",
		`{"partition":0 "offset":1,"value":{}}`:                             "comma or }",
		`{"partition" 0}`:                                                   "colon",
		`{"partition":0,"offset":1,"value":{"a":1}`:                         "comma or }",
		`{"partition":0,"offset":1,"value":{"a":"}}`:                        "ends on its line",
		`{"partition":0,"offset":1,"value":"abc}`:                           "closing quote",
		`{"partition":0,"offset":1,"value":}`:                               "a value",
		`{"partition":0,"offset":1,"value":`:                                "a value",
		`{"partition":0,"offset":1,"value`:                                  "closing quote",
		`{"idle":[1],"partition":0}`:                                        "nothing but idle",
		`{"idle":1}`:                                                        "list of partitions",
		`{"idle":[1,]}`:                                                     "plain digits",
		`{"idle":[-1]}`:                                                     "out of range",
		`{"idle":null}`:                                                     "list of partitions",
		`{"trace":1}`:                                                       `"trace" is no name`, // a header is the first line
	} {
		var r meter.Record
		_, err := ParseLine([]byte(line), &r)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// naive reads a line with encoding/json; ok is false where it is no opinion on the line.
func naive(line []byte) (r meter.Record, idle []int32, sound, ok bool) {
	var l struct {
		Partition *int32          `json:"partition"`
		Offset    *int64          `json:"offset"`
		LogTime   *int64          `json:"log_time"`
		Key       *string         `json:"key"`
		Value     json.RawMessage `json:"value"`
		Base64    *string         `json:"value_base64"`
		Idle      []int32         `json:"idle"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if !json.Valid(line) || !utf8.Valid(line) || bytes.Contains(line, []byte(`\u`)) || d.Decode(&l) != nil {
		return r, nil, false, false // names of other case, twice, or null; escapes: not its strength
	}
	var names map[string]json.RawMessage
	if json.Unmarshal(line, &names) != nil || strings.Count(string(line), `":`) != len(names)+strings.Count(string(names["value"]), `":`) {
		return r, nil, false, false
	}
	for name, value := range names {
		if nameOf([]byte(name)) == 0 || nameOf([]byte(name)) == nameKeyBase64 ||
			string(value) == "null" && name != "value" && name != "key" && name != "log_time" {
			return r, nil, false, false
		}
	}
	if _, is := names["idle"]; is {
		return r, l.Idle, len(names) == 1 && !slices.ContainsFunc(l.Idle, func(p int32) bool { return p < 0 }), true
	}
	_, hasValue := names["value"]
	if l.Partition == nil || l.Offset == nil || *l.Partition < 0 || *l.Offset < 0 || *l.Offset == 1<<63-1 || hasValue == (l.Base64 != nil) {
		return r, nil, false, true
	}
	r.Partition, r.Offset = *l.Partition, *l.Offset
	if l.LogTime != nil {
		if r.LogTime, r.HasLogTime = *l.LogTime, true; r.LogTime < minLogTime || r.LogTime > maxLogTime {
			return r, nil, false, true
		}
	}
	if l.Key != nil {
		r.Key = []byte(*l.Key)
	}
	switch v := names["value"]; {
	case l.Base64 != nil:
		var err error
		if r.Value, err = base64.StdEncoding.DecodeString(*l.Base64); err != nil {
			return r, nil, false, true
		}
		return r, nil, true, base64.StdEncoding.EncodeToString(r.Value) == *l.Base64
	case string(v) == "null":
		r.Null = true
	case v[0] == '"':
		var s string
		_ = json.Unmarshal(v, &s)
		r.Value = []byte(s)
	default:
		r.Value = v
	}
	return r, nil, true, true
}

func checkLine(t *testing.T, line []byte) {
	t.Helper()
	if bytes.ContainsAny(line, "\r\n") {
		return
	}
	var r meter.Record
	idle, err := ParseLine(line, &r)
	if want, wantIdle, sound, ok := naive(line); ok {
		if (err == nil) != sound || sound && (!same(&r, &want) || fmt.Sprint(idle) != fmt.Sprint(wantIdle)) {
			t.Fatalf("%q:\n%+v %v %v\nnaively\n%+v %v %v", line, r, idle, err, want, wantIdle, sound)
		}
	}
	c := Chunk{Data: line, Line: 1, format: Trace}
	lines, parseErr := c.Parse(nil)
	if len(line) > 0 && ((parseErr == nil) != (err == nil) || err == nil && !same(&lines[0].Record, &r)) {
		t.Fatalf("%q:\nParse %+v %v\nParseLine %+v %v", line, lines, parseErr, r, err)
	}
	var q meter.Record
	if quick(line, &q) && json.Valid(q.Value) && (err != nil || !same(&q, &r)) {
		t.Fatalf("%q: quick %+v\nParseLine %+v %v", line, q, r, err)
	}
	calls := 0
	var decoded meter.Record
	lines, parseErr = c.Decode(nil, func(i int, d *meter.Record) bool {
		if calls++; i != 0 {
			t.Fatal(i)
		}
		decoded = *d
		return json.Valid(d.Value) && utf8.Valid(d.Value) // what Go calls valid, the rules may not: then it is asked again
	})
	if len(line) > 0 && ((parseErr == nil) != (err == nil) || err == nil && (!same(&lines[0].Record, &r) || fmt.Sprint(lines[0].Idle) != fmt.Sprint(idle) ||
		idle == nil && (calls == 0 || !same(&decoded, &r)) || idle != nil && calls > 0)) {
		t.Fatalf("%q, %d calls with %+v:\nDecode %+v %v\nParseLine %+v %v %v", line, calls, decoded, lines, parseErr, r, idle, err)
	}
}

func same(a, b *meter.Record) bool {
	return a.Partition == b.Partition && a.Offset == b.Offset && a.HasLogTime == b.HasLogTime && a.LogTime == b.LogTime && a.Null == b.Null &&
		bytes.Equal(a.Key, b.Key) && (a.Key == nil) == (b.Key == nil) && bytes.Equal(a.Value, b.Value)
}

var lineSeeds = []string{
	`{"partition":0,"offset":17,"log_time":1767225600123,"key":"req-1","value":{"a":{"b":"}"},"c":[1,"\"{"]}}`,
	`{"partition":12,"offset":170,"value":{}}`, `{"partition":0,"offset":17,"log_time":1767225600123,"value":null}`,
	`{"partition":0,"offset":17,"log_time":null,"key":"","value":"text\n"}`, `{"partition":0,"offset":17,"value_base64":"AP+A"}`, `{"idle":[0,1]}`,
	`{"offset":1,"value":{"x":1},"key":"é","partition":3}`, `{"partition":0,"offset":0,"value":{"a":"\\"}}`, `{"partition":0,"offset":0,"value":{"value":{"value":{}}}}`,
}

func TestLineMutants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		line := []byte(lineSeeds[rng.IntN(len(lineSeeds))])
		for range 1 + rng.IntN(3) {
			i := rng.IntN(len(line) + 1)
			k := min(len(line), i+rng.IntN(8))
			switch rng.IntN(3) {
			case 0:
				line = append(bytes.Clone(line[:i]), line[k:]...)
			case 1:
				line = append(append(bytes.Clone(line[:k]), line[i:k]...), line[k:]...)
			case 2:
				const marks = `{}[]",:\0-.e19 n` + "\x00\xff"
				line = append(append(bytes.Clone(line[:i]), marks[rng.IntN(len(marks))]), line[i:]...)
			}
		}
		checkLine(t, line)
	}
}

func FuzzTraceLine(f *testing.F) {
	for _, s := range lineSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkLine)
}
