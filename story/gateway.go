package story

import (
	"fmt"
	"math/rand/v2"

	"github.com/gatewaymeter/gatewaymeter/trace"
)

// The moments of the gateway's story happen to acme, in the minutes after GatewayStart (ms).
var GatewayStart = at("2026-01-01T10:00:00Z")

// gateway is the log in the making; partition 0 holds acme's moments and all of partition 1 is the other tenants.
type gateway struct {
	dice *rand.Rand
	all  []arrival
}

// Gateway writes the log of an LLM gateway: a quarter of an hour, then a quiet stretch closed by ticks.
func Gateway(w *trace.Writer) error {
	g := &gateway{dice: dice(10)}
	g.fortyOne()
	g.moments()
	g.background()
	for t := int64(0); t < 30*minute; t += 10 * second {
		for p := range int32(2) {
			now := GatewayStart + t
			g.add(arrival{at: now + 5, partition: p, key: "tick", value: fmt.Sprintf(`{"event_type":"Heartbeat","ts":%d}`, now)})
		}
	}
	return write(w, trace.Header{Topic: "requests", Partitions: []int32{0, 1}, About: "an LLM gateway billed by the minute"}, g.all)
}

func (g *gateway) add(a arrival) { g.all = append(g.all, a) }

// start and end are one request's records on partition p; offset times are ms after GatewayStart.
func (g *gateway) start(p int32, id, tenant string, ts, comes, prompt int64) {
	g.add(arrival{GatewayStart + comes, p, id, fmt.Sprintf(`{"event_type":"RequestStarted","request_id":"%s","tenant_id":"%s","model":"large","ts":%d,"payload":{"prompt_tokens":%d,"cached_tokens":0}}`,
		id, tenant, GatewayStart+ts, prompt)})
}

func (g *gateway) end(p int32, id string, ts, comes, completion int64) {
	g.add(arrival{GatewayStart + comes, p, id, fmt.Sprintf(`{"event_type":"RequestCompleted","request_id":"%s","ts":%d,"payload":{"status":"ok","completion_tokens":%d,"latency_ms":%d}}`,
		id, GatewayStart+ts, completion, 900)})
}

// fortyOne requests of ten cents each make acme's minute 10:01 worth $4.10 when it is first billed: 20,000 prompt tokens
// at $2.50 and 5,000 completion tokens at $10.00 a million. One more of 21 cents comes out of the retry buffer 50 s late.
func (g *gateway) fortyOne() {
	for i := range int64(41) {
		id := fmt.Sprintf("acme-%02d", i)
		begins := minute + i*1300
		g.start(0, id, "acme", begins, begins+40, 20_000)
		g.end(0, id, begins+1200, begins+1300, 5_000)
	}
	g.start(0, "acme-retry", "acme", minute+40*second, 2*minute+50*second, 44_000)
	g.end(0, "acme-retry", minute+45*second, 2*minute+51*second, 10_000)
}

func (g *gateway) moments() {
	// 1. Past the lateness: a request of 10:02 that reaches the log at 10:06, when that minute is final.
	g.start(0, "too-late", "acme", 2*minute+30*second, 6*minute, 8_000)
	g.end(0, "too-late", 2*minute+32*second, 6*minute+second, 2_000)
	// 2. The client went away: no end ever. Billed for its prompt, five minutes later.
	g.start(0, "gone", "acme", 3*minute, 3*minute+30, 12_000)
	// 3. The completion overtakes its start.
	g.end(0, "overtaken", 3*minute+20*second, 3*minute+20*second+50, 1_000)
	g.start(0, "overtaken", "acme", 3*minute+18*second, 3*minute+24*second, 4_000)
	// 4. Abandoned at 10:08:30, completed a little later: the completed request takes the abandoned one's place.
	g.start(0, "slow", "acme", 3*minute+30*second, 3*minute+30*second+40, 16_000)
	g.end(0, "slow", 9*minute+10*second, 9*minute+10*second+60, 3_000)
	// 5. Abandoned at 10:08:40. It had been completed at 10:05:50, but the news was stuck until 10:09:30, when that
	// minute is final: a late completion, kept apart.
	g.start(0, "stuck", "acme", 3*minute+40*second, 3*minute+40*second+40, 16_000)
	g.end(0, "stuck", 5*minute+50*second, 9*minute+30*second, 6_000)
	// 6. A start and its end sent twice change nothing.
	for i := range int64(2) {
		g.start(0, "twice", "acme", 4*minute, 4*minute+40+i*2000, 6_000)
		g.end(0, "twice", 4*minute+second, 4*minute+1100+i*2000, 1_500)
	}
	// 7. The same id with another count: reported in money, billed once.
	g.start(0, "disputed", "acme", 4*minute+20*second, 4*minute+20*second+40, 6_000)
	g.end(0, "disputed", 4*minute+21*second, 4*minute+21*second+50, 1_500)
	g.end(0, "disputed", 4*minute+21*second, 4*minute+23*second, 9_500)
	// 8. A completion whose start never came.
	g.end(0, "lost-start", 5*minute, 5*minute+50, 700)
}

// background is the other tenants, until 10:15.
func (g *gateway) background() {
	tenants := [...]string{"birch", "cedar", "dogwood"}
	for i, t := int64(0), int64(0); t < 15*minute; i++ {
		id := fmt.Sprintf("r-%04d", i)
		p := int32(i % 2)
		g.start(p, id, tenants[i%3], t, t+between(g.dice, 20, 400), between(g.dice, 200, 9_000))
		g.end(p, id, t+between(g.dice, 500, 4_000), t+between(g.dice, 4_500, 6_000), between(g.dice, 50, 2_000))
		t += between(g.dice, 1_000, 6_000)
	}
}
