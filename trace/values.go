package trace

import (
	"strconv"
	"time"
)

var agents = [...]string{"sdk-python/1.4", "sdk-go/0.9", "curl/8.5", "app-ios/3.1", "app-android/3.1"}

const bot = "bot/1.0"

func agent(i int32) string {
	if i < 0 {
		return bot
	}
	return agents[i]
}

func (m *maker) appendID(b []byte, r *arrival) []byte {
	switch r.what &^ broken {
	case aTick:
		return append(b, "tick"...)
	case aTap:
		return appendHex(append(b, "c-"...), r.id)
	}
	return appendHex(append(b, "req-"...), r.id)
}

func appendHex(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return b
}

func (m *maker) appendValue(b []byte, r *arrival) []byte {
	if r.what&^broken == aTap {
		return m.appendTap(b, r)
	}
	b = append(b, `{"event_type":"`...)
	b = append(b, [...]string{"RequestStarted", "TokensStreamed", "RequestCompleted", "ModelError", "", "Heartbeat"}[r.what&^broken]...)
	if r.what&^broken != aTick {
		b = m.appendID(append(b, `","request_id":"`...), r)
	}
	if r.what&^broken == aStart {
		b = append(append(b, `","tenant_id":"`...), m.accounts[r.account]...)
		b = append(append(b, `","model":"`...), m.skus[r.sku]...)
	}
	b = strconv.AppendInt(append(b, `","ts":`...), m.Start+r.time, 10)
	switch r.what &^ broken {
	case aStart:
		b = strconv.AppendInt(append(b, `,"payload":{"prompt_tokens":`...), r.a, 10)
		b = strconv.AppendInt(append(b, `,"cached_tokens":`...), r.b, 10)
		b = append(append(b, `,"agent":"`...), agent(r.agent)...)
		return append(b, `"}}`...)
	case aProgress:
		b = strconv.AppendInt(append(b, `,"payload":{"completion_tokens":`...), r.a, 10)
		return append(b, `}}`...)
	case aComplete:
		return m.appendEnd(b, r, "ok")
	case anError:
		return m.appendEnd(b, r, "upstream_error")
	}
	return append(b, '}')
}

func (m *maker) appendEnd(b []byte, r *arrival, status string) []byte {
	b = strconv.AppendInt(append(b, `,"payload":{"completion_tokens":`...), r.a, 10)
	b = strconv.AppendInt(append(b, `,"latency_ms":`...), r.b, 10)
	b = append(append(b, `,"status":"`...), status...)
	return append(b, `"}}`...)
}

func (m *maker) appendTap(b []byte, r *arrival) []byte {
	b = m.appendID(append(b, `{"click_id":"`...), r)
	b = append(append(b, `","partner":"`...), m.accounts[r.account]...)
	b = appendTime(append(b, `","phone_time":"`...), m.Start+r.time)
	b = appendTime(append(b, `","server_time":"`...), m.Start+r.at)
	b = append(append(b, `","agent":"`...), agent(r.agent)...)
	return append(b, `"}`...)
}

func appendTime(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
}
