package archive_test

import (
	"bytes"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// threeFiles is a small good archive in memory with its log.
func threeFiles(tb testing.TB) (*memFS, *meter.Meter, []meter.Record) {
	tb.Helper()
	m := parseMeter(tb, requestsYAML)
	log := gatewayLog(5, 0, 90)
	fsys := newMemFS()
	c := config(fsys, m, "usage", 0)
	c.RowGroupRows = 25
	writeLog(tb, c, m, log, 30)
	if names := fsys.files(); len(names) != 3 {
		tb.Fatalf("%d files", len(names))
	}
	wantClean(tb, verify(tb, fsys, m, nil))
	return fsys, m, log
}

func names(faults []archive.Fault, file string) bool {
	return slices.ContainsFunc(faults, func(f archive.Fault) bool { return f.File == file })
}

// Every byte of every file counts: one flipped bit anywhere is found, and the file is named.
func TestAFlippedBitIsFound(t *testing.T) {
	good, m, _ := threeFiles(t)
	step := 61
	if testing.Short() {
		step = 397
	}
	for _, name := range good.files() {
		bad := good.clone()
		data := bad.now[name].data
		for i := 0; i < len(data); i += step {
			bit := byte(1) << (i / step % 8)
			data[i] ^= bit
			if r := verify(t, bad, m, nil); !names(r.Faults, name) {
				t.Fatalf("bit %d of byte %d of %d in %s: faults %v", bit, i, len(data), name, r.Faults)
			}
			data[i] ^= bit
		}
	}
}

// A damaged file without a hash (the tail of an archive without a head) may be read wrong only if its checksums
// say it is right; it never panics, never hangs and never takes much memory.
func TestADamagedFileIsNotTrusted(t *testing.T) {
	good, _, _ := threeFiles(t)
	delete(good.now, "_meta/head/usage+0.json")
	name := good.files()[2]
	bad := good.clone()
	data := bad.now[name].data
	rng := uint32(1)
	silent, most := 0, uint64(0)
	for i := 0; i < len(data); i += 17 {
		rng = rng*1664525 + 1013904223
		old := data[i]
		data[i] = byte(rng >> 24)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := archive.Open(bad, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Partitions[0].Files {
			if f.Name == name && f.Each(func(*archive.Row) error { return nil }) == nil && data[i] != old {
				silent++
			}
		}
		runtime.ReadMemStats(&after)
		most = max(most, after.TotalAlloc-before.TotalAlloc)
		data[i] = old
	}
	if most > 64<<20 {
		t.Fatalf("a file of %d bytes had %d allocated", len(data), most)
	}
	t.Logf("%d bytes changed, %d were read without an error; at most %d bytes allocated", len(data)/17, silent, most)
}

func TestATruncatedFileIsFound(t *testing.T) {
	good, m, _ := threeFiles(t)
	for _, name := range good.files() {
		bad := good.clone()
		whole := bad.now[name].data
		for n := 0; n < len(whole); n += 1 + len(whole)/60 {
			bad.now[name].data = whole[:n]
			if r := verify(t, bad, m, nil); !names(r.Faults, name) {
				t.Fatalf("%s cut to %d of %d bytes: faults %v", name, n, len(whole), r.Faults)
			}
		}
		for _, tail := range []string{"x", "\x00\x00\x00\x00PAR1", "PAR1"} {
			bad.now[name].data = append(slices.Clone(whole), tail...)
			if r := verify(t, bad, m, nil); !names(r.Faults, name) {
				t.Fatalf("%s with %q behind it: faults %v", name, tail, r.Faults)
			}
		}
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	good, m, _ := threeFiles(t)
	files := good.files()
	for i, name := range files {
		bad := good.clone()
		delete(bad.now, name)
		r := verify(t, bad, m, nil)
		if kinds(r) != "missing" || r.Faults[0].File != name {
			t.Errorf("file %d missing: %v", i, r.Faults)
		} else if f := r.Faults[0]; !f.HasOffset || !strings.HasSuffix(name, fmt.Sprintf("+%020d.parquet", f.Offset)) {
			t.Errorf("file %d missing: %v names another place", i, f)
		}
	}
	bad := good.clone()
	for _, name := range files {
		delete(bad.now, name)
	}
	if r := verify(t, bad, m, nil); kinds(r) != "missing" || r.Faults[0].File != files[2] {
		t.Errorf("all files missing: %v", r.Faults)
	}
	bad = good.clone()
	delete(bad.now, files[1])
	delete(bad.now, files[2])
	if r := verify(t, bad, m, nil); kinds(r) != "missing" || !strings.Contains(r.Faults[0].Detail, "are not here") {
		t.Errorf("the last two missing: %v", r.Faults)
	}
	bad = good.clone()
	delete(bad.now, "_meta/head/usage+0.json")
	delete(bad.now, files[2])
	if r := verify(t, bad, m, nil); kinds(r) != "no_head" {
		t.Errorf("no head: %v", r.Faults)
	}
}

// The head of a ledger counts where there is one: also against an archive whose own head was cut back.
func TestTheLedgersHeadCounts(t *testing.T) {
	good, m, log := threeFiles(t)
	source := archive.Source{Topic: "usage"}
	head, ok, err := archive.NewMeta(good).Head(source)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	c := config(newMemFS(), m, "usage", 0)
	c.RowGroupRows = 25
	short := writeLog(t, c, m, log[:60], 30) // the same archive without its last file
	if r := verify(t, c.FS, m, nil); len(r.Faults) > 0 {
		t.Fatal(r.Faults)
	}
	r := verify(t, c.FS, m, archive.Heads{source: head})
	if kinds(r) != "missing" || r.Faults[0].File != head.File {
		t.Fatal(r.Faults)
	}
	r = verify(t, good, m, archive.Heads{source: short.heads[1]})
	if len(r.Faults) > 0 || len(r.Notes) != 1 || r.Notes[0].Kind != archive.Beyond {
		t.Fatal("a file behind the committed head is no fault:", r.Faults, r.Notes)
	}
	r = verify(t, good, m, archive.Heads{source: fresh()})
	if len(r.Faults) > 0 || len(r.Notes) != 3 {
		t.Fatal("a ledger that has committed nothing yet:", r.Faults, r.Notes)
	}
	// The archive's own head is a second witness: of the tail that the ledger does not know, and against it.
	bad := good.clone()
	bad.now[head.File].data[50] ^= 1
	if r = verify(t, bad, m, archive.Heads{source: short.heads[1]}); !strings.Contains(kinds(r), "changed") {
		t.Fatal(r.Faults)
	}
	delete(bad.now, head.File)
	if r = verify(t, bad, m, archive.Heads{source: short.heads[1]}); kinds(r) != "missing" {
		t.Fatal(r.Faults)
	}
	other := head
	other.SHA256 = strings.Repeat("0", 64)
	if r = verify(t, good, m, archive.Heads{source: other}); !strings.Contains(kinds(r), "chain") || !strings.Contains(kinds(r), "changed") {
		t.Fatal(r.Faults)
	}
}

func TestSwappedAndStrayFiles(t *testing.T) {
	good, m, _ := threeFiles(t)
	files := good.files()

	bad := good.clone()
	bad.now[files[0]], bad.now[files[1]] = bad.now[files[1]], bad.now[files[0]]
	r := verify(t, bad, m, nil)
	if !names(r.Faults, files[0]) || !names(r.Faults, files[1]) || !strings.Contains(kinds(r), "misplaced") {
		t.Error("swapped:", r.Faults)
	}

	bad = good.clone()
	twin := path.Join(path.Dir(path.Dir(path.Dir(files[1]))), "hour=23", "part=0", path.Base(files[1]))
	bad.now[path.Dir(path.Dir(twin))] = &inode{dir: true}
	bad.now[path.Dir(twin)] = &inode{dir: true}
	bad.now[twin] = bad.now[files[1]]
	if r = verify(t, bad, m, nil); !strings.Contains(kinds(r), "overlap") || !strings.Contains(kinds(r), "misplaced") {
		t.Error("a twin in another hour:", r.Faults)
	}

	bad = good.clone()
	bad.now["stray.parquet"] = bad.now[files[1]]
	bad.now[path.Join(path.Dir(files[1]), "part-0.parquet")] = bad.now[files[1]]
	bad.now["_meta/notes.txt"] = &inode{}
	bad.now["_aside/usage+0+00000000000000000090.0.aside"] = &inode{}
	r = verify(t, bad, m, nil)
	if kinds(r) != "foreign foreign foreign" || len(r.Notes) != 1 || r.Notes[0].Kind != archive.Aside {
		t.Error("strays:", r.Faults, r.Notes)
	}
}

// rewrite writes the second file of the archive anew, as a forger would who knows the format: edit may change the
// rows, the chain before and the hole that it closes stay.
func rewrite(t *testing.T, fsys *memFS, m *meter.Meter, edit func([]archive.Row) []archive.Row) {
	t.Helper()
	a, err := archive.Open(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := a.Partitions[0].Files[1]
	var rows []archive.Row
	if err := f.Each(func(r *archive.Row) error {
		c := *r
		c.Record.Value = bytes.Clone(r.Record.Value)
		c.Event.Quantities, c.Event.Attributes = slices.Clone(r.Event.Quantities), slices.Clone(r.Event.Attributes)
		rows = append(rows, c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	delete(fsys.now, f.Name)
	head := meter.ArchiveHead{Next: f.First, Checkpoint: f.Checkpoint, File: f.PrevName, SHA256: f.PrevSHA256, Rows: f.CumulativeRows - f.Rows}
	w, err := archive.NewWriter(config(fsys, m, "usage", 0), head)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range edit(rows) {
		if err := w.Append(&r.Record, &r.Event, r.PriorMaxReach); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Seal(f.Next, meter.Checkpoint{MaxReach: meter.MinusInfinity}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Publish(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(fsys.files(), f.Name) {
		t.Fatalf("%s was rewritten elsewhere: %v", f.Name, fsys.files())
	}
}

func TestARewrittenFileIsFound(t *testing.T) {
	good, m, _ := threeFiles(t)
	name := good.files()[1]
	for what, test := range map[string]struct {
		want string // a kind beside changed
		edit func([]archive.Row) []archive.Row
	}{
		"nothing":      {"changed", func(r []archive.Row) []archive.Row { return r }}, // other row groups: other bytes
		"a row gone":   {"chain", func(r []archive.Row) []archive.Row { return slices.Delete(r, 7, 8) }},
		"a prior":      {"prior", func(r []archive.Row) []archive.Row { r[9].PriorMaxReach++; return r }},
		"no prior":     {"prior", func(r []archive.Row) []archive.Row { r[9].PriorMaxReach = meter.MinusInfinity; return r }},
		"a quantity":   {"column", func(r []archive.Row) []archive.Row { e := admitted(r); e.Quantities[1]++; e.Present |= 2; return r }},
		"an account":   {"column", func(r []archive.Row) []archive.Row { admitted(r).Account = "other"; return r }},
		"an id hash":   {"column", func(r []archive.Row) []archive.Row { admitted(r).IDHash++; return r }},
		"a payload":    {"column", func(r []archive.Row) []archive.Row { admitted(r).PayloadHash++; return r }},
		"a time":       {"column", func(r []archive.Row) []archive.Row { admitted(r).Time++; return r }},
		"an attribute": {"column", func(r []archive.Row) []archive.Row { admitted(r).Attributes[0] = "x"; return r }},
		"an id":        {"column", func(r []archive.Row) []archive.Row { admitted(r).ID = meter.NewID("x", "y"); return r }},
		"a reference":  {"column", func(r []archive.Row) []archive.Row { admitted(r).Reference = meter.NewID("x", "y"); return r }},
		"raw":          {"column", func(r []archive.Row) []archive.Row { e := admittedRow(r); e.Record.Value = []byte("{}"); return r }},
		"offset": {"changed", func(r []archive.Row) []archive.Row {
			i := holeAfter(r)
			r[i].Record.Offset++
			r[i].Event.Offset++
			return r
		}},
		"log time": {"changed", func(r []archive.Row) []archive.Row { r[20].Record.LogTime++; return r }},
	} {
		t.Run(what, func(t *testing.T) {
			bad := good.clone()
			rewrite(t, bad, m, test.edit)
			r := verify(t, bad, m, nil)
			if !strings.Contains(kinds(r), "changed") || !strings.Contains(kinds(r), test.want) || !names(r.Faults, name) {
				t.Fatal(r.Faults)
			}
		})
	}
}

func admittedRow(rows []archive.Row) *archive.Row {
	for i := range rows {
		if rows[i].Event.Kind == meter.KindStart && rows[i].Event.Admitted() {
			return &rows[i]
		}
	}
	panic("no start")
}

func admitted(rows []archive.Row) *meter.Event { return &admittedRow(rows).Event }

func holeAfter(rows []archive.Row) int {
	for i := range rows[:len(rows)-1] {
		if rows[i+1].Record.Offset > rows[i].Record.Offset+1 {
			return i
		}
	}
	panic("no hole")
}

func TestDamagedMeta(t *testing.T) {
	good, m, _ := threeFiles(t)
	meta := archive.NewMeta(good)
	if err := meta.PutMeter(m); err != nil {
		t.Fatal(err)
	}
	if err := meta.PutDrained(archive.Source{Topic: "usage"}, archive.Mark{Next: 7}); err != nil {
		t.Fatal(err)
	}
	if err := meta.PutRates("c1", []byte("rates: []\n")); err != nil {
		t.Fatal(err)
	}
	if err := meta.PutPrices(archive.PriceUse{Card: "c1", From: meter.MinusInfinity}); err != nil {
		t.Fatal(err)
	}
	wantClean(t, verify(t, good, m, nil))
	for name, n := range good.now {
		if !strings.HasPrefix(name, "_meta/") || !strings.HasSuffix(name, ".json") {
			continue
		}
		for i := 0; i < len(n.data); i += 3 {
			bad := good.clone()
			bad.now[name].data[i] ^= 1 << (i % 7)
			r := verify(t, bad, m, nil)
			if len(r.Faults) == 0 {
				t.Errorf("%s with byte %d damaged: no fault", name, i)
			}
		}
	}
}
