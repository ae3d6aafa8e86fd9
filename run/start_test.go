package run

import (
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

func (s *site) run(t *testing.T, change func(*Config)) Outcome {
	t.Helper()
	out, err := s.try(change)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *site) try(change func(*Config)) (Outcome, error) {
	c := s.config(nil)
	if change != nil {
		change(c)
	}
	return run(context.Background(), c, chance(3, 9))
}

// write replaces the log.
func (s *site) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *site) reader(t *testing.T) *sqlite.Reader {
	t.Helper()
	r, err := sqlite.OpenReader(context.Background(), s.db())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func noDrain(c *Config) { c.Drain = false }

// TestGrows: a file that was not drained goes on where it ended, however it was cut, and its end can be drained later.
func TestGrows(t *testing.T) {
	s := newSite(t, small(t))
	whole := s.LogText()
	for _, lines := range []int{0, 1, 2, 30, 31, 100} {
		s.write(t, strings.Join(strings.SplitAfter(whole, "\n")[:lines], ""))
		s.run(t, noDrain)
	}
	out := s.run(t, noDrain)
	if out.Commits != 0 || out.Records != 0 || out.Finished || out.Drained {
		t.Errorf("nothing is new, the run says %+v", out)
	}
	s.write(t, whole)
	if out := s.run(t, nil); !out.Drained || out.Records != 21 {
		t.Errorf("the last run says %+v", out)
	}
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// TestGrowsWithinLines: what somebody is in the middle of writing is no record yet, whatever byte the file ends with.
func TestGrowsWithinLines(t *testing.T) {
	for name, format := range map[string]trace.Format{"trace": trace.Trace, "values": trace.Values} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, newCase(t, smallLog(0, 40), "no-drain"))
			whole := s.LogText()
			if format == trace.Values {
				whole = strings.ReplaceAll(whole[len(header):], "log_time", "t_log")
			}
			change := func(c *Config) { c.Drain, c.Source.Format = false, format }
			for cut := 0; cut < len(whole); cut += 1 + len(whole)/23 {
				s.write(t, whole[:cut])
				out := s.run(t, change)
				if want := cut - strings.LastIndexByte(whole[:cut], '\n') - 1; out.Unread != int64(want) {
					t.Errorf("cut at %d: %d bytes are left unread, want %d", cut, out.Unread, want)
				}
				if n := out.Summary.DeadLetters(); n > 0 && format == trace.Trace || out.Summary.Read != int64(records(whole[:cut], format)) {
					t.Fatalf("cut at %d: %d records, %d dead letters", cut, out.Summary.Read, n)
				}
			}
			s.write(t, whole)
			if out := s.run(t, change); out.Unread != 0 || out.Summary.Read != int64(records(whole, format)) {
				t.Errorf("the last run says %+v", out)
			}
			if format == trace.Values {
				return
			}
			s.checkOracle(t)
			if err := s.checkArchive(); err != nil {
				t.Error(err)
			}
		})
	}
}

// records counts the whole lines that are records.
func records(text string, format trace.Format) int {
	n := strings.Count(text, "\n")
	if format == trace.Trace && n > 0 {
		n-- // the header
	}
	return n
}

// TestLineWithoutEnd: the last line may lack its line end, and get it later.
func TestLineWithoutEnd(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 40), "no-drain"))
	whole := s.LogText()
	lines := strings.SplitAfter(whole, "\n")
	s.write(t, strings.TrimSuffix(strings.Join(lines[:20], ""), "\n"))
	s.run(t, nil)
	s.run(t, nil)
	s.write(t, whole)
	s.run(t, nil)
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// refused runs s and wants a refusal that changes nothing.
func (s *site) refused(t *testing.T, want error, change func(*Config)) {
	t.Helper()
	before := s.answer(t)
	_, err := s.try(change)
	var r *Refusal
	if !errors.Is(err, want) || !errors.As(err, &r) || r.Hint == "" {
		t.Fatalf("got %v, want a refusal: %v", err, want)
	}
	after := s.answer(t)
	if before.Summary != after.Summary || len(before.Journal) != len(after.Journal) {
		t.Error("the refused run changed the ledger")
	}
}

// TestBeyondDrain: R13, records beyond a drain are refused, by a ledger and by an archive alone.
func TestBeyondDrain(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 60), ""))
	s.run(t, nil)
	s.write(t, smallLog(0, 70))
	s.refused(t, ErrDrained, nil)
	s.refused(t, ErrDrained, noDrain)

	onlyArchive := func(c *Config) { c.Ledger = nil }
	alone := newSite(t, newCase(t, smallLog(0, 60), ""))
	alone.run(t, onlyArchive)
	if out := alone.run(t, onlyArchive); !out.Finished || !out.Drained || out.Files != 0 {
		t.Errorf("again: %+v", out)
	}
	alone.write(t, smallLog(0, 70))
	if _, err := alone.try(onlyArchive); !errors.Is(err, ErrDrained) {
		t.Errorf("beyond the archive's mark: %v", err)
	}
}

// TestRefusals: another topic, another meter, other partitions, another file.
func TestRefusals(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 60), "no-drain"))
	s.run(t, nil)
	s.refused(t, ErrTopic, func(c *Config) { c.Source.Topic = "other" })
	s.write(t, strings.Replace(smallLog(0, 60), `[0,1]`, `[0,1,2]`, 1))
	s.refused(t, ErrPartitions, nil)
	s.write(t, strings.Replace(smallLog(0, 60), `"c3"`, `"x3"`, 1))
	s.refused(t, ErrPrefix, nil)
	s.write(t, smallLog(0, 50))
	s.refused(t, ErrPrefix, nil)
	s.write(t, smallLog(0, 60))
	other, err := meter.Parse("m.yaml", []byte(strings.Replace(smallMeter, "allowed_lateness: 1m", "allowed_lateness: 2m", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.try(func(c *Config) {
		c.Meter = other
		c.Ledger = func(ctx context.Context) (Ledger, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: s.db(), Meter: other})
		}
	}); err == nil || !strings.Contains(err.Error(), "another meter") {
		t.Errorf("another meter: %v", err)
	}
	s.run(t, nil)
	s.checkOracle(t)
}

// TestBrokenEnvelope: a line that is no record stops the run with file and line. What was committed before stands,
// and where nothing was, nothing is left behind.
func TestBrokenEnvelope(t *testing.T) {
	for _, broken := range []string{"not json\n", `{"partition":0,"offset":1,"value":{}}` + "\n", `{"partition":7,"offset":1,"value":{}}` + "\n"} {
		s := newSite(t, newCase(t, smallLog(0, 60), "no-drain"))
		s.write(t, smallLog(0, 40)+broken+smallLog(40, 60))
		c := s.config(nil)
		_, err := run(context.Background(), c, func() bool { return false })
		var at *trace.Error
		if !errors.As(err, &at) || at.Line != 42 || at.File != s.log {
			t.Fatalf("%s: %v", broken, err)
		}
		if _, err := os.Stat(s.db()); err == nil {
			t.Error("a ledger was made")
		}
		if _, err := os.Stat(s.db() + ".lock"); err == nil {
			t.Error("a lock was left behind")
		}
		files, _ := filepath.Glob(filepath.Join(s.dir, "archive", "_aside", "*"))
		if len(files) > 0 {
			t.Errorf("left in the making: %v", files)
		}
		s.write(t, smallLog(0, 60)) // mended
		s.run(t, nil)
		s.checkOracle(t)
	}
	s := newSite(t, newCase(t, smallLog(0, 60), "no-drain"))
	for text, want := range map[string]string{`{"trace":2}` + "\n": "header", "": ""} {
		s.write(t, text)
		if _, err := s.try(nil); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestEmptyLogs: no byte, a header alone, and a file that does not exist.
func TestEmptyLogs(t *testing.T) {
	for _, text := range []string{"", smallLog(0, 0)} {
		s := newSite(t, newCase(t, smallLog(0, 0), ""))
		s.write(t, text)
		if out := s.run(t, nil); !out.Drained || out.Summary.Read != 0 {
			t.Errorf("%q: %+v", text, out)
		}
		if out := s.run(t, nil); !out.Finished {
			t.Errorf("%q again: %+v", text, out)
		}
		s.write(t, text+smallLog(1, 3))
		if _, err := s.try(nil); !errors.Is(err, ErrDrained) && !errors.Is(err, ErrPartitions) {
			t.Errorf("%q grown: %v", text, err)
		}
	}
	s := newSite(t, small(t))
	if err := os.Remove(s.log); err != nil {
		t.Fatal(err)
	}
	if _, err := s.try(nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(s.db() + ".lock"); err == nil {
		t.Error("a lock was made for a log that does not exist")
	}
}

// TestCompressed: a gzip file resumes by decompressed bytes.
func TestCompressed(t *testing.T) {
	s := newSite(t, small(t))
	s.log += ".gz"
	pack := func(text string) {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		s.write(t, b.String())
	}
	pack(smallLog(0, 50))
	s.run(t, noDrain)
	pack(smallLog(0, 120))
	s.run(t, nil)
	s.checkOracle(t)
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	short := newSite(t, small(t))
	short.log += ".gz"
	short.write(t, string(text[:len(text)/2]))
	if _, err := short.try(nil); !errors.Is(err, trace.ErrCutShort) {
		t.Errorf("cut short: %v", err)
	}
}

// TestOnlyArchive: without a ledger the archive's own heads are the position.
func TestOnlyArchive(t *testing.T) {
	s := newSite(t, small(t))
	onlyArchive := func(c *Config) { c.Ledger, c.Drain = nil, false }
	for _, n := range []int64{10, 11, 60, 120} {
		s.write(t, smallLog(0, int(n)))
		if out := s.run(t, onlyArchive); out.Summary.Read != n || out.Summary.Check() != nil {
			t.Errorf("%d records: %+v", n, out)
		}
	}
	if err := s.checkArchive(); err != nil {
		t.Fatal(err)
	}
	// A ledger that comes later counts the whole log, and finds the archive whole.
	if out := s.run(t, nil); out.Files != 0 || out.Records != 120 {
		t.Errorf("with a ledger: %+v", out)
	}
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveLater: an archive that begins behind a ledger is filled from the beginning of the file, also where the log
// has been drained.
func TestArchiveLater(t *testing.T) {
	for _, drained := range []bool{false, true} {
		s := newSite(t, small(t))
		none := func(c *Config) { c.Archive, c.Drain = nil, drained }
		if !drained {
			s.write(t, smallLog(0, 70))
		}
		s.run(t, none)
		s.write(t, smallLog(0, 120))
		if out := s.run(t, nil); out.Files == 0 {
			t.Errorf("drained %v: %+v", drained, out)
		}
		s.checkOracle(t)
		if err := s.checkArchive(); err != nil {
			t.Errorf("drained %v: %v", drained, err)
		}
		if out := s.run(t, nil); !out.Finished || out.Files != 0 {
			t.Errorf("drained %v, again: %+v", drained, out)
		}
		r := s.reader(t)
		positions, err := r.Positions(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i := range positions {
			if p := &positions[i]; !p.Drained || p.Archive.Next != p.Committed || p.Archive.File == "" {
				t.Errorf("position %+v", p)
			}
		}
	}
}

// TestStop: a context that ends commits everything that was applied, closes the archive's files, and is no error.
func TestStop(t *testing.T) {
	s := newSite(t, small(t))
	for i := 5; i < 200; i += 7 {
		ctx, cancel := context.WithCancel(context.Background())
		lines := 0
		out, err := run(ctx, s.config(nil), func() bool {
			if lines++; lines == i {
				cancel()
			}
			return false
		})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if out.Finished {
			break
		}
		positions, err := s.reader(t).Positions(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range positions {
			if p.Archive.Next != p.Committed {
				t.Fatalf("committed %d, archived %d", p.Committed, p.Archive.Next)
			}
		}
	}
	s.run(t, nil)
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
	before, cancel := context.WithCancel(context.Background())
	cancel()
	fresh := newSite(t, small(t))
	if out, err := run(before, fresh.config(nil), nil); err != nil || !out.Stopped {
		t.Errorf("a context that had ended before: %+v %v", out, err)
	}
}

// TestFollow: a run that follows counts what comes, and ends with its context.
func TestFollow(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 120), "no-drain"))
	s.write(t, smallLog(0, 50))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := s.config(nil)
	c.Clock, c.CommitEvery = clock{}, 2*time.Millisecond
	c.Source.Follow, c.Source.FollowEvery, c.Drain = true, time.Millisecond, false
	go func() {
		_, err := Run(ctx, *c)
		done <- err
	}()
	f, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	rest := smallLog(50, 120)
	for rest != "" {
		n := min(len(rest), 777) // in the middle of lines
		if _, err := f.WriteString(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		time.Sleep(time.Millisecond)
	}
	_ = f.Close()
	s.await(t, 120)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.checkOracle(t)
}

// await waits until the ledger has read n records: the committed position comes without the run's end.
func (s *site) await(t *testing.T, n int64) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r, err := sqlite.OpenReader(context.Background(), s.db())
		if errors.Is(err, sqlite.ErrMissing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		positions, err := r.Positions(context.Background())
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		var read int64
		for i := range positions {
			read += positions[i].Summary.Read
		}
		if read == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the ledger has read %d records, want %d", read, n)
		}
	}
}

// TestByTheClock: commits and rolls by age, as the clock says, change nothing in the answer.
func TestByTheClock(t *testing.T) {
	s := newSite(t, small(t))
	c := s.config(nil)
	c.Clock, c.Archive.MaxAge, c.Archive.MaxRows, c.Pace = newQuick(), time.Second, 0, 1000
	told := 0
	c.Progress = func(p Progress) { told++ }
	out, err := Run(context.Background(), *c)
	if err != nil || out.Commits < 2 || out.Files < 3 || told == 0 {
		t.Fatalf("%+v, told %d times: %v", out, told, err)
	}
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// TestSecondWriter: a second run on the same ledger gets a clear error while the first one lives.
func TestSecondWriter(t *testing.T) {
	s := newSite(t, small(t))
	l, err := sqlite.Open(context.Background(), sqlite.Options{Path: s.db(), Meter: s.Meter})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.try(nil); !errors.Is(err, sqlite.ErrLocked) {
		t.Errorf("the second run: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.run(t, nil)
}

// TestZombie: a run whose lock was lost cannot commit beside the run that took over, and the ledger is the latter's.
func TestZombie(t *testing.T) {
	s := newSite(t, small(t))
	lines := 0
	_, err := run(context.Background(), s.config(nil), func() bool {
		switch lines++; lines {
		case 20, 25: // the second one waits for the first
			return true
		case 30: // as on a disk that loses locks: another run comes, and finishes the log
			_ = os.Remove(s.db() + ".lock")
			c := s.config(nil)
			c.Archive = nil
			if _, err := run(context.Background(), c, chance(5, 5)); err != nil {
				t.Error(err)
			}
		case 40:
			return true
		}
		return false
	})
	if !errors.Is(err, sqlite.ErrFenced) {
		t.Errorf("the zombie: %v", err)
	}
	s.checkOracle(t)
}

// TestTwoArchivers: of two runs that archive the same log on a disk that loses locks, one stops with a clear error, and
// the archive is whole.
func TestTwoArchivers(t *testing.T) {
	s := newSite(t, small(t))
	onlyArchive := func(c *Config) { c.Ledger = nil; c.Archive.MaxRows = 5 }
	c := s.config(nil)
	onlyArchive(c)
	lines := 0
	_, err := run(context.Background(), c, func() bool {
		if lines++; lines == 3 {
			_ = os.Remove(filepath.Join(s.dir, "archive", "_meta", "lock"))
			s.run(t, func(c *Config) { onlyArchive(c); c.Archive.MaxRows = 9 })
		}
		return false
	})
	var taken *archive.TakenError
	if !errors.As(err, &taken) {
		t.Errorf("the slower one: %v", err)
	}
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

// TestDiskFull: a disk without space stops the run with its error, nothing half-written; with space it goes on.
func TestDiskFull(t *testing.T) {
	full := errors.New("no space left on device")
	for _, at := range []string{"archive:before:write", "archive:before:sync", "archive:before:create", "ledger:before:items", "ledger:before:commit"} {
		s := newSite(t, small(t))
		n := 0
		_, err := run(context.Background(), s.config(func(point string) error {
			if point == at {
				if n++; n >= 3 {
					return full
				}
			}
			return nil
		}), chance(2, 6))
		if !errors.Is(err, full) {
			t.Fatalf("%s: %v", at, err)
		}
		s.checkPrefix(t)
		s.run(t, nil)
		s.checkOracle(t)
		if err := s.checkArchive(); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestValues: plain event lines, their log time from the meter's field.
func TestValues(t *testing.T) {
	var log strings.Builder
	for i := range 90 {
		at := 1767225600 + int64(i)*5
		log.WriteString(strings.ReplaceAll(`{"id":"c#","a":"k","t":T,"got":G}`, "#", string(rune('a'+i%26))+string(rune('a'+i/26))) + "\n")
		text := log.String()
		log.Reset()
		log.WriteString(strings.NewReplacer("T", itoa(at-int64(i%7)*20), "G", itoa(at)).Replace(text))
	}
	c, err := tracetest.New("values", "Plain event lines.", map[string]string{
		"meter.yaml": strings.Replace(smallMeter, "time: t}", "time: t, received: got}", 1), "rates.yaml": smallRates, "values.jsonl": log.String()})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, c)
	s.write(t, strings.Join(strings.SplitAfter(log.String(), "\n")[:33], ""))
	s.run(t, noDrain)
	s.write(t, log.String())
	s.run(t, nil)
	s.checkOracle(t)
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
