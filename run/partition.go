package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/stream"
)

// A partition is what the owner knows of one source partition.
type partition struct {
	number  int32
	counter *stream.Counter
	// Each consumer is silent below its own mark: the counter replays [restart, committed), the archive has what is
	// below archived.
	restart, committed, archived int64
	startByte                    int64 // where the line of restart begins, or an earlier one

	next      int64 // offset behind the last record seen; 0 before the first
	watermark int64 // as the merge knows it
	asleep    bool  // the merge does not know it yet, or knows it as idle (R11)
	quietTo   int64 // from watermark on, up to before this one, no window ends and none becomes final
	commitNo  int64 // of the last changes taken
	from      meter.Position

	// drainedAt is where the archive's mark says that the log has ended (R13); -1 without one.
	drainedAt int64

	// unsure: the file is not the one that was read (--accept-loss), and no record of the partition was seen in it yet.
	unsure bool

	// witness compares what the archive has and no position vouches for; nil where there is no such thing.
	witness *witness

	head meter.ArchiveHead // where the archive began in this run
	file openFile
}

// An openFile is what the owner knows of the archive file in the making.
type openFile struct {
	rows, bytes int64
	since       time.Time
}

// partitions are kept by number and in order.
type partitions struct {
	list  []*partition
	low   [256]*partition // those with low numbers, to be found quickly
	known map[int32]*partition
}

func (ps *partitions) find(n int32) *partition {
	if uint32(n) < uint32(len(ps.low)) {
		return ps.low[n]
	}
	return ps.known[n]
}

func (ps *partitions) add(p *partition) {
	if ps.known == nil {
		ps.known = map[int32]*partition{}
	}
	ps.known[p.number] = p
	if uint32(p.number) < uint32(len(ps.low)) {
		ps.low[p.number] = p
	}
	i, _ := slices.BinarySearchFunc(ps.list, p.number, func(q *partition, n int32) int { return int(q.number) - int(n) })
	ps.list = slices.Insert(ps.list, i, p)
}

// noFile is the head of a partition without a file: its archive begins at offset 0, and what it needs of the source at
// the byte.
func noFile(atByte int64) meter.ArchiveHead {
	return meter.ArchiveHead{Checkpoint: meter.Checkpoint{Byte: atByte, MaxReach: meter.MinusInfinity}}
}

// checkpoint is the counter's, with the byte of a place that only the owner knows.
func (p *partition) checkpoint(carry bool, end int64) (meter.Checkpoint, error) {
	c, err := p.counter.Checkpoint(carry)
	if c.Byte == stream.ByteOfNext || p.next == 0 { // nothing before the next line is needed
		c.Byte = end
	}
	if err != nil {
		return c, fmt.Errorf("run: checkpoint of partition %d: %w", p.number, err)
	}
	return c, nil
}

// crosses reports whether a watermark that moves from one time to another passes the end of a window, or an end + L. Of a
// partition that was not idle only then can G do so with it: the watermarks of the others stand still. (One that wakes
// while all were idle may move G further than itself.)
func (p *partition) crosses(m *meter.Meter, to int64) bool {
	if to < p.quietTo {
		return false
	}
	z, l := m.Window.Size, m.Window.AllowedLateness
	from := p.watermark
	p.quietTo = min(floorDiv(to, z)*z+z, floorDiv(to-l, z)*z+z+l)
	return floorDiv(from, z) != floorDiv(to, z) || floorDiv(from-l, z) != floorDiv(to-l, z)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
