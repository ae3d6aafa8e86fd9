package trace

// dice is SplitMix64: its numbers are the same on every machine and in every version of Go.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9E3779B97F4A7C15
	return mix(uint64(*d))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below draws from [0, n); n is at least 1. The bias of n far below 2^64 does not matter here.
func (d *dice) below(n int64) int64 { return int64(d.next() % uint64(n)) }

// share draws whether it is one of so many in a thousand.
func (d *dice) share(perMille int) bool { return d.next()%1000 < uint64(perMille) }
