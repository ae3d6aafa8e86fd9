package sqlite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// amount is how money is stored: an INTEGER of pico-dollars, or decimal TEXT where that does not fit.
func amount(v meter.Int128) any {
	if p, fits := v.Int64(); fits {
		return p
	}
	return v.String()
}

// scanAmount reads what amount wrote.
type scanAmount struct{ to *meter.Int128 }

// Scan implements sql.Scanner.
func (s scanAmount) Scan(v any) (err error) {
	switch v := v.(type) {
	case int64:
		*s.to = meter.From64(v)
	case string:
		*s.to, err = meter.ParseInt128(v)
	default:
		err = fmt.Errorf("an amount is stored as %T", v)
	}
	return err
}

// ints is a JSON array of integers.
func ints(values []int64, width int) string {
	buf := make([]byte, 0, 2+8*max(width, len(values)))
	buf = append(buf, '[')
	for i := range max(width, len(values)) {
		if i > 0 {
			buf = append(buf, ',')
		}
		var v int64
		if i < len(values) {
			v = values[i]
		}
		buf = strconv.AppendInt(buf, v, 10)
	}
	return string(append(buf, ']'))
}

// appendInts appends what ints wrote.
func appendInts(list []int64, v any) ([]int64, error) {
	text, ok := v.(string)
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !opened || !closed {
		return nil, fmt.Errorf("%.40q is no list of integers", fmt.Sprint(v))
	}
	for more := inner != ""; more; {
		var word string
		word, inner, more = strings.Cut(inner, ",")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.40q is no list of integers", text)
		}
		list = append(list, n)
	}
	return list, nil
}

// scanInts reads what ints wrote into a new list.
type scanInts struct{ to *[]int64 }

// Scan implements sql.Scanner.
func (s scanInts) Scan(v any) error {
	list, err := appendInts([]int64{}, v)
	if err == nil {
		*s.to = list
	}
	return err
}

// scanAll reads what ints wrote into numbers that are there, as many as there have to be.
type scanAll struct{ to []int64 }

// Scan implements sql.Scanner.
func (s scanAll) Scan(v any) error {
	list, err := appendInts(s.to[:0:len(s.to)], v)
	if err == nil && len(list) != len(s.to) {
		err = fmt.Errorf("%.40q is no list of %d integers", fmt.Sprint(v), len(s.to))
	}
	return err
}

// scanHash reads a set_hash.
type scanHash struct{ to *uint64 }

// Scan implements sql.Scanner.
func (s scanHash) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a set_hash is stored as %T", v)
	}
	*s.to = uint64(n)
	return nil
}

// words is a JSON array of texts. A text of an event is valid UTF-8 (R2), so it comes back as it was.
func words(list []string) string {
	buf := append(make([]byte, 0, 32), '[')
	for i, w := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, w)
	}
	return string(append(buf, ']'))
}

// appendText appends s as a JSON string.
func appendText(buf []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(buf, quoted...)
		}
	}
	buf = append(buf, '"')
	buf = append(buf, s...)
	return append(buf, '"')
}

// scanWords reads what words wrote.
type scanWords struct{ to *[]string }

// Scan implements sql.Scanner.
func (s scanWords) Scan(v any) error {
	text, _ := v.(string)
	*s.to = nil
	if text == "[]" {
		return nil
	}
	return json.Unmarshal([]byte(text), s.to)
}

// scanID reads an id as its parts.
type scanID struct{ to *meter.ID }

// Scan implements sql.Scanner.
func (s scanID) Scan(v any) error {
	var parts []string
	if err := (scanWords{&parts}).Scan(v); err != nil {
		return err
	}
	*s.to = meter.NewID(parts...)
	return nil
}

// scanWord reads a text that must be one of a closed set of names.
type scanWord[T any] struct {
	to    *T
	parse func(string) (T, bool)
}

// Scan implements sql.Scanner.
func (s scanWord[T]) Scan(v any) error {
	text, _ := v.(string)
	var ok bool
	if *s.to, ok = s.parse(text); !ok {
		return fmt.Errorf("%.40q is no %T", fmt.Sprint(v), *s.to)
	}
	return nil
}

// named finds the value whose String is name.
func named[T interface{ String() string }](values ...T) func(string) (T, bool) {
	return func(name string) (found T, ok bool) {
		for _, v := range values {
			if v.String() == name {
				return v, true
			}
		}
		return found, false
	}
}

var (
	parseState  = named(meter.Running, meter.Main, meter.Corrected, meter.Final, meter.Incomplete)
	parseFiring = named(meter.MainFiring, meter.CorrectionFiring, meter.FinalFiring, meter.AdjustmentFiring)
	parseKind   = named(meter.KindStart, meter.KindProgress, meter.KindComplete, meter.KindError, meter.KindEvent, meter.KindTick)
	parseReason = named(meter.Reasons()...)
)

func parseVerdict(name string) (meter.Verdict, bool) {
	v := meter.ParseVerdict(name)
	return v, v != 0
}
