package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// header is the first line of the small log.
var header = smallLog(0, 0)

// TestAcceptLoss: a file that was replaced by one without its beginning stops the run; with AcceptLoss it goes on, counts
// no record twice, and the rows that may miss something are incomplete from then on.
func TestAcceptLoss(t *testing.T) {
	for name, c := range map[string]struct {
		rest     string // after the header
		read     int64
		from, to int64 // of partition 0's lost range; to 0: none
	}{
		"a gap behind the position":  {smallLog(100, 120), 80 + 20, 0, 100},
		"the replay's part is gone":  {smallLog(60, 120), 120, 0, 60},
		"cut short":                  {"", 80, 0, 79},
		"the same records, reworded": {strings.ReplaceAll(smallLog(0, 120)[len(header):], `{"id"`, `{ "id"`), 120, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, newCase(t, smallLog(0, 120), "no-drain"))
			s.write(t, smallLog(0, 80))
			s.run(t, nil)
			before := s.answer(t)
			s.write(t, header+c.rest)
			s.refused(t, ErrPrefix, nil)

			out := s.run(t, func(c *Config) { c.AcceptLoss = true })
			r := s.reader(t)
			lost, err := r.Lost(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			after := s.answer(t)
			if after.Summary.Read != c.read {
				t.Errorf("%d records were read, want %d", after.Summary.Read, c.read)
			}
			if len(out.Lost) != len(lost) || c.to > 0 != (len(lost) > 0) {
				t.Fatalf("lost %+v, the run says %+v", lost, out.Lost)
			}
			if c.to == 0 {
				return
			}
			if l := lost[0]; l.Partition != 0 || l.From != c.from || l.To != c.to {
				t.Errorf("lost %+v, want [%d, %d)", l, c.from, c.to)
			}
			checkIncomplete(t, before.Bill, after.Bill, lost)
			again := s.run(t, nil)
			if again.Commits != 0 || again.Records != 0 || len(again.Lost) != len(lost) {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

// checkIncomplete: rows that were final before the loss stay what they were; the others say that they may miss something.
func checkIncomplete(t *testing.T, before, after []meter.Row, lost []meter.LostRange) {
	t.Helper()
	was := map[meter.RowKey]meter.Row{}
	for _, r := range before {
		was[r.RowKey] = r
	}
	incomplete := 0
	for _, r := range after {
		old, known := was[r.RowKey]
		switch {
		case r.State == meter.Incomplete:
			incomplete++
		case known && old.State == meter.Final && r.State == meter.Final && r.Total() == old.Total():
		case r.WindowEnd > lost[0].WindowFrom && r.WindowEnd <= lost[0].WindowTo:
			t.Errorf("%v may miss something and is %s", r.RowKey, r.State)
		}
		if known && old.State == meter.Final && (r.State == meter.Incomplete || r.Total() != old.Total()) && r.WindowEnd <= lost[0].WindowFrom {
			t.Errorf("%v was final and is %s", r.RowKey, r.State)
		}
	}
	if incomplete == 0 {
		t.Error("no row is incomplete")
	}
}

// TestOtherFileOfAnArchive: without a ledger no hash proves the file, but it has to hold the archive's records, byte by byte.
func TestOtherFileOfAnArchive(t *testing.T) {
	s := newSite(t, newCase(t, smallLog(0, 80), "no-drain"))
	alone := func(c *Config) { c.Ledger = nil }
	s.run(t, alone)
	for _, text := range []string{header + smallLog(70, 120), smallLog(0, 60), header, strings.Replace(smallLog(0, 90), `"c4"`, `"x4"`, 1)} {
		s.write(t, text)
		if _, err := s.try(alone); !errors.Is(err, ErrArchive) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
	s.write(t, smallLog(0, 80))
	if err := s.checkArchive(); err != nil {
		t.Error(err)
	}
}
