package mutants

import (
	"testing"
	"time"
)

// TestMutantsOfSQL: each of these faults in the recompute's SQL, and in what Go fills into it, is noticed by its properties or its exam.
func TestMutantsOfSQL(t *testing.T) {
	runSuite(t, &Suite{
		Root:    root,
		Package: "./batch/duckdb",
		Stages: [][]string{{"-test.run=TestTraces"}, {"-test.run=EqualsOracle|PrunedEqualsWhole|ShareAHash", "-rapid.checks=60", "-rapid.seed=1",
			"-rapid.shrinktime=1ms", "-rapid.nofailfile"}},
		Timeout: 5 * time.Minute,
		Mutants: batchMutants,
	}, 18)
}

const (
	tallySQL            = "batch/tally.sql"
	lastSQL             = "batch/last.sql"
	logSQL              = "batch/log.sql"
	streamedRequestsSQL = "batch/streamed_requests.sql"
	streamedEventsSQL   = "batch/streamed_events.sql"
	completeRequestsSQL = "batch/complete_requests.sql"
	completeEventsSQL   = "batch/complete_events.sql"
	cellsSQL            = "batch/cells.sql"
	itemsSQL            = "batch/items.sql"
	textGo              = "batch/text.go"
	priceGo             = "batch/price.go"
	pruneGo             = "batch/prune.go"
	resultsGo           = "batch/duckdb/results.go"
	batchCellsGo        = "batch/duckdb/cells.go"
)

var batchMutants = []Mutant{
	{Name: "SQL R3: every copy is a duplicate", File: streamedRequestsSQL, Old: "THEN 'duplicate' ELSE 'conflict' END", New: "THEN 'duplicate' ELSE 'duplicate' END"},
	{Name: "SQL R3: an error after a completion may be a duplicate", File: streamedRequestsSQL, Old: "OR c.kind = v.x_kind AND c.payload_hash", New: "OR c.payload_hash"},
	{Name: "SQL R3: an end knows a start that comes later", File: streamedRequestsSQL, Old: "CASE WHEN c.side = 'end' AND v.s_off < c.log_offset THEN v.account ELSE c.account END", New: "CASE WHEN c.side = 'end' THEN v.account ELSE c.account END"},
	{Name: "SQL R3: only the first part of an id counts", File: textGo, Old: "return strings.Join(list, \" AND \")\n}\n\n// keyed", New: "return list[0]\n}\n\n// keyed"},
	{Name: "SQL R3: ids that share a hash are one", File: streamedRequestsSQL, Old: "x.part = s.part AND {{same \"x\" \"s\"}} THEN 1", New: "x.part = s.part THEN 1"},
	{Name: "SQL R4: B is forgotten", File: logSQL, Old: "coalesce(prior_max_reach - {{B}}, {{never}})", New: "coalesce(prior_max_reach, {{never}})"},
	{Name: "SQL R4: the first watermark is 1970", File: logSQL, Old: "coalesce(prior_max_reach - {{B}}, {{never}})", New: "coalesce(prior_max_reach - {{B}}, 0)"},
	{Name: "SQL R4: log time does not guard the last watermark", File: tallySQL, Old: "CASE WHEN log_time < event_time THEN log_time ELSE event_time END", New: "event_time"},
	{Name: "SQL R4: a tick moves nothing", File: tallySQL, Old: "bucket IN ('event', 'tick')", New: "bucket IN ('event')"},
	{Name: "SQL R4: timers are judged by the watermark that reached them", File: itemsSQL, Old: "ORDER BY moment, turn\n", New: "ORDER BY moment, turn DESC\n"},
	{Name: "SQL R5: windows below 1970 are those of truncation", File: textGo, Old: "(%[1]s - mod(mod(%[1]s, %[2]d) + %[2]d, %[2]d) + %[2]d)", New: "(%[1]s - mod(%[1]s, %[2]d) + %[2]d)"},
	{Name: "SQL R6: <= for <: counted at end + L", File: streamedRequestsSQL, Old: "judged < window_end + {{L}} THEN 'counted'", New: "judged <= window_end + {{L}} THEN 'counted'"},
	{Name: "SQL R6: no lateness is allowed", File: streamedEventsSQL, Old: "judged < window_end + {{L}} THEN 'counted'", New: "judged < window_end THEN 'counted'"},
	{Name: "SQL R6: a window is open when it is just final", File: batchCellsGo, Old: "if row.WindowEnd > final {", New: "if row.WindowEnd >= final {"},
	{Name: "SQL R6: one partition makes a window final", File: resultsGo, Old: "	lowest := meter.PlusInfinity", New: "	lowest := meter.MinusInfinity\n	min := func(a, b int64) int64 { return max(a, b) }"},
	{Name: "SQL R7: no door", File: streamedRequestsSQL, Old: "WHERE w < horizon", New: "WHERE 1 = 1"},
	{Name: "SQL R7: the door opens one millisecond longer", File: streamedRequestsSQL, Old: "WHERE w < horizon", New: "WHERE w <= horizon"},
	{Name: "SQL R7: no door for the ends of plain requests", File: streamedRequestsSQL, Old: "AND judged < x_t + {{A}} AND", New: "AND judged < x_t + {{A}} + {{A}} AND"},
	{Name: "SQL R7: an end meets its start at D", File: streamedRequestsSQL, Old: "WHEN s_off < x_off AND x_w < d THEN 'met'", New: "WHEN s_off < x_off AND x_w <= d THEN 'met'"},
	{Name: "SQL R7: a plain request is met at D", File: streamedRequestsSQL, Old: "WHEN s_off < x_off THEN d ELSE", New: "WHEN s_off < x_off THEN d + 1 ELSE"},
	{Name: "SQL R7: a plain end is held one millisecond longer", File: streamedRequestsSQL, Old: "AND judged < x_t + {{A}} AND", New: "AND judged <= x_t + {{A}} AND"},
	{Name: "SQL R7: a plain end that was held is judged when it came", File: streamedRequestsSQL, Old: "THEN x.w ELSE s.w END AS judged", New: "THEN x.w ELSE x.w END AS judged"},
	{Name: "SQL R3: one copy makes no difference", File: streamedRequestsSQL, Old: "HAVING count(*) <> 2 OR count(account) <> 1", New: "HAVING count(*) > 3 OR count(account) <> 1"},
	{Name: "SQL R7: no door for a plain start that comes second", File: streamedRequestsSQL, Old: "THEN d ELSE {{windowEnd \"d\"}} + {{L}} END THEN 1", New: "THEN d ELSE {{windowEnd \"d\"}} + {{L}} + {{A}} END THEN 1"},
	{Name: "SQL R7: an end is held one millisecond longer", File: streamedRequestsSQL, Old: "s_w < x_t + {{A}} THEN 'held'", New: "s_w <= x_t + {{A}} THEN 'held'"},
	{Name: "SQL R7: a held end is judged when it came", File: streamedRequestsSQL, Old: "CASE WHEN fate = 'held' THEN s_w ELSE x_w END", New: "x_w"},
	{Name: "SQL R7: a request is superseded after its window is final", File: streamedRequestsSQL, Old: " AND x_w < {{windowEnd \"d\"}} + {{L}} AND", New: " AND"},
	{Name: "SQL R7: a request is superseded into a final window", File: streamedRequestsSQL, Old: " AND x_w < {{windowEnd \"x_t\"}} + {{L}} THEN 'superseded'", New: " THEN 'superseded'"},
	{Name: "SQL R7: a filtered abandoned request can be superseded", File: streamedRequestsSQL, Old: "b_filter IS NULL AND ", New: ""},
	{Name: "SQL R7: progress before the start counts", File: streamedRequestsSQL, Old: "WHERE p.log_offset > v.s_off AND", New: "WHERE"},
	{Name: "SQL R7: progress at D counts", File: streamedRequestsSQL, Old: "p.w < v.s_t + {{A}}", New: "p.w <= v.s_t + {{A}}"},
	{Name: "SQL R7: progress adds up", File: streamedRequestsSQL, Old: "{{ends \", max(p.q#) AS q#\"}}", New: "{{ends \", CAST(sum(p.q#) AS BIGINT) AS q#\"}}"},
	{Name: "SQL R7: of an abandoned request a whole may be less than its parts", File: textGo, Old: "sum := f.partsOf(i, p); sum != \"\"", New: "sum := f.partsOf(i, p); sum == \"0\""},
	{Name: "SQL R7: abandoned only after D", File: streamedRequestsSQL, Old: "WHEN w_end >= d THEN 'abandoned'", New: "WHEN w_end > d THEN 'abandoned'"},
	{Name: "SQL R7: an end is an orphan only after time + A", File: streamedRequestsSQL, Old: "w_end < x_t + {{A}} THEN 'open'\n", New: "w_end <= x_t + {{A}} THEN 'open'\n"},
	{Name: "SQL R8: no lives", File: streamedRequestsSQL, Old: "CASE WHEN w < remembered THEN 0 ELSE 1 END", New: "CASE WHEN remembered IS NOT NULL THEN 0 ELSE 1 END"},
	{Name: "SQL R8: an id is remembered one millisecond longer", File: streamedRequestsSQL, Old: "CASE WHEN w < remembered THEN 0 ELSE 1 END", New: "CASE WHEN w <= remembered THEN 0 ELSE 1 END"},
	{Name: "SQL R8: only the copy before prolongs", File: streamedRequestsSQL, Old: "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", New: "ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING"},
	{Name: "SQL R8: no lives of events", File: streamedEventsSQL, Old: "CASE WHEN w < remembered THEN 0 ELSE 1 END", New: "CASE WHEN remembered IS NOT NULL THEN 0 ELSE 1 END"},
	{Name: "SQL R8: an event is remembered for its window only", File: streamedEventsSQL, Old: "max({{windowEnd \"t\"}} + {{L}})", New: "max({{windowEnd \"t\"}})"},
	{Name: "SQL R9: lateness goes before filters", File: streamedRequestsSQL, Old: "CASE WHEN filter IS NOT NULL THEN 'filtered' WHEN judged < window_end + {{L}} THEN 'counted' ELSE 'late' END", New: "CASE WHEN judged >= window_end + {{L}} THEN 'late' WHEN filter IS NOT NULL THEN 'filtered' ELSE 'counted' END"},
	{Name: "SQL R9: above is not strict", File: textGo, Old: "\"%s > %d\", column, x.Ints[0]", New: "\"%s >= %d\", column, x.Ints[0]"},
	{Name: "SQL R9: the last matching filter gives the name", File: textGo, Old: "	for i := range f.m.Filters {\n		x := &f.m.Filters[i]\n", New: "	for i := range f.m.Filters {\n		x := &f.m.Filters[len(f.m.Filters)-1-i]\n"},
	{Name: "SQL R9: a tier begins at its threshold", File: textGo, Old: "CASE WHEN %s%d > %d THEN 1 ELSE 0 END", New: "CASE WHEN %s%d >= %d THEN 1 ELSE 0 END"},
	{Name: "SQL R9: half of the set hash is wrong", File: cellsSQL, Old: "sum(mod(id_hash, 4294967296))", New: "sum(mod(id_hash, 4294967295))"},
	{Name: "SQL R10: the price at the window's end", File: priceGo, Old: "start := c.WindowEnd - p.m.Window.Size", New: "start := c.WindowEnd"},
	{Name: "SQL R10: a price holds only after it begins", File: priceGo, Old: "rates[i].EffectiveFrom <= start", New: "rates[i].EffectiveFrom < start"},
	{Name: "SQL R10: parts are billed twice", File: priceGo, Old: "units -= quantities[j]", New: "units -= 0"},
	{Name: "SQL R10: no list", File: priceGo, Old: "pico, ok = inForce(t.list[i], start)", New: "pico, ok = inForce(nil, start)"},
	{Name: "SQL R13: draining is forgotten", File: lastSQL, Old: "CASE WHEN p.drained = 1 THEN {{forever}}\n            WHEN", New: "CASE WHEN"},
	{Name: "SQL R15: ids that share a hash are one", File: completeRequestsSQL, Old: "CASE WHEN {{same \"x\" \"s\"}} THEN 1", New: "CASE WHEN x.id_hash = s.id_hash THEN 1"},
	{Name: "SQL R15: one copy makes no difference", File: completeRequestsSQL, Old: "HAVING count(*) <> 2 OR count(account) <> 1", New: "HAVING count(*) > 3 OR count(account) <> 1"},
	{Name: "SQL R15: in the order of offsets, not of log times", File: completeRequestsSQL, Old: "ORDER BY log_time, part, log_offset) AS place", New: "ORDER BY part, log_offset) AS place"},
	{Name: "SQL R15: the last copy of an event counts", File: completeEventsSQL, Old: "ORDER BY log_time, part, log_offset)", New: "ORDER BY log_time DESC, part DESC, log_offset DESC)"},
	{Name: "SQL R15: a missing log time comes last", File: logSQL, Old: "coalesce(log_time, 0)", New: "coalesce(log_time, 9999999999999)"},
	{Name: "SQL R15: all progress counts", File: completeRequestsSQL, Old: " AND p.place > v.s_place", New: ""},
	{Name: "SQL R15: abandoned only after D", File: completeRequestsSQL, Old: "WHEN f.w_end >= v.s_t + {{A}} THEN 'abandoned'", New: "WHEN f.w_end > v.s_t + {{A}} THEN 'abandoned'"},
	{Name: "SQL R15: a lone end is judged by any watermark", File: completeRequestsSQL, Old: "f.w_end >= v.x_t + {{A}} THEN 'orphan'", New: "f.w_end >= v.x_t THEN 'orphan'"},
	{Name: "pruning begins at the window, not A before", File: pruneGo, Old: "*from - into - m.AbandonAfter", New: "*from - into"},
	{Name: "pruning begins at a range's from, not at its window", File: pruneGo, Old: "*from - into - m.AbandonAfter", New: "*from - m.AbandonAfter"},
	{Name: "pruning ends when the window fires, not when it is final", File: pruneGo, Old: "*to + m.Window.AllowedLateness + m", New: "*to + m"},
}
