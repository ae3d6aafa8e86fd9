package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Diff takes the rows of a stored recompute instead of running it again where nothing can differ (DESIGN section 9): the same
// program and SQL, meter, prices, truth, log positions and archive files, and a file that is as it was written.

// errUnfit says why a stored recompute is not the one that is looked for.
type errUnfit struct{ why string }

func (e errUnfit) Error() string { return e.why }

// storedOrRun is the result of a job: of the stored recompute if it is that of the job, and when that was made; else it is
// run, and said why.
func (a *app) storedOrRun(ctx context.Context, u *audit, job *batch.Job, s scope) (res *batch.Result, made string, err error) {
	path := u.storedPath(s)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		res, made, err := u.stored(ctx, path, job, s)
		if err == nil {
			return res, made, nil
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		a.note("%s is not used, the recompute is run again: %s", clean(path), clean(err.Error()))
	}
	res, err = u.recompute(ctx, job, "duckdb")
	return res, "", err
}

// stored reads a stored recompute of a job, and when it was made; an error says why it is none.
func (u *audit) stored(ctx context.Context, path string, job *batch.Job, s scope) (*batch.Result, string, error) {
	want, err := u.provenance(job, s, "duckdb")
	if err != nil {
		return nil, "", err
	}
	rows, provenance, err := u.engine().Load(ctx, path, u.Meter, func(p map[string]string) error { return unfit(p, want) })
	switch {
	case errors.Is(err, duckdb.ErrSeal):
		return nil, "", errUnfit{"it was changed after it was written ('gmctl recompute' writes it anew)"}
	case err != nil:
		return nil, "", err
	}
	res := &batch.Result{Rows: rows}
	if res.Watermarks, err = parseWatermarks(provenance[watermarksKey]); err != nil {
		return nil, "", errUnfit{"its watermarks cannot be read"}
	}
	return res, provenance[madeKey], u.priceStored(job, res.Rows)
}

// reasons are the keys of a provenance in the order in which they are compared, with what it means if one differs.
var reasons = []struct{ key, why string }{
	{"gm.version", "another version of gmctl made it"},
	{"gm.engine", "another engine made it"},
	{"gm.meter", "it was made under another meter"},
	{"gm.fingerprint", "it was made under another meter"},
	{"gm.topic", "it is of another topic"},
	{"gm.truth", "it is of another truth"},
	{"gm.from", "it is of a part of the log"},
	{"gm.to", "it is of a part of the log"},
	{"gm.account", "it is of one account"},
	{"gm.horizon", "it has another audit horizon"},
	{"gm.rate_cards", "it was made with other prices"},
	{"gm.ranges", "the log positions to compare, or whether the log ends there, are others now"},
	{"gm.files", "the files of the archive are not those that it was made of"},
	{"gm.sql", "it was made by other SQL"},
}

// unfit compares provenances: nil if the recompute of one is that of the other.
func unfit(got, want map[string]string) error {
	for _, r := range reasons {
		if got[r.key] != want[r.key] {
			return errUnfit{r.why}
		}
	}
	for key := range got {
		known := key == madeKey || key == watermarksKey
		if !known && !slices.ContainsFunc(reasons, func(r struct{ key, why string }) bool { return r.key == key }) {
			return errUnfit{"its provenance has more to say than this gmctl knows: " + key}
		}
	}
	return nil
}

// priceStored gives the cells their prices, as a recompute does, and wants what was stored to come out.
func (u *audit) priceStored(job *batch.Job, rows []meter.Row) error {
	pricer := batch.NewPricer(u.Meter, job.Card, job.List)
	said := make([]meter.Row, len(rows))
	for i := range rows {
		said[i] = rows[i]
		row, err := pricer.Row(rows[i].RowKey, rows[i].Cells)
		if err != nil {
			return err
		}
		row.State = rows[i].State
		rows[i] = row
	}
	if err := u.reprice(rows); err != nil {
		return err
	}
	for i := range rows {
		r, s := &rows[i], &said[i]
		if r.Amount != s.Amount || r.Source != s.Source || r.Unpriced != s.Unpriced || r.Usage.Requests != s.Usage.Requests ||
			r.Usage.SetHash != s.Usage.SetHash || !slices.Equal(r.Usage.Quantities, s.Usage.Quantities) {
			return errUnfit{"its rows are not what their cells cost"}
		}
	}
	return nil
}

// watermarkWords are the last watermarks of partitions as text.
func watermarkWords(marks map[int32]int64) string {
	var words []string
	for p, w := range marks {
		words = append(words, fmt.Sprintf("%d=%d", p, w))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func parseWatermarks(text string) (map[int32]int64, error) {
	marks := map[int32]int64{}
	for _, word := range strings.Fields(text) {
		p, w, _ := strings.Cut(word, "=")
		partition, err := strconv.ParseInt(p, 10, 32)
		mark, err2 := strconv.ParseInt(w, 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		marks[int32(partition)] = mark
	}
	return marks, nil
}
