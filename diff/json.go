package diff

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// WriteJSON writes one object a differing row and then the summary, each on a line, as CLI.md has them. A column that
// is not compared is left out of deltas; one that a side does not state is left out of that side. Beside what CLI.md
// names there are "why" (words, in a cause), "findings", "not_compared", "columns_not_compared", "valued" and, where
// no row could be compared, "nothing_judged".
// All text is exact; what a terminal could take for a command is written as an escape.
func (r *Report) WriteJSON(w io.Writer) error {
	buf := bufio.NewWriter(w)
	j := jsonWriter{r: r}
	for i := range r.Differences {
		j.b = j.b[:0]
		j.difference(&r.Differences[i])
		if _, err := buf.Write(append(j.b, '\n')); err != nil {
			return err
		}
	}
	j.b = j.b[:0]
	j.summary()
	if _, err := buf.Write(append(j.b, '\n')); err != nil {
		return err
	}
	return buf.Flush()
}

// A jsonWriter appends to b. It knows no floats and no maps, so order and digits are ours.
type jsonWriter struct {
	r *Report
	b []byte
}

func (j *jsonWriter) difference(d *Difference) {
	j.raw(`{"account":`)
	j.text(d.Account)
	j.raw(`,"window_end":`)
	j.text(timeText(d.WindowEnd))
	j.raw(`,"state":`)
	j.text(d.State.String())
	for side, v := range []*Value{d.Left, d.Right} {
		j.raw([]string{`,"left":`, `,"right":`}[side])
		j.side(side, v)
	}
	j.raw(`,"delta":{`)
	j.delta(&d.Delta, `"total_usd"`)
	j.raw(`},"causes":[`)
	for i := range d.Shares {
		if i > 0 {
			j.raw(",")
		}
		j.share(&d.Shares[i])
	}
	j.raw("]}")
}

// side is what one side states of a row; null if it has none.
func (j *jsonWriter) side(side int, v *Value) {
	if v == nil {
		j.raw("null")
		return
	}
	stated := &j.r.States[side]
	j.raw("{")
	if stated.Requests {
		j.member(`"requests"`)
		j.b = strconv.AppendInt(j.b, v.Requests, 10)
	}
	j.quantities(v.Quantities, stated.Quantities)
	if stated.Money {
		j.member(`"total_usd"`)
		j.text(v.Pico.USD())
	}
	if stated.SetHash {
		j.member(`"set_hash"`)
		j.text(fmt.Sprintf("%016x", v.SetHash))
	}
	j.raw("}")
}

// delta is what is compared of a difference.
func (j *jsonWriter) delta(v *Value, money string) {
	if j.r.HasRequests {
		j.member(`"requests"`)
		j.b = strconv.AppendInt(j.b, v.Requests, 10)
	}
	j.quantities(v.Quantities, j.r.HasQuantity)
	if j.r.HasMoney {
		j.member(money)
		j.text(v.Pico.USD())
	}
}

func (j *jsonWriter) quantities(q []int64, on []bool) {
	first := true
	for i, name := range j.r.Quantities {
		if !on[i] {
			continue
		}
		if first {
			j.member(`"quantities"`)
			j.raw("{")
			first = false
		}
		j.key(name)
		j.b = strconv.AppendInt(j.b, q[i], 10)
	}
	if !first {
		j.raw("}")
	}
}

func (j *jsonWriter) share(s *Share) {
	j.raw(`{"cause":`)
	j.text(s.Cause.String())
	j.delta(&s.Value, `"delta_usd"`)
	j.raw(`,"ids":[`)
	for i, id := range s.IDs {
		if i > 0 {
			j.raw(",")
		}
		j.list(id.Parts())
	}
	j.raw(`],"log":`)
	j.list(s.Log)
	if len(s.Why) > 0 {
		j.raw(`,"why":`)
		j.list(s.Why)
	}
	j.raw("}")
}

func (j *jsonWriter) summary() {
	r, s := j.r, &j.r.Summary
	j.raw(`{"summary":{"left":`)
	j.text(r.Left)
	j.raw(`,"right":`)
	j.text(r.Right)
	for _, n := range []struct {
		name  string
		count int64
	}{{"compared", s.Compared}, {"matched", s.Matched}, {"mismatched", s.Mismatched}, {"missing", s.Missing}, {"extra", s.Extra},
		{"open", s.Open}, {"incomplete", s.Incomplete}, {"not_compared", s.NotCompared}} {
		j.key(n.name)
		j.b = strconv.AppendInt(j.b, n.count, 10)
	}
	for side, v := range []*Value{&s.Left, &s.Right} {
		if r.States[side].Money {
			j.key([]string{"left_usd", "right_usd"}[side])
			j.text(v.Pico.USD())
		}
	}
	j.total()
	j.raw(`,"causes":{`)
	for i := range s.Causes {
		c := &s.Causes[i]
		j.key(c.Cause.String())
		j.raw("{")
		j.delta(&c.Value, `"delta_usd"`)
		j.raw("}")
	}
	j.raw("}")
	var unexplained meter.Int128
	for i := range s.Causes {
		if s.Causes[i].Cause == Unexplained {
			unexplained = s.Causes[i].Pico
		}
	}
	j.raw(`,"unexplained_usd":`)
	j.text(unexplained.USD())
	j.raw(`,"unexplained_rows":`)
	j.b = strconv.AppendInt(j.b, int64(s.Unexplained), 10)
	if names := r.notCompared(); len(names) > 0 {
		j.raw(`,"columns_not_compared":`)
		j.list(names)
	}
	if len(r.Valued) > 0 {
		j.raw(`,"valued":`)
		j.list(r.Valued)
	}
	if len(r.Findings) > 0 {
		j.findings()
	}
	if s.Compared == 0 && len(r.Differences)+len(r.Findings) == 0 {
		j.raw(`,"nothing_judged":true`)
	}
	j.raw("}}")
}

// total is the difference of all that was compared.
func (j *jsonWriter) total() {
	s := &j.r.Summary
	if j.r.HasMoney {
		j.key("delta_usd")
		j.text(s.Delta.Pico.USD())
	}
	j.raw(`,"delta":{`)
	j.delta(&s.Delta, `"total_usd"`)
	j.raw("}")
}

func (j *jsonWriter) findings() {
	j.raw(`,"findings":[`)
	for i, f := range j.r.Findings {
		if i > 0 {
			j.raw(",")
		}
		j.raw(`{"cause":`)
		j.text(f.Cause.String())
		j.raw(`,"why":`)
		j.text(f.Text)
		j.raw(`,"log":`)
		j.list(f.Log)
		j.raw("}")
	}
	j.raw("]")
}

// notCompared are the columns that only one side states.
func (r *Report) notCompared() []string {
	var names []string
	note := func(on bool, name string, left, right bool) {
		if !on && (left || right) {
			names = append(names, name)
		}
	}
	l, rt := &r.States[0], &r.States[1]
	note(r.HasRequests, "requests", l.Requests, rt.Requests)
	for i, q := range r.Quantities {
		note(r.HasQuantity[i], q, l.Quantities[i], rt.Quantities[i])
	}
	note(r.HasMoney, "total_usd", l.Money, rt.Money)
	return names
}

func (j *jsonWriter) raw(s string) { j.b = append(j.b, s...) }

// member appends a key that is not the first of its object, or is.
func (j *jsonWriter) member(quoted string) {
	if n := len(j.b); j.b[n-1] != '{' {
		j.b = append(j.b, ',')
	}
	j.raw(quoted)
	j.raw(":")
}

func (j *jsonWriter) key(name string) {
	if n := len(j.b); j.b[n-1] != '{' {
		j.b = append(j.b, ',')
	}
	j.text(name)
	j.raw(":")
}

func (j *jsonWriter) list(texts []string) {
	j.raw("[")
	for i, s := range texts {
		if i > 0 {
			j.raw(",")
		}
		j.text(s)
	}
	j.raw("]")
}

func (j *jsonWriter) text(s string) { j.b = appendJSONText(j.b, s) }

// appendJSONText appends s as a JSON string. Whatever is not plainly visible is an escape: so the line is exact for a
// parser and harmless on a terminal.
func appendJSONText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == ' ' || r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.IsSpace(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			r -= 0x10000
			b = append(b, fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)...)
		default:
			b = append(b, fmt.Sprintf(`\u%04x`, r)...)
		}
	}
	return append(b, '"')
}
