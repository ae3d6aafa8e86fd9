package diff

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// WriteText tells a life to a person: every record with its position and the watermark it met, what the rules make of
// it, what it costs, and where it stands. At most 80 columns; text from outside is escaped.
func (l *Life) WriteText(w io.Writer, columns int) error {
	t := table{w: bufio.NewWriter(w), prose: columns}
	t.wrap("", refText(l.ID)+" in "+printable(l.Meter))
	settings := fmt.Sprintf("windows of %s, lateness %s, out-of-orderness %s", span(l.WindowSize), span(l.Lateness), span(l.MaxOutOfOrderness))
	if l.AbandonAfter > 0 {
		settings += ", abandoned after " + span(l.AbandonAfter)
	}
	t.wrap("", settings)
	t.line("")
	if len(l.Records) == 0 {
		t.line("No record of it is in the log.")
	}
	for _, c := range l.chapters() {
		l.writeChapter(&t, c)
	}
	l.writeEndings(&t, "As streamed, by window end:", l.AsStreamed)
	if l.Complete != nil {
		l.writeEndings(&t, "Complete (nothing is late, nothing forgotten), by window end:", l.Complete)
	}
	l.writeRows(&t, "Ledger, by window end:", l.Ledger)
	l.writeRows(&t, "Recompute, by window end:", l.Recompute)
	return t.w.Flush()
}

// metText is the watermark that a record met; the first of a partition meets none. That of a dead letter may not be known.
func metText(r *LifeRecord) string {
	switch {
	case r.Watermark > meter.MinusInfinity/2:
		return ", met watermark " + watermarkText(r.Watermark)
	case r.Admitted():
		return ", met no watermark yet"
	}
	return ""
}

func (l *Life) writeChapter(t *table, c chapter) {
	r := c.record
	kind := r.Kind.String()
	if kind == "" {
		kind = "record"
	}
	logTime := ""
	if r.HasLogTime {
		logTime = ", logged " + timeText(r.LogTime)
	}
	when := ""
	if r.Admitted() {
		when = " of " + timeText(r.Time)
	}
	t.wrap("", printable(c.log)+" "+kind+when+logTime+metText(r))
	var words []string
	for _, w := range []string{r.Account, r.SKU, r.Status} {
		if w != "" {
			words = append(words, printable(w))
		}
	}
	for i, q := range l.Quantities {
		if r.Present&(1<<i) != 0 {
			words = append(words, fmt.Sprintf("%s=%d", printable(q.Name), quantityAt(r.Quantities, i)))
		}
	}
	t.wrap("    ", strings.Join(words, " "))
	verdict := c.why
	if c.verdict != "" {
		verdict = c.verdict + " (" + c.rule + "): " + c.why
	}
	t.wrap("    ", printable(verdict))
}

func (l *Life) writeEndings(t *table, title string, items []meter.Item) {
	t.line("")
	t.line("%s", title)
	if len(items) == 0 {
		t.line("  nothing")
	}
	for _, e := range l.endings(items) {
		it := e.item
		t.wrap("  ", fmt.Sprintf("%s %s %s %s%s", it.Verdict, orDash(it.Account), timeText(it.WindowEnd), orDash(it.SKU), tierText(it.Tier)))
		t.wrap("    ", printable(strings.Join(e.log, " ")))
		t.wrap("    ", l.usageWords(it.Usage.Requests, it.Usage.Quantities))
		for _, p := range e.lines {
			price := "no price"
			if p.priced {
				price = fmt.Sprintf("%s (%s) = %s", meter.From64(p.rate.Pico).Dollars(), p.rate.Source, meter.Mul64(p.billed, p.rate.Pico).Dollars())
			}
			t.wrap("    ", fmt.Sprintf("%d %s x %s", p.billed, printable(p.quantity), price))
		}
		t.line("    %s", e.amount.Dollars())
	}
}

func (l *Life) writeRows(t *table, title string, rows []meter.Row) {
	t.line("")
	t.line("%s", title)
	if len(rows) == 0 {
		t.line("  no row")
	}
	for i := range rows {
		r := &rows[i]
		t.wrap("  ", fmt.Sprintf("%s %s %s revision %d %s %s %s", printable(r.Account), timeText(r.WindowEnd), r.State, r.Revision,
			l.usageWords(r.Usage.Requests, r.Usage.Quantities), r.Total().Dollars(), r.Source))
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

func tierText(tier int32) string {
	if tier == 0 {
		return ""
	}
	return " tier " + strconv.Itoa(int(tier))
}

// WriteJSON writes a life as one object on one line: id, meter, records, as_streamed, complete, ledger, recompute.
// A watermark before the first admitted record, or after draining, is null.
func (l *Life) WriteJSON(w io.Writer) error {
	j := lifeJSON{l: l, jsonWriter: jsonWriter{r: &Report{}}}
	j.raw(`{"id":`)
	j.list(l.ID.Parts())
	j.raw(`,"meter":`)
	j.text(l.Meter)
	j.raw(`,"records":[`)
	for i, c := range l.chapters() {
		j.comma(i)
		j.chapter(c)
	}
	j.raw("]")
	j.endings(`,"as_streamed":[`, l.AsStreamed)
	if l.Complete != nil {
		j.endings(`,"complete":[`, l.Complete)
	}
	j.rows(`,"ledger":[`, l.Ledger)
	j.rows(`,"recompute":[`, l.Recompute)
	j.raw("}\n")
	_, err := w.Write(j.b)
	return err
}

type lifeJSON struct {
	jsonWriter
	l *Life
}

func (j *lifeJSON) comma(i int) {
	if i > 0 {
		j.raw(",")
	}
}

func (j *lifeJSON) number(key string, n int64) {
	j.key(key)
	j.b = strconv.AppendInt(j.b, n, 10)
}

func (j *lifeJSON) word(key, s string) {
	j.key(key)
	j.text(s)
}

// watermark is a time, or null for an infinity.
func (j *lifeJSON) watermark(key string, w int64) {
	j.key(key)
	if w >= meter.PlusInfinity/2 || w <= meter.MinusInfinity/2 {
		j.raw("null")
		return
	}
	j.text(timeText(w))
}

func (j *lifeJSON) quantitiesOf(q []int64, present uint64) {
	j.key("quantities")
	j.raw("{")
	for i, name := range j.l.Quantities {
		if present&(1<<i) != 0 {
			j.number(name.Name, quantityAt(q, i))
		}
	}
	j.raw("}")
}

func (j *lifeJSON) chapter(c chapter) {
	r := c.record
	j.raw("{")
	j.word("log", c.log)
	j.word("bucket", r.Bucket.String())
	if r.Reason != meter.ReasonNone {
		j.word("reason", r.Reason.String())
	}
	if r.Kind != meter.KindNone {
		j.word("kind", r.Kind.String())
	}
	if r.Admitted() {
		j.word("time", timeText(r.Time))
	}
	if r.HasLogTime {
		j.word("log_time", timeText(r.LogTime))
	}
	j.watermark("watermark", r.Watermark)
	for _, f := range [][2]string{{"account", r.Account}, {"sku", r.SKU}, {"status", r.Status}} {
		if f[1] != "" {
			j.word(f[0], f[1])
		}
	}
	j.quantitiesOf(r.Quantities, r.Present)
	j.word("verdict", c.verdict)
	j.word("rule", c.rule)
	j.word("why", c.why)
	j.raw("}")
}

func (j *lifeJSON) endings(key string, items []meter.Item) {
	j.raw(key)
	for i, e := range j.l.endings(items) {
		j.comma(i)
		j.ending(e)
	}
	j.raw("]")
}

func (j *lifeJSON) ending(e ending) {
	it := e.item
	j.raw("{")
	j.word("verdict", it.Verdict.String())
	if it.Filter != "" {
		j.word("filter", it.Filter)
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"abandoned", it.Abandoned}, {"superseded", it.Superseded}, {"door", it.Door}} {
		if f.on {
			j.key(f.name)
			j.raw("true")
		}
	}
	j.key("log")
	j.list(e.log)
	j.word("account", it.Account)
	j.word("window_end", timeText(it.WindowEnd))
	j.word("sku", it.SKU)
	j.number("tier", int64(it.Tier))
	j.word("time", timeText(it.Time))
	j.word("status", it.Status)
	j.watermark("judged", it.Judged)
	j.number("requests", it.Usage.Requests)
	j.quantitiesOf(it.Usage.Quantities, ^uint64(0))
	j.word("amount_usd", e.amount.USD())
	j.key("prices")
	j.raw("[")
	for i, p := range e.lines {
		j.comma(i)
		j.raw("{")
		j.word("quantity", p.quantity)
		j.number("billed", p.billed)
		if p.priced {
			j.word("usd_per_unit", meter.Pico(p.rate.Pico).USD())
			j.word("price_source", p.rate.Source)
		} else {
			j.word("price_source", meter.PriceUnpriced)
		}
		j.raw("}")
	}
	j.raw("]")
	j.word("why", e.why)
	j.raw("}")
}

func (j *lifeJSON) rows(key string, rows []meter.Row) {
	j.raw(key)
	for i := range rows {
		r := &rows[i]
		j.comma(i)
		j.raw("{")
		j.word("account", r.Account)
		j.word("window_end", timeText(r.WindowEnd))
		j.word("state", r.State.String())
		j.number("revision", r.Revision)
		j.number("requests", r.Usage.Requests)
		j.quantitiesOf(r.Usage.Quantities, ^uint64(0))
		j.word("total_usd", r.Total().USD())
		j.word("price_source", r.Source)
		j.word("set_hash", fmt.Sprintf("%016x", r.Usage.SetHash))
		j.raw("}")
	}
	j.raw("]")
}
