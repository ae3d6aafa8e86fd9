package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLedgerAudit: what was done to a ledger behind its back is found by diff and named, whether the totals show it or not.
func TestLedgerAudit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "g")
	gmctl := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := execute(context.Background(), args, strings.NewReader(""), &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, text := gmctl("init", dir); code != 0 {
		t.Fatal(text)
	}
	meterFile := filepath.Join(dir, "gatewaymeter.yaml")
	if code, text := gmctl("-m", meterFile, "stream", "--summary", "none"); code != 0 {
		t.Fatal(text)
	}
	path := filepath.Join(dir, "gatewaymeter.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if code, text := gmctl("-m", meterFile, "diff"); code != 0 {
		t.Fatalf("before: %d %s", code, text)
	}
	for sabotage, want := range map[string]string{
		`DELETE FROM gm_firing WHERE seq = 7`:                                                                                       "the journal has no seq 7",
		`DELETE FROM gm_firing WHERE seq = (SELECT max(seq) FROM gm_firing)`:                                                        "not that of its firings",
		`DELETE FROM gm_firing WHERE account = 'acme' AND window_end = (SELECT max(window_end) FROM gm_row WHERE account = 'acme')`: "the journal has nothing of it",
		`DELETE FROM gm_firing WHERE seq = 1`:                                                                                       "the journal begins at seq 2",
		`UPDATE gm_firing SET delta = delta + 1 WHERE seq = 9`:                                                                      "deltas do not sum to the amount",
		`UPDATE gm_firing SET delta_requests = 99 WHERE seq = 9`:                                                                    "deltas do not sum to the requests",
		`UPDATE gm_firing SET delta_set_hash = 99 WHERE seq = 9`:                                                                    "deltas do not sum to the set_hash",
		`UPDATE gm_firing SET delta_quantities = '[1,2,3]' WHERE seq = 9`:                                                           "deltas do not sum to the quantities",
		`UPDATE gm_firing SET total = total + 1 WHERE kind = 'final' AND seq > 40`:                                                  "last firing states another total",
		// A total in the middle, which neither the last one nor the sum of the deltas shows.
		`UPDATE gm_firing SET total = total + 1 WHERE seq = (SELECT min(seq) FROM gm_firing AS f WHERE EXISTS (SELECT 1 FROM gm_firing AS n WHERE n.account = f.account AND n.window_end = f.window_end AND n.seq > f.seq))`: "states another total than the deltas up to it",
		`UPDATE gm_row SET overflow = '1' WHERE account = 'acme'`:                                 "its total as text",
		`UPDATE gm_row SET state = 'corrected' WHERE account = 'acme'`:                            "its state is not that of its firings",
		`UPDATE gm_row SET revision = 9 WHERE account = 'acme'`:                                   "its revision is not that of its firings",
		`UPDATE gm_row SET source = 'list' WHERE account = 'acme'`:                                "its price_source is",
		`UPDATE gm_row SET unpriced = 3 WHERE account = 'acme'`:                                   "3 unpriced requests",
		`DELETE FROM gm_price WHERE quantity = 'prompt_tokens'`:                                   "have no rate",
		`UPDATE gm_row SET published = published + 1, amount = amount + 1 WHERE account = 'acme'`: "deltas do not sum to the amount",
		`UPDATE gm_firing SET kind = 'correction' WHERE kind = 'main' AND account = 'acme'`:       "cannot follow the one before",
		`UPDATE gm_firing SET revision = 7 WHERE kind = 'main' AND account = 'acme'`:              "cannot follow the one before",
		`UPDATE gm_firing SET card = 'x' WHERE kind = 'final' AND account = 'acme'`:               "its final firing by",
		`UPDATE gm_firing SET list = 'x' WHERE kind = 'final' AND account = 'acme'`:               "its final firing by",
		`UPDATE gm_row SET list = 'x' WHERE account = 'acme'`:                                     "and list ",
		`DELETE FROM gm_item WHERE verdict = 'late'`:                                              "counts 2 as late, its side outputs 0",
		`INSERT INTO gm_item SELECT item + 100, verdict, filter, partition, first_offset, offsets, id, reference, kind, account, sku, tier, time, window_end, status, requests, quantities, set_hash, judged, door, abandoned, superseded, amount, source, unpriced, version, card, list FROM gm_item WHERE verdict = 'conflict'`: "counts 1 as conflict, its side outputs 2",
		`UPDATE gm_item SET verdict = 'latest' WHERE verdict = 'late'`:                                                           "and no position says so",
		`UPDATE gm_item SET partition = 9 WHERE verdict = 'orphan'`:                                                              "partition 9: its side outputs count 1 as",
		`INSERT INTO gm_dead_letter (partition, "offset", reason, raw) VALUES (0, 3, 'bad_json', x'7b')`:                         "counts 0 as bad_json, its dead letters 1",
		`UPDATE gm_position SET position = json_set(position, '$.summary.Late', 3)`:                                              "R14: ",
		`DELETE FROM gm_position WHERE partition = 0`:                                                                            "the ledger has no position of it",
		`DELETE FROM gm_row WHERE account = 'acme' AND window_end = (SELECT max(window_end) FROM gm_row WHERE account = 'acme')`: "there is no such row",
	} {
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", path)
		if err == nil {
			_, err = db.Exec(sabotage)
		}
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Fatalf("%s: %v", sabotage, err)
		}
		code, text := gmctl("-m", meterFile, "diff", "--format", "json")
		if code != 1 || !strings.Contains(text, `"ledger_broken"`) || !strings.Contains(text, want) {
			i := strings.Index(text, `"findings"`)
			t.Errorf("%s: exit %d, want %q in %.600s", sabotage, code, want, text[max(0, i):])
		}
	}
}
