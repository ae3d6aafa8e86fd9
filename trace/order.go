package trace

import (
	"fmt"
	"slices"
)

// An Order checks what concerns the order of lines (R1): offsets rise within a partition, and partitions are those of
// the header. It belongs to the owner of the log, who sees the lines in order.
type Order struct {
	file   string
	header Header
	low    [256]int64      // the last offset + 1 of the partitions with low numbers; 0 before the first
	high   map[int32]int64 // of all others
}

// NewOrder begins at the file's first line, or at any later one: what came before is not checked against.
func NewOrder(file string, h Header) *Order {
	return &Order{file: file, header: h, high: map[int32]int64{}}
}

// Check judges the next line.
func (o *Order) Check(l *Line) error {
	for _, p := range l.Idle {
		if err := o.exists(p); err != nil {
			return o.at(l, err)
		}
	}
	if l.Idle != nil {
		return nil
	}
	p, offset := l.Record.Partition, l.Record.Offset
	isLow := uint32(p) < uint32(len(o.low))
	var next int64
	if isLow {
		next = o.low[p]
	} else {
		next = o.high[p]
	}
	if next == 0 {
		if err := o.exists(p); err != nil {
			return o.at(l, err)
		}
	}
	if offset < next {
		return o.at(l, fmt.Errorf("partition %d: offset %d comes after offset %d; offsets rise (R1)", p, offset, next-1))
	}
	if isLow {
		o.low[p] = offset + 1
	} else {
		o.high[p] = offset + 1
	}
	return nil
}

func (o *Order) exists(p int32) error {
	if o.header.Partitions != nil && !slices.Contains(o.header.Partitions, p) {
		return fmt.Errorf("partition %d is none of the header's %v", p, o.header.Partitions)
	}
	return nil
}

func (o *Order) at(l *Line, err error) error { return &Error{File: o.file, Line: l.Number, Err: err} }
