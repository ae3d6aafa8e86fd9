package oracle_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
	"github.com/gatewaymeter/gatewaymeter/pricing"
)

// The small meter of the tables: times in seconds, Z = 60, L = 60, B = 10, A = 180. So a start at 0 has D = 180,
// end(D) = 240, horizon 300; an end's horizon is its time + 180; an event's its window's end + 60.
const requestsMeter = `
meter: small
kind: requests
event:
  format: json
  fields: {kind: k, identity: [id], account: a, sku: m, time: t, status: st}
  time_unit: s
  kinds: {start: S, progress: P, complete: C, error: E, tick: T}
  quantities:
    in: {path: in, on: start, default: 0}
    cached: {path: cached, part_of: in, default: 0}
    out: {path: out, on: end, default: 0}
    think: {path: think, part_of: out, default: 0}
  tier: {on: in, above: [100]}
  attributes: {agent: agent}
  max_ahead: 1000s
  min_time: 1969-01-01T00:00:00Z
watermark: {max_out_of_orderness: 10s}
window: {size: 60s, allowed_lateness: 60s}
assembly: {abandon_after: 180s}
filter:
  - {name: bots, attribute: agent, prefix: bot/}
  - {name: broken, field: status, equals: broken}
pricing: {rate_card: rates.yaml}
`

const eventsMeter = `
meter: small
kind: events
event:
  format: json
  fields: {kind: k, identity: [id], account: a, sku: m, time: t, status: st}
  time_unit: s
  kinds: {event: V, tick: T}
  quantities:
    in: {path: in, default: 0}
    cached: {path: cached, part_of: in, default: 0}
  tier: {on: in, above: [100]}
  attributes: {agent: agent}
  max_ahead: 1000s
  min_time: 1969-01-01T00:00:00Z
watermark: {max_out_of_orderness: 10s}
window: {size: 60s, allowed_lateness: 60s}
filter: [{name: bots, attribute: agent, prefix: bot/}, {name: big, quantity: in, above: 1000}]
pricing: {rate_card: rates.yaml}
`

// One unit of anything costs 1 dollar; of m2 in tier 1 nothing has a rate.
const smallRates = `
rates:
  - {sku: m, tier: 0, quantity: in, usd: "1", per: 1, effective_from: 1960-01-01T00:00:00Z}
  - {sku: m, tier: 0, quantity: cached, usd: "1", per: 1, effective_from: 1960-01-01T00:00:00Z}
  - {sku: m, tier: 0, quantity: out, usd: "1", per: 1, effective_from: 1960-01-01T00:00:00Z}
  - {sku: m, tier: 0, quantity: think, usd: "1", per: 1, effective_from: 1960-01-01T00:00:00Z}
  - {sku: m, tier: 1, quantity: in, usd: "2", per: 1, effective_from: 1960-01-01T00:00:00Z}
`

// A script is a log in short: lines of `kind id time [name=value ...]`, in partition 0 unless it says p=N; offsets
// count up. `T time` is a tick, `idle N...` an idle line, `partitions N...` the header. The account is acme, the
// sku m, unless it says a= or m=; log= is the log time.
func script(t *testing.T, text string) *meter.Log {
	t.Helper()
	log := &meter.Log{Topic: "script"}
	offsets := map[int32]int64{}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		w := strings.Fields(line)
		switch w[0] {
		case "partitions":
			log.Partitions = numbers(t, w[1:])
			continue
		case "idle":
			log.Steps = append(log.Steps, meter.LogStep{Idle: numbers(t, w[1:])})
			continue
		case "T":
			w = append([]string{"T", "-"}, w[1:]...)
		}
		r := meter.Record{}
		fields := []string{fmt.Sprintf(`"k":%q,"id":%q,"t":%s`, w[0], w[1], w[2])}
		named := map[string]string{"a": "acme", "m": "m"}
		for _, word := range w[3:] {
			name, value, _ := strings.Cut(word, "=")
			named[name] = value
		}
		for name, value := range named {
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case name == "p":
				r.Partition = int32(n)
			case name == "log":
				r.LogTime, r.HasLogTime = n*1000, true
			case err == nil:
				fields = append(fields, fmt.Sprintf(`%q:%d`, name, n))
			default:
				fields = append(fields, fmt.Sprintf(`%q:%q`, name, value))
			}
		}
		r.Offset = offsets[r.Partition]
		offsets[r.Partition]++
		r.Value = []byte("{" + strings.Join(fields, ",") + "}")
		log.Steps = append(log.Steps, meter.LogStep{Record: r})
	}
	return log
}

func numbers(t *testing.T, words []string) []int32 {
	t.Helper()
	ns := []int32{}
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			t.Fatal(err)
		}
		ns = append(ns, int32(n))
	}
	return ns
}

func small(t *testing.T, text string) (*meter.Meter, *meter.RateCard) {
	t.Helper()
	m, err := meter.Parse("small.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	card, err := pricing.Parse(m, "rates.yaml", []byte(smallRates))
	if err != nil {
		t.Fatal(err)
	}
	return m, card
}

// A ruleCase is a script and what the rules say of it: items as shown by showItem, rows as `account end requests
// in cached out think usd`.
type ruleCase struct {
	why, log string
	open     bool // not drained
	complete bool // under the complete truth
	items    string
	rows     string
}

func (c *ruleCase) run(t *testing.T, meterText string) {
	t.Helper()
	m, card := small(t, meterText)
	var r *oracle.Result
	var err error
	if c.complete {
		r, err = oracle.Complete(m, card, nil, script(t, c.log), oracle.Options{Drain: !c.open})
	} else {
		r, err = oracle.AsStreamed(m, card, nil, script(t, c.log), !c.open)
	}
	if err != nil {
		t.Fatal(err)
	}
	var items, rows []string
	for i := range r.Items {
		if r.Items[i].Verdict != meter.VerdictProgress {
			items = append(items, showItem(&r.Items[i]))
		}
	}
	for i := range r.Rows {
		rows = append(rows, showRow(&r.Rows[i]))
	}
	compareLines(t, "items", c.items, items)
	compareLines(t, "rows", c.rows, rows)
}

func compareLines(t *testing.T, what, want string, got []string) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(want, "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	if !slices.Equal(lines, got) {
		t.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "), strings.Join(lines, "\n      "))
	}
}

// showItem is `verdict offsets kind t=time J=judged` and what else is remarkable; seconds.
func showItem(it *meter.Item) string {
	s := fmt.Sprintf("%s %d@%s", it.Verdict, it.Partition, strings.Trim(strings.ReplaceAll(fmt.Sprint(it.Offsets), " ", ","), "[]"))
	for _, at := range it.Elsewhere {
		s += "," + at.String()
	}
	s += fmt.Sprintf(" %s t=%d", it.Kind, it.Time/1000)
	switch it.Judged {
	case meter.MinusInfinity:
		s += " J=-inf"
	default:
		s += fmt.Sprintf(" J=%d", it.Judged/1000)
	}
	for _, mark := range []struct {
		yes  bool
		word string
	}{{it.Abandoned, " abandoned"}, {it.Superseded, " superseded"}, {it.Door, " door"}, {it.Filter != "", " filter=" + it.Filter},
		{it.Account == "", " -"}, {it.Tier > 0, fmt.Sprintf(" tier=%d", it.Tier)}, {it.Usage.Requests == 0, " lone"}} {
		if mark.yes {
			s += mark.word
		}
	}
	return s
}

func showRow(r *meter.Row) string {
	s := fmt.Sprintf("%s %d %d", r.Account, r.WindowEnd/1000, r.Usage.Requests)
	for _, q := range r.Usage.Quantities {
		s += fmt.Sprintf(" %d", q)
	}
	s += " $" + strings.TrimSuffix(r.Amount.USD(), ".000000000000")
	if r.State != meter.Recomputed {
		s += " " + r.State.String()
	}
	if r.Unpriced > 0 {
		s += fmt.Sprintf(" unpriced=%d", r.Unpriced)
	}
	return s
}
