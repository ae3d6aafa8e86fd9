package archive

// blockBytes is how large the pieces are in which finished pages are kept.
const blockBytes = 64 << 10

// A body is the finished pages of a chunk, in pieces: one growing piece would be copied again and again, and hold
// up to twice what is in it.
type body struct {
	full [][]byte // of blockBytes
	open []byte
}

// blocks are pieces that no column uses at the moment.
type blocks [][]byte

func (b *blocks) take() []byte {
	if n := len(*b); n > 0 {
		block := (*b)[n-1]
		(*b)[n-1] = nil
		*b = (*b)[:n-1]
		return block[:0]
	}
	return make([]byte, 0, blockBytes)
}

func (d *body) add(free *blocks, parts ...[]byte) {
	for _, p := range parts {
		for len(d.open)+len(p) >= blockBytes {
			n := blockBytes - len(d.open)
			d.full = append(d.full, append(d.open, p[:n]...))
			d.open, p = free.take(), p[n:]
		}
		d.open = append(d.open, p...) // the first piece grows as it needs to: most columns have no second one
	}
}

// all lists the pieces in order.
func (d *body) all() [][]byte {
	if len(d.open) == 0 {
		return d.full
	}
	return append(d.full, d.open)
}

func (d *body) clear(free *blocks) {
	*free = append(*free, d.full...)
	clear(d.full)
	d.full, d.open = d.full[:0], d.open[:0]
}
