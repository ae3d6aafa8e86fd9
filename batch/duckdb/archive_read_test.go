package duckdb_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // the reader under test

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

const archiveReadYAML = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: event_type, identity: [request_id], account: tenant_id, sku: model, time: ts, status: status, reference: [trace]}
  time_unit: ms
  kinds: {start: RequestStarted, progress: TokensStreamed, complete: RequestCompleted, error: ModelError, tick: Heartbeat}
  latency: latency_ms
  quantities:
    prompt_tokens: {path: prompt_tokens, on: start}
    completion_tokens: {path: completion_tokens, on: end, default: 0}
  attributes: {agent: agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 20s, idleness: 1m}
window: {size: 1m, allowed_lateness: 2m}
assembly: {abandon_after: 5m}
pricing: {rate_card: rates.yaml}
`

// plainLog has every bucket, NULs, text that is no UTF-8, empty values, and words that overflow a dictionary.
func plainLog(n int) []meter.Record {
	const t0 = 1767229190000
	var log []meter.Record
	for i := range n {
		r := meter.Record{Partition: 4, Offset: int64(i + i/10*3), LogTime: int64(t0 + i*100), HasLogTime: i%7 != 0}
		if !r.HasLogTime {
			r.LogTime = 0
		}
		switch i % 9 {
		case 0:
			r.Null = true
		case 1:
			r.Value = []byte("\x00\xff\xfe not text")
		case 2:
			r.Value = []byte{}
		case 3:
			r.Value = fmt.Appendf(nil, `{"event_type":"Heartbeat","ts":%d}`, t0+i*100)
		case 4:
			r.Value = fmt.Appendf(nil, `{"event_type":"RequestCompleted","request_id":"r%d","ts":%d,"completion_tokens":%d,"latency_ms":%d}`, i/9, t0+i*100, i, -i)
		case 5:
			r.Value = []byte(`{"event_type":"Unknown"}`)
		default:
			r.Value = fmt.Appendf(nil, `{"event_type":"RequestStarted","request_id":"r%d","tenant_id":"ten\"ant %d é","model":"m%d","ts":%d,"prompt_tokens":%d,"agent":"a%d","trace":"t%d"}`, i/9, i%50, i%3, t0+i*100-(i%5)*1000, i, i, i)
		}
		log = append(log, r)
	}
	return log
}

func writePlain(t *testing.T, dir string, m *meter.Meter, log []meter.Record) []meter.Event {
	t.Helper()
	w, err := archive.NewWriter(archive.Config{FS: archive.Dir(dir), Meter: m, Topic: "usage+é", Partition: 4, LogTime: archive.LogTimeEnvelope,
		RowGroupRows: 7000, RowGroupBytes: archive.DefaultRowGroupBytes}, meter.ArchiveHead{Checkpoint: meter.Checkpoint{MaxReach: meter.MinusInfinity}})
	if err != nil {
		t.Fatal(err)
	}
	d := schemas.NewDecoder(m)
	events := make([]meter.Event, len(log))
	reach := meter.MinusInfinity
	for i := range log {
		e := &events[i]
		d.Decode(&log[i], e)
		if err := w.Append(&log[i], e, reach); err != nil {
			t.Fatal(err)
		}
		if e.Admitted() {
			reach = max(reach, e.Reach())
		}
		if (i+1)%25_000 == 0 || i == len(log)-1 {
			if err := w.Seal(log[i].Offset+1, meter.Checkpoint{Restart: log[i].Offset + 1, MaxReach: reach}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Publish(); err != nil {
		t.Fatal(err)
	}
	return events
}

// Plain DuckDB reads what the archive writes, value for value, with no help from us.
func TestDuckDBReadsTheArchive(t *testing.T) {
	m, err := meter.Parse("gatewaymeter.yaml", []byte(archiveReadYAML))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	log := plainLog(60_000)
	events := writePlain(t, dir, m, log)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(fmt.Sprintf(`SELECT log_offset, log_time, bucket, reason, kind, id_1, id_hash, ref_1, account, sku, event_time, prior_max_reach,
		prompt_tokens, completion_tokens, attr_agent, status, latency, payload_hash, raw, topic, part, date, hour
		FROM read_parquet('%s/**/*.parquet', hive_partitioning = true, hive_types = {topic: VARCHAR, date: DATE, hour: VARCHAR, part: INTEGER}, union_by_name = true)
		ORDER BY log_offset`, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	i, reach := 0, meter.MinusInfinity
	for ; rows.Next(); i++ {
		var row plainRow
		if err := row.scan(rows); err != nil {
			t.Fatal(err)
		}
		if got, want := row.String(), wantPlain(&log[i], &events[i], reach).String(); got != want {
			t.Fatalf("row %d is\n%s, want\n%s", i, got, want)
		}
		if row.topic != "usage+é" || row.part != 4 {
			t.Fatalf("path columns %q, %d", row.topic, row.part)
		}
		if events[i].Admitted() {
			reach = max(reach, events[i].Reach())
		}
	}
	if err := rows.Err(); err != nil || i != len(log) {
		t.Fatalf("%d rows of %d: %v", i, len(log), err)
	}
	var key, value string
	if err := db.QueryRow(fmt.Sprintf(`SELECT decode(key), decode(value) FROM parquet_kv_metadata('%s/**/*.parquet') WHERE decode(key) = 'gm.topic' LIMIT 1`, dir)).Scan(&key, &value); err != nil || value != "usage+é" {
		t.Fatal(key, value, err)
	}
	wantPruning(t, db, dir)
}

// wantPruning checks that the bounds of event_time are where a reader looks for them.
func wantPruning(t *testing.T, db *sql.DB, dir string) {
	t.Helper()
	var bounded, groups int
	q := fmt.Sprintf(`SELECT count(stats_min_value) FILTER (WHERE CAST(stats_min_value AS BIGINT) <= CAST(stats_max_value AS BIGINT)), count(*)
		FROM parquet_metadata('%s/**/*.parquet') WHERE path_in_schema = 'event_time'`, dir)
	if err := db.QueryRow(q).Scan(&bounded, &groups); err != nil || bounded != groups || groups < 9 {
		t.Fatalf("%d of %d row groups have bounds of event_time: %v", bounded, groups, err)
	}
}

type plainRow struct {
	offset                                                             int64
	logTime, idHash, time, prior, prompt, completion, latency, payload sql.NullInt64
	bucket                                                             string
	reason, kind, id, ref, account, sku, agent, status                 sql.NullString
	raw                                                                []byte
	topic, hour                                                        string
	part                                                               int
}

func (r *plainRow) scan(rows *sql.Rows) error {
	var date any
	return rows.Scan(&r.offset, &r.logTime, &r.bucket, &r.reason, &r.kind, &r.id, &r.idHash, &r.ref, &r.account, &r.sku, &r.time, &r.prior,
		&r.prompt, &r.completion, &r.agent, &r.status, &r.latency, &r.payload, &r.raw, &r.topic, &r.part, &date, &r.hour)
}

func (r *plainRow) String() string {
	return fmt.Sprintln(r.offset, r.logTime, r.bucket, r.reason, r.kind, r.id, r.idHash, r.ref, r.account, r.sku, r.time, r.prior, r.prompt,
		r.completion, r.agent, r.status, r.latency, r.payload, r.raw == nil, fmt.Sprintf("%q", r.raw))
}

func wantPlain(rec *meter.Record, e *meter.Event, prior int64) *plainRow {
	number := func(v int64, ok bool) sql.NullInt64 {
		if !ok {
			return sql.NullInt64{}
		}
		return sql.NullInt64{Int64: v, Valid: true}
	}
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
	part := func(id meter.ID) sql.NullString {
		if id == "" {
			return sql.NullString{}
		}
		return text(id.Parts()[0])
	}
	r := &plainRow{offset: rec.Offset, logTime: number(rec.LogTime, rec.HasLogTime), bucket: e.Bucket.String(), reason: text(e.Reason.String()),
		kind: text(e.Kind.String()), prior: number(prior, prior != meter.MinusInfinity), raw: rec.Value}
	if !e.Admitted() {
		return r
	}
	r.id, r.ref, r.account, r.sku, r.status, r.agent = part(e.ID), part(e.Reference), text(e.Account), text(e.SKU), text(e.Status), text(e.Attributes[0])
	r.idHash, r.time, r.latency = number(int64(e.IDHash), e.ID != ""), number(e.Time, true), number(e.Latency, e.HasLatency)
	r.prompt, r.completion = number(e.Quantities[0], e.Present&1 != 0), number(e.Quantities[1], e.Present&2 != 0)
	r.payload = number(int64(e.PayloadHash), e.Bucket == meter.BucketEvent && e.Kind != meter.KindProgress)
	return r
}
