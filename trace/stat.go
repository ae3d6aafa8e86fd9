package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
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

// A Stat counts a log.
type Stat struct {
	Topic      string
	Lines      int64 // records and idle lines
	Idle       int64 // idle lines
	Bytes      int64 // decompressed, header included
	Partitions []PartitionStat
	// Words counts records by the text at the word path, such as event_type; Unreadable those without one.
	Words      map[string]int64
	Unreadable int64
	Tombstones int64
	// First and Last are the range of log times in ms; valid if HasTime.
	First, Last int64
	HasTime     bool
}

// A PartitionStat counts one partition.
type PartitionStat struct {
	Partition   int32
	Records     int64
	First, Last int64 // offsets; meaningless without records
}

// maxWords is how many words are told apart; the rest are counted under "(others)".
const maxWords = 64

// Count reads the whole log. Word picks the word under which a value is counted (its kind, say); ok is false if it has
// none.
func Count(ctx context.Context, r *Reader, word func(value []byte) (text string, ok bool)) (*Stat, error) {
	h, err := r.Header(ctx)
	if err != nil {
		return nil, err
	}
	s := &Stat{Topic: h.Topic, Words: map[string]int64{}}
	parts := map[int32]*PartitionStat{}
	for _, p := range h.Partitions {
		parts[p] = &PartitionStat{Partition: p}
	}
	err = Each(ctx, r, func(_ *Chunk, l *Line) error {
		s.Lines++
		if l.Idle != nil {
			s.Idle++
			return nil
		}
		p := parts[l.Record.Partition]
		if p == nil {
			p = &PartitionStat{Partition: l.Record.Partition}
			parts[p.Partition] = p
		}
		p.add(l.Record.Offset)
		s.add(&l.Record, word)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.Bytes = r.at
	for _, p := range parts {
		s.Partitions = append(s.Partitions, *p)
	}
	slices.SortFunc(s.Partitions, func(a, b PartitionStat) int { return int(a.Partition) - int(b.Partition) })
	return s, nil
}

func (p *PartitionStat) add(offset int64) {
	if p.Records == 0 {
		p.First = offset
	}
	p.Records++
	p.Last = offset
}

func (s *Stat) add(r *meter.Record, word func([]byte) (string, bool)) {
	if r.HasLogTime {
		if !s.HasTime {
			s.First, s.Last, s.HasTime = r.LogTime, r.LogTime, true
		}
		s.First, s.Last = min(s.First, r.LogTime), max(s.Last, r.LogTime)
	}
	if r.Null {
		s.Tombstones++
		return
	}
	w, ok := word(r.Value)
	if !ok {
		s.Unreadable++
		return
	}
	if _, known := s.Words[w]; !known && len(s.Words) >= maxWords {
		w = "(others)"
	}
	s.Words[w]++
}

// Replay copies a log at a pace: each record pace times as fast as the log times say, measured from the first one. Wait
// returns when so much time has passed since the replay began, at once if it has, or with the context's error; what
// was written before is flushed first. A pace of 0 is as fast as possible. Records without a log time follow the
// record before them.
func Replay(ctx context.Context, r *Reader, w *Writer, pace float64, wait func(ctx context.Context, since time.Duration) error) error {
	h, err := r.Header(ctx)
	if err != nil {
		return err
	}
	if h.Stated {
		if err := w.Header(h); err != nil {
			return err
		}
	}
	p := pacer{pace: pace, wait: wait, flush: w.Flush}
	err = Each(ctx, r, func(_ *Chunk, l *Line) error {
		if l.Idle != nil {
			return w.Idle(l.Idle)
		}
		if err := p.until(ctx, &l.Record); err != nil {
			return err
		}
		if l.Record.Received {
			return w.Value(&l.Record)
		}
		return w.Record(&l.Record)
	})
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	return err
}

type pacer struct {
	pace        float64
	wait        func(context.Context, time.Duration) error
	flush       func() error
	begun       bool
	first, last int64 // log times, ms
}

// until waits for the record's turn. Log times that step back wait for nothing.
func (p *pacer) until(ctx context.Context, r *meter.Record) error {
	if p.pace <= 0 || !r.HasLogTime {
		return nil
	}
	if !p.begun {
		p.begun, p.first, p.last = true, r.LogTime, r.LogTime
	}
	if r.LogTime <= p.last {
		return nil
	}
	p.last = r.LogTime
	if err := p.flush(); err != nil {
		return err
	}
	return p.wait(ctx, time.Duration(float64(r.LogTime-p.first)/p.pace*float64(time.Millisecond)))
}

// WordAt is a word picker for [Count]: the string at a path of exact names in a value that is a JSON object.
func WordAt(path ...string) func(value []byte) (string, bool) {
	return func(value []byte) (string, bool) {
		text := json.RawMessage(value)
		for _, name := range path {
			var object map[string]json.RawMessage
			if json.Unmarshal(text, &object) != nil {
				return "", false
			}
			text = object[name]
		}
		var word *string
		if len(text) == 0 || json.Unmarshal(text, &word) != nil || word == nil {
			return "", false
		}
		return *word, true
	}
}
