package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
)

// Hash is the sha256 of what a log states, in hex: equal for a plain and a compressed file, for any spacing and
// order of names in the envelopes and any way of writing a value, and different for any other header topic or partitions,
// record, log time, key, value, idle line or order of lines. A header's seed and words about it are not in it.
func Hash(ctx context.Context, r *Reader) (string, error) {
	h, err := r.Header(ctx)
	if err != nil {
		return "", err
	}
	c := canon{sum: sha256.New()}
	c.header(h)
	err = Each(ctx, r, func(_ *Chunk, l *Line) error {
		c.line(l)
		return nil
	})
	if err != nil {
		return "", err
	}
	c.flush()
	return hex.EncodeToString(c.sum.Sum(nil)), nil
}

// canon writes lines in one canonical form: a letter, then numbers in 8 bytes and texts after their length.
type canon struct {
	sum hash.Hash
	buf []byte
}

func (c *canon) flush() {
	_, _ = c.sum.Write(c.buf) // cannot fail
	c.buf = c.buf[:0]
}

func (c *canon) number(v int64) { c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v)) }

func (c *canon) text(b []byte) {
	c.number(int64(len(b)))
	c.buf = append(c.buf, b...)
}

func (c *canon) partitions(list []int32) {
	c.number(int64(len(list)))
	for _, p := range list {
		c.number(int64(p))
	}
}

func (c *canon) header(h Header) {
	if !h.Stated {
		return
	}
	c.buf = append(c.buf, 'H')
	c.text([]byte(h.Topic))
	sorted := slices.Sorted(slices.Values(h.Partitions))
	c.partitions(sorted)
}

func (c *canon) line(l *Line) {
	r := &l.Record
	switch {
	case l.Idle != nil:
		c.buf = append(c.buf, 'I')
		c.partitions(slices.Sorted(slices.Values(l.Idle)))
		return
	case r.Null:
		c.buf = append(c.buf, 'N')
	default:
		c.buf = append(c.buf, 'V')
	}
	c.number(int64(r.Partition))
	c.number(r.Offset)
	if r.HasLogTime {
		c.buf = append(c.buf, 't')
		c.number(r.LogTime)
	}
	if r.Key != nil {
		c.buf = append(c.buf, 'k')
		c.text(r.Key)
	}
	c.buf = append(c.buf, 'v')
	c.text(r.Value)
	if len(c.buf) > 32<<10 {
		c.flush()
	}
}
