package archive

import (
	"encoding/binary"
)

// levels are the definition levels of an optional column's open page: a bit for each row, 0 for NULL.
type levels struct {
	bits []byte // whole words of 64 rows
	last uint64 // the rows after them
	rows int
}

func (l *levels) clear() { l.bits, l.last, l.rows = l.bits[:0], 0, 0 }

// add adds the low n bits, at most 64; the others are 0.
func (l *levels) add(there uint64, n int) {
	used := l.rows % 64
	l.last |= there << used
	l.rows += n
	if used+n >= 64 {
		l.bits = binary.LittleEndian.AppendUint64(l.bits, l.last)
		l.last = there >> (64 - used) // 0 where used is 0: Go shifts everything out
	}
}

// longRun is how many bytes of 8 equal levels are written as a run.
const longRun = 8

// encode writes the levels as Parquet's hybrid of runs and packed bits: one run where all are alike.
func (l *levels) encode(dst []byte, there int) []byte {
	if there == 0 || there == l.rows {
		return appendRun(dst, l.rows, there > 0)
	}
	bits := binary.LittleEndian.AppendUint64(l.bits, l.last)
	whole := l.rows / 8 // a run must not reach beyond the rows: the rest of them is packed
	bits = bits[:(l.rows+7)/8]
	from := 0
	for i := 0; i < whole; {
		n := 1
		for (bits[i] == 0 || bits[i] == 0xff) && i+n < whole && bits[i+n] == bits[i] {
			n++
		}
		if n >= longRun {
			dst = appendRun(appendPacked(dst, bits[from:i]), 8*n, bits[i] != 0)
			from = i + n
		}
		i += n
	}
	return appendPacked(dst, bits[from:])
}

func appendRun(dst []byte, n int, there bool) []byte {
	level := byte(0)
	if there {
		level = 1
	}
	return append(binary.AppendUvarint(dst, uint64(n)<<1), level)
}

func appendPacked(dst, bits []byte) []byte {
	if len(bits) == 0 {
		return dst
	}
	return append(binary.AppendUvarint(dst, uint64(len(bits))<<1|1), bits...)
}
