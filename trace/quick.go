package trace

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// quick reads a line that looks as [Writer] writes an ordinary record, with an object for its value as the last member:
//
//	{"partition":0,"offset":17,"log_time":1767225600123,"key":"req-1","value":{...}}
//
// It does not look into the value: it takes all up to the line's last byte for it. Not ok is no verdict: the line may be
// any other. If the value is a sound JSON object, or ends where its bracket closes, ParseLine reads the same from
// the line; if not, only ParseLine can say what the line is.
func quick(line []byte, rec *meter.Record) (ok bool) {
	if len(line) < 2 || line[len(line)-1] != '}' || line[len(line)-2] != '}' {
		return false
	}
	b, ok := bytes.CutPrefix(line, []byte(`{"partition":`))
	if !ok {
		return false
	}
	partition, n := quickInt(b)
	if n == 0 || n > 9 {
		return false
	}
	if b, ok = bytes.CutPrefix(b[n:], []byte(`,"offset":`)); !ok {
		return false
	}
	offset, n := quickInt(b)
	if n == 0 {
		return false
	}
	b = b[n:]
	var logTime int64
	rest, hasLogTime := bytes.CutPrefix(b, []byte(`,"log_time":`))
	if hasLogTime {
		if logTime, n = quickInt(rest); n == 0 || logTime > maxLogTime {
			return false
		}
		b = rest[n:]
	}
	var key []byte
	if rest, ok := bytes.CutPrefix(b, []byte(`,"key":"`)); ok {
		if n = plainASCII(rest); n == len(rest) || rest[n] != '"' {
			return false
		}
		key, b = rest[:n:n], rest[n+1:]
	}
	if b, ok = bytes.CutPrefix(b, []byte(`,"value":`)); !ok || b[0] != '{' {
		return false
	}
	*rec = meter.Record{Partition: int32(partition), Offset: offset, LogTime: logTime, HasLogTime: hasLogTime,
		Key: key, Value: b[: len(b)-1 : len(b)-1]}
	return true
}

// quickInt reads 1 to 18 digits that write a number as JSON does; n is 0 for anything else.
func quickInt(b []byte) (v int64, n int) {
	for n < len(b) && b[n]-'0' <= 9 {
		v = v*10 + int64(b[n]-'0')
		n++
	}
	if n > 18 || n > 1 && b[0] == '0' || n < len(b) && b[n] != ',' {
		return 0, 0
	}
	return v, n
}

// plainASCII is how many bytes of b come before the first that is no ASCII or may not stand in a string as it is.
func plainASCII(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if hit := (w | (w - ones*' ') | (quote - ones) | (slash - ones)) & highs; hit != 0 { // its first mark is true
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] < 0x80 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}
