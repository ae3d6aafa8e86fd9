package schemas

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
