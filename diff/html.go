package diff

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

//go:embed html.tmpl
var htmlText string

var htmlPage = template.Must(template.New("report").Parse(htmlText))

// HTMLOptions say what stands in the report beside the comparison.
type HTMLOptions struct {
	// MaxRows is how many differing rows are listed; 0 is 1000, negative is all. Sums and pictures are of all.
	MaxRows int
	// Facts are the provenance: names and values, in order.
	Facts [][2]string
}

// WriteHTML writes the report as one page that needs nothing else: no script, no font, no server. Text from outside is
// escaped and isolated from the direction of the text around it.
func (r *Report) WriteHTML(w io.Writer, opt HTMLOptions) error {
	return htmlPage.Execute(w, newPage(r, opt))
}

// A page is what the template shows; every number is text already.
type page struct {
	Left, Right, Verdict, Class string
	Money                       bool
	Sums                        [][2]string
	Counts                      [][2]string
	Causes                      []pageCause
	Time                        *timeline
	Accounts                    []pageAccount
	MoreAccounts                int
	Rows                        []pageRow
	MoreRows                    int
	Findings                    []pageFinding
	NotCompared, Valued         string
	Facts                       [][2]string
}

type pageCause struct {
	Name, Requests, Money, Meaning, Advice string
	Bar                                    int64 // per mille of the greatest
	Down, Bad                              bool
}

type pageAccount struct {
	Account, Rows, Requests, Money string
}

type pageRow struct {
	Account, Window, State, Left, Right, Requests, Money, Note string
	Shares                                                     []pageShare
}

type pageShare struct {
	Cause, Requests, Money, IDs, Log, Why string
	Bad                                   bool
}

type pageFinding struct{ Cause, Text, Log string }

func newPage(r *Report, opt HTMLOptions) *page {
	p := &page{Left: printable(r.Left), Right: printable(r.Right), Money: r.HasMoney, Facts: opt.Facts,
		NotCompared: printable(strings.Join(r.notCompared(), ", ")), Valued: printable(strings.Join(r.Valued, ", "))}
	p.Verdict, p.Class = r.verdictText()
	t := table{r: r} // the words of a value are those of the table
	s := &r.Summary
	if r.HasMoney {
		p.Sums = append(p.Sums, [2]string{"left", s.Left.Pico.Dollars()}, [2]string{"right", s.Right.Pico.Dollars()}, [2]string{"left − right", signed(s.Delta.Pico)})
	}
	if r.HasRequests {
		p.Sums = append(p.Sums, [2]string{"requests, left − right", fmt.Sprintf("%+d", s.Delta.Requests)})
	}
	for _, c := range []struct {
		name string
		n    int64
	}{{"rows compared", s.Compared}, {"matched", s.Matched}, {"mismatched", s.Mismatched}, {"missing on the left", s.Missing},
		{"extra on the left", s.Extra}, {"incomplete", s.Incomplete}, {"open, not judged", s.Open}, {"not compared", s.NotCompared}} {
		p.Counts = append(p.Counts, [2]string{c.name, fmt.Sprint(c.n)})
	}
	p.causes(&t)
	p.Time = newTimeline(r)
	p.accounts(&t)
	limit := len(r.Differences)
	switch {
	case opt.MaxRows == 0:
		limit = min(limit, 1000)
	case opt.MaxRows > 0:
		limit = min(limit, opt.MaxRows)
	}
	for i := range r.Differences[:limit] {
		p.Rows = append(p.Rows, newPageRow(&t, &r.Differences[i]))
	}
	p.MoreRows = len(r.Differences) - limit
	for _, f := range r.Findings {
		p.Findings = append(p.Findings, pageFinding{f.Cause.String(), printable(f.Text), some(f.Log)})
	}
	return p
}

// verdictText is the outcome in words, and its class: good, known or bad.
func (r *Report) verdictText() (text, class string) {
	s := &r.Summary
	switch {
	case r.Agree() && len(r.Differences)+len(r.Findings) == 0 && s.Compared == 0:
		return "Nothing was judged: no row could be compared.", "known"
	case r.Agree() && len(r.Differences)+len(r.Findings) == 0:
		return "The two sides agree.", "good"
	case r.Agree():
		return "The two sides agree but for what was lost and allowed to be.", "known"
	case s.Unexplained == 0:
		return "The two sides differ. Every difference is explained.", "known"
	}
	return fmt.Sprintf("The two sides differ, and %s not explained.", pluralVerb(int64(s.Unexplained), "row", "is", "are")), "bad"
}

// causes has a bar a cause, as long as its money or, without money, its requests.
func (p *page) causes(t *table) {
	shares := t.r.Summary.Causes
	size := func(s *Share) *big.Int { return magnitude(t.r, &s.Value) }
	most := big.NewInt(1)
	for i := range shares {
		if n := size(&shares[i]); n.CmpAbs(most) > 0 {
			most = n
		}
	}
	for i := range shares {
		s := &shares[i]
		n := size(s)
		p.Causes = append(p.Causes, pageCause{Name: s.Cause.String(), Requests: t.requests(&s.Value), Money: t.money(&s.Value),
			Meaning: s.Cause.Meaning(), Advice: s.Cause.Advice(), Bar: ratio(n, most, 1000), Down: n.Sign() < 0, Bad: s.Cause == Unexplained})
	}
}

// magnitude is what pictures draw of a value: money where it is compared, else requests.
func magnitude(r *Report, v *Value) *big.Int {
	if !r.HasMoney {
		return big.NewInt(v.Requests)
	}
	n, ok := new(big.Int).SetString(v.Pico.String(), 10)
	if !ok {
		return new(big.Int) // cannot be: an Int128 prints as a number
	}
	return n
}

// ratio is |n| / |of| in parts of scale, one at least where n is not zero: a small difference stays visible.
func ratio(n, of *big.Int, scale int64) int64 {
	if n.Sign() == 0 || of.Sign() == 0 {
		return 0
	}
	q := new(big.Int).Mul(new(big.Int).Abs(n), big.NewInt(scale))
	return max(q.Quo(q, new(big.Int).Abs(of)).Int64(), 1)
}

// topAccounts is how many accounts the report names.
const topAccounts = 20

// accounts are those that differ most, by money or requests.
func (p *page) accounts(t *table) {
	type sum struct {
		account string
		rows    int64
		value   Value
	}
	var all []sum
	for i := range t.r.Differences { // ordered by account
		d := &t.r.Differences[i]
		if n := len(all); n > 0 && all[n-1].account == d.Account {
			all[n-1].rows, all[n-1].value = all[n-1].rows+1, all[n-1].value.plus(d.Delta)
			continue
		}
		all = append(all, sum{d.Account, 1, d.Delta})
	}
	slices.SortStableFunc(all, func(a, b sum) int { return magnitude(t.r, &b.value).CmpAbs(magnitude(t.r, &a.value)) })
	for i := range all[:min(len(all), topAccounts)] {
		a := &all[i]
		p.Accounts = append(p.Accounts, pageAccount{printable(a.account), fmt.Sprint(a.rows), t.requests(&a.value), t.money(&a.value)})
	}
	p.MoreAccounts = max(len(all)-topAccounts, 0)
}

func newPageRow(t *table, d *Difference) pageRow {
	row := pageRow{Account: printable(d.Account), Window: timeText(d.WindowEnd), State: d.State.String(), Left: sideText(t, d.Left), Right: sideText(t, d.Right),
		Requests: t.requests(&d.Delta), Money: t.money(&d.Delta)}
	if d.Delta.isZero() && d.State == Mismatched {
		row.Note = "the sums agree, what they are made of does not"
	}
	for i := range d.Shares {
		s := &d.Shares[i]
		ids := make([]string, len(s.IDs))
		for j, id := range s.IDs {
			ids[j] = refText(id)
		}
		why := make([]string, len(s.Why))
		for j := range s.Why {
			why[j] = printable(s.Why[j])
		}
		row.Shares = append(row.Shares, pageShare{Cause: s.Cause.String(), Requests: t.requests(&s.Value), Money: t.money(&s.Value),
			IDs: some(ids), Log: some(s.Log), Why: strings.Join(why, " "), Bad: s.Cause == Unexplained})
	}
	return row
}

// sideText is what one side states of a row.
func sideText(t *table, v *Value) string {
	if v == nil {
		return "none"
	}
	var words []string
	if t.r.HasRequests {
		words = append(words, fmt.Sprint(v.Requests))
	}
	if t.r.HasMoney {
		words = append(words, v.Pico.Dollars())
	}
	return strings.Join(words, " · ")
}

// some are the first words of a list and how many more there are.
func some(words []string) string {
	const most = 12
	var b strings.Builder
	for i, word := range words[:min(len(words), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(printable(word))
	}
	if more := len(words) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// A timeline is the picture of when the sides differ: one bar a stretch of time, up where the left has more.
type timeline struct {
	Bars               []timeBar
	From, To, Most     string
	Stretch            string // what one bar stands for
	Width, Height, Mid int64
}

type timeBar struct {
	X, Y, W, H int64
	Down       bool
	Title      string
}

// newTimeline is nil where fewer than two windows differ.
func newTimeline(r *Report) *timeline {
	if len(r.Differences) == 0 {
		return nil
	}
	ends := make([]int64, len(r.Differences))
	for i := range r.Differences {
		ends[i] = r.Differences[i].WindowEnd
	}
	slices.Sort(ends)
	if ends = slices.Compact(ends); len(ends) == 1 {
		return nil
	}
	first, last := ends[0], ends[len(ends)-1]
	gap := last - first // no bar is narrower than a window
	for i := range ends[1:] {
		gap = min(gap, ends[i+1]-ends[i])
	}
	const bars = 96
	stretch := timeStretch(max(gap, (last-first)/bars+1))
	begin := first - floorMod(first, stretch)
	n := (last-begin)/stretch + 1
	up, down := make([]Value, n), make([]Value, n)
	for i := range up {
		up[i].Quantities, down[i].Quantities = make([]int64, len(r.Quantities)), make([]int64, len(r.Quantities))
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		at := (d.WindowEnd - begin) / stretch
		if magnitude(r, &d.Delta).Sign() < 0 {
			down[at] = down[at].plus(d.Delta)
		} else {
			up[at] = up[at].plus(d.Delta)
		}
	}
	most := big.NewInt(1)
	for i := range up {
		for _, v := range []*Value{&up[i], &down[i]} {
			if m := magnitude(r, v); m.CmpAbs(most) > 0 {
				most = m
			}
		}
	}
	t := &timeline{From: timeText(first), To: timeText(last), Width: 960, Height: 200, Mid: 100, Stretch: spanText(stretch), Most: amountText(r, most)}
	w := t.Width / n
	for i := range up {
		x, when := int64(i)*w, timeText(begin+int64(i)*stretch)
		for _, v := range []*Value{&up[i], &down[i]} {
			m := magnitude(r, v)
			h := ratio(m, most, t.Mid-6)
			if h == 0 {
				continue
			}
			bar := timeBar{X: x, Y: t.Mid - h, W: max(w-1, 1), H: h, Down: m.Sign() < 0, Title: when + ": " + amountText(r, m)}
			if bar.Down {
				bar.Y = t.Mid
			}
			t.Bars = append(t.Bars, bar)
		}
	}
	return t
}

// amountText is a magnitude in words, with its sign.
func amountText(r *Report, n *big.Int) string {
	if !r.HasMoney {
		return fmt.Sprintf("%+d requests", n)
	}
	v, err := meter.ParseInt128(n.String())
	if err != nil {
		return n.String() // cannot be: it came from one
	}
	return signed(v)
}

// timeStretch is the least length of time that people count in and that holds ms.
func timeStretch(ms int64) int64 {
	for _, step := range []int64{1_000, 10_000, 60_000, 300_000, 900_000, 3_600_000, 4 * 3_600_000, 24 * 3_600_000} {
		if ms <= step {
			return step
		}
	}
	const day = 24 * 3_600_000
	return (ms + day - 1) / day * day
}

func spanText(ms int64) string {
	switch {
	case ms%(24*3_600_000) == 0:
		return plural(ms/(24*3_600_000), "day")
	case ms%3_600_000 == 0:
		return plural(ms/3_600_000, "hour")
	case ms%60_000 == 0:
		return plural(ms/60_000, "minute")
	}
	return plural(ms/1_000, "second")
}

func floorMod(a, b int64) int64 { return (a%b + b) % b }
