package gen

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A shape is the meter that is drawn: durations in ms, all multiples of the unit.
type shape struct {
	kind       meter.MeterKind
	unit       int64
	base       int64 // about where the log begins
	z, l, b, a int64
	maxAhead   int64
	timeUnit   meter.TimeUnit
	identity   string // one field, two fields, or none
	kinds      bool   // an events meter with a kind field
	ticks      bool
	progress   bool
	filters    []string
	tiers      bool
	fixed      bool // the events meter has a constant quantity
}

var skus = []string{"m0", "m1", "m2"}
var accounts = []string{"acme", "beta", "ceres"}

func drawShape(t *rapid.T, o Options) *shape {
	s := &shape{kind: o.Kind, unit: pick[int64](t, "unit", 1000, 10_000, 60_000)}
	units := func(label string, from, to int) int64 { return s.unit * int64(rapid.IntRange(from, to).Draw(t, label)) }
	s.z = units("Z", 1, 4)
	s.l = s.unit * pick[int64](t, "L", 3, 5, 2, 1, 0, 8)
	s.b = s.unit * pick[int64](t, "B", 1, 0, 2, 3)
	s.a = s.z + s.l + units("A beyond Z+L", 0, 4)
	s.maxAhead = units("max ahead", 2, 30)
	const jan2026 = 1767225600000
	s.base = pick[int64](t, "base", 0, jan2026, jan2026)
	s.timeUnit = pick(t, "time unit", meter.UnitMs, meter.UnitMs, meter.UnitS, meter.UnitUs, meter.UnitNs, meter.UnitRFC3339)
	s.identity = pick(t, "identity", "[id]", "[id]", "[id, part]")
	s.ticks = chance(t, "ticks", 2)
	s.progress = chance(t, "progress", 2)
	s.tiers = chance(t, "tiers", 2)
	if s.kind == meter.Events {
		s.kinds = chance(t, "kinds", 2)
		s.ticks = s.ticks && s.kinds
		s.fixed = chance(t, "fixed", 3)
		if chance(t, "no identity", 6) {
			s.identity = "none"
		}
	}
	s.drawFilters(t)
	return s
}

func (s *shape) drawFilters(t *rapid.T) {
	if !chance(t, "filters", 2) {
		return
	}
	all := []string{
		"{name: bots, attribute: agent, prefix: bot/}",
		"{name: agents, attribute: agent, in: [cli, web]}",
		"{name: small, quantity: in, below: 3}",
		"{name: large, quantity: in, above: 250}",
		"{name: sevens, quantity: in, equals: 7}",
		"{name: own, field: account, equals: ceres}",
		"{name: free, field: sku, in: [m1, m9]}",
		"{name: failed, field: status, in: [error, broken]}",
	}
	if s.kind == meter.Requests {
		all = append(all, "{name: gone, field: status, equals: abandoned}", "{name: silent, quantity: out, equals: 0}",
			"{name: chatty, quantity: out, above: 150}")
	}
	for n := rapid.IntRange(1, 3).Draw(t, "filters count"); n > 0; n-- {
		f := pick(t, "filter", all...)
		if !strings.Contains(strings.Join(s.filters, ""), f) {
			s.filters = append(s.filters, f)
		}
	}
}

func dur(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// meterText is the meter file.
func (s *shape) meterText(t *rapid.T) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("meter: drawn")
	line("kind: %s", s.kind)
	line("event:")
	line("  format: json")
	kind := "kind: k, "
	if s.kind == meter.Events && !s.kinds {
		kind = ""
	}
	line("  fields: {%sidentity: %s, account: a, sku: m, time: t, status: p.status, reference: [ref]}", kind, s.identity)
	line("  time_unit: %s", s.timeUnit)
	if kind != "" {
		line("  kinds: {%s}", strings.Join(s.kindWords(), ", "))
	}
	line("  latency: p.latency")
	line("  quantities:")
	if s.kind == meter.Requests {
		line("    in: {path: p.in, on: start}")
		line("    cached: {path: p.cached, part_of: in, default: 0}")
		line("    out: {path: p.out, on: end, default: 0}")
		line("    thought: {path: p.thought, part_of: out, default: 0}")
	} else {
		line("    in: {path: p.in}")
		line("    cached: {path: p.cached, part_of: in, default: 0}")
		if s.fixed {
			line("    taps: {const: 1}")
		}
	}
	if s.tiers {
		line("  tier: {on: %s, above: [100, 200]}", s.tierOn(t))
	}
	line("  attributes: {agent: p.agent, region: p.region}")
	line("  max_ahead: %s", dur(s.maxAhead))
	line("  min_time: 1969-01-01T00:00:00Z")
	line("watermark: {max_out_of_orderness: %s, idleness: 1m}", dur(s.b))
	line("window: {size: %s, allowed_lateness: %s}", dur(s.z), dur(s.l))
	if s.kind == meter.Requests {
		line("assembly: {abandon_after: %s}", dur(s.a))
	}
	if len(s.filters) > 0 {
		line("filter: [%s]", strings.Join(s.filters, ", "))
	}
	line("pricing: {rate_card: rates.yaml, list: list-rates.yaml}")
	return b.String()
}

func (s *shape) kindWords() []string {
	words := []string{"event: Tap"}
	if s.kind == meter.Requests {
		words = []string{"start: S", "complete: C", "error: E"}
		if s.progress {
			words = append(words, "progress: P")
		}
	}
	if s.ticks {
		words = append(words, "tick: T")
	}
	return words
}

func (s *shape) tierOn(t *rapid.T) string {
	if s.kind == meter.Requests {
		return pick(t, "tier on", "in", "out")
	}
	return "in"
}

// ratesText is a rate card, or a list: some prices change in the middle of the log, some are missing.
func (s *shape) ratesText(t *rapid.T, list bool) string {
	var b strings.Builder
	b.WriteString("rates:\n")
	first := s.base - s.base%s.z - 1000*s.z
	row := func(sku string, tier int, quantity, usd string, per int, from int64) {
		fmt.Fprintf(&b, "  - {sku: %s, tier: %d, quantity: %s, usd: %q, per: %d, effective_from: %s}\n", sku, tier, quantity, usd, per,
			time.UnixMilli(from).UTC().Format(time.RFC3339))
	}
	quantities := []string{"in", "cached", "out", "thought"}
	if s.kind == meter.Events {
		quantities = []string{"in", "cached"}
		if s.fixed {
			quantities = append(quantities, "taps")
		}
	}
	tiers := 1
	if s.tiers {
		tiers = 3
	}
	row("m0", 0, "in", "3", 1_000_000, first) // so that no card is empty
	for i, sku := range skus {
		for tier := range tiers {
			for j, q := range quantities {
				if i+tier+j == 0 || rapid.IntRange(0, 15).Draw(t, "rate") == 0 || sku == "m2" && !list {
					continue
				}
				row(sku, tier, q, fmt.Sprintf("0.%d%d%d", i+1, tier+1, j+1), pick(t, "per", 1, 1000, 1_000_000), first)
				if chance(t, "price change", 4) {
					row(sku, tier, q, fmt.Sprintf("0.%d%d%d5", i+1, tier+1, j+1), 1000, s.base-s.base%s.z+s.z*int64(rapid.IntRange(0, 4).Draw(t, "from")))
				}
			}
		}
	}
	return b.String()
}
