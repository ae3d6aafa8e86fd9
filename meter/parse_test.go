package meter

import (
	"errors"
	"strings"
	"testing"
)

const gatewayMeter = `meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id], account: tenant_id, sku: model, time: ts, status: payload.status, received: null}
  time_unit: ms
  kinds: {start: RequestStarted, progress: TokensStreamed, complete: RequestCompleted, error: ModelError, tick: Heartbeat}
  latency: payload.latency_ms
  quantities:
    prompt_tokens: {path: payload.prompt_tokens, on: start}
    cached_tokens: {path: payload.cached_tokens, part_of: prompt_tokens, default: 0}
    completion_tokens: {path: payload.completion_tokens, on: end, default: 0}
  tier: {on: prompt_tokens, above: [200000]}
  attributes: {agent: payload.agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
assembly: {abandon_after: 5m}
filter: [{name: bots, attribute: agent, prefix: bot/}, {name: huge, quantity: prompt_tokens, above: 1000000}]
pricing: {rate_card: rates.yaml}
`

const tapsMeter = `meter: menu-taps
kind: events
event:
  format: json
  fields: {identity: [click_id], account: partner, sku: {const: tap}, time: phone_time, received: server_time, reference: [click_id]}
  time_unit: rfc3339
  quantities: {taps: {const: 1}}
  attributes: {agent: agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 5s, idleness: 1m}
window: {size: 1m, allowed_lateness: 10m}
filter: [{name: bots, attribute: agent, prefix: bot/}]
pricing: {rate_card: rates.yaml}
`

func TestParseBothStories(t *testing.T) {
	m, err := Parse("m.yaml", []byte(gatewayMeter))
	if err != nil {
		t.Fatal(err)
	}
	if m.AbandonAfter != 300_000 || m.Window.Size != 60_000 || m.Event.Quantities[1].PartOf != 0 || m.Event.Quantities[1].OnEnd || m.Event.TierOn != 0 ||
		m.Event.Kinds["ModelError"] != KindError || len(m.Filters) != 2 || m.Event.MaxBytes != 1<<20 {
		t.Errorf("parsed wrong: %+v", m)
	}
	if m, err = Parse("m.yaml", []byte(tapsMeter)); err != nil {
		t.Fatal(err)
	}
	if !m.Event.SKU.IsConst || m.Event.SKU.Const != "tap" || m.Event.KindPath != nil || !m.Event.Quantities[0].IsConst || m.Event.TierOn != -1 {
		t.Errorf("parsed wrong: %+v", m)
	}
}

// The fingerprint covers what decides a verdict, and only that (DESIGN section 3).
func TestFingerprint(t *testing.T) {
	base, err := Parse("m.yaml", []byte(tapsMeter))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, from, to string
		same           bool
	}{
		{"60s is 1m", "size: 1m", "size: 60s", true},
		{"idleness decides no verdict", "idleness: 1m", "idleness: 9m", true},
		{"reference decides no verdict", ", reference: [click_id]", "", true},
		{"the name decides no verdict", "meter: menu-taps", "meter: other", true},
		{"rate card", "rates.yaml", "other.yaml", true},
		{"lateness", "allowed_lateness: 10m", "allowed_lateness: 9m", false},
		{"out of orderness", "max_out_of_orderness: 5s", "max_out_of_orderness: 6s", false},
		{"identity", "identity: [click_id]", "identity: none", false},
		{"filter", "prefix: bot/", "prefix: bot", false},
		{"max_ahead", "max_ahead: 5m", "max_ahead: 6m", false},
	} {
		m, err := Parse("m.yaml", []byte(strings.Replace(tapsMeter, c.from, c.to, 1)))
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if (m.Fingerprint == base.Fingerprint) != c.same {
			t.Errorf("%s: same fingerprint = %v", c.what, !c.same)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, base, from, to string
		want                 []string // each stands in the error, with its line
	}{
		{"abandon too early", gatewayMeter, "abandon_after: 5m", "abandon_after: 2m", []string{"m.yaml:18: assembly.abandon_after", "3m0s"}},
		{"unknown key", gatewayMeter, "latency:", "latencie:", []string{`m.yaml:8: event: unknown key "latencie"; did you mean "latency"?; known: format,`}},
		{"a tab", gatewayMeter, "  time_unit: ms", "\ttime_unit: ms", []string{"m.yaml:6: not YAML: a tab stands where only spaces may: set lines in with spaces"}},
		{"a tab among spaces", gatewayMeter, "    cached_tokens:", "  \t  cached_tokens:", []string{"m.yaml:11: not YAML: "}},
		{"min_time finer than a ms", gatewayMeter, "max_ahead: 5m", "max_ahead: 5m\n  min_time: 2020-01-01T00:00:00.0001Z", []string{"event.min_time: \"2020-01-01T00:00:00.0001Z\" is finer than a millisecond"}},
		{"twice", tapsMeter, "kind: events", "kind: events\nkind: events", []string{`key "kind" stands twice (first on line 2)`}},
		{"several at once", gatewayMeter, "time_unit: ms\n  kinds: {start: RequestStarted,", "time_unit: min\n  kinds: {",
			[]string{"m.yaml:6: event.time_unit", `m.yaml:7: event.kinds: "start" is missing`}},
		{"no max_ahead", tapsMeter, "  max_ahead: 5m\n", "", []string{`"max_ahead" is missing`}},
		{"not yet", gatewayMeter, "pricing: {", "latency_windows: {size: 5m, slide: 1m}\nalerts: {error_rate_above: 0.05}\npricing: {service: {url: x}, ",
			[]string{"latency_windows", "alerts", `"service" is not built yet`}},
		{"part of a part", gatewayMeter, "part_of: prompt_tokens", "part_of: cached_tokens", []string{"is no other quantity"}},
		{"on in an events meter", tapsMeter, "{const: 1}", "{const: 1, on: start}", []string{"m.yaml:7", "requests meters"}},
		{"own column", tapsMeter, "{taps:", "{bucket:", []string{"a column of its own"}},
		{"anchor", tapsMeter, "watermark: {", "watermark: &a {", []string{"anchors"}},
		{"fine duration", tapsMeter, "max_ahead: 5m", "max_ahead: 5ns", []string{"finer than a millisecond"}},
		{"undeclared attribute", tapsMeter, "attribute: agent", "attribute: agnet", []string{`attribute "agnet" is not declared`}},
		{"two ops", tapsMeter, "prefix: bot/", "prefix: bot/, equals: x", []string{"exclude each other"}},
		{"above on text", tapsMeter, "prefix: bot/", "above: 3", []string{"only a quantity"}},
		{"not YAML", tapsMeter, "kind: events", "kind: [", []string{"not YAML"}},
		{"kinds without path", tapsMeter, "  time_unit", "  kinds: {event: Tap}\n  time_unit", []string{"no event.fields.kind"}},
		{"one word for two kinds", gatewayMeter, "error: ModelError", "error: RequestCompleted", []string{"already the word of complete"}},
		{"falling tiers", gatewayMeter, "[200000]", "[200000, 100]", []string{"have to rise"}},
		{"empty path", tapsMeter, "account: partner", "account: a..b", []string{"is no path"}},
		{"http", tapsMeter, "pricing:", "run: {http: 127.0.0.1:1}\npricing:", []string{`"http" is not built yet`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(c.base, c.from, c.to, 1)
			if text == c.base {
				t.Fatal("the case changes nothing")
			}
			_, err := Parse("m.yaml", []byte(text))
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(gatewayMeter))
	f.Add([]byte(tapsMeter))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("m.yaml", text)
		if (m == nil) == (err == nil) {
			t.Fatalf("meter %v, error %v", m, err)
		}
		if err == nil && (m.Kind != Events && m.AbandonAfter < m.Window.Size+m.Window.AllowedLateness || len(m.Event.Quantities) == 0) {
			t.Errorf("accepted a broken meter: %+v", m)
		}
	})
}
