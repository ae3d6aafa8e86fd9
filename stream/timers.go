package stream

// Widths of the buckets, as powers of two of milliseconds: timers get their exact order in a queue once the
// watermark enters their bucket, horizons are looked at once it has left theirs.
const (
	timerShift   = 8
	horizonShift = 12
)

// buckets hold lives by a time, unordered within a bucket, linked through the lives.
type buckets struct {
	shift uint
	index map[int64]int // bucket number -> place in heads
	heads []uint32
	spare []int // places that are free
	keys  queue[int64]

	lastKey int64 // a cache of index
	last    int
}

func newBuckets(shift uint) buckets {
	return buckets{shift: shift, index: map[int64]int{}, keys: queue[int64]{less: earlier}, last: -1}
}

// push makes ref the head of its bucket and returns the head before, to be linked behind it.
func (b *buckets) push(t int64, ref uint32) (behind uint32) {
	key := t >> b.shift
	if b.last < 0 || key != b.lastKey {
		b.last, b.lastKey = b.place(key), key
	}
	behind, b.heads[b.last] = b.heads[b.last], ref
	return behind
}

func (b *buckets) place(key int64) int {
	if at, ok := b.index[key]; ok {
		return at
	}
	at := len(b.heads)
	if last := len(b.spare) - 1; last >= 0 {
		at, b.spare = b.spare[last], b.spare[:last]
	} else {
		b.heads = append(b.heads, 0)
	}
	b.index[key] = at
	b.keys.push(key)
	return at
}

// pop removes the first bucket if its number is at most upTo and returns its head.
func (b *buckets) pop(upTo int64) (head uint32, ok bool) {
	if b.keys.empty() || b.keys.first() > upTo {
		return 0, false
	}
	key := b.keys.pop()
	at := b.index[key]
	head, b.heads[at] = b.heads[at], 0
	delete(b.index, key)
	b.spare = append(b.spare, at)
	b.last = -1
	return head, true
}

// timers fire in (T, id) order (R4). A life has at most one: an end's hold or a start's deadline. Those of lives
// that went on without them are dropped when they come up.
type timers struct {
	store   *store
	waiting func(life) (t int64, ok bool) // what a life still waits for
	far     buckets
	near    queue[timer] // all whose bucket the watermark has entered
	inside  int64        // the greatest bucket that it has entered
}

type timer struct {
	t   int64
	ref uint32
}

func newTimers(s *store, w int64, waiting func(life) (int64, bool)) timers {
	less := func(a, b timer) bool { return a.t < b.t || a.t == b.t && s.lessID(a.ref, b.ref) }
	return timers{store: s, waiting: waiting, far: newBuckets(timerShift), near: queue[timer]{less: less}, inside: w >> timerShift}
}

// add sets a timer for a life.
func (ts *timers) add(t int64, ref uint32) {
	if t>>timerShift <= ts.inside {
		ts.near.push(timer{t, ref})
		return
	}
	ts.store.at(ref).setNextTimer(ts.far.push(t, ref))
}

// due removes the first timer with T <= w and returns its life, 0 if there is none.
func (ts *timers) due(w int64) uint32 {
	if bucket := w >> timerShift; bucket > ts.inside {
		ts.enter(bucket)
	}
	for !ts.near.empty() && ts.near.first().t <= w {
		ref := ts.near.pop().ref
		if _, ok := ts.waiting(ts.store.at(ref)); ok {
			return ref
		}
	}
	return 0
}

// enter moves the timers of every bucket up to the one given to the queue.
func (ts *timers) enter(bucket int64) {
	ts.inside = bucket
	for ref, ok := ts.far.pop(bucket); ok; ref, ok = ts.far.pop(bucket) {
		for ref != 0 {
			l := ts.store.at(ref)
			if t, ok := ts.waiting(l); ok {
				ts.near.push(timer{t, ref})
			}
			ref = l.nextTimer()
		}
	}
}
