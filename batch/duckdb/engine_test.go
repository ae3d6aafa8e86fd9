package duckdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest/gen"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// TestScriptOnPlainDuckDB runs the printed SQL on a DuckDB with its own settings: the cells are those of the recompute.
func TestScriptOnPlainDuckDB(t *testing.T) {
	for _, name := range []string{"R9-filters-on-requests", "R15-split-across-partitions", "R9-tiers", "R3-identity-none", "R8-resent-for-ever"} {
		c, err := tracetest.ReadFile("../../testdata/traces/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		a := archiveLog(t, t.TempDir(), c.Meter, c.Log, 4)
		for _, truth := range []batch.Truth{batch.AsStreamed, batch.Complete} {
			job := a.job(c.Card, c.List, truth, c.Drain)
			want, err := duckdb.New(duckdb.Config{}).Recompute(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			got, err := runScript(t.Context(), job)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, row := range want.Rows {
				for _, cell := range row.Cells {
					if !got[cell.CellKey].Equal(cell.Usage) {
						t.Errorf("%s %s: %v: the script says %v, the engine %v", name, truth, cell.CellKey, got[cell.CellKey], cell.Usage)
					}
					delete(got, cell.CellKey)
				}
			}
			if len(got) > 0 {
				t.Errorf("%s %s: only the script has %v", name, truth, got)
			}
		}
	}
}

func runScript(ctx context.Context, job *batch.Job) (map[meter.CellKey]meter.Usage, error) {
	text, err := duckdb.Script(job)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells := map[meter.CellKey]meter.Usage{}
	for rows.Next() {
		var verdict, manner, account, sku sql.NullString
		var end, tier sql.NullInt64
		var requests int64
		var hi, lo sql.NullInt64
		quantities := make([]sql.NullInt64, len(job.Meter.Event.Quantities))
		into := []any{&verdict, &manner, &account, &end, &sku, &tier, &requests, &hi, &lo}
		for i := range quantities {
			into = append(into, &quantities[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if !end.Valid {
			continue
		}
		u := meter.Usage{Requests: requests, SetHash: uint64(hi.Int64)<<32 + uint64(lo.Int64)}
		for _, q := range quantities {
			u.Quantities = append(u.Quantities, q.Int64)
		}
		k := meter.CellKey{Account: account.String, WindowEnd: end.Int64, SKU: sku.String, Tier: int32(tier.Int64)}
		if cells[k], err = cells[k].Plus(u); err != nil {
			return nil, err
		}
	}
	return cells, rows.Err()
}

// TestIDsThatShareAHash: hashes make the SQL fast and never decide. Every id gets one of a few hashes (of three: everything is mixed; of many: two
// ids have one start and one end between them); verdicts are as before.
func TestIDsThatShareAHash(t *testing.T) {
	gen.Check(t, long, func(t *rapid.T, c *tracetest.Case) {
		hashes := rapid.SampledFrom([]uint64{3, 30, 150}).Draw(t, "hashes")
		events := decodeLog(c.Meter, c.Log)
		for _, list := range events {
			for i := range list {
				list[i].IDHash %= hashes
			}
		}
		dir, err := os.MkdirTemp("", "archive-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		a, err := archiveEvents(dir, c.Meter, events, 1000)
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := oracle.AsStreamed(c.Meter, c.Card, c.List, c.Log, c.Drain)
		if err != nil {
			t.Fatal(err)
		}
		complete, err := oracle.Complete(c.Meter, c.Card, c.List, c.Log, oracle.Options{Drain: c.Drain})
		if err != nil {
			t.Fatal(err)
		}
		for truth, want := range map[batch.Truth]*oracle.Result{batch.AsStreamed: streamed, batch.Complete: complete} {
			got := items(t, a.job(c.Card, c.List, truth, c.Drain), batch.ItemFilter{Progress: true})
			if d := diffItems(unhashed(want.Items), unhashed(got)); d != "" {
				t.Fatalf("%s (- the oracle, + the SQL):\n%s", truth, d)
			}
		}
	})
}

func unhashed(items []meter.Item) []meter.Item {
	for i := range items {
		items[i].Usage.SetHash = 0
	}
	return items
}

// TestItemFilter: what a filter, a range and an account leave is what they say, of all items.
func TestItemFilter(t *testing.T) {
	gen.Check(t, long, func(t *rapid.T, c *tracetest.Case) {
		a := archiveCase(t, c)
		job := a.job(c.Card, c.List, rapid.SampledFrom([]batch.Truth{batch.AsStreamed, batch.Complete}).Draw(t, "truth"), c.Drain)
		all := items(t, job, batch.ItemFilter{Progress: true})
		f := drawFilter(t, all, job)
		var want []meter.Item
		for _, it := range all {
			if passes(&it, &f, job) {
				want = append(want, it)
			}
		}
		if d := diffItems(want, items(t, job, f)); d != "" {
			t.Fatalf("filter %+v, job %s (- all, filtered here, + filtered by the SQL):\n%s", f, job.Account, d)
		}
	})
}

func drawFilter(t *rapid.T, all []meter.Item, job *batch.Job) batch.ItemFilter {
	f := batch.ItemFilter{Progress: rapid.Bool().Draw(t, "progress")}
	some := func(label string, keep func(it *meter.Item)) {
		for range rapid.IntRange(0, 5).Draw(t, label) {
			if len(all) > 0 {
				keep(&all[rapid.IntRange(0, len(all)-1).Draw(t, "item")])
			}
		}
	}
	if rapid.Bool().Draw(t, "by rows") {
		f.Rows = []meter.RowKey{}
		some("rows", func(it *meter.Item) {
			f.Rows = append(f.Rows, meter.RowKey{Account: it.Account, WindowEnd: it.WindowEnd})
		})
	}
	if rapid.Bool().Draw(t, "by ids") {
		f.IDs = []meter.ID{meter.NewID("never seen", "a", "b", "c")}
		some("ids", func(it *meter.Item) { f.IDs = append(f.IDs, it.ID) })
	}
	if rapid.Bool().Draw(t, "by verdicts") {
		some("verdicts", func(it *meter.Item) { f.Verdicts = append(f.Verdicts, it.Verdict) })
	}
	if rapid.Bool().Draw(t, "range") {
		some("range", func(it *meter.Item) { job.From, job.To = &it.Time, &it.WindowEnd })
	}
	if rapid.Bool().Draw(t, "one account") {
		job.Account = "acme"
	}
	return f
}

// passes states an item filter once more.
func passes(it *meter.Item, f *batch.ItemFilter, job *batch.Job) bool {
	row := slices.ContainsFunc(f.Rows, func(k meter.RowKey) bool {
		return k.WindowEnd == it.WindowEnd && (it.Account == "" || it.Account == k.Account)
	})
	switch {
	case f.Rows != nil && !row, f.IDs != nil && !slices.Contains(f.IDs, it.ID), len(f.Verdicts) > 0 && !slices.Contains(f.Verdicts, it.Verdict),
		job.From != nil && it.WindowEnd <= *job.From, job.To != nil && it.WindowEnd > *job.To, job.Account != "" && it.Account != "" && it.Account != job.Account:
		return false
	case it.Verdict == meter.VerdictProgress:
		return f.Progress || slices.Contains(f.Verdicts, meter.VerdictProgress)
	}
	return true
}

// TestRangeAndAccount: they choose rows and change nothing else, the summary neither.
func TestRangeAndAccount(t *testing.T) {
	gen.Check(t, long, func(t *rapid.T, c *tracetest.Case) {
		job := archiveCase(t, c).job(c.Card, c.List, rapid.SampledFrom([]batch.Truth{batch.AsStreamed, batch.Complete}).Draw(t, "truth"), c.Drain)
		all := recompute(t, job)
		if len(all.Rows) == 0 {
			return
		}
		from := all.Rows[rapid.IntRange(0, len(all.Rows)-1).Draw(t, "from")].WindowEnd
		to := from + rapid.Int64Range(0, 5).Draw(t, "windows")*c.Meter.Window.Size
		job.From, job.To, job.Account = &from, &to, "acme"
		got := recompute(t, job)
		want := slices.DeleteFunc(all.Rows, func(r meter.Row) bool { return r.WindowEnd <= from || r.WindowEnd > to || r.Account != "acme" })
		if d := tracetest.DiffRows(c.Meter, want, got.Rows); d != "" || got.Summary != all.Summary {
			t.Fatalf("summary %+v, was %+v; rows (- all, chosen here, + chosen by the SQL):\n%s", got.Summary, all.Summary, d)
		}
	})
}

const tapsYAML = `
meter: taps
kind: events
event:
  format: json
  fields: {identity: [id], account: a, sku: m, time: t}
  time_unit: ms
  quantities: {n: {path: n}}
  attributes: {agent: agent}
  max_ahead: 5m
watermark: {max_out_of_orderness: 5s}
window: {size: 1m, allowed_lateness: 1m}
filter: [%s]
pricing: {rate_card: rates.yaml}
`

// taps archives one event a minute with the given account, agent and quantity.
type tap struct {
	account, agent string
	n              int64
}

func archiveTaps(t *testing.T, dir, filter string, taps []tap) *archived {
	t.Helper()
	m, err := meter.Parse("gatewaymeter.yaml", fmt.Appendf(nil, tapsYAML, filter))
	if err != nil {
		t.Fatal(err)
	}
	var events []meter.Event
	for i, x := range taps {
		id := meter.NewID(fmt.Sprint(i))
		events = append(events, meter.Event{Offset: int64(i), Bucket: meter.BucketEvent, Kind: meter.KindEvent, ID: id, IDHash: id.Hash64(), Account: x.account, SKU: "m",
			Time: 1767225600000, Status: "ok", Quantities: []int64{x.n}, Present: 1, Attributes: []string{x.agent}, PayloadHash: 1, Reference: id})
	}
	a, err := archiveEvents(dir, m, map[int32][]meter.Event{0: events}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestUntrustedText: accounts, attributes, filter values and paths hold whatever the world wrote; SQL is not one of the things they mean.
func TestUntrustedText(t *testing.T) {
	words := []string{`'`, `''; DROP VIEW archive; --`, `a\`, `\'`, `%`, `_`, `$1`, `?`, `{{A}}`, "line\nbreak", "\x1b[31m", `"x"`, "ü€𝄞", "NULL", "null"}
	dir := filepath.Join(t.TempDir(), "it's [x]*? {a,b}", "account=evil", "part=77")
	for _, w := range words {
		taps := []tap{{w, "plain", 1}, {"other", "prefix of " + w, 2}, {"other", w + " and more", 4}, {"other", w, 8}, {"other", "", 16}, {w + w, "x", 32}}
		quoted := "{name: these, attribute: agent, in: [" + yamlText(w) + "]}, {name: begins, attribute: agent, prefix: " + yamlText(w) + "}"
		a := archiveTaps(t, filepath.Join(dir, fmt.Sprintf("%x", w)), quoted, taps)
		job := a.job(nil, nil, batch.AsStreamed, true)
		job.Account = w
		r, err := duckdb.New(duckdb.Config{Threads: 1}).Recompute(t.Context(), job)
		if err != nil {
			t.Errorf("%q: %v", w, err)
			continue
		}
		if len(r.Rows) != 1 || r.Rows[0].Account != w || r.Rows[0].Usage.Quantities[0] != 1 || r.Summary.Filtered != 2 || r.Summary.Counted != 4 {
			t.Errorf("%q: rows %+v, summary %+v", w, r.Rows, r.Summary)
		}
		items, err := duckdb.New(duckdb.Config{Threads: 1}).Items(t.Context(), a.job(nil, nil, batch.AsStreamed, true), batch.ItemFilter{
			Verdicts: []meter.Verdict{meter.VerdictFiltered, meter.VerdictCounted}, Rows: []meter.RowKey{{Account: w, WindowEnd: 1767225660000}}})
		if err != nil || len(items) != 1 || items[0].Account != w {
			t.Errorf("%q: items %+v, %v", w, items, err)
		}
	}
}

func yamlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// TestSums (K13): exact up to the last 64-bit number, a named error one above, one thread or many; the money of a row may need 128 bits.
func TestSums(t *testing.T) {
	for _, threads := range []int{1, 4} {
		engine := duckdb.New(duckdb.Config{Threads: threads})
		a := archiveTaps(t, t.TempDir(), "", []tap{{"x", "", 9007199254740993}, {"x", "", 1}, {"y", "", math.MaxInt64 - 1}, {"y", "", 1}})
		card := &meter.RateCard{Rates: []meter.Rate{{SKU: "m", Quantity: "n", Pico: 1_000_000}}}
		r, err := engine.Recompute(t.Context(), a.job(card, nil, batch.AsStreamed, true))
		if err != nil {
			t.Fatal(err)
		}
		if r.Rows[0].Usage.Quantities[0] != 9007199254740994 || r.Rows[1].Usage.Quantities[0] != math.MaxInt64 {
			t.Errorf("%d threads: %+v", threads, r.Rows)
		}
		if want := meter.Mul64(math.MaxInt64, 1_000_000); r.Rows[1].Amount != want {
			t.Errorf("%d threads: %s, want %s", threads, r.Rows[1].Amount, want)
		}
		for _, truth := range []batch.Truth{batch.AsStreamed, batch.Complete} {
			over := archiveTaps(t, t.TempDir(), "", []tap{{"x", "", 9200000000000000000}, {"x", "", 9200000000000000000}})
			if _, err := engine.Recompute(t.Context(), over.job(card, nil, truth, true)); !errors.Is(err, batch.ErrSum) {
				t.Errorf("%d threads, %s: %v, want ErrSum", threads, truth, err)
			}
		}
		// Two skus fit alone: the row does not.
		over := archiveTaps(t, t.TempDir(), "", []tap{{"x", "", math.MaxInt64}, {"x", "", 1}})
		over.events[0][1].SKU = "other"
		again, err := archiveEvents(t.TempDir(), over.m, over.events, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Recompute(t.Context(), again.job(card, nil, batch.AsStreamed, true)); !errors.Is(err, batch.ErrSum) {
			t.Errorf("%d threads: a row's sum: %v, want ErrSum", threads, err)
		}
	}
}

// TestTimeZone (K13): the machine's time zone changes nothing.
func TestTimeZone(t *testing.T) {
	c, err := tracetest.ReadFile("../../testdata/traces/R5-days-are-utc.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"UTC", "Asia/Kolkata", "America/New_York"} {
		t.Run(zone, func(t *testing.T) {
			t.Setenv("TZ", zone)
			got, err := answer(t, t.TempDir(), c, 100)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := c.DiffOracle(got); d != "" || err != nil {
				t.Errorf("%s %v", d, err)
			}
		})
	}
}

// TestBrokenArchives: an archive that is not what the job says is an error, never fewer rows.
func TestBrokenArchives(t *testing.T) {
	taps := []tap{{"x", "", 1}, {"x", "", 2}, {"x", "", 3}, {"x", "", 4}, {"x", "", 5}}
	breaks := map[string]func(j *batch.Job){
		"a file is gone":               func(j *batch.Job) { j.Files[1].Path += ".gone" },
		"a file has fewer rows":        func(j *batch.Job) { j.Files[1].Rows++ },
		"a file is of no part":         func(j *batch.Job) { j.Files[1].Partition = 7 },
		"a part stands twice":          func(j *batch.Job) { j.Parts = append(j.Parts, j.Parts[0]) },
		"a cut part is drained":        func(j *batch.Job) { j.Parts[0].End = 2 },
		"the complete truth is pruned": func(j *batch.Job) { j.Truth, j.Parts[0].Begin = batch.Complete, 4 },
		"a horizon as streamed":        func(j *batch.Job) { j.Horizon = &batch.Horizon{} },
		"no truth":                     func(j *batch.Job) { j.Truth = "" },
		"a file is no Parquet":         func(j *batch.Job) { j.Files[0].Path = "engine_test.go" },
		"a meter with another quantity": func(j *batch.Job) {
			m := *j.Meter
			m.Event.Quantities = []meter.Quantity{{Name: "other", PartOf: -1}}
			j.Meter = &m
		},
	}
	for name, f := range breaks {
		job := archiveTaps(t, t.TempDir(), "", taps).job(nil, nil, batch.AsStreamed, true)
		if _, err := duckdb.New(duckdb.Config{}).Recompute(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		f(job)
		if r, err := duckdb.New(duckdb.Config{}).Recompute(t.Context(), job); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestEmptyJobs: nothing is an answer too.
func TestEmptyJobs(t *testing.T) {
	a := archiveTaps(t, t.TempDir(), "", []tap{{"x", "", 1}})
	for _, truth := range []batch.Truth{batch.AsStreamed, batch.Complete} {
		job := a.job(nil, nil, truth, false)
		job.Files = nil
		r, err := duckdb.New(duckdb.Config{}).Recompute(t.Context(), job)
		if err != nil || len(r.Rows) != 0 || r.Summary != (meter.Summary{}) || r.Watermarks[0] != meter.MinusInfinity {
			t.Errorf("no file: %+v, %v", r, err)
		}
		job.Parts = nil
		if r, err = duckdb.New(duckdb.Config{}).Recompute(t.Context(), job); err != nil || len(r.Rows) != 0 {
			t.Errorf("no part: %+v, %v", r, err)
		}
	}
}

// TestCancelled: an interrupt ends the query and says so.
func TestCancelled(t *testing.T) {
	a := archiveTaps(t, t.TempDir(), "", []tap{{"x", "", 1}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := duckdb.New(duckdb.Config{}).Recompute(ctx, a.job(nil, nil, batch.AsStreamed, true)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// TestSpills: a day of half a million events within 40 MB of memory gives the same answer and leaves no file behind.
func TestSpills(t *testing.T) {
	if testing.Short() {
		t.Skip("half a million events")
	}
	log := newBenchLog(t, t.TempDir(), 100_000)
	temp := t.TempDir()
	finished, spilled := make(chan struct{}), make(chan bool)
	go func() { spilled <- everHoldsFiles(temp, finished) }()
	r, err := duckdb.New(duckdb.Config{MemoryLimit: 40 << 20, TempDir: temp, Threads: 2}).Recompute(t.Context(), log.job)
	close(finished)
	if !<-spilled {
		t.Error("nothing was spilled: the limit is not tight enough to prove anything")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := log.check(r); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// everHoldsFiles watches a folder until finished.
func everHoldsFiles(dir string, finished <-chan struct{}) bool {
	for {
		if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
			<-finished
			return true
		}
		select {
		case <-finished:
			return false
		case <-time.After(time.Millisecond):
		}
	}
}
