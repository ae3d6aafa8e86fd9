package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// storedPath is where a recompute of a scope is written: one file a truth, range and account.
func (u *audit) storedPath(s scope) string {
	name := string(s.truth)
	if s.from != nil || s.to != nil {
		name += "_" + stamp(s.from) + "_" + stamp(s.to)
	}
	if s.account != "" { // the account is the world's word: it never becomes a path
		sum := sha256.Sum256([]byte(s.account))
		name += "_account-" + hex.EncodeToString(sum[:6])
	}
	return filepath.Join(u.path("recompute"), name+".parquet")
}

func stamp(ms *int64) string {
	if ms == nil {
		return "open"
	}
	return strings.NewReplacer("-", "", ":", "").Replace(meter.Time(*ms))
}

// store writes a recompute with its provenance, aside and then renamed: a reader sees the former file or this one.
func (u *audit) store(ctx context.Context, job *batch.Job, s scope, f *recomputeFlags, res *batch.Result) (path string, err error) {
	path = f.output
	if path == "" {
		path = u.storedPath(s)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("recompute: %w", err)
	}
	aside := fmt.Sprintf("%s.%d.aside", path, os.Getpid())
	if err := u.engine().Store(ctx, aside, u.Meter, res.Rows, u.provenance(job, s, f.engine)); err != nil {
		return "", errors.Join(err, removeIfThere(aside))
	}
	if err := os.Rename(aside, path); err != nil {
		return "", errors.Join(fmt.Errorf("recompute: %w", err), removeIfThere(aside))
	}
	return path, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// provenance says what the rows were made of, so that a reader knows whether they are what it looks for.
func (u *audit) provenance(job *batch.Job, s scope, engine string) map[string]string {
	p := map[string]string{
		"gm.meter": u.Name, "gm.fingerprint": u.Fingerprint, "gm.version": release, "gm.truth": string(job.Truth), "gm.engine": engine,
		"gm.topic": u.topic, "gm.from": stamp(s.from), "gm.to": stamp(s.to), "gm.account": s.account, "gm.made": meter.Time(time.Now().UnixMilli()),
	}
	var cards, ranges []string
	for _, use := range u.prices {
		word := use.Card.Revision
		if use.List != nil {
			word += "+" + use.List.Revision
		}
		cards = append(cards, word)
	}
	for i, part := range job.Parts {
		end := u.parts[i].Next()
		if part.End != batch.Everything {
			end = part.End
		}
		ranges = append(ranges, fmt.Sprintf("%d@%d-%d drained=%v", part.Partition, part.Begin, end, part.Drained))
	}
	p["gm.rate_cards"], p["gm.ranges"] = strings.Join(cards, " "), strings.Join(ranges, "; ")
	if h := job.Horizon; h != nil {
		p["gm.horizon"] = meter.Time(h.FromLog) + " " + meter.Time(h.ToLog)
	}
	return p
}
