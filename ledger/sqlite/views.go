package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// views are the statements that make the views of a meter's ledger. Only names that were checked as the meter's
// quantities stand in them, quoted; nothing of an event does.
func views(m *meter.Meter) []string {
	size := fmt.Sprint(m.Window.Size)
	quantities := func(column, prefix string) string {
		var b strings.Builder
		for i, name := range m.QuantityNames() {
			fmt.Fprintf(&b, "  json_extract(%s, '$[%d]') AS %s,\n", column, i, columnName(prefix+name))
		}
		return b.String()
	}
	incomplete := `EXISTS (SELECT 1 FROM gm_lost AS l WHERE r.window_end > l.window_from AND r.window_end <= l.window_to)`
	window := `  ` + timeText("r.window_end - "+size) + " AS window_start,\n  " + timeText("r.window_end") + " AS window_end,\n"
	bill := `CREATE VIEW bill AS SELECT r.account,
` + window + `  CASE WHEN ` + incomplete + ` THEN 'incomplete' ELSE r.state END AS state, r.revision, r.requests,
` + quantities("r.quantities", "") + `  ` + usd("r.amount") + ` AS amount_usd,
  ` + usd("r.adjustment") + ` AS adjustment_usd,
  ` + usd("coalesce(r.overflow, r.amount + r.adjustment)") + ` AS total_usd,
  coalesce(r.overflow, r.amount + r.adjustment) AS total_pico,
  r.source AS price_source, r.unpriced AS unpriced_requests, printf('%016x', r.set_hash) AS set_hash,
  r.overflow IS NOT NULL AS overflow, r.card AS rate_card, r.list AS list_card, r.version, r.window_end AS window_end_ms
FROM gm_row AS r WHERE r.requests <> 0 ORDER BY r.account, r.window_end`

	bySKU := `CREATE VIEW bill_by_sku AS SELECT r.account,
` + window + `  CASE WHEN ` + incomplete + ` THEN 'incomplete' ELSE r.state END AS state,
  c.value ->> 'sku' AS sku, c.value ->> 'tier' AS tier, c.value ->> 'requests' AS requests,
` + quantities("c.value -> 'quantities'", "") + `  ` + usd("c.value ->> 'amount'") + ` AS total_usd,
  c.value ->> 'amount' AS total_pico, c.value ->> 'source' AS price_source, c.value ->> 'unpriced' AS unpriced,
  ` + ratesOfCell(size) + ` AS prices_pico, printf('%016x', c.value ->> 'set_hash') AS set_hash,
  r.card AS rate_card, r.list AS list_card, r.version, r.window_end AS window_end_ms
FROM gm_row AS r, json_each(r.cells) AS c WHERE c.value ->> 'requests' <> 0
ORDER BY r.account, r.window_end, sku, tier`

	journal := `CREATE VIEW journal AS SELECT r.seq, r.kind, r.revision, r.account,
` + window + `  r.requests,
` + quantities("r.quantities", "") + `  ` + usd("r.total") + ` AS total_usd, r.delta_requests,
` + quantities("r.delta_quantities", "delta_") + `  ` + usd("r.delta") + ` AS delta_usd, r.total AS total_pico, r.delta AS delta_pico,
  r.source AS price_source, r.unpriced AS unpriced_requests, printf('%016x', r.set_hash) AS set_hash,
  r.card AS rate_card, r.list AS list_card, r.version, r.window_end AS window_end_ms
FROM gm_firing AS r ORDER BY r.seq`

	all := []string{bill, bySKU, journal}
	for _, out := range []struct {
		view    string
		verdict meter.Verdict
	}{
		{"late", meter.VerdictLate}, {"conflicts", meter.VerdictConflict}, {"orphans", meter.VerdictOrphan},
		{"late_completions", meter.VerdictLateCompletion}, {"filtered", meter.VerdictFiltered},
	} {
		all = append(all, `CREATE VIEW `+out.view+` AS SELECT r.partition, r.offsets, r.id, r.reference, r.kind, r.account, r.sku, r.tier,
  `+timeText("r.time")+` AS time, `+timeText("r.window_end")+` AS window_end, r.status, r.requests,
`+quantities("r.quantities", "")+`  `+usd("r.amount")+` AS amount_usd, r.amount AS amount_pico, r.source AS price_source, r.unpriced, r.filter,
  r.door AS at_the_door, r.abandoned, r.superseded, `+timeText("r.judged")+` AS watermark,
  r.card AS rate_card, r.list AS list_card, r.version, r.time AS time_ms, r.window_end AS window_end_ms, r.judged AS watermark_ms
FROM gm_item AS r WHERE r.verdict = '`+out.verdict.String()+`' ORDER BY r.partition, r.first_offset`)
	}
	p := func(path string) string { return "json_extract(p.position, '$." + path + "')" }
	return append(all,
		`CREATE VIEW dead_letters AS SELECT d.partition, d."offset", `+timeText("d.log_time")+` AS log_time, d.reason, length(d.raw) AS bytes, d.raw
FROM gm_dead_letter AS d ORDER BY d.partition, d."offset"`,
		`CREATE VIEW positions_view AS SELECT p.partition, `+p("topic")+` AS topic, `+p("committed")+` AS committed, `+p("restart")+` AS restart,
  `+timeText(p("watermark"))+` AS watermark, `+p("idle")+` AS idle, `+p("drained")+` AS drained, `+p("commit_no")+` AS commit_no,
  `+p("archive.next")+` AS archive_next, `+p("archive.file")+` AS archive_file, `+p("archive.sha256")+` AS archive_sha256,
  `+p("summary.Read")+` AS records, `+p("summary.Counted")+` AS counted, `+p("summary.Late")+` AS late, `+p("summary.Duplicate")+` AS duplicates,
  `+p("fingerprint")+` AS fingerprint, p.position AS json
FROM gm_position AS p ORDER BY p.partition`,
		`CREATE VIEW prices AS SELECT sku, tier, quantity, `+timeText("effective_from")+` AS effective_from, `+usd("pico")+` AS usd_per_unit,
  pico AS pico_per_unit, source, revision FROM gm_price ORDER BY sku, tier, quantity, effective_from`,
		`CREATE VIEW lost_ranges AS SELECT partition, from_offset, to_offset, `+timeText("window_from")+` AS window_from, `+timeText("window_to")+` AS window_to
FROM gm_lost ORDER BY partition, from_offset`,
		`CREATE VIEW about AS SELECT key, value FROM gm_meta WHERE key <> 'driver' AND key NOT LIKE 'card:%' ORDER BY key`)
}

// ratesOfCell is SQL for the rates of a cell (R10) as a JSON object, pico-dollars a unit by quantity: of those that were
// used, the latest one from the window's start or before it, the card's before the list's.
func ratesOfCell(size string) string {
	fits := func(p string) string {
		return p + `.sku = c.value ->> 'sku' AND ` + p + `.tier = c.value ->> 'tier' AND ` + p + `.effective_from <= r.window_end - ` + size + ` AND ` +
			p + `.revision = CASE ` + p + `.source WHEN 'list' THEN r.list ELSE r.card END`
	}
	return `(SELECT json_group_object(p.quantity, p.pico) FROM gm_price AS p WHERE ` + fits("p") + ` AND NOT EXISTS (SELECT 1 FROM gm_price AS b WHERE ` +
		fits("b") + ` AND b.quantity = p.quantity AND (b.source <> 'list' AND p.source = 'list' OR b.source = p.source AND b.effective_from > p.effective_from)))`
}

// fixedColumns are names that a quantity cannot have in a view beside them.
var fixedColumns = strings.Fields(`account window_start window_end state revision requests amount_usd adjustment_usd total_usd total_pico
	price_source unpriced_requests set_hash overflow rate_card list_card version window_end_ms sku tier unpriced prices_pico seq kind
	delta_requests delta_usd delta_pico partition offsets id reference time status amount_pico filter at_the_door abandoned superseded
	watermark time_ms watermark_ms`)

// columnName quotes a quantity's name for SQL. Names are compared without case, as SQLite does.
func columnName(name string) string {
	if slices.ContainsFunc(fixedColumns, func(f string) bool { return strings.EqualFold(f, name) }) {
		name += "_quantity"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// usd is SQL for an amount as dollars with twelve decimals, whether it is stored as an integer or as text.
func usd(pico string) string {
	digits := `ltrim(CAST(` + pico + ` AS TEXT), '-')`
	padded := `(CASE WHEN length(` + digits + `) < 13 THEN substr('0000000000000' || ` + digits + `, -13) ELSE ` + digits + ` END)`
	return `(CASE WHEN CAST(` + pico + ` AS TEXT) LIKE '-%' THEN '-' ELSE '' END || substr(` + padded + `, 1, length(` + padded + `) - 12) || '.' || substr(` + padded + `, -12))`
}

// timeText is SQL for a time in ms as RFC 3339, with milliseconds where there are any; NULL for the watermarks
// before all and after all times.
func timeText(ms string) string {
	part := `((` + ms + `) % 1000 + 1000) % 1000`
	seconds := `((` + ms + `) - ` + part + `) / 1000`
	return `(CASE WHEN abs(` + ms + `) < 253402300800000 THEN strftime('%Y-%m-%dT%H:%M:%S', ` + seconds + `, 'unixepoch') || CASE WHEN ` + part +
		` = 0 THEN '' ELSE printf('.%03d', ` + part + `) END || 'Z' END)`
}
