package run

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
)

// ledgerAt is a ledger of another name.
func (s *site) ledgerAt(name string) func(*Config) {
	return func(c *Config) {
		c.Ledger = func(ctx context.Context) (Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(s.dir, name), Meter: s.Meter})
		}
	}
}

// files are the archive's files with their bytes, but for the lock.
func (s *site) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := filepath.Join(s.dir, "archive")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, root)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestArchiveLock: one process at a time writes to an archive, whatever its ledger; a refused one leaves no trace.
func TestArchiveLock(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 60), "no-drain"))
	lock, err := archive.TakeLock(s.archive())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"the ledger": nil, "another ledger": s.ledgerAt("other.db"), "no ledger": func(c *Config) { c.Ledger = nil },
	} {
		if _, err := s.try(change); !errors.Is(err, archive.ErrLocked) {
			t.Errorf("%s while another process archives: %v", name, err)
		}
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "archive")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an archive that nobody wrote to is left behind: %v", err)
	}
	s.run(t, nil)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// TestOtherLedger: another ledger, or none, goes on with an archive that is ahead of it, and each with the other's part.
func TestOtherLedger(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 120), "no-drain"))
	s.write(t, smallLog(0, 60))
	s.run(t, nil)
	s.write(t, smallLog(0, 80))
	s.run(t, s.ledgerAt("other.db"))
	s.write(t, smallLog(0, 100))
	s.run(t, func(c *Config) { c.Ledger = nil })
	s.run(t, nil)
	s.write(t, smallLog(0, 120))
	s.run(t, s.ledgerAt("other.db"))
	s.run(t, nil)
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// TestForeignArchive: an archive of another log is not continued, by its topic or by its bytes, and nothing in it changes.
func TestForeignArchive(t *testing.T) {
	log := smallLog(0, 60)
	other := strings.Replace(log, `"c3"`, `"x3"`, 1)
	s := newSite(t, newCase(t, log, "no-drain"))
	s.run(t, nil)
	before := s.files(t)
	onlyArchive := func(c *Config) { c.Ledger = nil }
	for name, change := range map[string]func(*Config){
		"another log":                    s.ledgerAt("fresh.db"),
		"another log, only archived":     onlyArchive,
		"another topic":                  func(c *Config) { s.ledgerAt("topic.db")(c); c.Source.Topic = "other" },
		"another topic, only archived":   func(c *Config) { c.Ledger, c.Source.Topic = nil, "other" },
		"a drained log that was shorter": func(c *Config) { s.ledgerAt("short.db")(c); c.Drain = true },
	} {
		switch {
		case strings.Contains(name, "topic"):
			s.write(t, log)
		case strings.Contains(name, "shorter"):
			s.write(t, smallLog(0, 50))
		default:
			s.write(t, other)
		}
		_, err := s.try(change)
		var r *Refusal
		if !errors.Is(err, ErrArchive) || !errors.As(err, &r) || r.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
		if !maps.Equal(before, s.files(t)) {
			t.Fatalf("%s: the archive has changed", name)
		}
	}
}

// TestSwappedArchive: a ledger does not go on with an archive that has a file of its last file's name and is another's.
func TestSwappedArchive(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 120), "no-drain"))
	s.write(t, smallLog(0, 60))
	s.run(t, nil)
	for _, text := range []string{smallLog(0, 80), strings.Replace(smallLog(0, 60), `"c3"`, `"x3"`, 1)} {
		whole := newSite(t, newCase(t, smallLog(0, 120), "no-drain"))
		whole.write(t, text)
		whole.run(t, func(c *Config) { c.Archive.MaxRows = 1000 })
		own := newSite(t, newCase(t, smallLog(0, 120), "no-drain"))
		own.write(t, smallLog(0, 60))
		own.run(t, func(c *Config) { c.Archive.MaxRows = 1000 })
		if err := os.RemoveAll(filepath.Join(own.dir, "archive")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(whole.dir, "archive"), filepath.Join(own.dir, "archive")); err != nil {
			t.Fatal(err)
		}
		before := own.files(t)
		own.write(t, smallLog(0, 120))
		if _, err := own.try(nil); err == nil || !strings.Contains(err.Error(), "another archive's") {
			t.Errorf("over another's archive: %v", err)
		}
		if !maps.Equal(before, own.files(t)) {
			t.Error("the archive has changed")
		}
	}
}

// TestFirstFileHasAHead: a process that ends between the very first file and its head leaves an archive that verifies and
// is continued.
func TestFirstFileHasAHead(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 60), "no-drain"))
	onlyArchive := func(c *Config) { c.Ledger = nil }
	died := errors.New("died")
	_, err := s.try(func(c *Config) {
		onlyArchive(c)
		c.Archive.FS = archive.Hooked(c.Archive.FS, func(op archive.Op) error {
			if op.Verb == "link" && op.After && strings.HasSuffix(op.Name, ".parquet") {
				return died
			}
			return nil
		})
	})
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	a, err := archive.Open(s.archive(), nil)
	if err != nil || len(a.Faults) > 0 || len(a.Notes) == 0 {
		t.Errorf("after the first file: %v %v, notes %v", err, a.Faults, a.Notes)
	}
	s.run(t, onlyArchive)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// TestAdopt: an archive from before there were lists and locks gets its list with the next run, and misses nothing then.
func TestAdopt(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 60), "no-drain"))
	s.run(t, nil)
	meta := filepath.Join(s.dir, "archive", "_meta")
	for _, name := range []string{"list.json", "lock"} {
		if err := os.Remove(filepath.Join(meta, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.checkArchive(); err != nil {
		t.Errorf("an archive of the former version: %v", err)
	}
	s.run(t, s.ledgerAt("other.db"))
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(meta, "list.json")); err != nil {
		t.Fatal(err)
	}
	if err := s.checkArchive(); err == nil {
		t.Error("a list that was removed is not missed")
	}
	if _, err := os.Stat(filepath.Join(meta, "prices", "00000001.json")); errors.Is(err, fs.ErrNotExist) {
		t.Error("no prices were kept")
	}
}
