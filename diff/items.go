package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A group is all that both sides know of one id (or reference): the items of the left and of the right.
type group struct {
	items [2][]*meter.Item
	dead  map[*meter.Item]bool // items whose counterpart cancels them
}

// explainItems compares two sides of our own, record by record.
func (c *comparison) explainItems() error {
	l, r := c.sides[0], c.sides[1]
	if l.Items == nil || r.Items == nil || sameSource(l.Items, r.Items) {
		return nil // the rows are all there is to compare: what differs is not a record's doing
	}
	q := ItemQuery{All: c.whole}
	if !c.whole {
		for _, p := range c.rows {
			q.Rows = append(q.Rows, p.key)
		}
	}
	groups, err := c.group(q)
	if err != nil {
		return err
	}
	if !c.whole {
		// Ids that do not cancel may have records elsewhere: another copy, a lone end, a late completion.
		q = ItemQuery{}
		for id, g := range groups {
			if g.cancel(); len(g.left(0))+len(g.left(1)) > 0 {
				q.IDs = append(q.IDs, id)
			}
		}
		if len(q.IDs) == 0 {
			return nil
		}
		slices.Sort(q.IDs)
		if groups, err = c.group(q); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(groups) {
		if err := c.explainGroup(groups[key]); err != nil {
			return err
		}
	}
	return nil
}

// sameSource reports whether both sides have the same records behind them.
func sameSource(a, b ItemSource) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func sortedKeys(groups map[meter.ID]*group) []meter.ID {
	keys := make([]meter.ID, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// group loads items and puts them together by id, or by reference where the sides have other ids.
func (c *comparison) group(q ItemQuery) (map[meter.ID]*group, error) {
	groups := map[meter.ID]*group{}
	for i, s := range c.sides {
		if s.Items == nil {
			continue
		}
		items, err := s.Items.Items(c.ctx, q)
		if err != nil {
			return nil, fmt.Errorf("records of %s: %w", s.Name, err)
		}
		for n := range items {
			it := &items[n]
			if it.Verdict == meter.VerdictProgress {
				continue
			}
			key := it.Reference
			if c.byID() {
				key = it.ID
			}
			g := groups[key]
			if g == nil {
				g = &group{}
				groups[key] = g
			}
			g.items[i] = append(g.items[i], it)
		}
	}
	for _, g := range groups {
		for i := range g.items {
			slices.SortFunc(g.items[i], compareItems)
		}
	}
	return groups, nil
}

func (c *comparison) byID() bool {
	return c.sides[0].Identity == c.sides[1].Identity && c.sides[0].Identity != ""
}

// compareItems is log order.
func compareItems(a, b *meter.Item) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), slices.Compare(a.Offsets, b.Offsets), cmp.Compare(a.Verdict, b.Verdict))
}

// cancel takes out what both sides count alike: first the same log records, then any of equal place and usage.
func (g *group) cancel() {
	g.dead = map[*meter.Item]bool{}
	if l, r := g.left(0), g.left(1); len(l) == 0 || len(r) == 0 {
		return
	} else if len(l) == 1 && len(r) == 1 {
		same := billedAlike(l[0], r[0])
		g.dead[l[0]], g.dead[r[0]] = same, same
		return
	}
	for _, byPosition := range []bool{true, false} {
		partners := map[string][]*meter.Item{}
		for _, r := range g.left(1) {
			k := cancelKey(r, byPosition)
			partners[k] = append(partners[k], r)
		}
		for _, l := range g.left(0) {
			k := cancelKey(l, byPosition)
			if same := partners[k]; len(same) > 0 {
				g.dead[l], g.dead[same[0]] = true, true
				partners[k] = same[1:]
			}
		}
	}
}

// billedAlike reports whether two items have equal place and usage.
func billedAlike(a, b *meter.Item) bool {
	u, v := a.Usage, b.Usage
	u.SetHash, v.SetHash = 0, 0 // of two identities, perhaps
	return placeOf(a) == placeOf(b) && u.Equal(v)
}

// cancelKey is equal for items that are billed alike, and of the same log position if byPosition.
func cancelKey(it *meter.Item, byPosition bool) string {
	quantities := it.Usage.Quantities
	for len(quantities) > 0 && quantities[len(quantities)-1] == 0 {
		quantities = quantities[:len(quantities)-1]
	}
	k := fmt.Sprint(it.Account, "\x00", it.WindowEnd, "\x00", it.SKU, "\x00", it.Tier, it.Usage.Requests, quantities)
	if byPosition && len(it.Offsets) > 0 {
		k = fmt.Sprint(it.Partition, "@", it.Offsets[0], "\x00", k)
	}
	return k
}

// left are the counted items of a side that nothing has cancelled yet, in log order.
func (g *group) left(side int) []*meter.Item {
	var rest []*meter.Item
	for _, it := range g.items[side] {
		if it.Verdict == meter.VerdictCounted && !g.dead[it] {
			rest = append(rest, it)
		}
	}
	return rest
}

// explainGroup names a cause for every record of an id that one side bills and the other does not bill alike.
func (c *comparison) explainGroup(g *group) error {
	if g.cancel(); len(g.left(0))+len(g.left(1)) == 0 {
		return nil
	}
	for side := range c.sides {
		for _, it := range g.left(side) {
			why, err := c.whyBilled(g, side, it)
			if err != nil {
				return err
			}
			sign := int64(1 - 2*side)
			c.add(placeOf(it), part{cause: why.cause, value: c.cols.usage(side, &it.Usage).times(sign),
				ref: nameOf(it), log: why.log, why: why.text})
		}
	}
	return nil
}

// A reason is a cause for one record, the log positions that show it, and words where it needs some.
type reason struct {
	cause Cause
	log   []position
	text  string
}

// whyBilled says why a record is billed so on its side and not on the other. It is symmetric in the sides.
func (c *comparison) whyBilled(g *group, side int, it *meter.Item) (reason, error) {
	other := 1 - side
	near, log := g.around(side, it)
	best := reason{log: log}
	for _, s := range []int{side, other} {
		for _, o := range overlapping(g.items[s], log) {
			if o == it || o.Verdict == meter.VerdictCounted {
				continue
			}
			cause := verdictCause(o)
			if o.Verdict == meter.VerdictDuplicate {
				cause = 0
			}
			if cause == Orphan && o.Partition != it.Partition {
				cause = SplitAcrossPartitions // its start is in the other partition
			}
			if again := g.copyBilled(s, o); again != 0 {
				cause = again
			}
			if cause != 0 && (best.cause == 0 || cause < best.cause) {
				best.cause = cause
			}
		}
	}
	if best.cause != 0 {
		return best, nil
	}
	return c.whyWithoutVerdict(g, side, it, near, log)
}

// around is the whole request as either side sees it: the other side's items that share a record with it, and the log
// positions of all of them. Where a side took an equal record in place of one of these, that one belongs to it too.
func (g *group) around(side int, it *meter.Item) (near []*meter.Item, log []position) {
	near = overlapping(g.items[1-side], positionsOf(it))
	log = positionsOf(it)
	for _, o := range near {
		log = append(log, positionsOf(o)...)
	}
	seen := slices.Clone(log)
	for s := range g.items {
		for _, o := range overlapping(g.items[s], seen) {
			if o.Verdict != meter.VerdictDuplicate || g.copyBilled(s, o) != 0 {
				continue
			}
			if first := originalOf(g.items[s], o); first != nil && first != it {
				log = append(log, positionsOf(first)...)
				if s != side && !slices.Contains(near, first) {
					near = append(near, first)
				}
			}
		}
	}
	slices.SortFunc(log, position.compare)
	return near, slices.Compact(log)
}

// whyWithoutVerdict is for records that no verdict of the other side speaks of.
func (c *comparison) whyWithoutVerdict(g *group, side int, it *meter.Item, near []*meter.Item, log []position) (reason, error) {
	other := 1 - side
	if slices.ContainsFunc(near, func(o *meter.Item) bool { return sameAbandoned(it, o) }) {
		return reason{Late, log, "progress that came after the deadline"}, nil
	}
	if len(g.counted(side)) > len(g.counted(other)) {
		if again := billedAgain(g.items[side], it); again != 0 {
			return reason{cause: again, log: log}, nil
		}
	}
	if g.split() {
		return reason{cause: SplitAcrossPartitions, log: log}, nil
	}
	dead, err := c.deadOf(other)
	if err != nil {
		return reason{}, err
	}
	for _, p := range log {
		if d := dead.byPos[p]; d != nil {
			return reason{DeadLetter, log, c.sides[other].Name + ": " + d.Reason.String()}, nil
		}
	}
	if within(c.sides[other].MissingArchive, log) {
		return reason{cause: MissingInArchive, log: log}, nil
	}
	if within(c.sides[other].Lost, log) {
		return reason{cause: LostRange, log: log}, nil
	}
	if slices.ContainsFunc(near, func(o *meter.Item) bool { return o.Verdict == meter.VerdictDuplicate }) {
		return reason{cause: DuplicateCounted, log: log}, nil
	}
	l, r := c.sides[0], c.sides[1]
	sameMeter := l.Fingerprint == r.Fingerprint || l.Fingerprint == "" || r.Fingerprint == ""
	moved := ""
	for _, o := range near {
		if o.Verdict != meter.VerdictCounted {
			continue
		}
		moved = fmt.Sprintf("%s bills it to %s, %s to %s", c.sides[side].Name, placeText(it), c.sides[other].Name, placeText(o))
	}
	switch {
	case !sameMeter:
		return reason{MeterMismatch, log, moved}, nil
	case moved != "":
		return reason{Unexplained, log, moved}, nil
	}
	return reason{Unexplained, log, fmt.Sprintf("%s bills it, %s has no verdict on it", c.sides[side].Name, c.sides[other].Name)}, nil
}

// sameAbandoned reports whether both sides bill an abandoned request alike but for what progress they took in: even
// its tier may differ by that.
func sameAbandoned(a, b *meter.Item) bool {
	return b.Verdict == meter.VerdictCounted && a.Abandoned && b.Abandoned && a.Account == b.Account && a.SKU == b.SKU &&
		a.WindowEnd == b.WindowEnd
}

// nameOf is what a report calls a record: its reference, or its id where the reference says nothing.
func nameOf(it *meter.Item) meter.ID {
	for _, p := range it.Reference.Parts() {
		if p != "" {
			return it.Reference
		}
	}
	return it.ID
}

func (g *group) counted(side int) []*meter.Item {
	return slices.DeleteFunc(slices.Clone(g.items[side]), func(it *meter.Item) bool { return it.Verdict != meter.VerdictCounted })
}

// split reports whether records of the id are in several partitions.
func (g *group) split() bool {
	var first *meter.Item
	for _, items := range g.items {
		for _, it := range items {
			if first == nil {
				first = it
			}
			if it.Partition != first.Partition || len(it.Elsewhere) > 0 {
				return true
			}
		}
	}
	return false
}

// verdictCause is the cause that a verdict gives for a record that the other side bills, 0 for none.
func verdictCause(o *meter.Item) Cause {
	switch o.Verdict {
	case meter.VerdictLate:
		return Late
	case meter.VerdictDuplicate:
		return DuplicateCounted
	case meter.VerdictConflict:
		return Conflict
	case meter.VerdictLateCompletion:
		return AbandonedThenCompleted
	case meter.VerdictOrphan:
		return Orphan
	case meter.VerdictOpen:
		if o.Kind.IsEnd() {
			return Orphan // held for a start that this side has forgotten or has elsewhere (R7, R8): an orphan to be
		}
	case meter.VerdictFiltered:
		return Filtered
	}
	return 0
}

// copyBilled says in which way the other side than s bills the copy o besides its first, 0 if o is no copy or it does not.
func (g *group) copyBilled(s int, o *meter.Item) Cause {
	if o.Verdict != meter.VerdictDuplicate && o.Verdict != meter.VerdictConflict {
		return 0
	}
	for _, billed := range overlapping(g.counted(1-s), positionsOf(o)) {
		return billedAgain(g.items[1-s], billed)
	}
	return 0
}

// billedAgain says in which way a side bills the id of it more than once, 0 if it does not: under two ids it does not
// know the copy; in one partition it has forgotten the first (R8); else the two partitions do not know of each other.
func billedAgain(items []*meter.Item, it *meter.Item) Cause {
	var found Cause
	for _, o := range items {
		if o == it || o.Verdict != meter.VerdictCounted {
			continue
		}
		cause := SplitAcrossPartitions
		if o.ID != it.ID {
			cause = DuplicateCounted
		} else if o.Partition == it.Partition {
			cause = DuplicateBeyondHorizon
		}
		if found == 0 || cause < found {
			found = cause
		}
	}
	return found
}

// originalOf is the record of which o is a copy: the last one before it that is none itself, or the first anywhere.
func originalOf(items []*meter.Item, o *meter.Item) *meter.Item {
	var found *meter.Item
	for _, it := range items { // in log order
		if it.Verdict == meter.VerdictDuplicate || it.Verdict == meter.VerdictConflict {
			continue
		}
		if found == nil || it.Partition == o.Partition && compareItems(it, o) < 0 {
			found = it
		}
	}
	return found
}

// overlapping are the items that hold one of the positions.
func overlapping(items []*meter.Item, log []position) []*meter.Item {
	var found []*meter.Item
	for _, it := range items {
		if slices.ContainsFunc(positionsOf(it), func(p position) bool { return slices.Contains(log, p) }) {
			found = append(found, it)
		}
	}
	return found
}

func within(ranges []Range, log []position) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool {
		return slices.ContainsFunc(log, func(p position) bool {
			return p.partition == r.Partition && p.offset >= r.First && p.offset < r.Next
		})
	})
}

func placeText(it *meter.Item) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", printable(it.Account), timeText(it.WindowEnd), printable(it.SKU))
	if it.Tier != 0 {
		fmt.Fprintf(&b, " tier %d", it.Tier)
	}
	return b.String()
}
