package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// eventRows makes rows of a partner's events: each event in the window of its time (R5), one request each.
func (c *comparison) eventRows(s *Side) RowReader {
	byKey := map[meter.RowKey]*meter.Row{}
	for i := range s.Events {
		e := &s.Events[i]
		k := c.eventRow(e)
		r := byKey[k]
		if r == nil {
			r = &meter.Row{RowKey: k, Usage: meter.Usage{Quantities: make([]int64, len(s.Quantities))}}
			byKey[k] = r
		}
		r.Usage.Requests++
		for q, v := range e.Quantities {
			r.Usage.Quantities[q] += v
		}
	}
	rows := make([]meter.Row, 0, len(byKey))
	for _, r := range byKey {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b meter.Row) int { return a.RowKey.Compare(b.RowKey) })
	return SliceRows(rows)
}

func (c *comparison) eventRow(e *Event) meter.RowKey {
	return meter.RowKey{Account: e.Account, WindowEnd: WindowEnd(e.Time, c.window)}
}

// A story is one reference: what our log and the partner's have of it.
type story struct {
	ours   []*meter.Item // counted, in log order
	others []*meter.Item // not counted: by cause, then log order
	dead   []*Dead
	events []*Event // in the order of the file

	usedOurs, usedOthers, usedEvents []bool
	usedDead                         int
}

// explainEvents matches a partner's events with our records by reference, as multisets.
func (c *comparison) explainEvents() error {
	stories, err := c.stories()
	if err != nil {
		return err
	}
	for _, p := range c.rows {
		p.events = c.cols.zero()
	}
	keys := make([]meter.ID, 0, len(stories))
	for k := range stories {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		c.tell(stories[k])
	}
	return nil
}

func (c *comparison) stories() (map[meter.ID]*story, error) {
	groups, err := c.group(ItemQuery{All: true})
	if err != nil {
		return nil, err
	}
	dead, err := c.deadOf(0)
	if err != nil {
		return nil, err
	}
	stories := map[meter.ID]*story{}
	for ref, g := range groups {
		s := &story{}
		for _, it := range g.items[0] {
			if it.Verdict == meter.VerdictCounted {
				s.ours = append(s.ours, it)
			} else {
				s.others = append(s.others, it)
			}
		}
		slices.SortStableFunc(s.others, func(a, b *meter.Item) int {
			return cmp.Compare(lostCause(a), lostCause(b))
		})
		stories[ref] = s
	}
	for i := range c.sides[1].Events {
		e := &c.sides[1].Events[i]
		s := stories[e.Reference]
		if s == nil {
			s = &story{}
			stories[e.Reference] = s
		}
		s.events = append(s.events, e)
		s.dead = dead.byRef[e.Reference]
	}
	for _, s := range stories {
		s.usedOurs, s.usedOthers, s.usedEvents = make([]bool, len(s.ours)), make([]bool, len(s.others)), make([]bool, len(s.events))
	}
	return stories, nil
}

// lostCause is the cause of an event that we have and do not bill; open ones come last.
func lostCause(it *meter.Item) Cause {
	return cmp.Or(verdictCause(it), Unexplained)
}

// tell accounts for every event and every billed record of one reference. Of several possible matches that of the
// same row comes first: then what is over is the copy, in the row that has it.
func (c *comparison) tell(s *story) {
	c.matchBilled(s, true)
	c.matchLost(s, true)
	c.matchBilled(s, false)
	c.matchLost(s, false)
	for i, e := range s.events {
		if !s.usedEvents[i] {
			c.tellUnknown(s, e)
		}
	}
	for i, it := range s.ours {
		if s.usedOurs[i] {
			continue
		}
		p := part{cause: DuplicateCounted, value: c.cols.usage(0, &it.Usage), ref: nameOf(it), log: positionsOf(it)}
		if len(s.events) == 0 {
			p.cause, p.why = Unexplained, c.sides[1].Name+" does not have it"
		}
		c.add(placeOf(it), p)
	}
}

// matchBilled pairs events with billed records, of the same row or of any.
func (c *comparison) matchBilled(s *story, sameRow bool) {
	for i, e := range s.events {
		for j, it := range s.ours {
			if s.usedEvents[i] || s.usedOurs[j] || sameRow && c.eventRow(e) != placeOf(it).row() {
				continue
			}
			s.usedEvents[i], s.usedOurs[j] = true, true
			c.tellBilled(e, it)
		}
	}
}

// tellBilled is for one record that both have.
func (c *comparison) tellBilled(e *Event, it *meter.Item) {
	at := placeOf(it)
	theirs := at
	theirs.account, theirs.windowEnd = c.eventRow(e).Account, c.eventRow(e).WindowEnd
	value := c.eventValue(e, &it.Usage, theirs)
	ours := c.cols.usage(0, &it.Usage)
	p := part{cause: Unexplained, ref: nameOf(it), log: positionsOf(it)}
	switch {
	case at != theirs:
		p.why = fmt.Sprintf("%s bills it to %s %s, %s has it at %s %s", c.sides[0].Name, printable(at.account), timeText(at.windowEnd),
			c.sides[1].Name, printable(theirs.account), timeText(theirs.windowEnd))
		p.value = ours
		c.add(at, p)
		p.value = value.neg()
		c.add(theirs, p)
	case !ours.minus(value).usageZero():
		p.value = ours.minus(value)
		p.why = "other quantities in " + c.sides[1].Name + c.placeOfLine(e)
		c.add(at, p)
	}
}

// matchLost pairs events with records that we have and do not bill.
func (c *comparison) matchLost(s *story, sameRow bool) {
	for i, e := range s.events {
		for j, it := range s.others {
			if s.usedEvents[i] || s.usedOthers[j] {
				continue
			}
			key := c.eventRow(e)
			if sameRow && (it.WindowEnd != key.WindowEnd || it.Account != "" && it.Account != key.Account) {
				continue
			}
			s.usedEvents[i], s.usedOthers[j] = true, true
			c.tellLost(s, e, it)
		}
	}
}

// tellLost is for one event that we have and do not bill. The halves of a request are taken together.
func (c *comparison) tellLost(s *story, e *Event, it *meter.Item) {
	p := part{cause: lostCause(it), ref: nameOf(it), log: positionsOf(it)}
	usage, sku, tier := it.Usage.Clone(), it.SKU, it.Tier
	if usage.Requests == 0 {
		for j, o := range s.others {
			if s.usedOthers[j] || o.Usage.Requests != 0 || o.Kind.IsEnd() == it.Kind.IsEnd() {
				continue
			}
			s.usedOthers[j] = true
			p.log = append(p.log, positionsOf(o)...)
			if both, err := usage.Plus(o.Usage); err == nil {
				usage = both
			}
			if sku == "" {
				sku, tier = o.SKU, o.Tier
			}
			break
		}
	}
	if p.cause == Unexplained {
		p.why = c.sides[0].Name + ": " + it.Verdict.String()
	}
	c.addEvent(e, &usage, sku, tier, p)
}

// tellUnknown is for an event that is in our log at most as something that could not be read.
func (c *comparison) tellUnknown(s *story, e *Event) {
	left := c.sides[0]
	p := part{ref: e.Reference}
	if s.usedDead < len(s.dead) {
		d := s.dead[s.usedDead]
		s.usedDead++
		p.cause, p.log, p.why = DeadLetter, []position{{d.Partition, d.Offset}}, d.Reason.String()
		usage := meter.Usage{Quantities: left.known(d)}
		c.addEvent(e, &usage, cmp.Or(d.SKU, left.ConstSKU), 0, p)
		return
	}
	key := c.eventRow(e)
	switch {
	case c.mayMiss(left.MissingArchive, key):
		p.cause, p.text = MissingInArchive, c.rangeNames(left.MissingArchive, key)
	case c.mayMiss(left.Lost, key):
		p.cause, p.text = LostRange, c.rangeNames(left.Lost, key)
	default:
		p.cause = MissingInStream
	}
	if left.Items == nil {
		p.cause, p.text, p.why = Unexplained, "", left.Name+" has no records to look it up in"
	}
	usage := meter.Usage{Quantities: left.known(&Dead{})}
	c.addEvent(e, &usage, left.ConstSKU, 0, p)
}

// known are the quantities that could be read of a dead letter, and the meter's constants.
func (s *Side) known(d *Dead) []int64 {
	known := make([]int64, len(s.Quantities))
	for i, q := range s.Quantities {
		switch {
		case d.Present&(1<<i) != 0:
			known[i] = quantityAt(d.Quantities, i)
		case q.IsConst:
			known[i] = q.Const
		}
	}
	return known
}

// addEvent adds an event that only the partner bills.
func (c *comparison) addEvent(e *Event, ours *meter.Usage, sku string, tier int32, p part) {
	key := c.eventRow(e)
	at := place{key.Account, key.WindowEnd, sku, tier}
	p.value = c.eventValue(e, ours, at).neg()
	c.add(at, p)
}

// eventValue is what an event comes to: what its line states, the rest as our record has it, at our prices. It is
// added to the partner's row.
func (c *comparison) eventValue(e *Event, ours *meter.Usage, at place) Value {
	v := Value{Requests: 1, Quantities: c.cols.widen(0, ours.Quantities)}
	for i, col := range c.cols.at[1] {
		if col >= 0 {
			v.Quantities[i] = quantityAt(e.Quantities, col)
		}
	}
	v.Pico = c.worth(at, v.Quantities)
	if row := c.byKey[at.row()]; row != nil {
		row.events = row.events.plus(v)
	}
	return v
}

func (c *comparison) placeOfLine(e *Event) string {
	if e.Line == 0 {
		return ""
	}
	return fmt.Sprintf(":%d", e.Line)
}

// mayMiss reports whether one of the ranges may have held something of the row.
func (c *comparison) mayMiss(ranges []Range, key meter.RowKey) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.touches(key) })
}

func (r Range) touches(key meter.RowKey) bool {
	return r.From >= r.To || key.WindowEnd > r.From && key.WindowEnd <= r.To
}

func (c *comparison) rangeNames(ranges []Range, key meter.RowKey) string {
	var names []string
	for _, r := range ranges {
		if r.touches(key) {
			names = append(names, c.rangeName(r))
		}
	}
	return strings.Join(names, " ")
}
