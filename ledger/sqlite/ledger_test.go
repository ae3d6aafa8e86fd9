package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

var ctx = context.Background()

func items() []meter.PricedItem {
	lone := meter.PricedItem{
		Item: meter.Item{Verdict: meter.VerdictOrphan, Partition: 1, Offsets: []int64{4}, ID: meter.NewID("r\"1", "é"), Reference: meter.NewID("ref"),
			Kind: meter.KindError, Time: minute(0) - 1, WindowEnd: minute(0), Status: "error",
			Usage: meter.Usage{Quantities: []int64{0, 7}}, Judged: meter.MinusInfinity, Door: true},
		Priced: meter.Priced{Source: meter.PriceUnpriced, Unpriced: []string{"requests"}}, Card: "c1",
	}
	late := lone
	late.Item = meter.Item{Verdict: meter.VerdictFiltered, Filter: "bots", Partition: 0, Offsets: []int64{2, 9}, ID: meter.NewID("", "x"), Reference: meter.NewID("", "x"),
		Kind: meter.KindComplete, Account: "acme", SKU: "gpt", Tier: 2, Time: minute(1) - 1, WindowEnd: minute(1), Status: "ok",
		Usage: meter.Usage{Requests: 1, Quantities: []int64{5, 6}, SetHash: 1 << 63}, Judged: minute(2), Abandoned: true, Superseded: true}
	late.Priced = meter.Priced{Amount: huge, Source: meter.PriceTable}
	return []meter.PricedItem{late, lone} // in the reader's order
}

// TestRoundTrip writes one of everything and reads it back, by a reader and by a writer that starts again.
func TestRoundTrip(t *testing.T) {
	path := newPath(t)
	l := openLedger(t, path)
	c := &meter.Commit{
		Topic: "requests", InForce: meter.PriceUses{{Card: "c1", List: "l1", From: meter.MinusInfinity}},
		Rows:    []meter.StoredRow{row("acme", 0, 2, meter.From64(-1)), row("acme", 1, 3, huge), row("acme", 2, 0, meter.Int128{})},
		Firings: []meter.Firing{firing("acme", 0, meter.MainFiring, 1, 2, 20, 20)},
		Items:   items(),
		DeadLetters: []meter.DeadLetter{
			{Partition: 0, Offset: 5, Reason: meter.Empty, Raw: []byte{}},
			{Partition: 0, Offset: 6, LogTime: minute(0), HasLogTime: true, Reason: meter.BadUTF8, Raw: []byte{0, 0xff, '\n'}},
		},
		Prices:    []meter.PriceUsed{{Rate: meter.Rate{SKU: "gpt", Tier: 1, Quantity: "requests", Pico: 150_000, EffectiveFrom: minute(0)}, Source: meter.PriceTable, Revision: "c1"}},
		Lost:      []meter.LostRange{{Partition: 0, From: 1, To: 2, WindowFrom: minute(1), WindowTo: minute(2)}},
		Positions: []meter.Position{position(1, 10)},
		Driver:    []byte(`{"g":1}`),
	}
	if err := l.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}

	r := openReader(t, path)
	want := slices.Clone(c.Rows)
	want[2].State = meter.Incomplete // of the lost range
	same(t, "stored", must(r.Stored(ctx, Range{})), want)
	from, to := minute(0), minute(1)
	same(t, "range", must(r.Stored(ctx, Range{From: &from, To: &to, Account: "acme"})), want[1:2])
	bill := must(r.Bill(ctx, Range{}, 0))
	same(t, "bill", bill, []meter.Row{want[0].Row, want[1].Row})
	same(t, "items", must(r.Items(ctx, ItemFilter{})), c.Items)
	same(t, "items of a verdict", must(r.Items(ctx, ItemFilter{Verdicts: []meter.Verdict{meter.VerdictLate, meter.VerdictOrphan}})), c.Items[1:])
	same(t, "items of an id", must(r.Items(ctx, ItemFilter{IDs: []meter.ID{c.Items[0].ID}})), c.Items[:1])
	same(t, "items of a window", must(r.Items(ctx, ItemFilter{Range: Range{From: &from}})), c.Items[:1])
	var letters []meter.DeadLetter
	if err := r.DeadLetters(ctx, func(d *meter.DeadLetter) error { letters = append(letters, *d); return nil }); err != nil {
		t.Fatal(err)
	}
	same(t, "dead letters", letters, c.DeadLetters)
	same(t, "prices", must(r.PricesUsed(ctx)), c.Prices)
	same(t, "positions", must(r.Positions(ctx)), c.Positions)
	same(t, "lost", must(r.Lost(ctx)), c.Lost)
	same(t, "driver", string(must(r.Driver(ctx))), string(c.Driver))
	journal := must(r.Journal(ctx, Range{}))
	same(t, "journal", journal, []JournalEntry{{Seq: 1, Firing: c.Firings[0], Card: "c1", List: "l1"}})
	same(t, "about", r.About, About{Meter: "tenant-cost", Fingerprint: l.meter.Fingerprint, Version: l.meter.Version(), Topic: "requests",
		WindowSize: 60_000, Lateness: 120_000, Quantities: []string{"prompt_tokens", "requests"}, Epoch: 1, LastFiring: 1})

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := openLedger(t, path)
	s := must(again.Load(ctx))
	same(t, "standing", s, &meter.Standing{Topic: "requests", Positions: c.Positions, Driver: c.Driver, Rows: c.Rows, Lost: c.Lost, Firings: 1})
	keys := []meter.RowKey{c.Rows[1].RowKey, {Account: "nobody", WindowEnd: minute(1)}}
	same(t, "rows by key", must(again.RowsByKey(ctx, keys)), c.Rows[1:2])
}

// TestAsOf plays the journal up to each firing (R11): an adjustment stands beside the final row.
func TestAsOf(t *testing.T) {
	path := newPath(t)
	l := openLedger(t, path)
	c := &meter.Commit{Topic: "requests", Driver: []byte("{}"), Firings: []meter.Firing{
		firing("b", 0, meter.MainFiring, 1, 1, 10, 10), firing("a", 0, meter.MainFiring, 1, 5, 50, 50), firing("a", 0, meter.CorrectionFiring, 2, 6, 60, 10),
		firing("a", 0, meter.FinalFiring, 3, 6, 60, 0), firing("a", 0, meter.AdjustmentFiring, 3, 7, 72, 12), firing("a", 0, meter.AdjustmentFiring, 3, 4, 40, -32),
		firing("b", 0, meter.CorrectionFiring, 2, 0, 0, -10),
	}}
	if err := l.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	r := openReader(t, path)
	text := func(asOf int64) (lines []string) {
		for _, row := range must(r.Bill(ctx, Range{Account: ""}, asOf)) {
			lines = append(lines, fmt.Sprintf("%s %s %d n=%d %s+%s", row.Account, row.State, row.Revision, row.Usage.Requests, row.Amount, row.Adjustment))
		}
		return lines
	}
	for asOf, want := range map[int64][]string{
		1: {"b main 1 n=1 10+0"},
		2: {"a main 1 n=5 50+0", "b main 1 n=1 10+0"},
		3: {"a corrected 2 n=6 60+0", "b main 1 n=1 10+0"},
		4: {"a final 3 n=6 60+0", "b main 1 n=1 10+0"},
		5: {"a final 3 n=7 60+12", "b main 1 n=1 10+0"},
		6: {"a final 3 n=4 60+-20", "b main 1 n=1 10+0"},
		7: {"a final 3 n=4 60+-20"}, // b is back at zero requests
	} {
		same(t, fmt.Sprint("as of ", asOf), text(asOf), want)
	}
}

// TestOneWriter: a second process gets a clear error, and a zombie that lost its lock cannot write.
func TestOneWriter(t *testing.T) {
	path := newPath(t)
	zombie := openLedger(t, path)
	_, err := Open(ctx, Options{Path: path, Meter: testMeter(t, meterYAML)})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("a second writer: %v", err)
	}
	unborn := newPath(t)
	slow := openLedger(t, unborn)
	if err := os.Remove(unborn + ".lock"); err != nil {
		t.Fatal(err)
	}
	quick := openLedger(t, unborn)
	if err := quick.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := slow.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}")}); !errors.Is(err, ErrFenced) {
		t.Fatalf("the first commit of a zombie: %v", err)
	}
	first := &meter.Commit{Topic: "requests", Driver: []byte("{}"), Positions: []meter.Position{position(1, 10)}}
	if err := zombie.Commit(ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil { // as a lock is lost on a network disk
		t.Fatal(err)
	}
	second := openLedger(t, path)
	if err := zombie.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte(`{"zombie":1}`), Positions: []meter.Position{position(2, 20)}}); !errors.Is(err, ErrFenced) {
		t.Fatalf("a zombie's commit: %v", err)
	}
	if err := second.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}"), Positions: []meter.Position{position(2, 11)}}); err != nil {
		t.Fatal(err)
	}
	same(t, "positions", must(openReader(t, path).Positions(ctx)), []meter.Position{position(2, 11)})
}

// TestSecondProcess asks for the lock from a real other process.
func TestSecondProcess(t *testing.T) {
	if path := os.Getenv("LEDGER_OF_THE_TEST"); path != "" {
		if _, err := Open(ctx, Options{Path: path, Meter: testMeter(t, meterYAML)}); !errors.Is(err, ErrLocked) {
			t.Fatalf("the second process: %v", err)
		}
		return
	}
	path := newPath(t)
	openLedger(t, path)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcess$")
	cmd.Env = append(os.Environ(), "LEDGER_OF_THE_TEST="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestAllOrNothing fails a commit at every point: before the commit nothing is there, after it everything.
func TestAllOrNothing(t *testing.T) {
	points := []string{"ledger:before:rows", "ledger:before:journal", "ledger:before:items", "ledger:before:dead_letters", "ledger:before:prices",
		"ledger:before:lost", "ledger:before:positions", "ledger:before:commit", "ledger:after:commit"}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			path := newPath(t)
			broken, seen := errors.New("no space left"), map[string]bool{}
			armed := false
			l, err := Open(ctx, Options{Path: path, Meter: testMeter(t, meterYAML), Fail: func(p string) error {
				seen[p] = true
				if armed && p == point {
					return broken
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if err := l.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			armed = true
			c := &meter.Commit{Topic: "requests", Driver: []byte("{}"), Rows: []meter.StoredRow{row("acme", 0, 2, huge)},
				Firings: []meter.Firing{firing("acme", 0, meter.MainFiring, 1, 2, 20, 20)}, Items: items(), Positions: []meter.Position{position(1, 10)}}
			if err := l.Commit(ctx, c); !errors.Is(err, broken) {
				t.Fatalf("commit: %v (saw %v)", err, seen)
			}
			armed = false
			want := 0
			if point == "ledger:after:commit" {
				want = 1
			}
			count := func(what string, n int) {
				t.Helper()
				if n != want && n != 2*want {
					t.Errorf("%s: %d are there, want %d", what, n, want)
				}
			}
			r := openReader(t, path)
			count("rows", len(must(r.Stored(ctx, Range{}))))
			count("firings", len(must(r.Journal(ctx, Range{}))))
			count("items", len(must(r.Items(ctx, ItemFilter{}))))
			count("positions", len(must(r.Positions(ctx))))
			if want == 0 { // space is back: the same writer goes on
				if err := l.Commit(ctx, c); err != nil {
					t.Fatal(err)
				}
				same(t, "journal", len(must(openReader(t, path).Journal(ctx, Range{}))), 1)
			}
		})
	}
}

// TestPositionNeverGoesBack: the records between would be billed twice.
func TestPositionNeverGoesBack(t *testing.T) {
	path := newPath(t)
	l := openLedger(t, path)
	commit := func(p meter.Position) error {
		return l.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}"), Positions: []meter.Position{p}})
	}
	if err := commit(position(3, 10)); err != nil {
		t.Fatal(err)
	}
	for _, back := range []meter.Position{position(4, 9), position(2, 11)} {
		if err := commit(back); !errors.Is(err, errStale) {
			t.Errorf("commit %d at %d: %v", back.CommitNo, back.Committed, err)
		}
	}
	dead := &meter.Commit{Topic: "requests", Driver: []byte("{}"), DeadLetters: []meter.DeadLetter{{Offset: 1, Reason: meter.Empty}}}
	if err := l.Commit(ctx, dead); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(ctx, dead); err == nil {
		t.Error("a dead letter was written twice")
	}
}

// TestSnapshot: a reader sees one moment, whatever the writer does, and a new reader the next.
func TestSnapshot(t *testing.T) {
	path := newPath(t)
	l := openLedger(t, path)
	commit := func(n int64) {
		t.Helper()
		if err := l.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}"), Rows: []meter.StoredRow{row("acme", n, n, meter.From64(n))},
			Positions: []meter.Position{position(n, n)}}); err != nil {
			t.Fatal(err)
		}
	}
	commit(1)
	before := openReader(t, path)
	commit(2)
	same(t, "before", len(must(before.Stored(ctx, Range{}))), 1)
	same(t, "before", must(before.Positions(ctx))[0].Committed, int64(1))
	same(t, "after", len(must(openReader(t, path).Stored(ctx, Range{}))), 2)
	if _, err := before.tx.Exec(`DELETE FROM gm_row`); err == nil {
		t.Error("a reader can write")
	}
}

func TestOpenRefusals(t *testing.T) {
	path := newPath(t)
	fresh := openLedger(t, path)
	if _, err := os.Stat(path); err == nil {
		t.Error("a ledger was made before there was anything to write")
	}
	same(t, "standing", must(fresh.Load(ctx)), &meter.Standing{})
	if err := fresh.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(ctx, filepath.Join(t.TempDir(), "none.db")); !errors.Is(err, ErrMissing) {
		t.Errorf("no file: %v", err)
	}
	_ = os.Remove(path + ".lock")
	other := testMeter(t, strings.Replace(meterYAML, "allowed_lateness: 2m", "allowed_lateness: 1m", 1))
	if _, err := Open(ctx, Options{Path: path, Meter: other}); err == nil || !strings.Contains(err.Error(), "another meter") {
		t.Errorf("another meter: %v", err)
	}
	if _, err := Open(ctx, Options{Path: filepath.Join(t.TempDir(), "no", "such", "x.db"), Meter: other}); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("no folder: %v", err)
	}
	text := newPath(t)
	if err := os.WriteFile(text, []byte("this is no database, but a text that is long enough"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(ctx, text); err == nil {
		t.Error("a text file was read as a ledger")
	}
	if _, err := Open(ctx, Options{Path: text, Meter: other}); err == nil {
		t.Error("a text file was opened as a ledger")
	}
	empty := newPath(t)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(ctx, empty); !errors.Is(err, ErrMissing) {
		t.Errorf("an empty file: %v", err)
	}
}

// TestPathsWithMarks: a path is a path, whatever it means in a URI.
func TestPathsWithMarks(t *testing.T) {
	for _, name := range []string{"a b.db", "q?mode=memory.db", "h#x.db", "p%41.db", "é&y=1.db"} {
		path := filepath.Join(t.TempDir(), name)
		l := openLedger(t, path)
		if err := l.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, openReader(t, path).About.Topic, "requests")
	}
}

// TestDurability checks what the promise rests on: the journal mode and the fsync of every commit.
func TestDurability(t *testing.T) {
	l := openLedger(t, newPath(t))
	if err := l.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
		var got string
		if err := l.db.QueryRow(`PRAGMA ` + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %s (%v), want %s", pragma, got, err, want)
		}
	}
}

// TestViews reads every view as a person with a sqlite3 shell would.
func TestViews(t *testing.T) {
	path := newPath(t)
	l := openLedger(t, path)
	adjusted := row("acme", 1, 3, huge)
	adjusted.Adjustment, adjusted.State = meter.From64(-7), meter.Final
	small := row("acme", 0, 2, meter.From64(4_310_000_000))
	small.Adjustment = meter.From64(-1)
	c := &meter.Commit{
		Topic: "requests", InForce: meter.PriceUses{{Card: "c1", From: meter.MinusInfinity}}, Rows: []meter.StoredRow{small, adjusted, row("acme", 3, 0, meter.Int128{})},
		Firings:     []meter.Firing{firing("acme", 0, meter.MainFiring, 1, 2, 20, -20)},
		Items:       items(),
		DeadLetters: []meter.DeadLetter{{Partition: 0, Offset: 6, LogTime: 1, HasLogTime: true, Reason: meter.BadUTF8, Raw: []byte("ab\n")}},
		Prices:      []meter.PriceUsed{{Rate: meter.Rate{SKU: "gpt", Quantity: "requests", Pico: 150_000, EffectiveFrom: minute(0)}, Source: "table", Revision: "c1"}},
		Lost:        []meter.LostRange{{Partition: 2, From: 5, To: 6, WindowFrom: -1, WindowTo: 1}},
		Positions:   []meter.Position{position(1, 10)}, Driver: []byte("{}"),
	}
	priced := func(quantity, source, revision string, from, pico int64) {
		c.Prices = append(c.Prices, meter.PriceUsed{Rate: meter.Rate{SKU: "gpt \"x\" <é>", Tier: 1, Quantity: quantity, Pico: pico, EffectiveFrom: from}, Source: source, Revision: revision})
	}
	priced("prompt_tokens", "table", "c1", 0, 1)
	priced("prompt_tokens", "table", "c1", minute(0), 2) // the second window starts there
	priced("prompt_tokens", "list", "l1", minute(0), 3)
	priced("prompt_tokens", "table", "other", minute(0), 4)
	priced("requests", "list", "l1", 0, 5)
	if err := l.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for query, want := range map[string]string{
		`SELECT window_start, window_end, state, requests, prompt_tokens, requests_quantity, amount_usd, adjustment_usd, total_usd, total_pico, set_hash, overflow FROM bill`: `
2026-01-01T00:00:00Z|2026-01-01T00:01:00Z|main|2|20|6|0.004310000000|-0.000000000001|0.004309999999|4309999999|8000000000000002|0
2026-01-01T00:01:00Z|2026-01-01T00:02:00Z|final|3|30|9|4611686018.427387904000|-0.000000000007|4611686018.427387903993|4611686018427387903993|8000000000000003|1`,
		`SELECT window_end, sku, tier, requests, prompt_tokens, total_usd, price_source, unpriced, prices_pico FROM bill_by_sku`: `
2026-01-01T00:01:00Z|gpt "x" <é>|1|2|20|0.004310000000|mixed|["requests"]|{"prompt_tokens":1,"requests":5}
2026-01-01T00:02:00Z|gpt "x" <é>|1|3|30|4611686018.427387904000|mixed|["requests"]|{"prompt_tokens":2,"requests":5}`,
		`SELECT seq, kind, account, window_end, requests, delta_prompt_tokens, total_usd, delta_usd FROM journal`: `
1|main|acme|2026-01-01T00:01:00Z|2|-1|0.000000000020|-0.000000000020`,
		`SELECT offsets, id, account, filter, amount_usd, superseded, watermark FROM filtered`: `
[2,9]|["","x"]|acme|bots|4611686018.427387904000|1|2026-01-01T00:03:00Z`,
		`SELECT offsets, id ->> 0, kind, time, at_the_door, watermark IS NULL FROM orphans`: `
[4]|r"1|error|2026-01-01T00:00:59.999Z|1|1`,
		`SELECT count(*) FROM late UNION ALL SELECT count(*) FROM conflicts UNION ALL SELECT count(*) FROM late_completions`: "\n0\n0\n0",
		`SELECT partition, "offset", log_time, reason, bytes, CAST(raw AS TEXT) FROM dead_letters`:                           "\n0|6|1970-01-01T00:00:00.001Z|bad_utf8|3|ab\n",
		`SELECT partition, topic, committed, watermark, records, archive_file FROM positions_view`:                           "\n3|requests|10|2026-01-01T00:01:00Z|10|x.parquet",
		`SELECT sku, usd_per_unit, effective_from, revision FROM prices WHERE sku = 'gpt'`:                                   "\ngpt|0.000000150000|2026-01-01T00:01:00Z|c1",
		`SELECT partition, window_from, window_to FROM lost_ranges`:                                                          "\n2|1969-12-31T23:59:59.999Z|1970-01-01T00:00:00.001Z",
		`SELECT value FROM about WHERE key = 'meter'`:                                                                        "\ntenant-cost",
		`SELECT (SELECT count(*) FROM bill), (SELECT sum(total_pico) > 9e18 FROM bill)`:                                      "\n2|1",
	} {
		if got := queryText(t, db, query); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
}

func queryText(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var out strings.Builder
	columns, _ := rows.Columns()
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		for i := range cells {
			out.WriteString(map[bool]string{true: "\n", false: "|"}[i == 0])
			fmt.Fprint(&out, *cells[i].(*any))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// TestFull: SQLite's own word for a full disk undoes the whole commit; with space the same writer goes on.
func TestFull(t *testing.T) {
	path := newPath(t)
	l := openLedger(t, path)
	if err := l.Commit(ctx, &meter.Commit{Topic: "requests", Driver: []byte("{}"), Positions: []meter.Position{position(1, 1)}}); err != nil {
		t.Fatal(err)
	}
	limit := func(pages int) {
		t.Helper()
		if _, err := l.db.Exec(fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // it stays at what there is
	c := &meter.Commit{Topic: "requests", Driver: []byte("{}"), Positions: []meter.Position{position(2, 9)},
		DeadLetters: []meter.DeadLetter{{Reason: meter.BadJSON, Raw: make([]byte, 1<<20)}}}
	if err := l.Commit(ctx, c); err == nil || !strings.Contains(err.Error(), "full") {
		t.Fatalf("a full disk: %v", err)
	}
	same(t, "positions", must(openReader(t, path).Positions(ctx)), []meter.Position{position(1, 1)})
	limit(1 << 20)
	if err := l.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	same(t, "positions", must(openReader(t, path).Positions(ctx)), c.Positions)
}

// TestQuickCells: the quick reader gives what encoding/json gives, or leaves the text to it.
func TestQuickCells(t *testing.T) {
	cell := func(sku string, amount meter.Int128, unpriced ...string) meter.PricedCell {
		return meter.PricedCell{Cell: meter.Cell{CellKey: meter.CellKey{Account: "acme", WindowEnd: minute(1), SKU: sku, Tier: 7},
			Usage: meter.Usage{Requests: 3, Quantities: []int64{-1, 1 << 62}, SetHash: 1<<63 + 5}},
			Priced: meter.Priced{Amount: amount, Source: meter.PriceTable, Unpriced: unpriced}}
	}
	key := meter.RowKey{Account: "acme", WindowEnd: minute(1)}
	for name, c := range map[string]struct {
		cells []meter.PricedCell
		quick bool
	}{
		"ordinary":       {[]meter.PricedCell{cell("gpt", meter.From64(-5)), cell("", meter.Int128{})}, true},
		"a quote":        {[]meter.PricedCell{cell(`a"b`, meter.From64(1))}, false},
		"a control":      {[]meter.PricedCell{cell("a\nb", meter.From64(1))}, false},
		"like our keys":  {[]meter.PricedCell{cell(`{"sku":"`, meter.From64(1))}, false},
		"beyond 64 bits": {[]meter.PricedCell{cell("gpt", huge)}, false},
		"unpriced":       {[]meter.PricedCell{cell("gpt", meter.From64(1), "prompt_tokens")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(appendCells(nil, c.cells, 2))
			got, quick := quickCells(text, key, 2, plainjson.Words{})
			if quick != c.quick {
				t.Errorf("quick: %v, want %v: %s", quick, c.quick, text)
			}
			if quick {
				same(t, "quick", got, c.cells)
			}
			all, err := parseCells(text, key, 2, plainjson.Words{})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "parsed", all, c.cells)
		})
	}
	text := string(appendCells(nil, []meter.PricedCell{cell("gpt", meter.From64(5))}, 2))
	for i := range text { // cut short, it is never taken for whole
		if _, quick := quickCells(text[:i], key, 2, plainjson.Words{}); quick {
			t.Errorf("%s is taken", text[:i])
		}
	}
}
