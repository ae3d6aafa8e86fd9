package stream

import "github.com/gatewaymeter/gatewaymeter/meter"

// Warm touches the memory that counting these events will need, all of it at once: a machine waits for many cache
// misses in little more time than for one. It changes nothing, and need not be called. Some dozens of events at a
// time, just before they are applied, are best; those of other partitions are passed over.
func (c *Counter) Warm(events []meter.Event) {
	for i := range events {
		if e := &events[i]; e.Partition == c.partition && e.Bucket == meter.BucketEvent {
			c.warmth += c.lives.touch(e.IDHash)
		}
	}
}

// touch reads the home slot of a hash and, if its tag fits, the first words of the life there.
func (s *store) touch(hash uint64) uint64 {
	shard := &s.table[hash>>shardShift]
	if shard.n == 0 {
		return 0
	}
	x := shard.slots[shard.home(uint32(hash))]
	if x.tag != uint32(hash) {
		return 0
	}
	return s.at(x.ref)[0]
}
