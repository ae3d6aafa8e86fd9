package schemas

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// shaped are records whose shapes differ in what a step may be.
var shaped = []string{
	`{"event_type":"RequestStarted","request_id":"r-1","tenant_id":"acme","model":"large","ts":1767225600000,"payload":{"prompt_tokens":547,"cached_tokens":430,"agent":"sdk"}}`,
	`{"event_type": "RequestCompleted", "request_id": "r-1", "ts": 1767225600000, "payload": {"completion_tokens": 12, "latency_ms": null, "status": "ok"}}`,
	`{ "ts":-12,"payload":{},"model":[1,{"a":1,"b":2}],"tenant_id":true }` + "\n",
	`{"ts":1.5e3,"x":[],"payload":{"status":null,"z":{"y":{"status":"deep"}}},"event_type":false}`,
	`{"payload":null,"\u0074s":17,"é":"\u00e9","event_type":"a\"b"}`,
	`{"event_type":{"ts":1},"ts":0}`,
	`{"a":1,"b":{"a":1,"b":{"a":1}},"c":"x"}`,
	`{}`, ` {} `, `{"ts":123456789012345678}`, `{"ts":"123456789012345678901234567890"}`,
	`{"a long name that no path mentions, longer than thirty-two bytes":1,"ts":2}`,
}

// sameAsInFull scans b along what s has learnt and in full, and compares. It reports whether a shape was followed.
func sameAsInFull(t *testing.T, d *Decoder, s *scanner, b []byte) (followed bool) {
	t.Helper()
	spans, want := make([]span, len(d.spans)), make([]span, len(d.spans))
	s.begin(b, spans)
	followed = s.follow()
	verdictOf := s.scan(b, d.root, spans)
	var other scanner
	other.begin(b, want)
	if v := other.full(d.root); v != verdictOf {
		t.Fatalf("%d, in full %d of %q", verdictOf, v, clipped(b))
	}
	if verdictOf != sound {
		return followed
	}
	for _, list := range [][]span{spans, want} {
		for i := range list {
			if !list[i].small {
				list[i].value = 0 // it means nothing
			}
		}
	}
	if !slices.Equal(spans, want) {
		t.Fatalf("%+v, in full %+v of %q", spans, want, clipped(b))
	}
	return followed
}

// TestShapes: a record that follows a shape reads as it does in full, and so does one that nearly follows it.
func TestShapes(t *testing.T) {
	d := NewDecoder(requestsMeter())
	rng := rand.New(rand.NewPCG(3, 4))
	followed := 0
	const each = 2000
	for _, text := range shaped {
		var s scanner
		for range each {
			base := []byte(shaped[rng.IntN(len(shaped))])
			if rng.IntN(2) == 0 {
				base = []byte(text)
			}
			b := bytes.Clone(base)
			for range rng.IntN(3) {
				b = mutate(rng, b)
			}
			sameAsInFull(t, d, &s, base)
			if sameAsInFull(t, d, &s, b) {
				followed++
			}
		}
	}
	if n := each * len(shaped); followed < n/5 || followed > n*9/10 {
		t.Errorf("%d of %d followed a shape: too one-sided", followed, n)
	}
}

// TestShapesAreBounded: a world in which no record is like another is read all the same, and little of it is kept; what then
// comes again and again is learnt in the end.
func TestShapesAreBounded(t *testing.T) {
	d := NewDecoder(requestsMeter())
	var s scanner
	name := []byte(`{"aaaaaa":1,"ts":2}`)
	for range 3 * missedTillIn {
		for i := 2; ; i++ {
			if name[i]++; name[i] <= 'z' {
				break
			}
			name[i] = 'a'
		}
		sameAsInFull(t, d, &s, name)
		if s.shapes.tried > maxTried {
			t.Fatalf("%d shapes were learnt", s.shapes.tried)
		}
	}
	for range 2 * missedTillIn {
		sameAsInFull(t, d, &s, []byte(shaped[0]))
	}
	if !sameAsInFull(t, d, &s, []byte(shaped[0])) {
		t.Error("what came 8,192 times is not known")
	}
}

func FuzzShapes(f *testing.F) {
	for i, s := range shaped {
		f.Add([]byte(s), []byte(shaped[(i+1)%len(shaped)]))
		f.Add([]byte(s), []byte(s))
	}
	d := NewDecoder(requestsMeter())
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var s scanner
		sameAsInFull(t, d, &s, a)
		sameAsInFull(t, d, &s, b)
		sameAsInFull(t, d, &s, a)
	})
}
