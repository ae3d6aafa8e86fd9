package stream

import (
	"encoding/json"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// maxCarried is how many lives a checkpoint carries at most (R8).
const maxCarried = 1000

// A carriedMark is a restart mark of an earlier part of the log with the lives that began there: a checkpoint
// carries all of a mark or nothing.
type carriedMark struct {
	Offset int64         `json:"offset"`
	Byte   int64         `json:"byte"`
	Reach  int64         `json:"reach"`
	Lives  []carriedLife `json:"lives"`
}

// A carriedLife is a life whole: its state, from which follows what it has in windows that are not final.
type carriedLife struct {
	ID         []string   `json:"id"`
	Phase      string     `json:"phase"`
	First      int64      `json:"first"`
	Horizon    int64      `json:"horizon"`
	Account    string     `json:"account,omitempty"`
	SKU        string     `json:"sku,omitempty"`
	Start      *carriedOf `json:"start,omitempty"`
	End        *carriedOf `json:"end,omitempty"`
	Failed     bool       `json:"failed,omitempty"` // the end is an E
	Status     string     `json:"status,omitempty"` // of a held end
	Quantities []int64    `json:"quantities,omitempty"`
	Marks      []uint64   `json:"marks,omitempty"` // bits of the attribute filters, by the fingerprint's order
	StartAt    int64      `json:"start_at,omitempty"`
	Reference  []string   `json:"reference,omitempty"`
}

type carriedOf struct {
	Time int64  `json:"time"`
	Hash uint64 `json:"hash"`
}

// Checkpoint is where a fresh counter may begin so that it is in this one's live state once it has replayed all up
// to here (R8, theorem 2). It belongs before the next record. With carry, the oldest lives that copies keep
// prolonging are carried whole, so that they do not hold the restart back. Byte may be [ByteOfNext].
//
// It costs a walk over the marks that hold nothing but prolonged lives: next to nothing on an ordinary log.
func (c *Counter) Checkpoint(carry bool) (meter.Checkpoint, error) {
	switch {
	case c.err != nil:
		return meter.Checkpoint{}, fmt.Errorf("stream: checkpoint of partition %d: %w", c.partition, c.err)
	case !c.started && len(c.marks.list) == 0:
		return c.from, nil
	}
	var carriedMarks []carriedMark
	lives := 0
	for i := range c.marks.list {
		m := &c.marks.list[i]
		if !m.holds(c.watermark) {
			continue
		}
		var refs []uint32
		if carry && m.until <= c.watermark {
			refs = c.allProlonged(i)
		}
		if len(refs) == 0 || lives+len(refs) > maxCarried {
			return withCarried(meter.Checkpoint{Restart: m.offset, Byte: m.byte, MaxReach: m.reach}, carriedMarks)
		}
		lives += len(refs)
		carriedMarks = append(carriedMarks, c.carryMark(m, refs))
	}
	return withCarried(meter.Checkpoint{Restart: c.next, Byte: c.byteOfNext(), MaxReach: c.maxReach}, carriedMarks)
}

func (c *Counter) byteOfNext() int64 {
	if !c.started {
		return c.from.Byte
	}
	return ByteOfNext
}

// allProlonged lists the lives of a mark if a copy has prolonged every one of them; nil if not.
func (c *Counter) allProlonged(i int) []uint32 {
	m := &c.marks.list[i]
	seen := map[uint32]bool{}
	refs := m.prolonged[:0]
	for _, ref := range m.prolonged { // places of lives that are over may hold others by now
		l := c.lives.at(ref)
		if !seen[ref] && l.phase() != dead && l.has(prolonged) && c.marks.of(l.first()) == m {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	m.prolonged = refs
	if int64(len(refs)) < m.lives {
		return nil
	}
	return refs
}

func withCarried(cp meter.Checkpoint, marks []carriedMark) (meter.Checkpoint, error) {
	if len(marks) == 0 {
		return cp, nil
	}
	var err error
	if cp.Carried, err = json.Marshal(marks); err != nil {
		return cp, fmt.Errorf("stream: carry lives: %w", err)
	}
	return cp, nil
}

func (c *Counter) carryMark(m *mark, refs []uint32) carriedMark {
	out := carriedMark{Offset: m.offset, Byte: m.byte, Reach: m.reach}
	for _, ref := range refs {
		out.Lives = append(out.Lives, c.carryLife(ref))
	}
	return out
}

func (c *Counter) carryLife(ref uint32) carriedLife {
	l := c.lives.at(ref)
	out := carriedLife{
		ID: c.lives.idOf(l).Parts(), Phase: phaseNames[l.phase()], First: l.first(), Horizon: c.horizon(ref),
		Account: c.names.text(l.account()), SKU: c.names.text(l.sku()), Status: c.names.text(l.status()),
		Failed: l.has(endFailed), Marks: c.lives.marksOf(l), StartAt: c.lives.extras[ref].startAt,
	}
	for _, q := range c.lives.quantitiesOf(l) {
		out.Quantities = append(out.Quantities, int64(q))
	}
	if l.has(hasStart) {
		out.Start = &carriedOf{l.startTime(), l[wordStartHash]}
	}
	if l.has(hasEnd) {
		out.End = &carriedOf{l.endTime(), l[wordEndHash]}
	}
	if c.lives.refLen > 0 {
		out.Reference = c.lives.reference(ref).Parts()
	}
	return out
}

// restoreCarried brings the lives of a checkpoint back. The replay skips their records.
func (c *Counter) restoreCarried(text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	var marks []carriedMark
	if err := json.Unmarshal(text, &marks); err != nil {
		return err
	}
	for _, m := range marks {
		c.marks.list = append(c.marks.list, mark{offset: m.Offset, byte: m.Byte, reach: m.Reach, until: meter.MinusInfinity})
		for i := range m.Lives {
			if err := c.restoreLife(&m.Lives[i]); err != nil {
				return err
			}
		}
	}
	c.marks.since = c.marks.every // the first record of the replay opens a mark
	return nil
}

func (c *Counter) restoreLife(x *carriedLife) error {
	at := phaseOf(x.Phase)
	if at == dead || len(x.Quantities) != len(c.m.Event.Quantities) || len(x.Marks) != c.lives.nMarks {
		return fmt.Errorf("life %q is of another meter", x.ID)
	}
	id := meter.NewID(x.ID...)
	e := meter.Event{ID: id, IDHash: id.Hash64(), Reference: meter.NewID(x.Reference...), Offset: x.First}
	ref, err := c.beginLife(0, &e, x.Horizon)
	if err != nil {
		return err
	}
	l := c.lives.at(ref)
	l.setNames(c.names.hold(x.Account), c.names.hold(x.SKU))
	l.setStatus(c.names.hold(x.Status))
	l.set(carried)
	l.setPhase(at)
	copy(c.lives.marksOf(l), x.Marks)
	for i, q := range x.Quantities {
		c.lives.quantitiesOf(l)[i] = uint64(q)
	}
	if x.Start != nil {
		l.set(hasStart)
		l[wordStartTime], l[wordStartHash] = uint64(x.Start.Time), x.Start.Hash
	}
	if x.End != nil {
		l.set(hasEnd)
		l[wordEndTime], l[wordEndHash] = uint64(x.End.Time), x.End.Hash
	}
	if x.Failed {
		l.set(endFailed)
	}
	c.lives.setExtra(ref, extra{startAt: x.StartAt, horizon: meter.MinusInfinity})
	c.setProlonged(ref, x.Horizon)
	return c.resumeLife(ref)
}

func phaseOf(name string) phase {
	for i, n := range phaseNames {
		if n == name {
			return phase(i)
		}
	}
	return dead
}

// resumeLife puts a restored life's timer and cells back.
func (c *Counter) resumeLife(ref uint32) error {
	l := c.lives.at(ref)
	if t, ok := c.waitsFor(l); ok {
		c.open++
		c.timers.add(t, ref)
	}
	var b *billable
	switch l.phase() {
	case counted:
		b = c.ofLife(ref)
		b.time = l.startTime()
		if l.has(hasEnd) {
			b.time = l.endTime()
		}
	case abandoned:
		b = c.ofAbandoned(ref)
	default:
		return nil
	}
	c.silent = true
	err := c.count(b, 1)
	c.silent = false
	return err
}
