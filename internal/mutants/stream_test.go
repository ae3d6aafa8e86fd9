package mutants

import "testing"

// TestMutantsOfStream: each of these faults in the stream's core is noticed by its exam or its properties.
func TestMutantsOfStream(t *testing.T) {
	runSuite(t, &Suite{
		Root:    root,
		Package: "./stream",
		Stages:  [][]string{{"-rapid.checks=300", "-rapid.seed=1", "-rapid.shrinktime=1ms", "-rapid.nofailfile"}},
		Mutants: streamMutants,
	}, 18)
}

const (
	counterGo    = "stream/counter.go"
	rulesGo      = "stream/rules.go"
	billGo       = "stream/bill.go"
	livesGo      = "stream/lives.go"
	cellsGo      = "stream/cells.go"
	marksGo      = "stream/marks.go"
	checkpointGo = "stream/checkpoint.go"
	filtersGo    = "stream/filters.go"
	storeGo      = "stream/store.go"
	tableGo      = "stream/table.go"
	timersGo     = "stream/timers.go"
	pricerGo     = "stream/pricer.go"
	mergerGo     = "stream/merger.go"
	publishGo    = "stream/publish.go"
)

var streamMutants = []Mutant{
	{Name: "R1: an offset may come again", File: counterGo, Old: "case e.Offset < c.next:", New: "case e.Offset < c.next-1:"},
	{Name: "R3: every copy is a duplicate", File: rulesGo, Old: "	if same {\n		c.tellLone", New: "	if true {\n		c.tellLone"},
	{Name: "R3: an error after a completion may be a duplicate", File: rulesGo, Old: "sameKind && e.PayloadHash == l[wordEndHash]", New: "(sameKind || true) && e.PayloadHash == l[wordEndHash]"},
	{Name: "R3: ids are compared by half of their hash", File: storeGo, Old: "	return l[wordIDHash] == hash && l.idLen() == len(id) && sameText(l[s.id:], string(id))", New: "	return true || l.idLen() == 0"},
	{Name: "R3: a conflicting end is billed to its own account", File: billGo, Old: "if e.Kind.IsEnd() && ref != 0 {", New: "if false {"},
	{Name: "R4: log time does not guard the watermark", File: counterGo, Old: "return c.reach(e.Reach())", New: "return c.reach(e.Time)"},
	{Name: "R4: the watermark follows the last record, not the highest", File: counterGo, Old: "c.maxReach = max(c.maxReach, reach)", New: "c.maxReach = reach"},
	{Name: "R4: a timer fires one millisecond late", File: timersGo, Old: "ts.near.first().t <= w", New: "ts.near.first().t < w"},
	{Name: "R4: timers at one time fire in any order", File: timersGo, Old: "s.lessID(a.ref, b.ref)", New: "a.ref > b.ref"},
	{Name: "R4: ids are ordered with their lengths", File: storeGo, Old: "bytes.Compare(a[4:na], b[4:nb])", New: "bytes.Compare(a[:na], b[:nb])"},
	{Name: "R4: results of timers are judged by the watermark after", File: rulesGo, Old: "	b := c.ofAbandoned(ref)\n	b.judged = c.watermark", New: "	b := c.ofAbandoned(ref)\n	b.judged = c.watermarkAt(c.maxReach)"},
	{Name: "R4: a tick moves nothing", File: counterGo, Old: "	return c.reach(e.Reach())", New: "	if e.Bucket == meter.BucketTick {\n		return nil\n	}\n	return c.reach(e.Reach())"},
	{Name: "R5: windows below 1970 are those of truncation", File: livesGo, Old: "		in += c.window", New: "		in += 0"},
	{Name: "R6: <= for <: counted at end + L", File: billGo, Old: "if b.judged >= c.endOf(b.time)+c.lateness {", New: "if b.judged > c.endOf(b.time)+c.lateness {"},
	{Name: "R6: Z for L", File: billGo, Old: "if b.judged >= c.endOf(b.time)+c.lateness {", New: "if b.judged >= c.endOf(b.time)+c.window {"},
	{Name: "R7: no door for starts", File: rulesGo, Old: "	if c.watermark >= horizon {\n		c.lateAtDoor(e)", New: "	if false {\n		c.lateAtDoor(e)"},
	{Name: "R7: no door for ends", File: rulesGo, Old: "	if c.watermark >= c.endHorizon(e.Time) {\n		c.lateAtDoor(e)", New: "	if false {\n		c.lateAtDoor(e)"},
	{Name: "R7: the door for ends opens one millisecond longer", File: rulesGo, Old: "if c.watermark >= c.endHorizon(e.Time) {", New: "if c.watermark > c.endHorizon(e.Time) {"},
	{Name: "R7: an end that comes first is dropped", File: rulesGo, Old: "	if c.lives.at(ref).phase() == held {\n		return c.meetHeld(ref, e)\n	}\n", New: ""},
	{Name: "R7: an orphan still meets its start", File: rulesGo, Old: "if c.lives.at(ref).phase() == held {\n		return c.meetHeld", New: "if c.lives.at(ref).has(hasEnd) {\n		return c.meetHeld"},
	{Name: "R7: an orphan's end leaves its quantities to the start", File: rulesGo, Old: "			l[c.lives.quantities+i] = 0\n", New: "			l[c.lives.quantities+i] += 0\n"},
	{Name: "R7: superseding does not withdraw", File: rulesGo, Old: "c.count(c.ofAbandoned(ref), -1)", New: "error(nil)"},
	{Name: "R7: a request is superseded after its window is final", File: rulesGo, Old: "c.watermark < c.startHorizon(l.startTime()) && ", New: ""},
	{Name: "R7: a request is superseded into a final window", File: rulesGo, Old: " && c.watermark < c.endOf(e.Time)+c.lateness {", New: " {"},
	{Name: "R7: a filtered abandoned request can be superseded", File: rulesGo, Old: "	c.lives.at(ref).setPhase(done)\n	if !c.silent {\n		b.id", New: "	c.lives.at(ref).setPhase(abandoned)\n	if !c.silent {\n		b.id"},
	{Name: "R7: progress is the last total, not the greatest", File: rulesGo, Old: "uint64(max(int64(q[i]), e.Quantities[i]))", New: "uint64(e.Quantities[i])"},
	{Name: "R7: progress adds up", File: rulesGo, Old: "uint64(max(int64(q[i]), e.Quantities[i]))", New: "q[i] + uint64(e.Quantities[i])"},
	{Name: "R7: progress that says nothing says zero of everything", File: rulesGo, Old: " && e.Present>>i&1 == 1", New: " && e.Present>>i&1 <= 1", Equivalent: "the totals only grow, and what a record does not say is 0 in it"},
	{Name: "R7: of an abandoned request a whole may be less than its parts", File: billGo, Old: "b.quantities[whole] = max(b.quantities[whole], sum)", New: "_ = sum"},
	{Name: "R7: abandoned at the start's time", File: billGo, Old: "c.lives.at(ref).startTime()+c.patience, abandonedStatus", New: "c.lives.at(ref).startTime(), abandonedStatus"},
	{Name: "R8: a copy does not prolong", File: livesGo, Old: "if horizon > c.horizon(ref) {", New: "if false {"},
	{Name: "R8: remembered one millisecond longer", File: livesGo, Old: "if c.horizon(ref) > c.watermark {", New: "if c.horizon(ref) >= c.watermark {"},
	{Name: "R8: nothing is forgotten on time", File: livesGo, Old: "if c.horizon(ref) > c.watermark {", New: "if c.lives.at(ref).phase() != dead {"},
	{Name: "R8: an end does not keep its id", File: livesGo, Old: "h = max(h, c.endHorizon(l.endTime()))", New: "h = max(h, c.endHorizon(l.endTime())-c.patience)"},
	{Name: "R8: a late event is remembered", File: rulesGo, Old: "if horizon > c.watermark { //", New: "if true { //", Equivalent: "its horizon has passed: the next record of the id finds a life that is over"},
	{Name: "R8: a mark with one live id holds nothing", File: marksGo, Old: "m.lives > 0", New: "m.lives > 1"},
	{Name: "R8: windows without ids do not hold a mark", File: marksGo, Old: " || m.until > w", New: ""},
	{Name: "R8: M is the reach at the end, not at the restart", File: checkpointGo, Old: "Byte: m.byte, MaxReach: m.reach}, carriedMarks)", New: "Byte: m.byte, MaxReach: c.maxReach}, carriedMarks)"},
	{Name: "R8: the replay counts the records of carried ids", File: rulesGo, Old: "return c.silent && c.lives.at(ref).has(carried)", New: "return false"},
	{Name: "R8: carried lives come without their cells", File: checkpointGo, Old: "	err := c.count(b, 1)\n", New: "	var err error\n"},
	{Name: "R8: carried lives come without their timers", File: checkpointGo, Old: "		c.timers.add(t, ref)\n", New: "		_ = t\n"},
	{Name: "R8: a checkpoint carries the prolonged lives of a mark and forgets the others", File: checkpointGo, Old: "	m.prolonged = refs\n	if int64(len(refs)) < m.lives {", New: "	m.prolonged = refs\n	if false {"},
	{Name: "R8: the replay tells the merge again", File: cellsGo, Old: "	if silent {\n		c.was", New: "	if false {\n		c.was"},
	{Name: "R9: late before filtered", File: billGo, Old: "	if name := c.filters.first(b); name != \"\" {", New: "	if name := c.filters.first(b); name != \"\" && b.judged < c.endOf(b.time)+c.lateness {"},
	{Name: "R9: a missing attribute matches like an empty one", File: filtersGo, Old: "text != \"\" && f.matchesText(text)", New: "f.matchesText(text) || text == \"\""},
	{Name: "R9: the last matching filter names the record", File: filtersGo, Old: "	for i := range fs.all {\n		if fs.all[i].matches(b) {\n			return fs.all[i].Name", New: "	for i := range fs.all {\n		i = len(fs.all) - 1 - i\n		if fs.all[i].matches(b) {\n			return fs.all[i].Name"},
	{Name: "R9: a tier begins at its threshold", File: billGo, Old: "if quantities[on] > above {", New: "if quantities[on] >= above {"},
	{Name: "R9: a withdrawal leaves the set hash", File: cellsGo, Old: "c.value.SetHash += uint64(sign) * hash", New: "c.value.SetHash += hash"},
	{Name: "R9: sums wrap", File: cellsGo, Old: "if sign > 0 && sum < c.value.Quantities[i] {", New: "if sign > 1 {"},
	{Name: "R10: a whole is billed with its parts", File: pricerGo, Old: "			n -= quantities[j]\n", New: "			n -= 0\n"},
	{Name: "R10: the price is that of the window's end", File: pricerGo, Old: "c.WindowEnd-p.window", New: "c.WindowEnd"},
	{Name: "R10: a price applies after its first window", File: pricerGo, Old: "rows[i].EffectiveFrom > start", New: "rows[i].EffectiveFrom >= start"},
	{Name: "R10: a list price looks like a table price", File: pricerGo, Old: "source = meter.PriceList", New: "source = meter.PriceTable"},
	{Name: "R11: changes are added, not replaced", File: mergerGo, Old: "delta := x.Value.Quantities[i] - x.Was.Quantities[i]", New: "delta := x.Value.Quantities[i]"},
	{Name: "R11: a taken change is taken again", File: cellsGo, Old: "		out = append(out, x)\n		c.was.Requests, c.was.SetHash = c.value.Requests, c.value.SetHash\n", New: "		out = append(out, x)\n"},
	{Name: "R11: idle partitions hold G back", File: mergerGo, Old: "!s.Idle {", New: "true {"},
	{Name: "R11: G goes back", File: mergerGo, Old: "return max(m.g, low)", New: "return low"},
	{Name: "R11: a gap between commits is accepted", File: mergerGo, Old: "if commitNo != s.CommitNo+1 {", New: "if commitNo <= s.CommitNo {"},
	{Name: "R11: an idle partition wakes without moving", File: mergerGo, Old: "s.Idle = s.Idle || idle", New: "s.Idle = idle"},
	{Name: "R11: final one millisecond late", File: mergerGo, Old: "return m.g >= end+m.lateness", New: "return m.g > end+m.lateness"},
	{Name: "R11: nothing is due at end + L", File: mergerGo, Old: " || floorDiv(g-m.lateness, m.window) > floorDiv(m.g-m.lateness, m.window)", New: ""},
	{Name: "R11: finals before mains", File: publishGo, Old: "compareBool(a.final, b.final)", New: "compareBool(b.final, a.final)"},
	{Name: "R11: corrections are judged by the G after", File: publishGo, Old: "	touched := p.touched\n", New: "	p.g = p.reached()\n	touched := p.touched\n"},
	{Name: "R11: empty rows are published", File: publishGo, Old: "!d.final && d.revision == 0 && t.usage.Requests != 0", New: "!d.final && d.revision == 0"},
	{Name: "R11: a row first seen final is final with its amount", File: publishGo, Old: "p.fire(meter.FinalFiring, r, &zero)", New: "_ = zero\n			r.finalPico = t.pico\n			p.fire(meter.FinalFiring, r, t)"},
	{Name: "R11: an adjustment moves the final row", File: publishGo, Old: "p.fire(meter.AdjustmentFiring, r, t)", New: "r.finalPico = t.pico\n		p.fire(meter.AdjustmentFiring, r, t)"},
	{Name: "R11: a final row that left is not read again", File: mergerGo, Old: "m.rows[key] == nil {", New: "false {"},
	{Name: "R11: a restored row does not publish what was saved unpublished", File: mergerGo, Old: "		m.touch(r) // it may hold", New: "		_ = r // it may hold"},
	{Name: "R13: draining closes no window", File: counterGo, Old: "c.err = c.advance(meter.PlusInfinity)", New: "c.err = c.advance(c.watermark + c.patience)"},
	{Name: "R14: a filtered successor leaves its start counted", File: rulesGo, Old: "	c.tell(&c.sum.Counted, -1)\n", New: ""},
	{Name: "table: a removed id cuts off those behind it", File: tableGo, Old: "if s.between(s.home(s.slots[j].tag), i, j) {", New: "if false {"},
	{Name: "timers: the bucket that the watermark enters is left out", File: timersGo, Old: "if t>>timerShift <= ts.inside {", New: "if false {"},
	{Name: "horizons: a prolonged life is not looked at again", File: counterGo, Old: "				c.horizons.push(h, ref)\n", New: "				_ = h\n"},
}
