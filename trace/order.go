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
	last   map[int32]int64
}

// NewOrder begins at the file's first line, or at any later one: what came before is not checked against.
func NewOrder(file string, h Header) *Order {
	return &Order{file: file, header: h, last: map[int32]int64{}}
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
	p := l.Record.Partition
	last, known := o.last[p]
	if !known {
		if err := o.exists(p); err != nil {
			return o.at(l, err)
		}
	}
	if known && l.Record.Offset <= last {
		return o.at(l, fmt.Errorf("partition %d: offset %d comes after offset %d; offsets rise (R1)", p, l.Record.Offset, last))
	}
	o.last[p] = l.Record.Offset
	return nil
}

func (o *Order) exists(p int32) error {
	if o.header.Partitions != nil && !slices.Contains(o.header.Partitions, p) {
		return fmt.Errorf("partition %d is none of the header's %v", p, o.header.Partitions)
	}
	return nil
}

func (o *Order) at(l *Line, err error) error { return &Error{File: o.file, Line: l.Number, Err: err} }
