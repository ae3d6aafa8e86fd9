package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
)

// folder is a meter with its rate cards and the places its files live.
type folder struct {
	*meter.Meter
	card, list *pricing.Card
}

// open reads the meter of the command line and its cards; --ledger and --archive override what it says of them.
func (a *app) open() (*folder, error) {
	o, err := openMeter(a.meterPath)
	if err != nil {
		return nil, err
	}
	a.override(o)
	return o, nil
}

// openUnpriced is open without the cards, for what prices nothing.
func (a *app) openUnpriced() (*folder, error) {
	m, err := loadMeter(a.meterPath)
	if err != nil {
		return nil, err
	}
	o := &folder{Meter: m}
	a.override(o)
	return o, nil
}

func (a *app) override(o *folder) {
	o.Run.Ledger, o.Run.Archive = orElse(a.ledgerURL, o.Run.Ledger), orElse(a.archiveDir, o.Run.Archive)
}

func (a *app) ledgerFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.ledgerURL, "ledger", "", "sqlite:FILE, relative to the meter file (default run.ledger)")
}

func (a *app) archiveFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.archiveDir, "archive", "", "folder of the archive, relative to the meter file (default run.archive)")
}

func loadMeter(path string) (*meter.Meter, error) {
	m, err := meter.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint(err, "run it in a folder with a gatewaymeter.yaml, name one with -m, or make one with 'gmctl init DIR'")
	}
	return m, err
}

func openMeter(path string) (*folder, error) {
	m, err := loadMeter(path)
	if err != nil {
		return nil, err
	}
	card, list, err := loadCards(m)
	if err != nil {
		return nil, err
	}
	return &folder{m, card, list}, nil
}

func loadCards(m *meter.Meter) (card, list *pricing.Card, err error) {
	card, list, err = pricing.Load(m)
	if errors.Is(err, fs.ErrNotExist) {
		err = hint(err, "name a rate card there, relative to the meter file, or write this one: rows of {sku, tier, quantity, usd, per, effective_from} under rates")
	}
	return card, list, err
}

// path makes a path of the meter file relative to its folder.
func (f *folder) path(p string) string {
	if filepath.IsAbs(p) || p == "-" {
		return p
	}
	return filepath.Join(filepath.Dir(f.Path), p)
}

// parseCard reads the text of a card that a ledger or an archive kept.
func (f *folder) parseCard(text []byte) (*meter.RateCard, error) {
	return pricing.Parse(f.Meter, "kept rate card", text)
}

func (f *folder) listCard() *meter.RateCard {
	if f.list == nil {
		return nil
	}
	return f.list.RateCard
}

// ledgerPath is the SQLite file of a ledger URL.
func (f *folder) ledgerPath(url string) (string, error) {
	switch path, ok := strings.CutPrefix(url, "sqlite:"); {
	case ok && path != "":
		return f.path(path), nil
	case strings.HasPrefix(url, "postgres:"):
		return "", fmt.Errorf("ledger %s: Postgres is not built yet; use sqlite:FILE", url)
	}
	return "", fmt.Errorf("ledger %q: want sqlite:FILE", clip(url))
}

// archivePath is the folder of an archive setting.
func (f *folder) archivePath(archive string) (string, error) {
	if strings.Contains(archive, "://") {
		return "", fmt.Errorf("archive %q: object stores are not built yet; name a folder", clip(archive))
	}
	return f.path(archive), nil
}

// timeRange is --from and --to: windows that end in (from, to].
type timeRange struct {
	fromText, toText string
}

func (r *timeRange) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.fromText, "from", "", "start of the range: RFC 3339, a date, ms since 1970, or -24h (default: everything)")
	cmd.Flags().StringVar(&r.toText, "to", "", "end of the range, exclusive; whole windows inside the range are meant")
}

// bounds is the range in ms, nil where it is open, cut to whole windows: if that changes it, it is said.
func (a *app) bounds(r *timeRange, window int64) (from, to *int64, err error) {
	now := time.Now()
	if from, err = parseTime("--from", r.fromText, now); err != nil {
		return nil, nil, err
	}
	if to, err = parseTime("--to", r.toText, now); err != nil {
		return nil, nil, err
	}
	cut := from != nil && *from%window != 0 || to != nil && *to%window != 0
	if from != nil && to != nil && *from > *to {
		return nil, nil, fmt.Errorf("--from %s is after --to %s", r.fromText, r.toText)
	}
	if from != nil {
		*from = floorTo(*from+window-1, window)
	}
	if to != nil {
		*to = floorTo(*to, window)
	}
	if from != nil && to != nil && *from >= *to {
		return nil, nil, hint(fmt.Errorf("no whole window lies between --from %s and --to %s", r.fromText, r.toText), "a window is %s long", time.Duration(window)*time.Millisecond)
	}
	if cut {
		var taken []string
		if from != nil {
			taken = append(taken, "from "+meter.Time(*from))
		}
		if to != nil {
			taken = append(taken, "to "+meter.Time(*to))
		}
		a.note("whole windows of %s are meant: the range taken is %s", time.Duration(window)*time.Millisecond, strings.Join(taken, " "))
	}
	return from, to, nil
}

func floorTo(t, window int64) int64 {
	if r := t % window; r < 0 {
		return t - r - window
	} else {
		return t - r
	}
}

// The plausible times of a range: years 1 to 9999.
const minMs, maxMs = -62_135_596_800_000, 253_402_300_799_999

func parseTime(flag, text string, now time.Time) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	bad := hint(fmt.Errorf("%s %q is no time", flag, clip(text)), "write 2026-01-01T00:00:00Z, 2026-01-01, -24h, or milliseconds since 1970")
	if zoned := withZone(text); zoned != "" {
		bad = hint(fmt.Errorf("%s %q has no zone", flag, clip(text)), "write %s for UTC, or an offset such as +01:00 in place of the Z", zoned)
	}
	if strings.HasPrefix(text, "-") {
		if d, err := time.ParseDuration(text); err == nil {
			ms := now.Add(d).UnixMilli()
			return &ms, nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			ms := t.UnixMilli()
			return &ms, nil
		}
	}
	if len(text) == 4 {
		return nil, bad // a year, not four thousand milliseconds
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < minMs || ms > maxMs {
		return nil, bad
	}
	return &ms, nil
}

// withZone is a time that lacks nothing but the zone, or seconds and zone, as a time in UTC; "" for any other text.
func withZone(text string) string {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format("2006-01-02T15:04:05.999Z")
		}
	}
	return ""
}

// isURL tells kafka://... and s3://... from a file.
func isURL(s string) bool { return strings.Contains(s, "://") }
