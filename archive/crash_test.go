package archive_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A driver archives a log as run does, with the head committed after each publication in a ledger of one field.
type driver struct {
	t         *testing.T
	fs        archive.FS
	m         *meter.Meter
	log       []meter.Record
	committed meter.ArchiveHead
}

// run archives what is missing, from the committed head; every so many rows it rolls.
func (d *driver) run(rows int) error {
	source := archive.Source{Topic: "usage"}
	head, err := archive.Resume(d.fs, source, d.committed)
	if err != nil {
		return err
	}
	c := config(d.fs, d.m, "usage", 0)
	c.RowGroupRows = 10
	w, err := archive.NewWriter(c, head)
	if err != nil {
		return err
	}
	meta := archive.NewMeta(d.fs)
	if err := meta.PutMeter(d.m); err != nil {
		return err
	}
	if _, ok, err := meta.Head(source); err != nil {
		return err
	} else if !ok { // as run does, so that the first file is not without a head
		if err := meta.PutHead(source, head); err != nil {
			return err
		}
	}
	a := archiver{tb: d.t, w: w, meta: meta, source: source, decode: decodeOf(d.m), reach: meter.MinusInfinity, next: head.Next}
	for i := range d.log {
		r := &d.log[i]
		if r.Offset < head.Next { // silent: the archive has it
			a.decode(r, &a.event)
			if a.event.Admitted() {
				a.reach = max(a.reach, a.event.Reach())
			}
			continue
		}
		if err := a.append(r); err != nil {
			return err
		}
		if w.Rows() >= int64(rows) || i == len(d.log)-1 {
			if err := a.roll(); err != nil {
				return err
			}
			d.committed = w.Head()
		}
	}
	return nil
}

func decodeOf(m *meter.Meter) archive.Decode {
	_, decode, err := decoders(m)(m.Fingerprint)
	if err != nil {
		panic(err)
	}
	return decode
}

// wantLog checks that the archive holds the log, each record once.
func (d *driver) wantLog(fsys archive.FS) {
	d.t.Helper()
	wantClean(d.t, verify(d.t, fsys, d.m, archive.Heads{{Topic: "usage"}: d.committed}))
	a, err := archive.Open(fsys, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	rows := readAll(d.t, a.Partitions[0])
	if len(rows) != len(d.log) {
		d.t.Fatalf("%d records archived of %d", len(rows), len(d.log))
	}
	for i := range rows {
		if rows[i].Record.Offset != d.log[i].Offset || string(rows[i].Record.Value) != string(d.log[i].Value) {
			d.t.Fatalf("record %d is another", i)
		}
	}
}

var errCrash = errors.New("the power went off")

// After a loss of power before or after any step the archive is whole, what was committed is there, and a new
// start goes on without a gap or a copy.
func TestPowerLossAtEveryStep(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(9, 0, 32)
	steps := 0
	count := &driver{t: t, fs: archive.Hooked(newMemFS(), func(archive.Op) error { steps++; return nil }), m: m, log: log, committed: fresh()}
	if err := count.run(14); err != nil {
		t.Fatal(err)
	}
	if steps < 60 {
		t.Fatalf("only %d steps", steps)
	}
	taken, stride := 0, 1
	if testing.Short() {
		stride = 3
	}
	for stop := 1; stop <= steps; stop += stride {
		disk := newMemFS()
		n := 0
		var at archive.Op
		d := &driver{t: t, m: m, log: log, committed: fresh()}
		d.fs = archive.Hooked(disk, func(op archive.Op) error {
			if n++; n >= stop {
				if n == stop {
					at = op
				}
				return errCrash
			}
			return nil
		})
		err := d.run(14)
		if !errors.Is(err, errCrash) && !(err == nil && at.Verb == "remove") {
			t.Fatalf("step %d (%+v): %v", stop, at, err)
		}
		disk.crash()
		r := verifyAny(t, disk, m, d.committed)
		if len(r) > 0 {
			t.Fatalf("after a crash at step %d (%+v): %v", stop, at, r)
		}
		d.fs = disk
		before := len(disk.files())
		if head, err := archive.Resume(disk, archive.Source{Topic: "usage"}, d.committed); err != nil {
			t.Fatalf("step %d (%+v): %v", stop, at, err)
		} else if head.Next > d.committed.Next {
			taken++
		}
		if err := d.run(9); err != nil {
			t.Fatalf("step %d (%+v), again: %v", stop, at, err)
		}
		d.wantLog(disk)
		if left := leftovers(disk); left != "" {
			t.Fatalf("step %d (%+v): %s is left over", stop, at, left)
		}
		if before > 0 && len(disk.files()) < before {
			t.Fatalf("a published file is gone")
		}
	}
	if taken == 0 {
		t.Fatal("no crash fell between publication and commit")
	}
}

func leftovers(disk *memFS) string {
	for name := range disk.now {
		if strings.HasPrefix(name, "_aside/usage") {
			return name
		}
	}
	return ""
}

// verifyAny verifies against a committed head; an archive that does not exist yet is as good as an empty one.
func verifyAny(t *testing.T, fsys archive.FS, m *meter.Meter, head meter.ArchiveHead) []archive.Fault {
	t.Helper()
	return verify(t, fsys, m, archive.Heads{{Topic: "usage"}: head}).Faults
}

// A full disk is a clear error, nothing half-done is visible, and the archive goes on when there is space.
func TestAFullDisk(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(10, 0, 24)
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for room := 0; ; room += stride { // steps that still find space
		disk := newMemFS()
		n := 0
		d := &driver{t: t, m: m, log: log, committed: fresh()}
		d.fs = archive.Hooked(disk, func(op archive.Op) error {
			switch {
			case op.After:
			case op.Verb == "create" || op.Verb == "write" || op.Verb == "sync" || op.Verb == "mkdir" || op.Verb == "link":
				if n++; n > room {
					return syscall.ENOSPC
				}
			}
			return nil
		})
		err := d.run(11)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "archive: ") {
			t.Fatalf("room for %d steps: %v", room, err)
		}
		if faults := verifyAny(t, disk, m, d.committed); len(faults) > 0 {
			t.Fatalf("room for %d steps: %v", room, faults)
		}
		d.fs = disk
		if err := d.run(11); err != nil {
			t.Fatal(err)
		}
		d.wantLog(disk)
	}
}

// A write that fails half-way stops the writer for good.
func TestAFailedWriterStaysFailed(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(11, 0, 30)
	full := false
	disk := newMemFS()
	a := newArchiver(t, config(archive.Hooked(disk, func(op archive.Op) error {
		if full && op.Verb == "write" {
			return syscall.ENOSPC
		}
		return nil
	}), m, "usage", 0), m, fresh())
	for i := range log[:20] {
		if err := a.append(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	full = true
	if err := a.roll(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	full = false
	if err := a.append(&log[20]); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal("it went on over a hole:", err)
	}
	if err := a.roll(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if len(disk.files()) > 0 || leftovers(disk) != "" {
		t.Fatal("something is left:", disk.files(), leftovers(disk))
	}
}

func TestTwoOwners(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(12, 0, 40)
	disk := newMemFS()
	first := newArchiver(t, config(disk, m, "usage", 0), m, fresh())
	second := newArchiver(t, config(disk, m, "usage", 0), m, fresh())
	for i := range log {
		if i < 20 {
			if err := first.append(&log[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := second.append(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.roll(); err != nil {
		t.Fatal(err)
	}
	winner := disk.files()[0]
	err := second.roll()
	var taken *archive.TakenError
	if !errors.As(err, &taken) || taken.Name != winner || taken.First != 0 || taken.Next != first.next {
		t.Fatalf("the loser was told %v", err)
	}
	if second.w.Head().Next != 0 || second.w.Head().File != "" {
		t.Fatal("the loser's head moved")
	}
	// The loser goes on behind the winner.
	d := &driver{t: t, fs: disk, m: m, log: log, committed: fresh()}
	if err := d.run(100); err != nil {
		t.Fatal(err)
	}
	d.wantLog(disk)
	if len(disk.files()) != 2 || disk.files()[0] != winner {
		t.Fatal(disk.files())
	}
}

// The same file published twice (by an owner whose first attempt got an error after the fact) is one file.
func TestTheSameBytesAreNoRace(t *testing.T) {
	m := parseMeter(t, requestsYAML)
	log := gatewayLog(13, 0, 20)
	disk := newMemFS()
	for range 2 {
		a := newArchiver(t, config(disk, m, "usage", 0), m, fresh())
		for i := range log {
			if err := a.append(&log[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.roll(); err != nil {
			t.Fatal(err)
		}
	}
	wantClean(t, verify(t, disk, m, nil))
}

func TestResumeRefuses(t *testing.T) {
	good, _, _ := threeFiles(t)
	files := good.files()
	source := archive.Source{Topic: "usage"}
	head, _, err := archive.NewMeta(good).Head(source)
	if err != nil {
		t.Fatal(err)
	}
	bad := good.clone()
	delete(bad.now, files[2])
	if _, err := archive.Resume(bad, source, head); err == nil {
		t.Error("the last file is gone")
	}
	bad = good.clone()
	delete(bad.now, files[1])
	if _, err := archive.Resume(bad, source, fresh()); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Error("a gap behind the head:", err)
	}
	bad = good.clone()
	bad.now[files[2]].data[100] ^= 1
	if h, err := archive.Resume(bad, source, fresh()); err == nil && h.SHA256 == head.SHA256 {
		t.Error("a changed tail was taken for the published one")
	}
	bad = good.clone()
	bad.now[files[1]].data[len(bad.now[files[1]].data)-9] ^= 1
	if _, err := archive.Resume(bad, source, fresh()); err == nil {
		t.Error("a damaged file was taken over")
	}
	if h, err := archive.Resume(good.clone(), source, fresh()); err != nil || h.Next != head.Next || h.SHA256 != head.SHA256 || h.Rows != head.Rows || h.File != head.File {
		t.Error("a whole archive without a ledger:", h, err)
	}
}

// Sweeping takes one partition's leftovers only.
func TestSweep(t *testing.T) {
	disk := newMemFS()
	disk.now["_aside"] = &inode{dir: true}
	for _, name := range []string{"a+1+00000000000000000000.0.aside", "a+1+head.0.aside", "a+11+00000000000000000000.0.aside", "a+2+x.0.aside", "b+1+x.0.aside", "a+1+x.parquet"} {
		disk.now["_aside/"+name] = &inode{}
	}
	if _, err := archive.Resume(disk, archive.Source{Topic: "a", Partition: 1}, fresh()); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := disk.ReadDir("_aside")
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := fmt.Sprint(left); got != "[a+1+x.parquet a+11+00000000000000000000.0.aside a+2+x.0.aside b+1+x.0.aside]" {
		t.Fatal(got)
	}
}

func TestOpenWithoutAnArchive(t *testing.T) {
	if _, err := archive.Open(archive.Dir(t.TempDir()+"/none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
