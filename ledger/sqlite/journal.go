package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// maxFaults bounds how many faults of a kind are named.
const maxFaults = 20

// Audit holds the ledger against itself (R11): the journal is numbered without a gap, every firing of a row states what its delta and
// those before it come to, the last one states what was published, and a row's state and revision are those of its firings and
// of g, the merge's watermark. It returns what is wrong, a line each.
//
// The journal is read once, in its order, and the rows once: to sort, join and sum them in SQL takes three times as long.
func (r *Reader) Audit(ctx context.Context, g int64) ([]string, error) {
	n := len(r.About.Quantities)
	a := journalAudit{quantities: n, lateness: r.About.Lateness, g: g, words: plainjson.Words{}, places: map[rowName]int32{}, own: make([]int64, n), before: make([]int64, n)}
	err := r.raw(ctx, `SELECT seq, kind, revision, account, window_end, version, requests, quantities, set_hash, total,
		delta_requests, delta_quantities, delta_set_hash, delta FROM gm_firing ORDER BY seq`, a.firing)
	if err != nil {
		return nil, r.failed("the journal", err)
	}
	err = r.raw(ctx, `SELECT account, window_end, version, revision, state, live, requests, quantities, set_hash, amount, adjustment, overflow,
		published_requests, published_quantities, published_set_hash, published FROM gm_row`, a.row)
	if err != nil {
		return nil, r.failed("rows against the journal", err)
	}
	return a.faults(), nil
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
	own, before []int64 // quantities of the row at hand: its own, and those that it says were published
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
	found               bool  // there is such a row
	broken              int64 // the first firing that states another total than the deltas up to it come to; 0 is none
	requests, requested int64 // what the last one states, and the sum of the deltas
	hash, hashed        uint64
	total, totaled      meter.Int128
}

// A rowFault is a row, its last firing, and what is wrong.
type rowFault struct {
	name rowName
	last int64
	what string
}

func (a *journalAudit) firing(v *values) error {
	seq, kind, revision := v.whole(), v.text(), v.whole()
	j, stated, deltas := a.journal(rowName{account: v.text(), end: v.whole(), version: v.text()})
	j.last, j.revision = seq, revision
	a.number(seq)
	switch kind {
	case meter.FinalFiring.String():
		j.finals++
	case meter.CorrectionFiring.String():
		j.corrections++
	}
	j.requests = v.whole()
	v.ints(stated)
	j.hash, j.total = uint64(v.whole()), v.amount()
	j.requested += v.whole()
	v.addInts(deltas)
	j.hashed += uint64(v.whole())
	j.totaled = j.totaled.Add(v.amount())
	if j.broken == 0 && (j.requests != j.requested || j.hash != j.hashed || j.total != j.totaled || !slices.Equal(stated, deltas)) {
		j.broken = seq
	}
	return v.failed("firing %d", seq)
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
	own := a.values[int(place)*2*a.quantities:][:2*a.quantities]
	return &a.journals[place], own[:a.quantities], own[a.quantities:]
}

func (a *journalAudit) row(v *values) error {
	name := rowName{account: v.text(), end: v.whole(), version: v.text()}
	revision, state, live := v.whole(), v.text(), v.whole() == 1
	requests := v.whole()
	v.ints(a.own)
	hash, amount, adjustment := v.whole(), v.amount(), v.amount()
	if overflow := v.optional(); overflow != "" {
		total, err := meter.ParseInt128(overflow)
		v.note(err)
		amount, adjustment = total, meter.Int128{}
	}
	was := rowJournal{requests: v.whole()}
	v.ints(a.before)
	was.hash, was.total = uint64(v.whole()), v.amount()
	if err := v.failed("row %q %s", name.account, meter.Time(name.end)); err != nil {
		return err
	}
	if _, spoken := a.places[name]; !spoken {
		a.unspoken(name, revision, state)
		return nil
	}
	j, stated, deltas := a.journal(name)
	j.found = true
	what := ""
	switch {
	case j.requested != was.requests:
		what = "the journal's deltas do not sum to the requests that were published"
	case !slices.Equal(deltas, a.before):
		what = "the journal's deltas do not sum to the quantities that were published"
	case j.totaled != was.total:
		what = "the journal's deltas do not sum to the amount that was published"
	case j.hashed != was.hash:
		what = "the journal's deltas do not sum to the set_hash that was published"
	case j.total != was.total || j.requests != was.requests || j.hash != was.hash || !slices.Equal(stated, a.before):
		what = "its last firing states another total than was published"
	case j.broken != 0:
		what = fmt.Sprintf("its firing %d states another total than the deltas up to it come to", j.broken)
	case j.revision != revision:
		what = "its revision is not that of its firings"
	case state != j.state():
		what = "its state is not that of its firings"
	case revision != 0 && (state == meter.Final.String()) != (name.end+a.lateness <= a.g):
		what = "its state is not that of the watermark"
	case !live && (requests != was.requests || uint64(hash) != was.hash || amount.Add(adjustment) != was.total || !slices.Equal(a.own, a.before)):
		what = "nothing of it waits to be published, and it is not what was published"
	default:
		return nil
	}
	a.wrong = append(a.wrong, rowFault{name, j.last, what})
	return nil
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
func (a *journalAudit) unspoken(name rowName, revision int64, state string) {
	switch {
	case revision != 0:
		a.wrong = append(a.wrong, rowFault{name, 0, "it says that it was published, and the journal has nothing of it"})
	case state != meter.Running.String():
		a.wrong = append(a.wrong, rowFault{name, 0, fmt.Sprintf("its state is %q, and it was never published", state)})
	}
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
