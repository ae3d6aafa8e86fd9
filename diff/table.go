package diff

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// TableOptions say how a report looks to a person.
type TableOptions struct {
	// MaxRows is how many differing rows are shown; 0 is 50, negative is all.
	MaxRows int
	// Columns is how wide prose may be; 0, or more than a table takes, is 80.
	Columns int
}

// tableWidth is the most that a line takes.
const tableWidth = 80

// WriteTable writes the report for people: at most 80 columns, rows in order, causes below their row, text from outside
// escaped.
func (r *Report) WriteTable(w io.Writer, opt TableOptions) error {
	t := table{r: r, w: bufio.NewWriter(w), prose: opt.Columns}
	t.line("%s", fit(printable(r.Left)+" against "+printable(r.Right), tableWidth))
	shown := len(r.Differences)
	if limit := opt.MaxRows; limit >= 0 {
		if limit == 0 {
			limit = 50
		}
		shown = min(shown, limit)
	}
	if shown > 0 {
		t.line("")
		t.columns("  window end", fit(padLeft("left", 11)+padLeft("right", 11), 22), "requests", "left - right")
	}
	for i := range r.Differences[:shown] {
		if i == 0 || r.Differences[i].Account != r.Differences[i-1].Account {
			t.line("%s", fit(printable(r.Differences[i].Account), tableWidth))
		}
		t.difference(&r.Differences[i])
	}
	if more := len(r.Differences) - shown; more > 0 {
		t.wrap("", fmt.Sprintf("... and %s (all of them with --format json)", plural(int64(more), "more row")))
	}
	t.findings()
	t.causes()
	t.verdict()
	return t.w.Flush()
}

type table struct {
	r     *Report
	w     *bufio.Writer
	prose int // width of prose; 0 or more than tableWidth: that
}

// line writes one line; a failed write shows at the last flush.
func (t *table) line(format string, args ...any) {
	t.w.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// columns are the four of the table: 27, 22, 10 and 21 wide. An amount that is wider has a line to itself.
func (t *table) columns(a, b, c, d string) {
	line := pad(a, 27) + pad(b, 22+27-max(27, width(a))) + padLeft(c, 10)
	if width(d) > 20 {
		t.line("%s", line)
		t.line("%s", padLeft(d, tableWidth))
		return
	}
	t.line("%s%s", line, padLeft(d, 21))
}

func (t *table) difference(d *Difference) {
	both := padLeft(t.stated(d.Left), 11) + padLeft(t.stated(d.Right), 11)
	t.columns("  "+timeText(d.WindowEnd), both, t.requests(&d.Delta), t.money(&d.Delta))
	if d.State == Incomplete {
		t.wrap("    ", "incomplete: it may miss log positions that were lost")
	}
	if d.Delta.isZero() && d.State == Mismatched {
		t.wrap("    ", "the sums agree, what they are made of does not")
	}
	t.quantities("    ", &d.Delta)
	for i := range d.Shares {
		t.share(&d.Shares[i])
	}
}

// stated is the number of requests of a side.
func (t *table) stated(v *Value) string {
	switch {
	case v == nil:
		return "none"
	case !t.r.HasRequests:
		return ""
	}
	return fmt.Sprint(v.Requests)
}

func (t *table) share(s *Share) {
	t.columns(pad("    "+s.Cause.String(), 29), pad(idsText(s), 20), t.requests(&s.Value), t.money(&s.Value))
	t.quantities("        ", &s.Value)
	for _, why := range s.Why {
		t.wrap("        ", printable(why))
	}
}

// idsText names the first record and how many more there are; of a range of the log, the range.
func idsText(s *Share) string {
	switch {
	case len(s.IDs) == 1:
		return fit(refText(s.IDs[0]), 20)
	case len(s.IDs) > 1:
		more := fmt.Sprintf(" +%d", len(s.IDs)-1)
		return fit(refText(s.IDs[0]), 20-len(more)) + more
	case len(s.Log) > 0:
		return fit(printable(s.Log[0]), 20)
	}
	return ""
}

// refText is a reference for people: its parts with a slash between them.
func refText(id meter.ID) string {
	parts := id.Parts()
	for i := range parts {
		parts[i] = printable(parts[i])
	}
	return strings.Join(parts, "/")
}

func (t *table) requests(v *Value) string {
	if !t.r.HasRequests {
		return ""
	}
	return fmt.Sprintf("%+d", v.Requests)
}

func (t *table) money(v *Value) string {
	if !t.r.HasMoney {
		return ""
	}
	return signed(v.Pico)
}

func signed(v meter.Int128) string {
	if v.Sign() > 0 {
		return "+" + v.Dollars()
	}
	return v.Dollars()
}

// quantities lists those that differ, but for a count that says the same as the requests.
func (t *table) quantities(indent string, v *Value) {
	var words []string
	for i, q := range v.Quantities {
		if q != 0 && t.r.HasQuantity[i] && !(t.r.HasRequests && len(v.Quantities) == 1 && q == v.Requests) {
			words = append(words, fmt.Sprintf("%+d %s", q, printable(t.r.Quantities[i])))
		}
	}
	if len(words) > 0 {
		t.wrap(indent, strings.Join(words, ", "))
	}
}

// wrap writes words in lines that are no wider than prose is to be.
func (t *table) wrap(indent, text string) {
	room, widest := tableWidth-width(indent), tableWidth-width(indent)
	if t.prose > 0 && t.prose < tableWidth {
		room = max(10, t.prose-width(indent))
	}
	line := ""
	for _, word := range strings.Fields(text) {
		word = fit(word, widest)
		if line != "" && width(line)+1+width(word) > room {
			t.line("%s%s", indent, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		t.line("%s%s", indent, line)
	}
}

func (t *table) findings() {
	if len(t.r.Findings) == 0 {
		return
	}
	t.line("")
	for _, f := range t.r.Findings {
		t.line("%s", fit(strings.TrimSpace(f.Cause.String()+" "+printable(strings.Join(f.Log, " "))), tableWidth))
		t.wrap("      ", printable(f.Text))
	}
}

func (t *table) causes() {
	s := &t.r.Summary
	if len(s.Causes) == 0 {
		return
	}
	t.line("")
	t.columns("cause", "", "requests", "left - right")
	for i := range s.Causes {
		if c := &s.Causes[i]; c.Cause != Unexplained {
			t.columns(c.Cause.String(), "", t.requests(&c.Value), t.money(&c.Value))
		}
	}
	rest := Share{Cause: Unexplained, Value: Value{Quantities: make([]int64, len(t.r.Quantities))}}
	if last := s.Causes[len(s.Causes)-1]; last.Cause == Unexplained {
		rest = last
	}
	t.columns(Unexplained.String(), plural(int64(s.Unexplained), "row"), t.requests(&rest.Value), t.money(&rest.Value))
	t.columns("total", "", t.requests(&s.Delta), t.money(&s.Delta))
}

// verdict is the closing paragraph: it says what was not compared even if that is nothing.
func (t *table) verdict() {
	r, s := t.r, &t.r.Summary
	t.line("")
	t.wrap("", fmt.Sprintf("%s compared: %d matched, %d mismatched, %d missing on the left, %d extra on the left, %d incomplete. "+
		"%d open (not final yet, not judged). %s not compared%s.", plural(s.Compared, "row"), s.Matched, s.Mismatched, s.Missing, s.Extra,
		s.Incomplete, s.Open, plural(s.NotCompared, "row"), t.whyNot()))
	if names := r.notCompared(); len(names) > 0 {
		t.wrap("", "Only one side states, and so was not compared: "+printable(strings.Join(names, ", "))+".")
	}
	if len(r.Valued) > 0 {
		t.wrap("", "Not in the partner's log and taken from our own record of each event: "+printable(strings.Join(r.Valued, ", "))+".")
	}
	if r.HasMoney {
		t.wrap("", fmt.Sprintf("left %s, right %s, left - right %s", s.Left.Pico.Dollars(), s.Right.Pico.Dollars(), signed(s.Delta.Pico)))
	}
	switch {
	case r.Agree() && len(r.Differences)+len(r.Findings) == 0 && s.Compared == 0:
		t.wrap("", "Nothing was judged: no row could be compared.")
	case r.Agree() && len(r.Differences)+len(r.Findings) == 0:
		t.wrap("", "The two sides agree.")
	case r.Agree():
		t.wrap("", "The two sides agree but for what was lost and allowed to be (--allow-lost).")
	case s.Unexplained == 0:
		t.wrap("", "The two sides differ. Every difference is explained.")
	default:
		t.wrap("", fmt.Sprintf("The two sides differ, and %s not explained.", pluralVerb(int64(s.Unexplained), "row", "is", "are")))
	}
}

// whyNot says what rows were not compared.
func (t *table) whyNot() string {
	if t.r.Summary.NotCompared == 0 {
		return ""
	}
	return " (accounts that the partner's log does not name)"
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func pluralVerb(n int64, noun, one, many string) string {
	if n == 1 {
		return plural(n, noun) + " " + one
	}
	return plural(n, noun) + " " + many
}
