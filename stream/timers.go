package stream

// Widths of the buckets, as powers of two of milliseconds: timers get their exact order in a queue once the
// watermark enters their bucket, horizons are looked at once it has left theirs.
const (
	timerShift   = 8
	horizonShift = 12
)

// buckets hold lives by a time, unordered within a bucket.
type buckets struct {
	shift uint
	index map[int64]int // bucket number -> place in lists
	lists [][]uint32
	spare []int // places that are free; their lists keep their room
	out   int   // place of the bucket that pop gave away last, -1 if none
	keys  queue[int64]

	lastKey int64 // a cache of index
	last    int
}

func newBuckets(shift uint) buckets {
	return buckets{shift: shift, index: map[int64]int{}, keys: queue[int64]{less: earlier}, out: -1, last: -1}
}

func (b *buckets) push(t int64, ref uint32) {
	key := t >> b.shift
	if b.last < 0 || key != b.lastKey {
		b.last, b.lastKey = b.place(key), key
	}
	b.lists[b.last] = append(b.lists[b.last], ref)
}

func (b *buckets) place(key int64) int {
	if at, ok := b.index[key]; ok {
		return at
	}
	at := len(b.lists)
	if last := len(b.spare) - 1; last >= 0 {
		at, b.spare = b.spare[last], b.spare[:last]
	} else {
		b.lists = append(b.lists, nil)
	}
	b.index[key] = at
	b.keys.push(key)
	return at
}

// pop removes the first bucket if its number is at most upTo and returns its lives, good until the next pop.
func (b *buckets) pop(upTo int64) (refs []uint32, ok bool) {
	if b.out >= 0 {
		b.spare, b.out = append(b.spare, b.out), -1
	}
	if b.keys.empty() || b.keys.first() > upTo {
		return nil, false
	}
	key := b.keys.pop()
	b.out, b.last = b.index[key], -1
	delete(b.index, key)
	refs, b.lists[b.out] = b.lists[b.out], b.lists[b.out][:0]
	return refs, true
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
	ts.far.push(t, ref)
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
	for refs, ok := ts.far.pop(bucket); ok; refs, ok = ts.far.pop(bucket) {
		for _, ref := range refs {
			if t, ok := ts.waiting(ts.store.at(ref)); ok {
				ts.near.push(timer{t, ref})
			}
		}
	}
}
