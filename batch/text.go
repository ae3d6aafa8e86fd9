package batch

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// The relations that the SQL expects to find by name. An engine makes them before it runs the text.
const (
	// Archive has the archive columns, path column part included; rows outside the job's parts are left out.
	Archive = "archive"
	// TallyTable holds what [Text.Tally] selects.
	TallyTable = "tally"
	// WantedRows (account, window_end) and WantedIDs (id_hash, id_1..) hold what an ItemFilter asks for.
	WantedRows, WantedIDs = "wanted_rows", "wanted_ids"
)

// Text is the SQL of a job.
type Text struct {
	// Tally counts records by bucket. It goes first: the other two read its result under the name TallyTable.
	Tally string
	// Last selects part, drained, w_last, w_end and records of every partition of the job (R4).
	Last string
	// Cells and Items are the statements of the truth. Items is empty unless asked for.
	Cells, Items string
}

var (
	//go:embed tally.sql
	tallySQL string
	//go:embed last.sql
	lastSQL string
	//go:embed log.sql
	logSQL string
	//go:embed streamed_requests.sql
	streamedRequestsSQL string
	//go:embed streamed_events.sql
	streamedEventsSQL string
	//go:embed complete_requests.sql
	completeRequestsSQL string
	//go:embed complete_events.sql
	completeEventsSQL string
	//go:embed cells.sql
	cellsSQL string
	//go:embed items.sql
	itemsSQL string
)

// Texts fills the job's meter into the SQL: the statements that compute rows and summary.
func Texts(job *Job) (Text, error) { return texts(job, nil) }

// ItemTexts is Texts with the statement that lists verdicts.
func ItemTexts(job *Job, filter ItemFilter) (Text, error) { return texts(job, &filter) }

func texts(job *Job, filter *ItemFilter) (Text, error) {
	if err := job.Check(); err != nil {
		return Text{}, err
	}
	f := filler{job: job, m: job.Meter, filter: filter}
	var t Text
	t.Tally = f.fill("tally.sql", tallySQL)
	t.Last = f.fill("last.sql", lastSQL)
	f.last = t.Last
	f.log = f.fill("log.sql", logSQL)
	truth := f.fill(f.truth())
	t.Cells = truth + "\n" + f.fill("cells.sql", cellsSQL)
	if filter != nil {
		t.Items = truth + "\n" + f.fill("items.sql", itemsSQL)
	}
	return t, f.err
}

// A filler holds what the placeholders of the SQL stand for.
type filler struct {
	job       *Job
	m         *meter.Meter
	filter    *ItemFilter // nil where no items are asked for
	last, log string
	err       error
}

func (f *filler) truth() (name, text string) {
	switch {
	case f.job.Truth == AsStreamed && f.m.Kind == meter.Requests:
		return "streamed_requests.sql", streamedRequestsSQL
	case f.job.Truth == AsStreamed:
		return "streamed_events.sql", streamedEventsSQL
	case f.m.Kind == meter.Requests:
		return "complete_requests.sql", completeRequestsSQL
	}
	return "complete_events.sql", completeEventsSQL
}

func (f *filler) fill(name, text string) string {
	var b strings.Builder
	t, err := template.New(name).Funcs(f.placeholders()).Parse(strings.TrimRight(text, "\n"))
	if err == nil {
		err = t.Execute(&b, nil)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("batch: fill %s: %w", name, err)
	}
	return b.String()
}

// placeholders are the words between {{ and }}. In a pattern # stands for the number of a column from 1 on and $ for its quoted name.
func (f *filler) placeholders() template.FuncMap {
	number := func(v int64) func() string { return func() string { return strconv.FormatInt(v, 10) } }
	text := func(s *string) func() string { return func() string { return *s } }
	always := func(meter.Quantity) bool { return true }
	onStart := func(q meter.Quantity) bool { return !q.OnEnd }
	onEnd := func(q meter.Quantity) bool { return q.OnEnd }
	zero := ", 0 AS q#"
	return template.FuncMap{
		"A": number(f.m.AbandonAfter), "B": number(f.m.Watermark.MaxOutOfOrderness), "L": number(f.m.Window.AllowedLateness),
		"never": number(meter.MinusInfinity), "forever": number(meter.PlusInfinity),
		"last": text(&f.last), "log": text(&f.log), "parts": f.parts,
		"records": f.records,
		"ids":     f.ids, "same": f.same, "keyed": f.keyed,
		"windowEnd":  f.windowEnd,
		"all":        func(p string) string { return f.quantities(p, "", always) },
		"starts":     func(p string) string { return f.quantities(p, "", onStart) },
		"ends":       func(p string) string { return f.quantities(p, "", onEnd) },
		"ofStart":    func(p string) string { return f.quantities(p, zero, onStart) },
		"ofEnd":      func(p string) string { return f.quantities(p, zero, onEnd) },
		"attributes": f.attributes,
		"references": f.references,
		"abandoned":  f.abandoned,
		"filter":     f.filters,
		"tier":       f.tier,
		"tiers":      func() bool { return f.tier("") != "0" },
		"wanted":     f.wanted,
		"usual":      func() string { return UsualManner(f.m) },
		"chosen":     f.chosen,
		"progress":   f.progress,
		"onlyIDs":    f.onlyIDs,
		"streamed":   func() bool { return f.job.Truth == AsStreamed },
	}
}

// UsualManner is the manner in which nearly all counted requests come about; cells.sql leaves it out.
func UsualManner(m *meter.Meter) string {
	if m.Kind == meter.Events {
		return "alone"
	}
	return "ended"
}

// windowEnd is end(t) of R5, right below zero too and without a division.
func (f *filler) windowEnd(t string) string {
	z := f.m.Window.Size
	return fmt.Sprintf("(%[1]s - mod(mod(%[1]s, %[2]d) + %[2]d, %[2]d) + %[2]d)", t, z)
}

// parts is the partitions of the job as a relation.
func (f *filler) parts() string {
	if len(f.job.Parts) == 0 {
		return "SELECT CAST(0 AS INTEGER) AS part, 0 AS drained, CAST(0 AS BIGINT) AS max_reach WHERE 1 = 0"
	}
	rows := make([]string, len(f.job.Parts))
	for i, p := range f.job.Parts {
		drained := 0
		if p.Drained {
			drained = 1
		}
		rows[i] = fmt.Sprintf("SELECT CAST(%d AS INTEGER) AS part, %d AS drained, CAST(%d AS BIGINT) AS max_reach", p.Partition, drained, p.MaxReach)
	}
	return strings.Join(rows, " UNION ALL ")
}

// records is the archive, less what an audit horizon leaves out: that does not exist, for watermarks neither (R15).
func (f *filler) records() string {
	if f.job.Horizon == nil {
		return Archive
	}
	return fmt.Sprintf("(SELECT * FROM %s WHERE log_time IS NULL OR log_time BETWEEN %d AND %d) AS a", Archive, f.job.Horizon.FromLog, f.job.Horizon.ToLog)
}

func (f *filler) idParts() int {
	if f.m.Event.Identity == nil {
		return 2 // R3: partition and offset
	}
	return len(f.m.Event.Identity)
}

// ids lists the id columns behind a prefix such as "l.".
func (f *filler) ids(prefix string) string {
	list := make([]string, f.idParts())
	for i := range list {
		list[i] = prefix + "id_" + strconv.Itoa(i+1)
	}
	return strings.Join(list, ", ")
}

// same compares the ids of two relations part by part (R3).
func (f *filler) same(a, b string) string {
	list := make([]string, f.idParts())
	for i := range list {
		list[i] = fmt.Sprintf("%s.id_%d = %s.id_%d", a, i+1, b, i+1)
	}
	return strings.Join(list, " AND ")
}

// keyed is false where every record is its own id (R3).
func (f *filler) keyed() string {
	if f.m.Event.Identity == nil {
		return "1 = 0"
	}
	return "1 = 1"
}

// quantities repeats pattern for every quantity that keep keeps, and other for the others, in the meter's order.
func (f *filler) quantities(pattern, other string, keep func(meter.Quantity) bool) string {
	var b strings.Builder
	for i, q := range f.m.Event.Quantities {
		p := other
		if keep(q) {
			p = pattern
		}
		b.WriteString(expand(p, i+1, quoteName(q.Name)))
	}
	return b.String()
}

// attributes repeats pattern for every attribute that a filter looks at.
func (f *filler) attributes(pattern string) string {
	var b strings.Builder
	for i, a := range f.m.Event.Attributes {
		if f.filtered(i) {
			b.WriteString(expand(pattern, i+1, quoteName("attr_"+a.Name)))
		}
	}
	return b.String()
}

func (f *filler) filtered(attribute int) bool {
	for _, x := range f.m.Filters {
		if x.Field == meter.FilterAttribute && x.Index == attribute {
			return true
		}
	}
	return false
}

// references repeats pattern for every part of the reference; only items carry it.
func (f *filler) references(pattern string) string {
	var b strings.Builder
	if f.filter != nil {
		for i := range f.m.Event.Reference {
			b.WriteString(expand(pattern, i+1, "ref_"+strconv.Itoa(i+1)))
		}
	}
	return b.String()
}

func expand(pattern string, number int, name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(pattern, "#", strconv.Itoa(number)), "$", name)
}

// abandoned is the quantities of an abandoned request (R7): those of its start v, and of each end quantity what its progress p told; a
// whole is at least the sum of its parts.
func (f *filler) abandoned(v, p string) string {
	var b strings.Builder
	for i, q := range f.m.Event.Quantities {
		value := fmt.Sprintf("%s.q%d", v, i+1)
		if q.OnEnd {
			value = fmt.Sprintf("coalesce(%s.q%d, 0)", p, i+1)
			if sum := f.partsOf(i, p); sum != "" {
				value = fmt.Sprintf("greatest(%s, %s)", value, sum)
			}
		}
		fmt.Fprintf(&b, ", %s AS b%d", value, i+1)
	}
	return b.String()
}

func (f *filler) partsOf(whole int, p string) string {
	var parts []string
	for i, q := range f.m.Event.Quantities {
		if q.PartOf == whole {
			parts = append(parts, fmt.Sprintf("coalesce(%s.q%d, 0)", p, i+1))
		}
	}
	return strings.Join(parts, " + ")
}

// tier is the number of thresholds that the tier quantity exceeds (R9). quantity is the prefix of its column.
func (f *filler) tier(quantity string) string {
	if f.m.Event.TierOn < 0 || len(f.m.Event.TierAbove) == 0 {
		return "0"
	}
	steps := make([]string, len(f.m.Event.TierAbove))
	for i, above := range f.m.Event.TierAbove {
		steps[i] = fmt.Sprintf("CASE WHEN %s%d > %d THEN 1 ELSE 0 END", quantity, f.m.Event.TierOn+1, above)
	}
	return strings.Join(steps, " + ")
}

// filters is the name of the first filter that matches, or null (R9). status is an expression, quantity the prefix of the columns.
func (f *filler) filters(status, quantity string) string {
	if len(f.m.Filters) == 0 {
		return "CAST(NULL AS VARCHAR)"
	}
	var b strings.Builder
	b.WriteString("CASE")
	for i := range f.m.Filters {
		x := &f.m.Filters[i]
		fmt.Fprintf(&b, " WHEN %s THEN %s", f.match(x, status, quantity), quoteText(x.Name))
	}
	b.WriteString(" END")
	return b.String()
}

func (f *filler) match(x *meter.Filter, status, quantity string) string {
	switch x.Field {
	case meter.FilterQuantity:
		return matchNumber(x, fmt.Sprintf("%s%d", quantity, x.Index+1))
	case meter.FilterAttribute:
		return matchText(x, fmt.Sprintf("a%d", x.Index+1))
	case meter.FilterAccount:
		return matchText(x, "account")
	case meter.FilterSKU:
		return matchText(x, "sku")
	}
	return matchText(x, status)
}

func matchNumber(x *meter.Filter, column string) string {
	switch x.Op {
	case meter.OpAbove:
		return fmt.Sprintf("%s > %d", column, x.Ints[0])
	case meter.OpBelow:
		return fmt.Sprintf("%s < %d", column, x.Ints[0])
	}
	list := make([]string, len(x.Ints))
	for i, v := range x.Ints {
		list[i] = strconv.FormatInt(v, 10)
	}
	return fmt.Sprintf("%s IN (%s)", column, strings.Join(list, ", "))
}

// matchText compares a text; a missing one is null and matches nothing. A value that no record's text can be (R2) matches nothing.
func matchText(x *meter.Filter, column string) string {
	var list []string
	for _, v := range x.Values {
		if strings.ContainsRune(v, 0) || !utf8.ValidString(v) {
			continue
		}
		if x.Op == meter.OpPrefix {
			list = append(list, fmt.Sprintf("substr(%s, 1, %d) = %s", column, utf8.RuneCountInString(v), quoteText(v)))
			continue
		}
		list = append(list, fmt.Sprintf("%s = %s", column, quoteText(v)))
	}
	if len(list) == 0 {
		return "1 = 0"
	}
	return "(" + strings.Join(list, " OR ") + ")"
}

// wanted says which counted records are in the rows that the job asks for.
func (f *filler) wanted() string {
	list := []string{"1 = 1"}
	if f.job.From != nil {
		list = append(list, fmt.Sprintf("window_end > %d", *f.job.From))
	}
	if f.job.To != nil {
		list = append(list, fmt.Sprintf("window_end <= %d", *f.job.To))
	}
	if f.job.Account != "" {
		list = append(list, "account = "+quoteText(f.job.Account))
	}
	return strings.Join(list, " AND ")
}

// chosen says which items the filter and the job ask for.
func (f *filler) chosen() string {
	list := []string{"1 = 1"}
	if f.job.From != nil {
		list = append(list, fmt.Sprintf("v.window_end > %d", *f.job.From))
	}
	if f.job.To != nil {
		list = append(list, fmt.Sprintf("v.window_end <= %d", *f.job.To))
	}
	if f.job.Account != "" {
		list = append(list, "(v.account IS NULL OR v.account = "+quoteText(f.job.Account)+")")
	}
	if f.filter.Rows != nil {
		list = append(list, "CASE WHEN v.account IS NULL THEN EXISTS (SELECT 1 FROM "+WantedRows+" AS w WHERE w.window_end = v.window_end) "+
			"ELSE EXISTS (SELECT 1 FROM "+WantedRows+" AS w WHERE w.window_end = v.window_end AND w.account = v.account) END")
	}
	if f.filter.IDs != nil {
		list = append(list, "EXISTS (SELECT 1 FROM "+WantedIDs+" AS w WHERE "+f.same("w", "v")+")")
	}
	if len(f.filter.Verdicts) > 0 {
		words := make([]string, len(f.filter.Verdicts))
		for i, v := range f.filter.Verdicts {
			words[i] = quoteText(v.String())
		}
		list = append(list, "v.verdict IN ("+strings.Join(words, ", ")+")")
	}
	return strings.Join(list, " AND ")
}

// onlyIDs leaves other ids out at once where items of few are asked for: an id's verdicts depend on its own records and on watermarks.
func (f *filler) onlyIDs() string {
	if f.filter == nil || f.filter.IDs == nil {
		return ""
	}
	return " AND id_hash IN (SELECT id_hash FROM " + WantedIDs + ")"
}

func (f *filler) progress() bool {
	if f.filter.Progress {
		return true
	}
	for _, v := range f.filter.Verdicts {
		if v == meter.VerdictProgress {
			return true
		}
	}
	return false
}

// quoteText is a literal. It has no escapes but the doubled quote, so it means the same wherever backslashes are plain.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
