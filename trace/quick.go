package trace

import (
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
	b := line[:len(line)-1]
	if !opening.begins(b) {
		return false
	}
	partition, b := quickInt(b[opening.size:])
	if uint64(partition) > 999_999_999 || !offsetNext.begins(b) {
		return false
	}
	offset, b := quickInt(b[offsetNext.size:])
	if offset < 0 {
		return false
	}
	var logTime int64
	hasLogTime := logTimeNext.begins(b)
	if hasLogTime {
		if logTime, b = quickInt(b[logTimeNext.size:]); uint64(logTime) > maxLogTime {
			return false
		}
	}
	var key []byte
	if keyNext.begins(b) {
		b = b[keyNext.size:]
		n := plainASCII(b)
		if n == len(b) || b[n] != '"' {
			return false
		}
		key, b = b[:n:n], b[n+1:]
	}
	if !valueNext.begins(b) || len(b) == valueNext.size || b[valueNext.size] != '{' {
		return false
	}
	b = b[valueNext.size:]
	rec.Partition, rec.Offset, rec.LogTime, rec.HasLogTime = int32(partition), offset, logTime, hasLogTime
	rec.Received, rec.Null = false, false
	rec.Key, rec.Value = key, b[:len(b):len(b)]
	return true
}

// What stands between the values of a line.
var (
	opening     = leadOf(`{"partition":`)
	offsetNext  = leadOf(`,"offset":`)
	logTimeNext = leadOf(`,"log_time":`)
	keyNext     = leadOf(`,"key":"`)
	valueNext   = leadOf(`,"value":`)
)

// A lead is a text of 8 to 16 bytes: its first 8 and its last.
type lead struct {
	head, tail uint64
	size       int
}

func leadOf(text string) lead {
	b := []byte(text)
	return lead{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:]), len(b)}
}

// begins reports whether b begins with the lead.
func (l *lead) begins(b []byte) bool {
	return len(b) >= l.size && binary.LittleEndian.Uint64(b) == l.head && binary.LittleEndian.Uint64(b[l.size-8:]) == l.tail
}

// quickInt reads 1 to 18 digits that write a number as JSON does, up to a comma, where rest begins; -1 for anything else.
func quickInt(b []byte) (v int64, rest []byte) {
	n := 0
	for n+8 <= len(b) {
		digits := binary.LittleEndian.Uint64(b[n:]) ^ 0x3030303030303030
		k := bits.TrailingZeros64((digits+0x7676767676767676|digits)&0x8080808080808080) >> 3 // bytes above 9 carry into their high bit
		if k == 0 {
			break
		}
		v = v*powers[k] + eight(digits<<(64-8*k)) // leading zeros
		if n += k; k < 8 || n > 18 {
			break
		}
	}
	if n == 0 || n > 18 || n > 1 && b[0] == '0' || n >= len(b) || b[n] != ',' {
		return -1, nil
	}
	return v, b[n:]
}

var powers = [9]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// eight is the number of eight digits, the first one in the lowest byte.
func eight(digits uint64) int64 {
	digits = digits*10 + digits>>8 // pairs, in every other byte
	const pairs = 0x000000FF000000FF
	return int64(uint32(((digits&pairs)*(100+1000000<<32) + (digits>>16&pairs)*(1+10000<<32)) >> 32))
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
