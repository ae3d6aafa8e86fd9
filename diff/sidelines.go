package diff

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

var utf8BOM = []byte("\xef\xbb\xbf")

// csv reads RFC 4180 with a header; a byte order mark and CRLF are welcome.
func (f *fileReader) csv(r *bufio.Reader) error {
	if head, _ := r.Peek(len(utf8BOM)); bytes.Equal(head, utf8BOM) {
		_, _ = r.Discard(len(utf8BOM)) // what was peeked can be discarded
	}
	in := csv.NewReader(r)
	in.ReuseRecord = true
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("empty: want a line of column names")
	}
	if err != nil {
		return f.csvError(err)
	}
	f.line = 1
	columns := map[string]int{}
	var names []string
	for i, n := range head {
		if _, twice := columns[n]; twice {
			return fmt.Errorf("column %q comes twice", n)
		}
		columns[n], names = i, append(names, n)
	}
	if err := f.learn(names); err != nil {
		return err
	}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.csvError(err)
		}
		f.line, _ = in.FieldPos(0)
		for _, field := range record {
			if err := checkUTF8([]byte(field)); err != nil {
				return err
			}
		}
		get := func(theirs string) (field, bool) {
			i, ok := columns[theirs]
			if !ok || record[i] == "" {
				return field{}, false
			}
			return field{text: strings.Clone(record[i])}, true
		}
		if err := f.take(get); err != nil {
			return err
		}
	}
}

// csvError takes the line out of the reader's own words.
func (f *fileReader) csvError(err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		f.line = p.Line
		return p.Err
	}
	return err
}

// jsonLines reads one object a line; blank lines are skipped. The first line says which columns there are.
func (f *fileReader) jsonLines(r *bufio.Reader) error {
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			f.line = n
			return err
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, utf8BOM)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			first := f.line == 0
			f.line = n
			if err := f.jsonLine(line, first); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
	}
	if f.line == 0 {
		return fmt.Errorf("empty: without a line nothing says whether it holds totals or events")
	}
	return nil
}

func (f *fileReader) jsonLine(line []byte, first bool) error {
	if err := checkUTF8(line); err != nil {
		return err
	}
	fields, names, err := parseObject(line)
	if err != nil {
		return err
	}
	if first {
		if err := f.learn(names); err != nil {
			return err
		}
	}
	return f.take(func(theirs string) (field, bool) { v, ok := fields[theirs]; return v, ok })
}

// parseObject reads a flat JSON object: texts, numbers as they are written, lists of these. The members of an object
// "quantities" count as the line's own. Null is absent; a name may not come twice.
func parseObject(line []byte) (map[string]field, []string, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("not a JSON object")
	}
	fields := map[string]field{}
	var names []string
	if err := parseMembers(dec, fields, &names, true); err != nil {
		return nil, nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("more than one JSON object in a line")
	}
	return fields, names, nil
}

func parseMembers(dec *json.Decoder, fields map[string]field, names *[]string, outer bool) error {
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := key.(string) // a member's name is a string, or Token had failed
		t, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		if outer && name == "quantities" && t == json.Delim('{') {
			if err := parseMembers(dec, fields, names, false); err != nil {
				return err
			}
			continue
		}
		if _, twice := fields[name]; twice {
			return fmt.Errorf("%q comes twice", name)
		}
		v, ok, err := parseValue(dec, t)
		if err != nil {
			return fmt.Errorf("%s: %w", printable(name), err)
		}
		*names = append(*names, name)
		if ok {
			fields[name] = v
		}
	}
	_, err := dec.Token() // the closing brace
	return notJSON(err)
}

// parseValue reads the value that begins with t; false for null and for what no column of ours can be.
func parseValue(dec *json.Decoder, t json.Token) (field, bool, error) {
	switch v := t.(type) {
	case string:
		return field{text: v}, true, nil
	case json.Number:
		return field{text: v.String(), number: true}, true, nil
	case json.Delim:
		if v == '{' {
			return field{}, false, skipObject(dec)
		}
		list := field{isList: true}
		for dec.More() {
			t, err := dec.Token()
			if err != nil {
				return field{}, false, notJSON(err)
			}
			if _, nested := t.(json.Delim); nested {
				return field{}, false, fmt.Errorf("a list of lists or objects")
			}
			part, _, err := parseValue(dec, t) // null is an empty part
			if err != nil {
				return field{}, false, err
			}
			list.list = append(list.list, part)
		}
		_, err := dec.Token()
		return list, true, notJSON(err)
	}
	return field{}, false, nil // null, true, false
}

func skipObject(dec *json.Decoder) error {
	for depth := 1; depth > 0; {
		t, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		switch t {
		case json.Delim('{'):
			depth++
		case json.Delim('}'):
			depth--
		}
	}
	return nil
}

func notJSON(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("not JSON: %w", err)
}

// parseWhole reads a whole number that is not negative; 1e3 and 10.0 are whole.
func parseWhole(text string) (int64, error) {
	plain, err := plainDecimal(text)
	if err != nil {
		return 0, err
	}
	whole, frac, _ := strings.Cut(plain, ".")
	if strings.Trim(frac, "0") != "" {
		return 0, fmt.Errorf("%q is not a whole number", clip(text))
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no count: want a whole number from 0 to 2^63-1", clip(text))
	}
	return n, nil
}

// parseMoney reads decimal dollars, exactly, to the pico-dollar.
func parseMoney(text string) (meter.Int128, error) {
	plain, err := plainDecimal(text)
	if err != nil {
		return meter.Int128{}, err
	}
	return meter.ParseUSD128(plain)
}

// maxExponent bounds what a number may be written as: 1e-20 is 0.00000000000000000001.
const maxExponent = 40

// plainDecimal writes a decimal number without its exponent, exactly.
func plainDecimal(text string) (string, error) {
	bad := fmt.Errorf("%q is not a number", clip(text))
	mantissa, exponent, has := strings.Cut(strings.ReplaceAll(text, "E", "e"), "e")
	if !has {
		if !decimal(mantissa) {
			return "", bad
		}
		return mantissa, nil
	}
	shift, err := strconv.Atoi(exponent)
	if err != nil || !decimal(mantissa) || shift > maxExponent || shift < -maxExponent {
		return "", bad
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	if shift >= 0 {
		frac += strings.Repeat("0", max(0, shift-len(frac)))
		whole, frac = whole+frac[:shift], frac[shift:]
	} else {
		whole = strings.Repeat("0", max(0, 1-shift-len(whole))) + whole
		cut := len(whole) + shift
		whole, frac = whole[:cut], whole[cut:]+frac
	}
	if negative {
		whole = "-" + whole
	}
	if frac != "" {
		whole += "." + frac
	}
	return whole, nil
}

// decimal reports whether s is digits with perhaps a minus before and a point between.
func decimal(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, frac, dotted := strings.Cut(s, ".")
	return digitsOnly(whole) && (!dotted || digitsOnly(frac))
}

func digitsOnly(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// parseTime reads RFC 3339 or milliseconds.
func parseTime(text string, minTime int64) (int64, error) {
	var ms int64
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		ms = t.UnixMilli()
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		ms = n
	} else {
		return 0, fmt.Errorf("%q is no time: want RFC 3339 with its zone, or milliseconds since 1970", clip(text))
	}
	const maxTime = 10413792000000 // 2300-01-01: windows of plausible events (R2) and abandonments end a little after 2200
	if ms < minTime || ms >= maxTime {
		return 0, fmt.Errorf("%q is not plausible: milliseconds since 1970 are wanted, or RFC 3339", clip(text))
	}
	return ms, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
