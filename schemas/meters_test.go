package schemas

import "github.com/gatewaymeter/gatewaymeter/meter"

const requestsYAML = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id], account: tenant_id, sku: model, time: ts, status: payload.status}
  time_unit: ms
  kinds: {start: RequestStarted, progress: TokensStreamed, complete: RequestCompleted, error: ModelError, tick: Heartbeat}
  latency: payload.latency_ms
  quantities:
    prompt_tokens: {path: payload.prompt_tokens, on: start}
    cached_tokens: {path: payload.cached_tokens, part_of: prompt_tokens, default: 0}
    completion_tokens: {path: payload.completion_tokens, on: end, default: 0}
  attributes: {agent: payload.agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
assembly: {abandon_after: 5m}
pricing: {rate_card: rates.yaml}
`

const eventsYAML = `
meter: menu-taps
kind: events
event:
  format: json
  fields: {identity: [click_id], account: partner, sku: {const: tap}, time: phone_time, received: server_time, status: status, reference: [click_id]}
  time_unit: rfc3339
  quantities: {taps: {const: 1}, out: {path: out, default: 7}}
  latency: latency
  attributes: {agent: agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 5s, idleness: 1m}
window: {size: 1m, allowed_lateness: 10m}
pricing: {rate_card: rates.yaml}
`

func parse(text string) *meter.Meter {
	m, err := meter.Parse("gatewaymeter.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return m
}

func requestsMeter() *meter.Meter { return parse(requestsYAML) }
func eventsMeter() *meter.Meter   { return parse(eventsYAML) }
