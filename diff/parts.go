package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A part is what one record contributes to the difference of one row.
type part struct {
	cause Cause
	// value is signed as left - right; its money is usage x right rate.
	value Value
	ref   meter.ID
	log   []position
	text  string // "topic/partition@..." where the part is a range and not positions
	why   string
}

// A position is one record of the log.
type position struct {
	partition int32
	offset    int64
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.partition, o.partition), cmp.Compare(p.offset, o.offset))
}

// positionsOf are the log records of an item; under the complete truth they may be in several partitions (R15).
func positionsOf(it *meter.Item) []position {
	ps := make([]position, len(it.Offsets))
	for i, o := range it.Offsets {
		ps[i] = position{it.Partition, o}
	}
	for _, e := range it.Elsewhere {
		ps = append(ps, position{e.Partition, e.Offset})
	}
	return ps
}

// place is where a record is billed, or would be.
type place struct {
	account   string
	windowEnd int64
	sku       string
	tier      int32
}

func placeOf(it *meter.Item) place { return place{it.Account, it.WindowEnd, it.SKU, it.Tier} }

func (p place) row() meter.RowKey { return meter.RowKey{Account: p.account, WindowEnd: p.windowEnd} }

// add hands a part to its row. Rows that agree, or that are not compared, take none.
func (c *comparison) add(at place, p part) {
	if row := c.byKey[at.row()]; row != nil {
		p.value.Pico = c.worth(at, p.value.Quantities)
		row.parts = append(row.parts, p)
	}
}

// worth is usage x right rate in the cell of at. A side that has no such cell, or no prices, is valued at the other's.
func (c *comparison) worth(at place, quantities []int64) meter.Int128 {
	var sum meter.Int128
	if !c.cols.money {
		return sum
	}
	for i, q := range c.cols.billed(quantities) {
		if q != 0 {
			sum = sum.Add(meter.Mul64(q, c.rates(at)[1][i].Pico))
		}
	}
	return sum
}

// positionName is "topic/partition@offset".
func (c *comparison) positionName(p position) string {
	return fmt.Sprintf("%s/%d@%d", c.topic(), p.partition, p.offset)
}

// rangeName is "topic/partition@first-last".
func (c *comparison) rangeName(r Range) string {
	if r.Next-r.First == 1 {
		return c.positionName(position{r.Partition, r.First})
	}
	return fmt.Sprintf("%s/%d@%d-%d", c.topic(), r.Partition, r.First, r.Next-1)
}

func (c *comparison) topic() string { return cmp.Or(c.sides[0].Topic, c.sides[1].Topic) }

// deadLetters of one side, loaded when a record needs them.
type deadLetters struct {
	loaded bool
	byPos  map[position]*Dead
	byRef  map[meter.ID][]*Dead
	all    []Dead
}

func (c *comparison) deadOf(side int) (*deadLetters, error) {
	d := &c.dead[side]
	if d.loaded {
		return d, nil
	}
	d.loaded, d.byPos, d.byRef = true, map[position]*Dead{}, map[meter.ID][]*Dead{}
	s := c.sides[side]
	if s.Items == nil {
		return d, nil
	}
	all, err := s.Items.DeadLetters(c.ctx)
	if err != nil {
		return nil, fmt.Errorf("dead letters of %s: %w", s.Name, err)
	}
	d.all = slices.Clone(all)
	slices.SortFunc(d.all, func(a, b Dead) int {
		return position{a.Partition, a.Offset}.compare(position{b.Partition, b.Offset})
	})
	for i := range d.all {
		l := &d.all[i]
		d.byPos[position{l.Partition, l.Offset}] = l
		d.byRef[l.Reference] = append(d.byRef[l.Reference], l)
	}
	return d, nil
}
