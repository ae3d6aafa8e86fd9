package duckdb_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

const gatewayYAML = `
meter: tenant-cost
kind: requests
event:
  format: json
  fields: {kind: k, identity: [id], account: a, sku: m, time: t, status: s}
  time_unit: ms
  kinds: {start: S, progress: P, complete: C, error: E}
  quantities:
    prompt_tokens: {path: p, on: start}
    cached_tokens: {path: c, part_of: prompt_tokens, default: 0}
    completion_tokens: {path: o, on: end, default: 0}
  max_ahead: 5m
watermark: {max_out_of_orderness: 20s}
window: {size: 1m, allowed_lateness: 2m}
assembly: {abandon_after: 5m}
pricing: {rate_card: rates.yaml}
`

// benchTotals are what a made log holds, known from how it was made and not from any engine.
type benchTotals struct {
	requests, prompt, completion int64
	amount                       meter.Int128
	rows                         map[meter.RowKey]int64 // requests
	summary                      meter.Summary
}

// A benchLog is a day of a gateway, n requests in 8 partitions, five records each: start, three of progress, end. One request in 97 has no end,
// one in 101 an end that comes half an hour late, one in 103 its end twice.
type benchLog struct {
	m    *meter.Meter
	card *meter.RateCard
	job  *batch.Job
	// requests is how many there are, events how many records.
	requests int
	events   int64
	want     benchTotals
}

const (
	benchParts   = 8
	benchDay     = int64(24 * time.Hour / time.Millisecond)
	benchMorning = int64(1767225600000) // 2026-01-01
)

// A record in the making: at says when it comes, code which request, step which of its records.
type benchRecord struct {
	at      int64
	request int32
	step    int8
}

const (
	stepStart = iota
	stepProgress1
	stepProgress2
	stepProgress3
	stepEnd
	stepCopy
)

func (l *benchLog) lateEnd(i, n int) bool { return i%101 == 7 && i < n-n/20 }

// chance is a number that looks random and is not (splitmix64).
func chance(i, salt int) int64 {
	x := uint64(i)*0x9e3779b97f4a7c15 + uint64(salt)*0xbf58476d1ce4e5b9
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int64((x ^ x>>31) >> 2)
}

func newBenchLog(tb testing.TB, dir string, n int) *benchLog {
	tb.Helper()
	m, err := meter.Parse("gatewaymeter.yaml", []byte(gatewayYAML))
	if err != nil {
		tb.Fatal(err)
	}
	l := &benchLog{requests: n, m: m, card: &meter.RateCard{Revision: "bench"}, job: &batch.Job{Meter: m, Truth: batch.AsStreamed}}
	l.want.rows = map[meter.RowKey]int64{}
	for sku := range 30 {
		for _, q := range m.Event.Quantities {
			l.card.Rates = append(l.card.Rates, meter.Rate{SKU: benchSKU(sku), Quantity: q.Name, Pico: int64(100_000 + sku)})
		}
	}
	l.job.Card = l.card
	for p := range benchParts {
		l.write(tb, dir, int32(p), n)
	}
	l.want.summary.Read, l.want.summary.Event = l.events, l.events
	return l
}

func benchSKU(i int) string { return "model-" + strconv.Itoa(i) }

// write makes one partition and archives it.
func (l *benchLog) write(tb testing.TB, dir string, part int32, n int) {
	tb.Helper()
	var records []benchRecord
	for i := int(part); i < n; i += benchParts {
		records = l.request(records, i, n)
	}
	slices.SortFunc(records, func(a, b benchRecord) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.request, b.request), cmp.Compare(a.step, b.step))
	})
	w, err := archive.NewWriter(archive.Config{FS: archive.Dir(dir), Meter: l.m, Topic: "requests", Partition: part, LogTime: archive.LogTimeEnvelope,
		RowGroupRows: archive.DefaultRowGroupRows, RowGroupBytes: archive.DefaultRowGroupBytes}, meter.ArchiveHead{Checkpoint: meter.Checkpoint{MaxReach: meter.MinusInfinity}})
	if err != nil {
		tb.Fatal(err)
	}
	prior := meter.MinusInfinity
	var e meter.Event
	first := int64(0)
	for o, r := range records {
		l.event(&e, r, part, int64(o))
		rec := meter.Record{Partition: part, Offset: int64(o), LogTime: e.LogTime, HasLogTime: true, Value: []byte("{}")}
		if err := w.Append(&rec, &e, prior); err != nil {
			tb.Fatal(err)
		}
		prior = max(prior, e.Reach())
		if last := o == len(records)-1; last || (o+1)%200_000 == 0 {
			if err := w.Seal(int64(o)+1, meter.Checkpoint{Restart: int64(o) + 1, MaxReach: prior}); err != nil {
				tb.Fatal(err)
			}
			head, err := w.Publish()
			if err != nil {
				tb.Fatal(err)
			}
			l.job.Files = append(l.job.Files, batch.File{Path: dir + "/" + head.File, Partition: part, First: first, Next: head.Next, Rows: head.Next - first})
			first = head.Next
		}
	}
	l.job.Parts = append(l.job.Parts, batch.Whole(part, true))
	l.events += int64(len(records))
}

// request adds the records of request i, and what they come to.
func (l *benchLog) request(records []benchRecord, i, n int) []benchRecord {
	at := benchMorning + int64(i)*benchDay/int64(n)
	for s := stepStart; s <= stepProgress3; s++ {
		records = append(records, benchRecord{at + int64(s)*300, int32(i), int8(s)})
	}
	w := &l.want
	prompt := chance(i, 3) % 4000
	completion, t := int64(20), l.startTime(i, n)+l.m.AbandonAfter
	w.summary.Progress += 3
	switch ends := at + 1000 + chance(i, 4)%20_000; {
	case i%97 == 5: // no end: what its progress told
		w.summary.Counted++
		w.summary.Abandoned++
	case l.lateEnd(i, n): // an end that the door stops
		records = append(records, benchRecord{ends + 1_800_000, int32(i), stepEnd})
		w.summary.Counted++
		w.summary.Abandoned++
		w.summary.Late++
	default:
		records = append(records, benchRecord{ends, int32(i), stepEnd})
		completion, t = chance(i, 5)%2000, l.endTime(i, n)
		w.summary.Counted += 2
		if i%103 == 9 {
			records = append(records, benchRecord{ends + 3000, int32(i), stepCopy})
			w.summary.Duplicate++
		}
	}
	w.requests++
	w.prompt += prompt
	w.completion += completion
	w.amount = w.amount.Add(meter.Mul64(prompt+completion, 100_000+chance(i, 2)%30))
	w.rows[meter.RowKey{Account: benchAccount(i), WindowEnd: t - t%60_000 + 60_000}]++
	return records
}

func (l *benchLog) startTime(i, n int) int64 {
	return benchMorning + int64(i)*benchDay/int64(n) - chance(i, 6)%15_000
}

func (l *benchLog) endTime(i, n int) int64 { return l.startTime(i, n) + 500 + chance(i, 4)%20_000 }

func benchAccount(i int) string {
	if chance(i, 1)%10 < 4 {
		return "acme"
	}
	return fmt.Sprintf("tenant-%03d", chance(i, 1)%400)
}

func (l *benchLog) event(e *meter.Event, r benchRecord, part int32, offset int64) {
	i := int(r.request)
	*e = meter.Event{Partition: part, Offset: offset, LogTime: r.at, HasLogTime: true, Bucket: meter.BucketEvent, ID: meter.NewID(fmt.Sprintf("req-%032x", i)),
		Quantities: e.Quantities[:0]}
	e.IDHash, e.Reference = e.ID.Hash64(), e.ID
	e.Quantities = append(e.Quantities, 0, 0, 0)
	n := l.requests
	switch r.step {
	case stepStart:
		e.Kind, e.Account, e.SKU, e.Time = meter.KindStart, benchAccount(i), benchSKU(int(chance(i, 2)%30)), l.startTime(i, n)
		e.Quantities[0], e.Present, e.PayloadHash = chance(i, 3)%4000, 3, e.IDHash+1
	case stepEnd, stepCopy:
		e.Kind, e.Status, e.Time = meter.KindComplete, "ok", l.endTime(i, n)
		e.Quantities[2], e.Present, e.PayloadHash = chance(i, 5)%2000, 4, e.IDHash+2
	default:
		e.Kind, e.Time = meter.KindProgress, l.startTime(i, n)+int64(r.step)*100
		e.Quantities[2], e.Present = int64(r.step-1)*10, 4
	}
}

// check compares a result with what is known from how the log was made.
func (l *benchLog) check(r *batch.Result) error {
	var got benchTotals
	for i := range r.Rows {
		row := &r.Rows[i]
		got.requests += row.Usage.Requests
		got.prompt += row.Usage.Quantities[0]
		got.completion += row.Usage.Quantities[2]
		got.amount = got.amount.Add(row.Amount)
		if l.want.rows[row.RowKey] != row.Usage.Requests {
			return fmt.Errorf("%v: %d requests, %d are right", row.RowKey, row.Usage.Requests, l.want.rows[row.RowKey])
		}
	}
	w := &l.want
	if len(r.Rows) != len(w.rows) || got.requests != w.requests || got.prompt != w.prompt || got.completion != w.completion || got.amount != w.amount || r.Summary != w.summary {
		return fmt.Errorf("%d rows of %d; got %d %d %d %s, want %d %d %d %s; got %+v, want %+v", len(r.Rows), len(w.rows), got.requests, got.prompt, got.completion,
			got.amount.USD(), w.requests, w.prompt, w.completion, w.amount.USD(), r.Summary, w.summary)
	}
	return nil
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkRecompute measures rows and summary from an archive of 1 and 5 million events, and checks them.
func BenchmarkRecompute(b *testing.B) {
	for _, n := range []int{200_000, 1_000_000} {
		b.Run(fmt.Sprintf("events=%dM", n/200_000), func(b *testing.B) {
			dir := os.Getenv("BENCH_DIR")
			if dir == "" {
				dir = b.TempDir()
			}
			log := newBenchLog(b, dir, n)
			engine := duckdb.New(duckdb.Config{})
			var spent float64
			for b.Loop() {
				began := cpuSeconds()
				r, err := engine.Recompute(context.Background(), log.job)
				if err != nil {
					b.Fatal(err)
				}
				spent += cpuSeconds() - began
				if err := log.check(r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(log.events)*float64(b.N)/spent, "events/core-s")
		})
	}
}

// BenchmarkBareAssembly is what DuckDB alone takes for the least that a recompute has to do, on the same files: bring the records of each
// request together and add them up by account, model and minute. It knows no watermark, no lateness, no copies, no abandoned request, no
// price. BenchmarkRecompute in the same run is to be held against it.
func BenchmarkBareAssembly(b *testing.B) {
	requests := 1_000_000
	if testing.Short() {
		requests /= 10
	}
	log := newBenchLog(b, b.TempDir(), requests)
	var paths []string
	for _, f := range log.job.Files {
		paths = append(paths, "'"+f.Path+"'")
	}
	query := `SELECT CAST(count(*) AS BIGINT), CAST(sum(n) AS BIGINT), CAST(sum(p) AS BIGINT) FROM (
		SELECT account, sku, moment - mod(moment, 60000) AS minute, count(*) AS n, sum(prompt) AS p, sum(completion) AS c FROM (
			SELECT id_1, max(account) AS account, max(sku) AS sku, max(prompt_tokens) AS prompt, max(completion_tokens) AS completion,
				max(CASE WHEN kind = 'complete' THEN event_time END) AS ended, coalesce(ended, max(event_time)) AS moment
			FROM read_parquet([` + strings.Join(paths, ",") + `], hive_partitioning = false) WHERE bucket = 'event' GROUP BY id_1) AS r
		GROUP BY account, sku, minute) AS c`
	db, err := sql.Open("duckdb", "")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var spent float64
	for b.Loop() {
		began := cpuSeconds()
		var cells, requests, prompt int64
		if err := db.QueryRow(query).Scan(&cells, &requests, &prompt); err != nil {
			b.Fatal(err)
		}
		spent += cpuSeconds() - began
		if requests != log.want.requests || prompt != log.want.prompt || cells == 0 {
			b.Fatalf("%d requests with %d, %d with %d are right", requests, prompt, log.want.requests, log.want.prompt)
		}
	}
	b.ReportMetric(float64(log.events)*float64(b.N)/spent, "events/core-s")
}
