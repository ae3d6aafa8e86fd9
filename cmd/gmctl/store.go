package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
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
	provenance, err := u.provenance(job, s, f.engine)
	if err != nil {
		return "", err
	}
	provenance[madeKey], provenance[watermarksKey] = meter.Time(time.Now().UnixMilli()), watermarkWords(res.Watermarks)
	aside := fmt.Sprintf("%s.%d.aside", path, os.Getpid())
	if err := u.engine().Store(ctx, aside, u.Meter, res.Rows, provenance); err != nil {
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

// The provenance of a stored recompute. What is in it besides madeKey and watermarksKey has to be equal for one
// recompute to stand for another.
const (
	madeKey       = "gm.made"
	watermarksKey = "gm.watermarks"
)

// provenance says what the rows were made of, so that a reader knows whether they are what it looks for.
func (u *audit) provenance(job *batch.Job, s scope, engine string) (map[string]string, error) {
	version, err := programVersion()
	if err != nil {
		return nil, err
	}
	p := map[string]string{
		"gm.meter": u.Name, "gm.fingerprint": u.Fingerprint, "gm.version": version, "gm.truth": string(job.Truth), "gm.engine": engine,
		"gm.topic": u.topic, "gm.from": stamp(s.from), "gm.to": stamp(s.to), "gm.account": s.account,
	}
	var cards, ranges []string
	for _, use := range u.prices {
		word := use.Card.Revision
		if use.List != nil {
			word += "+" + use.List.Revision
		}
		if use.From > meter.MinusInfinity {
			word += fmt.Sprintf("@%d", use.From)
		}
		cards = append(cards, fmt.Sprintf("%s@%d", word, use.From))
	}
	for i, part := range job.Parts {
		end := u.parts[i].Next()
		if part.End != batch.Everything {
			end = part.End
		}
		ranges = append(ranges, fmt.Sprintf("%d@%d-%d reach=%d drained=%v", part.Partition, part.Begin, end, part.MaxReach, part.Drained))
	}
	p["gm.rate_cards"], p["gm.ranges"] = strings.Join(cards, " "), strings.Join(ranges, "; ")
	if h := job.Horizon; h != nil {
		p["gm.horizon"] = meter.Time(h.FromLog) + " " + meter.Time(h.ToLog)
	}
	if p["gm.files"], err = u.filesSum(job); err != nil {
		return nil, err
	}
	text, err := batch.Texts(job)
	if err != nil {
		return nil, err
	}
	p["gm.sql"] = sumOf(text.Tally, text.Last, text.Cells)
	return p, nil
}

// programVersion is the version of this program with the revision of its source; of a program that was not built from one,
// the size and time of its file, so that a change of it is another version.
func programVersion() (string, error) {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		revision = revisionOf(info)
	}
	if revision != "" && !strings.HasSuffix(revision, "+changes") {
		return release + " " + revision, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s, program of %d bytes of %d", release, revision, info.Size(), info.ModTime().UnixNano()), nil
}

// filesSum stands for the archive's files that a job reads: their names, ranges, the hash chain through their footers, and
// size and time of change on disk. It reads no row: that the bytes are those of the chain is for 'gmctl archive verify'.
func (u *audit) filesSum(job *batch.Job) (string, error) {
	known := map[string]*archive.File{}
	for _, p := range u.parts {
		for _, f := range p.Files {
			known[filepath.Join(u.dir, filepath.FromSlash(f.Name))] = f
		}
	}
	h := sha256.New()
	for _, file := range job.Files {
		f := known[file.Path]
		info, err := os.Stat(file.Path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d [%d,%d) %d %s %q %s %d %d\n", f.Name, file.Partition, f.First, f.Next, f.Rows, f.SHA256, f.PrevName, f.PrevSHA256,
			info.Size(), info.ModTime().UnixNano())
	}
	return fmt.Sprintf("%d files, sha256 %x", len(job.Files), h.Sum(nil)), nil
}

func sumOf(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d\n%s", len(t), t)
	}
	return hex.EncodeToString(h.Sum(nil))
}
