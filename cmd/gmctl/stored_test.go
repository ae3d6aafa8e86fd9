package main

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// gmctl runs a command line in this process.
func gmctl(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	if code := execute(context.Background(), args, strings.NewReader(""), &out, &said); code != want {
		t.Fatalf("gmctl %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.Bytes(), said.Bytes())
	}
	return out.String(), said.String()
}

// storedFolder is the gateway's story, its first lines streamed.
func storedFolder(t *testing.T, lines int) (dir, m, whole string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "g")
	gmctl(t, 0, "init", dir, "--story", "gateway")
	m, log := filepath.Join(dir, "gatewaymeter.yaml"), filepath.Join(dir, "trace.jsonl")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	whole = string(text)
	write(t, log, strings.Join(strings.SplitAfter(whole, "\n")[:lines], ""))
	gmctl(t, 0, "-m", m, "stream", "--no-drain", "--summary", "none")
	return dir, m, whole
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestStoredRecompute: diff takes the rows of a stored recompute only where a recompute would make the same ones; in every
// other case it runs, says why, and reports the same.
func TestStoredRecompute(t *testing.T) {
	ctx := context.Background()
	base, baseMeter, whole := storedFolder(t, 300)
	gmctl(t, 0, "-m", baseMeter, "recompute", "--summary", "none")
	gmctl(t, 0, "-m", baseMeter, "recompute", "--truth", "complete", "--summary", "none")
	bill, _ := gmctl(t, 0, "-m", baseMeter, "bill", "--format", "json")
	write(t, filepath.Join(base, "bill.jsonl"), bill)
	// Each change is made to a folder with a stored recompute; why is what diff then says, "" where it takes the rows.
	for name, c := range map[string]struct {
		change func(t *testing.T, dir, m, whole string)
		truth  string
		sides  []string
		why    string
	}{
		"the same":       {},
		"the same again": {change: func(t *testing.T, _, m, _ string) { gmctl(t, 0, "-m", m, "recompute", "--summary", "none") }},
		"complete":       {truth: "complete"},
		"the archive has grown": {change: func(t *testing.T, dir, m, whole string) {
			write(t, filepath.Join(dir, "trace.jsonl"), whole)
			gmctl(t, 0, "-m", m, "stream", "--no-drain", "--summary", "none")
		}, why: "log positions"},
		"the log has ended": {change: func(t *testing.T, _, m, _ string) { gmctl(t, 0, "-m", m, "stream", "--summary", "none") }, why: "whether the log ends there"},
		"other prices": {change: func(t *testing.T, dir, m, _ string) {
			path := filepath.Join(dir, "rates.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, strings.Replace(string(text), "usd: \"", "usd: \"1", 1))
			gmctl(t, 0, "-m", m, "recompute", "--prices", "card", "--summary", "none")
		}, why: "other prices"},
		"another meter": {change: func(t *testing.T, dir, m, _ string) {
			text, err := os.ReadFile(m)
			if err != nil {
				t.Fatal(err)
			}
			write(t, m, strings.Replace(string(text), "allowed_lateness: 2m", "allowed_lateness: 3m", 1))
			if err := os.Remove(filepath.Join(dir, "gatewaymeter.db")); err != nil { // it would refuse the meter
				t.Fatal(err)
			}
		}, sides: []string{"recompute", "bill.jsonl"}, why: "another meter"},
		"another truth": {change: func(t *testing.T, dir, m, _ string) {
			gmctl(t, 0, "-m", m, "recompute", "--truth", "complete", "--summary", "none", "-o", filepath.Join(dir, "recompute", "as-streamed.parquet"))
		}, why: "another truth"},
		"another engine": {change: func(t *testing.T, _, m, _ string) {
			gmctl(t, 0, "-m", m, "recompute", "--engine", "oracle", "--summary", "none")
		}, why: "another engine"},
		"of one account": {change: func(t *testing.T, dir, m, _ string) {
			gmctl(t, 0, "-m", m, "recompute", "--account", "acme", "--summary", "none", "-o", filepath.Join(dir, "recompute", "as-streamed.parquet"))
		}, why: "of one account"},
		"of a range": {change: func(t *testing.T, dir, m, _ string) {
			gmctl(t, 0, "-m", m, "recompute", "--from", "2026-01-01T10:02:00Z", "--summary", "none", "-o", filepath.Join(dir, "recompute", "as-streamed.parquet"))
		}, why: "of a part"},
		"an archive file was touched": {change: func(t *testing.T, dir, _, _ string) {
			files, err := filepath.Glob(filepath.Join(dir, "archive/topic=*/*/*/*/*.parquet"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			if err := os.Chtimes(files[0], time.Now(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}, why: "files of the archive"},
		"no Parquet": {change: func(t *testing.T, dir, _, _ string) {
			write(t, filepath.Join(dir, "recompute", "as-streamed.parquet"), "PAR1")
		}, why: "as-streamed.parquet"},
		"an earlier version": {change: func(t *testing.T, dir, m, _ string) {
			reseal(t, m, func(p map[string]string, _ []meter.Row) { p["gm.version"] = "0.0.9" })
		}, why: "another version of gmctl"},
		"a version without cells": {change: func(t *testing.T, dir, _, _ string) {
			copySQL(t, dir, "SELECT * EXCLUDE (cells)")
		}, why: "changed after it was written"},
		"a row was edited": {change: func(t *testing.T, dir, _, _ string) {
			copySQL(t, dir, "SELECT * REPLACE (CASE WHEN account = 'acme' THEN total_pico + 1 ELSE total_pico END AS total_pico)")
		}, why: "changed after it was written"},
		"a row was left out": {change: func(t *testing.T, dir, _, _ string) {
			copySQL(t, dir, "SELECT * QUALIFY row_number() OVER (ORDER BY account, window_end) > 1")
		}, why: "changed after it was written"},
		"two rows changed places": {change: func(t *testing.T, dir, _, _ string) {
			copySQL(t, dir, "SELECT * REPLACE (CASE account WHEN 'acme' THEN 'globex' WHEN 'globex' THEN 'acme' ELSE account END AS account)")
		}, why: "changed after it was written"},
		"the provenance was edited": {change: func(t *testing.T, dir, _, _ string) {
			copyWith(t, dir, "SELECT *", func(p map[string]string) { p["gm.watermarks"] += " 7=0" })
		}, why: "changed after it was written"},
		"sealed anew with money that its cells do not cost": {change: func(t *testing.T, _, m, _ string) {
			reseal(t, m, func(_ map[string]string, rows []meter.Row) { rows[0].Amount = rows[0].Amount.Add(meter.From64(1)) })
		}, why: "not what their cells cost"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "g")
			copyFolder(t, base, dir)
			m := filepath.Join(dir, "gatewaymeter.yaml")
			diffArgs := []string{"-m", m, "diff", "--format", "json"}
			if c.truth != "" {
				diffArgs = append(diffArgs, "--truth", c.truth)
			}
			for _, side := range c.sides {
				diffArgs = append(diffArgs, strings.Replace(side, "bill.jsonl", filepath.Join(dir, "bill.jsonl"), 1))
			}
			if c.change != nil {
				c.change(t, dir, m, whole)
			}
			var out, said bytes.Buffer
			code := execute(ctx, diffArgs, nil, &out, &said)
			if c.why == "" && said.Len() > 0 || !strings.Contains(strings.Join(strings.Fields(said.String()), " "), c.why) {
				t.Errorf("diff says %q, want %q", said.String(), c.why)
			}
			if err := os.RemoveAll(filepath.Join(dir, "recompute")); err != nil {
				t.Fatal(err)
			}
			fresh, freshSaid := gmctl(t, code, diffArgs...)
			if fresh != out.String() || freshSaid != "" {
				t.Errorf("it reports\n%swithout a stored recompute\n%s%s", out.String(), fresh, freshSaid)
			}
		})
	}
}

// copyFolder copies a folder with the times of its files, as cp -a does.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(to+strings.TrimPrefix(path, from), info.ModTime(), info.ModTime())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoredIsTaken: the rows of the stored recompute are what is compared, down to the cells, and no archive is read: with
// the record bytes gone (their files keep size and time) diff still agrees, and 'archive verify' does not.
func TestStoredIsTaken(t *testing.T) {
	dir, m, _ := storedFolder(t, 500)
	gmctl(t, 0, "-m", m, "recompute", "--summary", "none")
	files, err := filepath.Glob(filepath.Join(dir, "archive/topic=*/*/*/*/*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		clear(text[1000:1500]) // the footers stay
		write(t, path, string(text))
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if _, said := gmctl(t, 0, "-m", m, "diff"); said != "" {
		t.Error(said)
	}
	gmctl(t, 1, "-m", m, "archive", "verify")
}

// reseal stores a folder's recompute again with a provenance and rows that were changed.
func reseal(t *testing.T, m string, change func(map[string]string, []meter.Row)) {
	t.Helper()
	ctx := context.Background()
	o, err := openMeter(m)
	if err != nil {
		t.Fatal(err)
	}
	u, err := openAudit(ctx, o, "archive")
	if err != nil {
		t.Fatal(err)
	}
	s := scope{truth: batch.AsStreamed}
	job := u.job(s)
	res, err := u.recompute(ctx, job, "duckdb")
	if err != nil {
		t.Fatal(err)
	}
	p, err := u.provenance(job, s, "duckdb")
	if err != nil {
		t.Fatal(err)
	}
	p[watermarksKey], p[madeKey] = watermarkWords(res.Watermarks), "2026-01-01T00:00:00Z"
	change(p, res.Rows)
	path := u.storedPath(s)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := u.engine().Store(ctx, path, u.Meter, res.Rows, p); err != nil {
		t.Fatal(err)
	}
}

// copySQL writes the stored recompute of a folder again, changed by SQL, with its provenance as it was.
func copySQL(t *testing.T, dir, query string) {
	t.Helper()
	copyWith(t, dir, query, func(map[string]string) {})
}

// plainDuckDB is DuckDB as anybody has it; the engine's package brings the driver.
func plainDuckDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func copyWith(t *testing.T, dir, query string, change func(map[string]string)) {
	t.Helper()
	path := filepath.Join(dir, "recompute", "as-streamed.parquet")
	p := map[string]string{}
	db := plainDuckDB(t)
	rows, err := db.Query("SELECT decode(key), decode(value) FROM parquet_kv_metadata('" + path + "')")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			t.Fatal(err)
		}
		p[key] = value
	}
	if p["gm.xxh3"] == "" {
		t.Fatal("it has no seal")
	}
	change(p)
	var pairs []string
	for key, value := range p {
		pairs = append(pairs, "'"+key+"': '"+strings.ReplaceAll(value, "'", "''")+"'")
	}
	aside := path + ".aside"
	text := query + " FROM read_parquet('" + path + "')"
	if before, after, ok := strings.Cut(query, " QUALIFY "); ok {
		text = before + " FROM read_parquet('" + path + "') QUALIFY " + after
	}
	if _, err := db.Exec("COPY (" + text + ") TO '" + aside + "' (FORMAT parquet, KV_METADATA {" + strings.Join(pairs, ", ") + "})"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
}
