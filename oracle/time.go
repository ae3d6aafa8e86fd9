package oracle

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A moment is what a time field says (R2).
type moment struct {
	ms   int64
	ok   bool // it is a time in the declared unit
	huge bool // a time beyond int64 ms, in either direction
}

// unitsPerMs says how a number's unit relates to the ms: how many decimals it may have, and what to divide by.
var unitsPerMs = map[meter.TimeUnit]struct{ decimals, divisor int64 }{
	meter.UnitMs: {0, 1},
	meter.UnitS:  {3, 1},
	meter.UnitUs: {0, 1_000},
	meter.UnitNs: {0, 1_000_000},
}

// readTime reads a time in the declared unit: a number in a number's unit, a text under rfc3339 (R2).
func readTime(unit meter.TimeUnit, v any) moment {
	if unit == meter.UnitRFC3339 {
		s, _ := v.(string)
		return parseRFC3339(s)
	}
	number, ok := v.(json.Number)
	if !ok {
		return moment{}
	}
	u := unitsPerMs[unit]
	d := parseDecimal(number.String()).times10(u.decimals)
	if !d.whole() {
		return moment{}
	}
	n, ok := d.big()
	if !ok {
		return moment{ok: true, huge: true}
	}
	n.Div(n, big.NewInt(u.divisor)) // Euclidean: floors, as the divisor is positive
	return moment{ms: n.Int64(), ok: true, huge: !n.IsInt64()}
}

// readLogTime reads the received field of plain event lines; one that is no time, or outside the years 0000 to 9999, is none.
func readLogTime(unit meter.TimeUnit, v any) (ms int64, ok bool) {
	t := readTime(unit, v)
	first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	if !t.ok || t.huge || t.ms < first.UnixMilli() || t.ms >= last.UnixMilli() {
		return 0, false
	}
	return t.ms, true
}

// parseRFC3339 reads 2026-01-01T00:00:00[.fraction](Z|±hh:mm) and nothing else.
func parseRFC3339(s string) moment {
	const form = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(form) || !shaped(s[:len(form)], form) {
		return moment{}
	}
	number := func(from, to int) int { n, _ := strconv.Atoi(s[from:to]); return n }
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second := number(11, 13), number(14, 16), number(17, 19)
	ms, zone, ok := fraction(s[len(form):])
	offset, zoneOK := zoneMinutes(zone)
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if !ok || !zoneOK || month < 1 || month > 12 || day < 1 || date.Day() != day || hour > 23 || minute > 59 || second > 60 {
		return moment{}
	}
	inUTC := date.Unix()/60 + int64(hour*60+minute-offset) // minutes since 1970
	if second == 60 {
		if mod(inUTC, 24*60) != 23*60+59 {
			return moment{}
		}
		second, ms = 59, 999
	}
	return moment{ms: (inUTC*60+int64(second))*1000 + ms, ok: true}
}

// shaped reports whether s has digits where form has d, and form's characters elsewhere.
func shaped(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		digit := s[i] >= '0' && s[i] <= '9'
		if form[i] == 'd' && !digit || form[i] != 'd' && s[i] != form[i] {
			return false
		}
	}
	return true
}

// fraction reads .digits, floored to the ms; without a point it is zero.
func fraction(s string) (ms int64, rest string, ok bool) {
	after, pointed := strings.CutPrefix(s, ".")
	if !pointed {
		return 0, s, true
	}
	rest = strings.TrimLeft(after, "0123456789")
	digits := after[:len(after)-len(rest)]
	if digits == "" {
		return 0, "", false
	}
	ms, _ = strconv.ParseInt((digits + "000")[:3], 10, 64)
	return ms, rest, true
}

// zoneMinutes reads Z or ±hh:mm, in minutes east of UTC.
func zoneMinutes(s string) (int, bool) {
	if s == "Z" {
		return 0, true
	}
	if !shaped(s, "+dd:dd") && !shaped(s, "-dd:dd") {
		return 0, false
	}
	h, _ := strconv.Atoi(s[1:3])
	m, _ := strconv.Atoi(s[4:6])
	if h > 23 || m > 59 {
		return 0, false
	}
	if s[0] == '-' {
		return -(h*60 + m), true
	}
	return h*60 + m, true
}

// mod is t modulo n, never negative.
func mod(t, n int64) int64 { return ((t % n) + n) % n }
