package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// The range of log times: the years 0 to 9999, so that a log time in a wrong unit is found.
const (
	minLogTime = -62_167_219_200_000 // ms
	maxLogTime = 253_402_300_799_999 // ms
)

// ParseLine reads one line of a trace file, without its line end, into rec or idle: a line is a record, or the
// statement that partitions are idle (then idle is not nil). Value and Key alias line where they stand there as they are.
// It is a pure function; the caller sets rec.Byte.
//
// The envelope is strict: known names only, each at most once, whole numbers in plain digits. The value is not:
// an object, array or other literal ends where its own brackets outside of strings say, and is not looked at
// otherwise; a string is unescaped, what is no escape in it standing for itself.
func ParseLine(line []byte, rec *meter.Record) (idle []int32, err error) {
	p := envelope{line: line, rec: rec}
	*rec = meter.Record{}
	if err := p.object(); err != nil {
		return nil, err
	}
	return p.idle, p.complete()
}

// An envelope is a line while it is read.
type envelope struct {
	line []byte
	rec  *meter.Record
	idle []int32
	seen names
	at   int // index of the next byte
}

// names are the names of an envelope, as bits.
type names uint16

const (
	namePartition names = 1 << iota
	nameOffset
	nameLogTime
	nameKey
	nameKeyBase64
	nameValue
	nameValueBase64
	nameIdle
)

func nameOf(word []byte) names {
	switch string(word) {
	case "partition":
		return namePartition
	case "offset":
		return nameOffset
	case "log_time":
		return nameLogTime
	case "key":
		return nameKey
	case "key_base64":
		return nameKeyBase64
	case "value":
		return nameValue
	case "value_base64":
		return nameValueBase64
	case "idle":
		return nameIdle
	}
	return 0
}

var errNoObject = errors.New(`not a record: want an object such as {"partition":0,"offset":17,"value":{...}}`)

// complete checks what must stand together.
func (p *envelope) complete() error {
	if p.seen&nameIdle != 0 {
		if p.seen != nameIdle {
			return errors.New("an idle line states nothing but idle")
		}
		return nil
	}
	switch {
	case p.seen&namePartition == 0:
		return errors.New("not a record: no partition")
	case p.seen&nameOffset == 0:
		return errors.New("not a record: no offset")
	case p.seen&(nameValue|nameValueBase64) == 0:
		return errors.New("not a record: no value (null for a tombstone)")
	case p.seen&nameValue != 0 && p.seen&nameValueBase64 != 0:
		return errors.New("value and value_base64 exclude each other")
	case p.seen&nameKey != 0 && p.seen&nameKeyBase64 != 0:
		return errors.New("key and key_base64 exclude each other")
	}
	return nil
}

func (p *envelope) object() error {
	if p.space(); !p.take('{') {
		return errNoObject
	}
	if p.space(); p.take('}') {
		return p.end()
	}
	for {
		if err := p.member(); err != nil {
			return err
		}
		if p.space(); p.take('}') {
			return p.end()
		}
		if !p.take(',') {
			return p.broken("a comma or }")
		}
		p.space()
	}
}

func (p *envelope) end() error {
	if p.space(); p.at != len(p.line) {
		return p.broken("the end of the line")
	}
	return nil
}

func (p *envelope) broken(want string) error {
	return fmt.Errorf("column %d: want %s", p.at+1, want)
}

func (p *envelope) space() {
	for p.at < len(p.line) {
		switch p.line[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *envelope) take(c byte) bool {
	if p.at < len(p.line) && p.line[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *envelope) member() error {
	word, err := p.text()
	if err != nil {
		return err
	}
	name := nameOf(word)
	if name == 0 {
		return fmt.Errorf("%s is no name of a record (plain event lines want run.source_format: values)", strconv.QuoteToASCII(clip(word)))
	}
	if p.seen&name != 0 {
		return fmt.Errorf("%s stands twice", word)
	}
	p.seen |= name
	if p.space(); !p.take(':') {
		return p.broken("a colon")
	}
	p.space()
	switch name {
	case namePartition:
		n, err := p.integer("partition", 0, math.MaxInt32)
		p.rec.Partition = int32(n)
		return err
	case nameOffset:
		p.rec.Offset, err = p.integer("offset", 0, math.MaxInt64-1)
	case nameLogTime:
		if !p.null() {
			p.rec.LogTime, err = p.integer("log_time", minLogTime, maxLogTime)
			p.rec.HasLogTime = true
		}
	case nameKey:
		if !p.null() {
			p.rec.Key, err = p.text()
		}
	case nameKeyBase64:
		p.rec.Key, err = p.base64()
	case nameValue:
		err = p.value()
	case nameValueBase64:
		p.rec.Value, err = p.base64()
	case nameIdle:
		p.idle, err = p.partitions()
	}
	return err
}

func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "..."
	}
	return string(b)
}

func (p *envelope) null() bool {
	if bytes.HasPrefix(p.line[p.at:], []byte("null")) {
		p.at += len("null")
		return true
	}
	return false
}

// integer reads a whole number in plain digits, as JSON writes it.
func (p *envelope) integer(what string, low, high int64) (int64, error) {
	i, from := p.at, p.at
	if i < len(p.line) && p.line[i] == '-' {
		i++
	}
	first := i
	var v int64
	for i < len(p.line) && p.line[i]-'0' <= 9 {
		if i-first < 18 {
			v = v*10 + int64(p.line[i]-'0')
		}
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && p.line[first] == '0' || i < len(p.line) && (p.line[i] == '.' || p.line[i]|0x20 == 'e') {
		return 0, p.broken(what + " as a whole number in plain digits")
	}
	p.at = i
	switch {
	case digits > 18:
		var err error
		if v, err = strconv.ParseInt(string(p.line[from:i]), 10, 64); err != nil {
			return 0, fmt.Errorf("%s is out of range", what)
		}
	case first > from:
		v = -v
	}
	if v < low || v > high {
		return 0, fmt.Errorf("%s %d is out of range", what, v)
	}
	return v, nil
}

// partitions reads a list of partition numbers.
func (p *envelope) partitions() ([]int32, error) {
	list := []int32{}
	if !p.take('[') {
		return nil, p.broken("a list of partitions")
	}
	if p.space(); p.take(']') {
		return list, nil
	}
	for {
		p.space()
		n, err := p.integer("partition", 0, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		list = append(list, int32(n))
		if p.space(); p.take(']') {
			return list, nil
		}
		if !p.take(',') {
			return nil, p.broken("a comma or ]")
		}
	}
}

func (p *envelope) base64() ([]byte, error) {
	word, err := p.text()
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.Strict().AppendDecode([]byte{}, word)
	if err != nil || bytes.ContainsAny(word, "\r\n") {
		return nil, p.broken("base64 with its padding before here")
	}
	return b, nil
}

// text reads a string strictly: it is ours, a name or a key.
func (p *envelope) text() ([]byte, error) {
	if !p.take('"') {
		return nil, p.broken("a string")
	}
	raw, escaped, ok := p.raw()
	if !ok {
		return nil, p.broken("a closing quote")
	}
	for _, c := range raw {
		if c < ' ' {
			return nil, p.broken("a string without control characters before here")
		}
	}
	if !utf8.Valid(raw) {
		return nil, p.broken("UTF-8 before here")
	}
	if escaped {
		if raw, ok = unescape(raw); !ok {
			return nil, p.broken("sound escapes before here")
		}
	}
	return raw, nil
}

// raw reads up to the closing quote and takes it. What a backslash stands before closes nothing.
func (p *envelope) raw() (raw []byte, escaped, ok bool) {
	end, escaped := quote(p.line, p.at)
	if end < 0 {
		return nil, false, false
	}
	raw = p.line[p.at:end]
	p.at = end + 1
	return raw, escaped, true
}

// quote is the index of the quote that closes a string whose text begins at i, or -1.
func quote(b []byte, i int) (end int, escaped bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			hit := ((quote-ones)&^quote | (slash-ones)&^slash) & highs // its first mark is true
			if hit != 0 {
				i += bits.TrailingZeros64(hit) >> 3
				break
			}
			i += 8
		}
		switch {
		case i >= len(b):
			return -1, escaped
		case b[i] == '"':
			return i, escaped
		case b[i] == '\\':
			escaped = true
			i += 2
		default:
			i++
		}
	}
}

// value reads what the world wrote; only its end has to be found.
func (p *envelope) value() error {
	if p.at >= len(p.line) {
		return p.broken("a value")
	}
	from := p.at
	switch c := p.line[from]; c {
	case '"':
		p.at++
		raw, escaped, ok := p.raw()
		if !ok {
			return p.broken("a closing quote for the value")
		}
		if escaped {
			raw, _ = unescape(raw)
		}
		p.rec.Value = raw
		return nil
	case '{':
		p.at = closing(p.line, from, '{', '}')
	case '[':
		p.at = closing(p.line, from, '[', ']')
	default:
		p.at = from + literal(p.line[from:])
	}
	if p.at <= from {
		p.at = from
		return p.broken("a value that ends on its line")
	}
	p.rec.Value = p.line[from:p.at:p.at]
	if string(p.rec.Value) == "null" {
		p.rec.Value, p.rec.Null = nil, true
	}
	return nil
}

// closing is the index after the bracket that closes the one at i, not counting brackets in strings; -1 if none does.
func closing(b []byte, i int, opener, closer byte) int {
	depth := 0
	for ; i < len(b); i++ {
		for i < len(b) && !structural[b[i]] {
			i++
		}
		if i == len(b) {
			return -1
		}
		switch b[i] {
		case '"':
			if i, _ = quote(b, i+1); i < 0 {
				return -1
			}
		case opener:
			depth++
		case closer:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// structural are the bytes that closing looks at.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// literal is the length of a number or word.
func literal(b []byte) int {
	i := 0
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != '"' {
		i++
	}
	return i
}
