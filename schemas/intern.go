package schemas

import "strings"

// An interner keeps one copy of texts that come again and again. It has a fixed size: a text that meets
// another one in its place replaces it, so the world cannot make it grow.
type interner [4096]string

func (t *interner) text(b []byte) string {
	const mix = 0x9E3779B97F4A7C15
	p := &t[digestOf(b)*mix>>52]
	if *p != string(b) {
		*p = string(b)
	}
	return *p
}

// An arena makes texts that are different each time, many to one piece of memory. A piece lives as long as one of its
// texts is kept somewhere, so pieces are small.
type arena struct{ piece strings.Builder }

const pieceBytes = 4 << 10

func (a *arena) text(b []byte) string {
	if a.piece.Cap()-a.piece.Len() < len(b) { // a piece never moves: its texts are in it
		a.piece.Reset()
		a.piece.Grow(max(pieceBytes, len(b)))
	}
	from := a.piece.Len()
	a.piece.Write(b)
	return a.piece.String()[from:]
}
