package trace

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

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
