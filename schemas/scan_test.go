package schemas

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext" // a strict JSON reader by other people: the scanner's second opinion
)

// secondOpinion is what jsontext says of b.
func secondOpinion(b []byte) verdict {
	if !strictObject(b, true) {
		return broken
	}
	if !strictObject(b, false) {
		return duplicated
	}
	return sound
}

func strictObject(b []byte, duplicates bool) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(duplicates))
	if d.PeekKind() != '{' {
		return false
	}
	for {
		_, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil || d.StackDepth() > maxDepth {
			return false
		}
		if d.StackDepth() == 0 && d.PeekKind() != 0 {
			return false // a second value
		}
	}
}

func checkScan(t *testing.T, d *Decoder, b []byte) {
	t.Helper()
	want := secondOpinion(b)
	if got := d.scanner.scan(b, d.root, d.spans); got != want {
		t.Fatalf("scan says %d, jsontext %d of %q", got, want, clipped(b))
	}
	if want == broken && !utf8.Valid(b) != (d.read(b) != 0 && d.read(b).String() == "bad_utf8") && len(b) > 0 {
		t.Fatalf("reason %s of %q", d.read(b), clipped(b))
	}
}

func clipped(b []byte) []byte { return b[:min(len(b), 2000)] }

// sentences are texts on both sides of the grammar's borders.
var sentences = []string{
	`{}`, ` { } `, "\t\r\n{\t\r\n}\t\r\n", `{"a":1}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"c":[{"d":1,"d":2}]}}`,
	`{"a":{"b":1},"a":{"c":2}}`, `{"ts":1,"t\u0073":2}`, `{"payload":{"status":"x","status":"y"}}`, `{"payload":[],"payload":{}}`,
	`{"":1,"":2}`, `{"":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{"a" :1 , "b": 2 }`, `{"a":1}}`, `{"a":1}{"a":1}`, `{"a":1} x`, `[]`, `1`, `"a"`, `null`,
	``, ` `, "\n", "\x00", "{\"a\":1}\x00", "\xef\xbb\xbf{}", `{"a":01}`, `{"a":-}`, `{"a":-0}`, `{"a":-01}`, `{"a":0}`, `{"a":1.}`, `{"a":.5}`, `{"a":1.0}`, `{"a":1e}`,
	`{"a":1e+}`, `{"a":1e+5}`, `{"a":1E-05}`, `{"a":+1}`, `{"a":0x1}`, `{"a":1_0}`, `{"a":NaN}`, `{"a":Infinity}`, `{"a":1e400}`, `{"a":123456789012345678}`, `{"a":1234567890123456789}`,
	`{"a":nul}`, `{"a":nulll}`, `{"a":null}`, `{"a":True}`, `{"a":true}`, `{"a":tru`, `{"a":fals}`, `{"a":false}`, `{"a":[1,2,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[`, `{"a":[]}`, `{"a":[ ]}`, `{"a":[[],{}]}`, `{"a":[}`, `{"a":{]`,
	`{"a":"\u0000"}`, "{\"a\":\"\x00\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"\x7f\"}", `{"a":"\x41"}`, `{"a":"\u12"}`, `{"a":"\u12G4"}`, `{"a":"\`, `{"a":"\"`, `{"a":"\u`, `{"a":"\ud83d`, `{"a":"\ud83d\u`,
	`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\ude00"}`, `{"a":"\ud83d\ud83d"}`, `{"a":"\ud83dx"}`, `{"a":"\ud83d\n"}`, `{"a":"\uD83D\uDE00 \b\f\n\r\t\/\\\""}`, `{"\ud83d":1}`,
	"{\"a\":\"\xff\"}", "{\"\xff\":1}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xf4\x90\x80\x80\"}", "{\"a\":\"\xe2\x82\"}", "{\"a\":\"é漢😀\"}", "{\"é\":1,\"\\u00e9\":2}", "{\xff}", "{}\xff",
	`{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}`, "{\"a\":\"aaaaaaa\x1fbbbbbbbbbbbbb\"}", "{\"a\":\"aaaaaaabbbbbbbb\xffb\"}", `{'a':1}`, `{"a":'b'}`, `{a:1}`, `// c` + "\n{}", `{/**/}`, "\u00a0{}", "{\u2028}",
	`{"event_type":"RequestStarted","event_type":"x"}`, `{"event_typ`, `{"event_type"`, `{"event_type":`, `{"model`, `{"model"`, `{"ts":12`,
}

func TestScanHasTheGrammarOfRFC8259(t *testing.T) {
	d := NewDecoder(requestsMeter())
	for _, s := range sentences {
		checkScan(t, d, []byte(s))
		for i := range len(s) { // every beginning of a text is a text that was cut off
			checkScan(t, d, []byte(s[:i]))
		}
	}
}

func TestScanDepth(t *testing.T) {
	d := NewDecoder(requestsMeter())
	for depth, want := range map[int]verdict{1: sound, 2: sound, 1000: sound, 1001: broken, 10_000: broken, 1_000_000: broken} {
		for _, open := range []string{`[`, `{"a":`} {
			text := `{"a":` + strings.Repeat(open, depth-1)
			text += `1` + strings.Repeat(map[string]string{`[`: `]`, `{"a":`: `}`}[open], depth-1) + `}`
			if got := d.scanner.scan([]byte(text), d.root, d.spans); got != want {
				t.Errorf("depth %d of %s is %d, want %d", depth, open, got, want)
			}
			if got := d.scanner.scan([]byte(text[:len(text)-depth]), d.root, d.spans); got != broken {
				t.Errorf("depth %d of %s, not closed, is %d", depth, open, got)
			}
		}
	}
}

// TestScanManyNames: the check for duplicate names is sound in objects of any size and shape, and no slower than linear.
func TestScanManyNames(t *testing.T) {
	d := NewDecoder(requestsMeter())
	for _, n := range []int{1, 2, manyNames - 1, manyNames, manyNames + 1, 3 * manyNames, 80_000} {
		var b strings.Builder
		b.WriteString(`{"payload":{"x":[{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"name-with-one-digest-` + strings.Repeat("y", i%3) + string(rune('a'+i%26)) + strings.Repeat("z", 3-i%3))
			for k := i; k > 0; k /= 10 {
				b.WriteByte(byte('0' + k%10))
			}
			b.WriteString(`-the-same-end":1`)
		}
		open := b.String()
		first := open[len(`{"payload":{"x":[{`):strings.Index(open, `":1`)]
		for text, want := range map[string]verdict{open + `}]}}`: sound, open + `,` + first + `":1}]}}`: duplicated,
			open + `,"\u006e` + first[2:] + `":1}]}}`: duplicated, open + `,"other":1}],` + first[:len(first)-1] + `":1}}`: sound} {
			if got := d.scanner.scan([]byte(text), d.root, d.spans); got != want {
				t.Errorf("%d names: %d, want %d", n, got, want)
			}
		}
	}
}

// TestScanMutants scans a fixed set of damaged texts. FuzzScan looks for others.
func TestScanMutants(t *testing.T) {
	d := NewDecoder(requestsMeter())
	rng := rand.New(rand.NewPCG(1, 2))
	records, _ := benchRecords()
	var seen [3]int
	for range 10_000 {
		b := bytes.Clone(records[rng.IntN(len(records))].Value)
		if rng.IntN(3) == 0 {
			b = []byte(sentences[rng.IntN(len(sentences))])
		}
		for range 1 + rng.IntN(3) {
			b = mutate(rng, b)
		}
		checkScan(t, d, b)
		seen[secondOpinion(b)]++
	}
	if seen[sound] < 1000 || seen[broken] < 1000 || seen[duplicated] < 25 {
		t.Errorf("the mutants were %v: too one-sided", seen)
	}
}

func mutate(rng *rand.Rand, b []byte) []byte {
	i := rng.IntN(len(b) + 1)
	switch rng.IntN(5) {
	case 0:
		return append(append(bytes.Clone(b[:i]), byte(rng.IntN(256))), b[i:]...)
	case 1:
		k := min(len(b), i+rng.IntN(9))
		return append(bytes.Clone(b[:i]), b[k:]...)
	case 2:
		if i < len(b) {
			b = bytes.Clone(b)
			b[i] ^= 1 << rng.IntN(8)
		}
		return b
	case 3:
		const marks = `{}[]",:\0-.eE19 truefalsenull` + "\x00\n\xff\xc3"
		if i < len(b) {
			b = bytes.Clone(b)
			b[i] = marks[rng.IntN(len(marks))]
		}
		return b
	}
	k := min(len(b), i+rng.IntN(30))
	return append(append(bytes.Clone(b[:k]), b[i:k]...), b[k:]...)
}

func FuzzScan(f *testing.F) {
	for _, s := range sentences {
		f.Add([]byte(s))
	}
	records, _ := benchRecords()
	for _, r := range records[:4] {
		f.Add(r.Value)
	}
	d := NewDecoder(requestsMeter())
	f.Fuzz(func(t *testing.T, b []byte) { checkScan(t, d, b) })
}

// TestSmall: every length of digits at every distance from the end of the text, and what may follow.
func TestSmall(t *testing.T) {
	for n := range 22 {
		for _, behind := range []string{"", ",", "}", "/", ":", " ", ".5", "e3", "E3", "\x00", "\xff", ",123456789", "}}}}}}}}}}}", "\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8"} {
			digits := "918273645546372819095"[:n]
			b := []byte("x" + digits + behind)
			end, v := small(b, 1)
			want := n + 1
			if behind == "" || n > 18 || behind[0] == '.' || behind[0]|0x20 == 'e' {
				want = -1
			}
			var number int64
			if want >= 0 && n > 0 {
				number, _ = strconv.ParseInt(digits, 10, 64)
			}
			if end != want || v != number {
				t.Errorf("small of %q is %d up to %d, want %d up to %d", b[1:], v, end, number, want)
			}
		}
	}
}
