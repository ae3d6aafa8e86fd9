package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// maxFaults bounds how many faults of a kind are named.
const maxFaults = 20

// Audit holds the ledger against itself (R11): the journal is numbered without a gap, every firing of a row states what its delta and
// those before it come to, the kinds and revisions of a row follow each other as they are published, the last firing states what was
// published, and a row's state, revision and prices are those of its firings and of g, the merge's watermark; what is not billed is
// there record for record (R14). It returns what is wrong, a line each.
//
// The journal is read once, in its order, and the rows once: to sort, join and sum them in SQL takes twice as long.
func (r *Reader) Audit(ctx context.Context, g int64) ([]string, error) {
	a := journalAudit{quantities: len(r.About.Quantities), lateness: r.About.Lateness, g: g, words: plainjson.Words{}, places: map[rowName]int32{}}
	if err := a.readJournal(ctx, r.tx); err != nil {
		return nil, r.failed("the journal", err)
	}
	if err := a.readRows(ctx, r.tx); err != nil {
		return nil, r.failed("rows against the journal", err)
	}
	unbilled, err := r.auditUnbilled(ctx)
	return append(a.faults(), unbilled...), err
}

// A journalAudit is one pass over the journal, then one over the rows.
type journalAudit struct {
	quantities  int
	lateness, g int64 // ms
	words       plainjson.Words
	seq         int64    // of the firing before
	gaps        []string // what is wrong with the numbers
	places      map[rowName]int32
	journals    []rowJournal
	values      []int64 // of each journal: the quantities that it states, then the sums of their deltas
	wrong       []rowFault
}

type rowName struct {
	account, version string
	end              int64
}

// A rowJournal is what the firings of a row say. Requests and hashes add up modulo 2^64.
type rowJournal struct {
	name                rowName
	last, revision      int64 // of the last firing
	finals, corrections int32
	found               bool   // there is such a row
	broken              int64  // the first firing that states another total than the deltas up to it come to; 0 is none
	misplaced           int64  // the first firing whose kind or revision cannot follow the one before; 0 is none
	card, list          string // of the final firing and what came after it: revisions
	repriced            int64  // the first firing after the final one that has other prices; 0 is none
	requests, requested int64  // what the last one states, and the sum of the deltas
	hash, hashed        uint64
	total, totaled      meter.Int128
}

// A rowFault is a row, its last firing, and what is wrong.
type rowFault struct {
	name rowName
	last int64
	what string
}

// readJournal reads the firings. What it scans into is used again for each: there are several for every row of a bill.
func (a *journalAudit) readJournal(ctx context.Context, q querier) error {
	var seq, revision, requests, requested int64
	var kind, card, list string
	var name rowName
	var hash, hashed uint64
	var total, totaled meter.Int128
	stated, deltas := make([]int64, a.quantities), make([]int64, a.quantities)
	to := []any{&seq, &kind, &revision, &name.account, &name.end, &name.version, &requests, scanAll{stated}, scanHash{&hash}, scanAmount{&total},
		&requested, scanAll{deltas}, scanHash{&hashed}, scanAmount{&totaled}, &card, &list}
	return each(ctx, q, `SELECT seq, kind, revision, account, window_end, version, requests, quantities, set_hash, total,
		delta_requests, delta_quantities, delta_set_hash, delta, card, list FROM gm_firing ORDER BY seq`, nil, func(scan func(...any) error) error {
		if err := scan(to...); err != nil {
			return fmt.Errorf("after seq %d: %w", a.seq, err)
		}
		a.number(seq)
		j, lastStated, sums := a.journal(name)
		if j.misplaced == 0 && !j.mayFollow(kind, revision) {
			j.misplaced = seq
		}
		j.last, j.revision = seq, revision
		switch kind {
		case meter.FinalFiring.String():
			j.finals++
			j.card, j.list = a.words.Get(card), a.words.Get(list)
		case meter.CorrectionFiring.String():
			j.corrections++
		}
		if j.repriced == 0 && j.finals > 0 && (card != j.card || list != j.list) {
			j.repriced = seq
		}
		j.requests, j.hash, j.total = requests, hash, total
		copy(lastStated, stated)
		j.requested, j.hashed, j.totaled = j.requested+requested, j.hashed+hashed, j.totaled.Add(totaled)
		for i, d := range deltas {
			sums[i] += d
		}
		if j.broken == 0 && (requests != j.requested || hash != j.hashed || total != j.totaled || !slices.Equal(stated, sums)) {
			j.broken = seq
		}
		return nil
	})
}

// mayFollow reports whether a firing of this kind and revision can come after those that were read (R11).
func (j *rowJournal) mayFollow(kind string, revision int64) bool {
	switch kind {
	case meter.MainFiring.String():
		return j.last == 0 && revision == 1
	case meter.CorrectionFiring.String():
		return j.last != 0 && j.finals == 0 && revision == j.revision+1
	case meter.FinalFiring.String():
		return j.finals == 0 && revision == j.revision+1
	case meter.AdjustmentFiring.String():
		return j.finals > 0 && revision == j.revision
	}
	return false
}

// number checks that the journal counts up from 1.
func (a *journalAudit) number(seq int64) {
	if seq != a.seq+1 && len(a.gaps) < maxFaults {
		what := fmt.Sprintf("the journal has no seq %d", a.seq+1)
		if a.seq == 0 {
			what = fmt.Sprintf("the journal begins at seq %d", seq)
		}
		a.gaps = append(a.gaps, what)
	}
	a.seq = seq
}

// journal is what is known of a row: its quantities as stated, and the sums of their deltas.
func (a *journalAudit) journal(name rowName) (j *rowJournal, stated, deltas []int64) {
	place, ok := a.places[name]
	if !ok {
		name.account, name.version = a.words.Get(name.account), a.words.Get(name.version)
		place = int32(len(a.journals))
		a.places[name] = place
		a.journals = append(a.journals, rowJournal{name: name})
		a.values = append(a.values, make([]int64, 2*a.quantities)...)
	}
	return a.at(place)
}

func (a *journalAudit) at(place int32) (j *rowJournal, stated, deltas []int64) {
	own := a.values[int(place)*2*a.quantities:][:2*a.quantities]
	return &a.journals[place], own[:a.quantities], own[a.quantities:]
}

// A publishedRow is a row as it stands, and what it says was published of it.
type publishedRow struct {
	name               rowName
	state              string
	revision           int64
	live               bool
	requests, before   int64
	quantities, listed []int64
	hash, hashed       uint64
	amount, adjustment meter.Int128
	overflow           sql.NullString
	published          meter.Int128
	card, list         string
}

func (a *journalAudit) readRows(ctx context.Context, q querier) error {
	r := publishedRow{quantities: make([]int64, a.quantities), listed: make([]int64, a.quantities)}
	to := []any{&r.name.account, &r.name.end, &r.name.version, &r.revision, &r.state, &r.live, &r.requests, scanAll{r.quantities}, scanHash{&r.hash},
		scanAmount{&r.amount}, scanAmount{&r.adjustment}, &r.overflow, &r.before, scanAll{r.listed}, scanHash{&r.hashed}, scanAmount{&r.published},
		&r.card, &r.list}
	return each(ctx, q, `SELECT account, window_end, version, revision, state, live, requests, quantities, set_hash, amount, adjustment, overflow,
		published_requests, published_quantities, published_set_hash, published, card, list FROM gm_row`, nil, func(scan func(...any) error) error {
		if err := scan(to...); err != nil {
			return err
		}
		last := int64(0)
		what := ""
		if place, spoken := a.places[r.name]; spoken {
			j, stated, sums := a.at(place)
			j.found, last = true, j.last
			what = a.row(&r, j, stated, sums)
		} else {
			what = unspoken(&r)
		}
		if what != "" {
			a.wrong = append(a.wrong, rowFault{r.name, last, what})
		}
		return nil
	})
}

// row holds a row against its journal: what is wrong, or "".
func (a *journalAudit) row(r *publishedRow, j *rowJournal, stated, sums []int64) string {
	total := r.amount.Add(r.adjustment)
	switch {
	case j.requested != r.before:
		return "the journal's deltas do not sum to the requests that were published"
	case !slices.Equal(sums, r.listed):
		return "the journal's deltas do not sum to the quantities that were published"
	case j.totaled != r.published:
		return "the journal's deltas do not sum to the amount that was published"
	case j.hashed != r.hashed:
		return "the journal's deltas do not sum to the set_hash that was published"
	case j.total != r.published || j.requests != r.before || j.hash != r.hashed || !slices.Equal(stated, r.listed):
		return "its last firing states another total than was published"
	case j.broken != 0:
		return fmt.Sprintf("its firing %d states another total than the deltas up to it come to", j.broken)
	case j.revision != r.revision:
		return "its revision is not that of its firings"
	case j.state() != r.state:
		return "its state is not that of its firings"
	case j.misplaced != 0:
		return fmt.Sprintf("its firing %d is of a kind or revision that cannot follow the one before", j.misplaced)
	case j.repriced != 0:
		return fmt.Sprintf("its firing %d has other prices than its final row", j.repriced)
	case j.finals > 0 && (j.card != r.card || j.list != r.list):
		return fmt.Sprintf("it is priced by card %q and list %q, its final firing by %q and %q", r.card, r.list, j.card, j.list)
	case r.revision != 0 && (r.state == meter.Final.String()) != (r.name.end+a.lateness <= a.g):
		return "its state is not that of the watermark"
	case !r.live && (r.requests != r.before || r.hash != r.hashed || total != r.published || !slices.Equal(r.quantities, r.listed)):
		return "nothing of it waits to be published, and it is not what was published"
	case r.overflow.Valid && r.overflow.String != total.String():
		return "its total as text is not its amount and its adjustment"
	}
	return ""
}

// state is that of a row with these firings.
func (j *rowJournal) state() string {
	switch {
	case j.finals == 1:
		return meter.Final.String()
	case j.finals > 1:
		return "final twice"
	case j.corrections > 0:
		return meter.Corrected.String()
	}
	return meter.Main.String()
}

// unspoken judges a row that the journal has nothing of.
func unspoken(r *publishedRow) string {
	switch {
	case r.revision != 0:
		return "it says that it was published, and the journal has nothing of it"
	case r.state != meter.Running.String():
		return fmt.Sprintf("its state is %q, and it was never published", r.state)
	}
	return ""
}

// faults is what was found, the rows in order.
func (a *journalAudit) faults() []string {
	for i := range a.journals {
		if j := &a.journals[i]; !j.found {
			a.wrong = append(a.wrong, rowFault{j.name, j.last, "the journal speaks of it, and there is no such row"})
		}
	}
	slices.SortFunc(a.wrong, func(x, y rowFault) int {
		return cmp.Or(cmp.Compare(x.name.account, y.name.account), cmp.Compare(x.name.end, y.name.end), cmp.Compare(x.name.version, y.name.version))
	})
	faults := a.gaps
	for _, f := range a.wrong[:min(len(a.wrong), maxFaults)] {
		upTo := ""
		if f.last != 0 {
			upTo = fmt.Sprintf(", journal up to seq %d", f.last)
		}
		faults = append(faults, fmt.Sprintf("row %q %s%s: %s", f.name.account, meter.Time(f.name.end), upTo, f.what))
	}
	return faults
}
