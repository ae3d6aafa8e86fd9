package meter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Time is ms as RFC 3339 in UTC, with the milliseconds where they are not zero.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// AppendRow appends the JSON of a row as CLI.md fixes it. bySKU adds the one cell's sku and tier.
func AppendRow(buf []byte, m *Meter, r *Row, bySKU bool) []byte {
	buf = append(buf, `{"account":`...)
	buf = AppendText(buf, r.Account)
	if bySKU && len(r.Cells) == 1 {
		buf = append(buf, `,"sku":`...)
		buf = AppendText(buf, r.Cells[0].SKU)
		buf = append(buf, `,"tier":`...)
		buf = strconv.AppendInt(buf, int64(r.Cells[0].Tier), 10)
	}
	buf = fmt.Appendf(buf, `,"window_start":"%s","window_end":"%s","state":"%s","revision":%d,"requests":%d,"quantities":`,
		Time(r.WindowStart(m)), Time(r.WindowEnd), r.State, r.Revision, r.Usage.Requests)
	buf = AppendQuantities(buf, m, r.Usage.Quantities)
	total := r.Total()
	buf = fmt.Appendf(buf, `,"amount_usd":"%s","adjustment_usd":"%s","total_usd":"%s","price_source":"%s","unpriced_requests":%d,"set_hash":"%016x"`,
		r.Amount.USD(), r.Adjustment.USD(), total.USD(), r.Source, r.Unpriced, r.Usage.SetHash)
	if _, fits := total.Int64(); !fits {
		buf = append(buf, `,"overflow":true`...)
	}
	return append(buf, '}')
}

// AppendQuantities appends the object of quantities by name.
func AppendQuantities(buf []byte, m *Meter, quantities []int64) []byte {
	buf = append(buf, '{')
	for i, q := range m.Event.Quantities {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendText(buf, q.Name)
		buf = append(buf, ':')
		buf = strconv.AppendInt(buf, at(quantities, i), 10)
	}
	return append(buf, '}')
}

// AppendText appends a JSON string. What a terminal could take for a command (DEL and the C1 controls; JSON escapes the
// others itself) is written as an escape.
func AppendText(buf []byte, s string) []byte {
	if isPlain(s) {
		return append(append(append(buf, '"'), s...), '"')
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot happen: any string has a JSON text
	}
	if !strings.ContainsFunc(s, isC1) {
		return append(buf, text...)
	}
	for _, r := range string(text) {
		if isC1(r) {
			buf = fmt.Appendf(buf, `\u%04x`, r)
		} else {
			buf = utf8.AppendRune(buf, r)
		}
	}
	return buf
}

// isPlain says that s is its own JSON text: printable ASCII of which nothing is escaped, not for HTML either.
func isPlain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&':
			return false
		}
	}
	return true
}

func isC1(r rune) bool { return r >= 0x7f && r < 0xa0 }

// AppendJSON appends the summary line of `--summary json`: every bucket, zeros included.
func (s *Summary) AppendJSON(buf []byte) []byte {
	buf = fmt.Appendf(buf, `{"read":%d,"dead_letter":{`, s.Read)
	for i, r := range Reasons() {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = fmt.Appendf(buf, `"%s":%d`, r, s.DeadLetter[r])
	}
	return fmt.Appendf(buf, `},"tombstone":%d,"ignored":%d,"tick":%d,"event":%d,"progress":%d,"counted":%d,"filtered":%d,"late":%d,"duplicate":%d,`+
		`"conflict":%d,"orphan":%d,"late_completion":%d,"open":%d,"abandoned":%d,"superseded":%d}`,
		s.Tombstone, s.Ignored, s.Tick, s.Event, s.Progress, s.Counted, s.Filtered, s.Late, s.Duplicate,
		s.Conflict, s.Orphan, s.LateCompletion, s.Open, s.Abandoned, s.Superseded)
}
