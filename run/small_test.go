package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
)

type tracetestCase = tracetest.Case

const smallMeter = `
meter: taps
kind: events
event:
  format: json
  fields: {identity: [id], account: a, sku: {const: tap}, time: t}
  time_unit: s
  quantities: {taps: {const: 1}}
  max_ahead: 5m
watermark: {max_out_of_orderness: 5s, idleness: 1m}
window: {size: 1m, allowed_lateness: 1m}
pricing: {rate_card: rates.yaml}
`

const smallRates = `
rates:
  - {sku: tap, tier: 0, quantity: taps, usd: "0.01", per: 1, effective_from: 2026-01-01T00:00:00Z}
`

// small is a log of two partitions, three accounts, some taps late and some twice.
func small(t testing.TB) *tracetest.Case {
	t.Helper()
	return newCase(t, smallLog(0, 120), "")
}

func newCase(t testing.TB, log, options string) *tracetest.Case {
	t.Helper()
	files := map[string]string{"meter.yaml": smallMeter, "rates.yaml": smallRates, "log.jsonl": log}
	if options != "" {
		files["options"] = options
	}
	c, err := tracetest.New("small", "For tests of the driver.", files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// smallLog is lines [from, to) of the log.
func smallLog(from, to int) string {
	var b strings.Builder
	if from == 0 {
		b.WriteString(`{"trace":1,"topic":"taps","partitions":[0,1]}` + "\n")
	}
	for i := from; i < to; i++ {
		at := 1767225600 + 7*i
		if i%11 == 3 {
			at -= 200
		}
		id := i
		if i%13 == 5 {
			id -= 2
		}
		fmt.Fprintf(&b, `{"partition":%d,"offset":%d,"log_time":%d,"value":{"id":"c%d","a":"k%d","t":%d}}`+"\n", i%2, i, (1767225600+7*i)*1000, id, id%3, at)
	}
	return b.String()
}
