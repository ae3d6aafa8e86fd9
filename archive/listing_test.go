package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// orderedLog has one event a second, by event time, so that what must be read can be said by hand: file k of ten
// records covers seconds [10k, 10k+10).
func orderedLog(n int) (log []meter.Record) {
	for i := range int64(n) {
		r := meter.Record{Offset: 100 + i, LogTime: t0 + i*1000, HasLogTime: true}
		r.Value = []byte(`{"event_type":"RequestStarted","request_id":"r` + string(rune('a'+i%26)) + `","hop":1,"tenant_id":"t","model":"m","ts":` + asJSON(t0+i*1000) + `,"payload":{"prompt_tokens":1}}`)
		log = append(log, r)
	}
	return log
}

func TestSelect(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	fsys := newMemFS()
	c := config(fsys, m, "usage", 0)
	a := newArchiver(t, c, m, meter.ArchiveHead{Next: 100, Checkpoint: meter.Checkpoint{Restart: 100, MaxReach: meter.MinusInfinity}})
	a.lag = 4 // live state goes four records back
	log := orderedLog(60)
	for i := range log {
		if err := a.append(&log[i]); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			if err := a.roll(); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantClean(t, verify(t, fsys, m, nil))
	listing, err := archive.Open(fsys, nil)
	if err != nil || listing.Err() != nil {
		t.Fatal(err, listing.Err())
	}
	p := listing.Partitions[0]
	second := func(s int64) int64 { return t0 + s*1000 }
	for _, test := range []struct {
		name        string
		from, until int64
		begin       int64 // offset
		reach       int64
		first, end  int64 // offsets that the files cover
	}{
		{"everything", meter.MinusInfinity, meter.PlusInfinity, 100, meter.MinusInfinity, 100, 160},
		// Second 25 is in file [120, 130), whose restart is 4 before it, in the file before.
		{"from the middle", second(25), meter.PlusInfinity, 116, second(15), 110, 160},
		{"exactly a file's last second", second(29), meter.PlusInfinity, 116, second(15), 110, 160},
		{"exactly a file's first second", second(30), meter.PlusInfinity, 126, second(25), 120, 160},
		{"before everything", second(-9), meter.PlusInfinity, 100, meter.MinusInfinity, 100, 160},
		{"beyond everything: the last file tells how far it came", second(99), meter.PlusInfinity, 146, second(45), 140, 160},
		// A reach of second 34 before the last row of a file is first known in [130, 140).
		{"until", second(25), second(34), 116, second(15), 110, 140},
		{"until the reach before a file's last row", second(25), second(38), 116, second(15), 110, 140},
		{"until the reach of a file's last row", second(25), second(39), 116, second(15), 110, 150},
		{"until before everything", meter.MinusInfinity, second(-5), 100, meter.MinusInfinity, 100, 110},
	} {
		s := p.Select(test.from, test.until)
		if s.Begin.Restart != test.begin || s.Begin.MaxReach != test.reach || len(s.Files) == 0 || s.Files[0].First != test.first || s.End != test.end || s.Files[len(s.Files)-1].Next != test.end {
			t.Errorf("%s: begin %d with %d, files [%d, %d)", test.name, s.Begin.Restart, s.Begin.MaxReach, s.Files[0].First, s.End)
		}
	}
	if w := p.Whole(); w.Begin.Restart != 100 || w.Begin.MaxReach != meter.MinusInfinity || w.End != 160 || len(w.Files) != 6 {
		t.Error("whole:", asJSON(w.Begin), w.End)
	}
	f := p.Files[2]
	if f.MinTime != second(20) || f.MaxTime != second(29) || f.MaxPrior != second(28) || f.Rows != 10 || f.CumulativeRows != 30 ||
		f.Checkpoint.Byte != 11600 || f.TopicID != "id-1" || f.Fingerprint != m.Fingerprint || f.EventFingerprint != m.EventFingerprint || f.Version != "test" {
		t.Errorf("footer %s, times [%d, %d], prior %d", asJSON(f.Footer), f.MinTime, f.MaxTime, f.MaxPrior)
	}
	if sum, err := f.Hash(); err != nil || sum != f.SHA256 || sum != p.Files[3].PrevSHA256 || f.Name != p.Files[3].PrevName {
		t.Error("the chain:", sum, f.SHA256, err)
	}
}

// A footer's max_reach that is not what the rows before its restart say is found.
func TestAWrongCheckpointIsFound(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := orderedLog(30)
	for _, reach := range []int64{meter.MinusInfinity, t0 + 14_000, t0 + 15_000, t0 + 16_000} {
		fsys := newMemFS()
		a := newArchiver(t, config(fsys, m, "usage", 0), m, fresh())
		for i := range log {
			if err := a.append(&log[i]); err != nil {
				t.Fatal(err)
			}
			if i != 19 && i != 29 {
				continue
			}
			if err := a.w.Seal(a.next, meter.Checkpoint{Restart: 116, MaxReach: reach}); err != nil {
				t.Fatal(err)
			}
			head, err := a.w.Publish()
			if err != nil {
				t.Fatal(err)
			}
			if err := a.meta.PutHead(a.source, head); err != nil {
				t.Fatal(err)
			}
		}
		r := verify(t, fsys, m, nil)
		if right := reach == t0+15_000; right != (len(r.Faults) == 0) || !right && kinds(r) != "prior" {
			t.Errorf("max_reach %d: %v", reach, r.Faults)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	event := func(change func(*meter.Record, *meter.Event)) error {
		a := newArchiver(t, config(newMemFS(), m, "usage", 0), m, fresh())
		first := orderedLog(1)[0]
		if err := a.append(&first); err != nil {
			t.Fatal(err)
		}
		r := orderedLog(2)[1]
		var e meter.Event
		a.decode(&r, &e)
		change(&r, &e)
		return a.w.Append(&r, &e, a.reach)
	}
	for name, change := range map[string]func(*meter.Record, *meter.Event){
		"an old offset":       func(r *meter.Record, e *meter.Event) { r.Offset, e.Offset = 100, 100 },
		"another partition":   func(r *meter.Record, e *meter.Event) { r.Partition, e.Partition = 1, 1 },
		"another's event":     func(_ *meter.Record, e *meter.Event) { e.Offset++ },
		"another log time":    func(r *meter.Record, _ *meter.Event) { r.Received = true },
		"a null that counts":  func(r *meter.Record, _ *meter.Event) { r.Null = true },
		"no bucket":           func(_ *meter.Record, e *meter.Event) { e.Bucket = 0 },
		"too few parts":       func(_ *meter.Record, e *meter.Event) { e.ID = meter.NewID("x") },
		"no id at all":        func(_ *meter.Record, e *meter.Event) { e.ID = "xyz" },
		"too many references": func(_ *meter.Record, e *meter.Event) { e.Reference = meter.NewID("x", "y", "z") },
	} {
		if err := event(change); err == nil || !strings.HasPrefix(err.Error(), "archive: append usage/0@") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := event(func(*meter.Record, *meter.Event) {}); err != nil {
		t.Error(err)
	}
}

func TestSealRefuses(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	for name, seal := range map[string]func(*archive.Writer) error{
		"an offset that was appended": func(w *archive.Writer) error { return w.Seal(100, meter.Checkpoint{}) },
		"a restart in the future":     func(w *archive.Writer) error { return w.Seal(101, meter.Checkpoint{Restart: 102}) },
		"carried lives":               func(w *archive.Writer) error { return w.Seal(101, meter.Checkpoint{Carried: []byte("[]")}) },
	} {
		a := newArchiver(t, config(newMemFS(), m, "usage", 0), m, fresh())
		first := orderedLog(1)[0]
		if err := a.append(&first); err != nil {
			t.Fatal(err)
		}
		if err := seal(a.w); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	a := newArchiver(t, config(newMemFS(), m, "usage", 0), m, fresh())
	if err := a.roll(); err != nil || a.w.Head().File != "" {
		t.Error("nothing was appended, but a file came:", err)
	}
	for _, topic := range []string{"", "a\x00b", "\xff"} {
		if _, err := archive.NewWriter(config(newMemFS(), m, topic, 0), fresh()); err == nil {
			t.Errorf("topic %q was taken", topic)
		}
	}
}

// Two files can be sealed before one Publish; holes at their ends belong to the file that consumed them.
func TestSealTwice(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	fsys := newMemFS()
	a := newArchiver(t, config(fsys, m, "usage", 0), m, fresh())
	log := orderedLog(3)
	for i := range log {
		if err := a.append(&log[i]); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			a.next = 102
			if err := a.w.Seal(a.next, a.checkpoint()); err != nil {
				t.Fatal(err)
			}
			if len(fsys.files()) > 0 || a.w.Head().Next != 0 || a.w.Next() != 102 {
				t.Fatal("a sealed file is not yet published")
			}
		}
	}
	a.next = 200 // transaction markers up to here
	if err := a.roll(); err != nil {
		t.Fatal(err)
	}
	wantClean(t, verify(t, fsys, m, nil))
	listing, err := archive.Open(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := listing.Partitions[0]
	if len(p.Files) != 2 || p.Files[0].First != 0 || p.Files[0].Next != 102 || p.Files[1].Next != 200 || p.Next() != 200 {
		t.Fatal(asJSON(p.Files[0].Footer), asJSON(p.Files[1].Footer))
	}
}

// Whatever a topic is called, its files lie where they should, and nowhere else.
func TestTopicsNeverLeaveTheFolder(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	root := t.TempDir()
	fsys := archive.Dir(filepath.Join(root, "archive"))
	topics := []string{"usage", "..", "../../x", "/etc", "a+0+1", "topic=x", "\x1b[31mred", "new\nline", `back\slash`, "é", strings.Repeat("k", 249), strings.Repeat("é/", 200), "A", "CON"}
	for _, topic := range topics {
		writeLog(t, config(fsys, m, topic, 7), m, relabel(orderedLog(3), 7), 2)
	}
	wantClean(t, verify(t, fsys, m, nil))
	listing, err := archive.Open(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := listing.Topics(); !slices.Equal(got, slices.Sorted(slices.Values(topics))) {
		t.Fatalf("topics %q", got)
	}
	outside, err := os.ReadDir(root)
	if err != nil || len(outside) != 1 {
		t.Fatal(outside, err)
	}
	for _, p := range listing.Partitions {
		for _, f := range p.Files {
			for part := range strings.SplitSeq(f.Name, "/") {
				if len(part) > 255 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=%~") != "" {
					t.Errorf("path part %q", part)
				}
			}
		}
	}
	head, ok, err := archive.NewMeta(fsys).Head(archive.Source{Topic: topics[1], Partition: 7})
	if !ok || err != nil || head.Next != 103 {
		t.Error(head, ok, err)
	}
}

func relabel(log []meter.Record, partition int32) []meter.Record {
	for i := range log {
		log[i].Partition = partition
	}
	return log
}

func TestPathsByHour(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	for _, test := range []struct {
		logTime int64
		has     bool
		want    string
	}{
		{t0, true, "topic=usage/date=2026-01-01/hour=00/part=0/usage+0+00000000000000000000.parquet"},
		{t0 + 10_000, true, "topic=usage/date=2026-01-01/hour=01/part=0/usage+0+00000000000000000000.parquet"},
		{0, false, "topic=usage/date=1970-01-01/hour=00/part=0/usage+0+00000000000000000000.parquet"},
		{-1, true, "topic=usage/date=1970-01-01/hour=00/part=0/usage+0+00000000000000000000.parquet"},
		{1 << 60, true, "topic=usage/date=1970-01-01/hour=00/part=0/usage+0+00000000000000000000.parquet"},
	} {
		fsys := newMemFS()
		writeLog(t, config(fsys, m, "usage", 0), m, []meter.Record{{Offset: 5, LogTime: test.logTime, HasLogTime: test.has, Value: []byte("x")}}, 1)
		if got := fsys.files(); len(got) != 1 || got[0] != test.want {
			t.Errorf("log time %d: %v", test.logTime, got)
		}
		wantClean(t, verify(t, fsys, m, nil))
	}
}

func TestMeta(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	disk := newMemFS()
	steps := 0
	fsys := archive.Hooked(disk, func(op archive.Op) error { steps++; return nil })
	meta := archive.NewMeta(fsys)
	other := *m
	other.Text = append([]byte("# the same, said otherwise\n"), m.Text...)
	card := []byte("rates: []\n")
	put := func() {
		for _, err := range []error{meta.PutMeter(m), meta.PutMeter(&other), meta.PutRates("sha256:ab/../c", card),
			meta.PutPrices(archive.PriceUse{Card: "sha256:ab/../c", From: meter.MinusInfinity}),
			meta.PutDrained(archive.Source{Topic: "a/b", Partition: 3}, archive.Mark{Next: 9, Fingerprint: "f"}),
			meta.PutHead(archive.Source{Topic: "a/b", Partition: 3}, meter.ArchiveHead{Next: 9})} {
			if err := err; err != nil {
				t.Fatal(err)
			}
		}
	}
	put()
	first := disk.clone()
	steps = 0
	put() // again: nothing changes, no file is made
	for name, n := range disk.now {
		if first.now[name] == nil || !bytes.Equal(first.now[name].data, n.data) {
			t.Errorf("%s has changed", name)
		}
	}
	disk.crash()
	meta = archive.NewMeta(disk)
	meters, err := meta.Meters()
	if err != nil || len(meters) != 2 || meters[0].Name != m.Fingerprint || meters[1].Name != m.Fingerprint {
		t.Fatal(len(meters), err)
	}
	if text, err := meta.Meter(m.Fingerprint); err != nil || !bytes.Equal(text, m.Text) {
		t.Fatal(err)
	}
	if text, err := meta.Rate("sha256:ab/../c"); err != nil || !bytes.Equal(text, card) {
		t.Fatal(err)
	}
	if _, err := meta.Rate("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if rates, err := meta.Rates(); err != nil || len(rates) != 1 || rates[0].Name != "sha256:ab/../c" {
		t.Fatal(rates, err)
	}
	if marks, err := meta.Drained(); err != nil || marks[archive.Source{Topic: "a/b", Partition: 3}].Next != 9 {
		t.Fatal(marks, err)
	}
	second := archive.PriceUse{Card: "c2", List: "l", From: 60_000}
	if err := meta.PutPrices(second); err != nil {
		t.Fatal(err)
	}
	if uses, err := meta.Prices(); err != nil || len(uses) != 2 || uses[1] != second {
		t.Fatal(uses, err)
	}
	if left := len(disk.now); left != len(disk.durable) {
		t.Errorf("%d names, %d of them durable", left, len(disk.durable))
	}
}

// A kept text that is not what its name says is found by its hash.
func TestAChangedMetaTextIsFound(t *testing.T) {
	good, m, _ := threeFiles(t)
	meta := archive.NewMeta(good)
	if err := errors.Join(meta.PutMeter(m), meta.PutRates("r1", []byte("rates: []\n"))); err != nil {
		t.Fatal(err)
	}
	o := archive.VerifyOptions{Decoder: decoders(m), MaxFaults: 10,
		Fingerprint: func(text []byte) (string, error) {
			mt, err := meter.Parse("x", text)
			if err != nil {
				return "", err
			}
			return mt.Fingerprint, nil
		},
		Revision: func(text []byte) (string, error) { return map[string]string{"rates: []\n": "r1"}[string(text)], nil },
	}
	r, err := archive.Verify(t.Context(), good, o)
	if err != nil || len(r.Faults) > 0 {
		t.Fatal(err, r.Faults)
	}
	for name := range good.now {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		bad := good.clone()
		bad.now[name].data = bytes.Replace(bytes.Replace(bad.now[name].data, []byte("20s"), []byte("30s"), 1), []byte("[]"), []byte("[ ]"), 1)
		r, err := archive.Verify(t.Context(), bad, o)
		if err != nil || kinds(r) != "meta" || r.Faults[0].File != name {
			t.Errorf("%s: %v %v", name, err, r.Faults)
		}
	}
	if err := meta.PutPrices(archive.PriceUse{Card: "r2"}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, good, m, nil); kinds(r) != "meta" || !strings.Contains(r.Faults[0].Detail, "priced windows") {
		t.Error(r.Faults)
	}
}
