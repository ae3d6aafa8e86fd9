package meter

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3" // XXH3-64 of R9: the maintained pure-Go port with assembly
)

// ID is the identity of an event: its parts, each after its length as 4 bytes little-endian.
// Two IDs are equal exactly if all parts are (R3), so an ID can be a map key.
type ID string

// NewID joins parts.
func NewID(parts ...string) ID { return ID(AppendID(nil, parts...)) }

// PositionID is the id of a record where the meter has `identity: none` (R3, R9).
func PositionID(partition int32, offset int64) ID {
	return NewID(strconv.Itoa(int(partition)), strconv.FormatInt(offset, 10))
}

// AppendID appends the ID of parts to buf.
func AppendID(buf []byte, parts ...string) []byte {
	for _, p := range parts {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(p)))
		buf = append(buf, p...)
	}
	return buf
}

// Parts splits the id again.
func (id ID) Parts() []string {
	var parts []string
	for s := string(id); len(s) >= 4; {
		n := int(binary.LittleEndian.Uint32([]byte(s[:4])))
		parts = append(parts, s[4:4+n])
		s = s[4+n:]
	}
	return parts
}

// Hash64 is the hash that set_hash sums (R9).
func (id ID) Hash64() uint64 { return xxh3.HashString(string(id)) }

// Less orders ids part by part, byte for byte: the id order of R4.
func (id ID) Less(other ID) bool {
	a, b := id.Parts(), other.Parts()
	for i := range min(len(a), len(b)) {
		if c := strings.Compare(a[i], b[i]); c != 0 {
			return c < 0
		}
	}
	return len(a) < len(b)
}
