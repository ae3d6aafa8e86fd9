package gen

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A world writes a log, line by line, by a clock of its own.
type world struct {
	t          *rapid.T
	o          Options
	s          *shape
	now        int64 // the log's clock
	partitions []int32
	foreign    int32 // a partition that holds nothing of this meter, -1 without
	offsets    map[int32]int64
	noLogTime  bool // the whole log has none
	home       map[string]int32
	used       map[string]bool // EqualCopies: records that exist, by id and kind
	past       []said
	reach      map[int32]int64 // highest reach per partition, to aim at deadlines
	lines      strings.Builder
}

// said is a record that was written, to be copied or answered.
type said struct {
	id, kind string
	fields   fields
	at       int32 // partition
}

// fields is a record's value before it is written down: time in ms, everything else as JSON.
type fields struct {
	time int64
	top  map[string]string
	p    map[string]string
}

func newWorld(t *rapid.T, o Options, s *shape) *world {
	w := &world{t: t, o: o, s: s, now: s.base - 12*s.unit, foreign: -1, offsets: map[int32]int64{}, home: map[string]int32{},
		used: map[string]bool{}, reach: map[int32]int64{}}
	for n := range int32(rapid.IntRange(1, 3).Draw(t, "partitions")) {
		w.partitions = append(w.partitions, n)
	}
	if !o.OnlyEvents && chance(t, "foreign partition", 6) {
		w.foreign = 7
	}
	w.noLogTime = chance(t, "no log times", 8)
	return w
}

// log writes the whole log in the trace format.
func (w *world) log() string {
	if chance(w.t, "header", 2) {
		named := slices.Clone(w.partitions)
		if w.foreign >= 0 {
			named = append(named, w.foreign)
		}
		if chance(w.t, "dead partition", 4) {
			named = append(named, 9)
		}
		text, _ := json.Marshal(named)
		fmt.Fprintf(&w.lines, `{"trace":1,"topic":"drawn","partitions":%s}`+"\n", text)
	}
	for n := rapid.IntRange(w.o.MinRecords, w.o.MaxRecords).Draw(w.t, "records"); n > 0; n-- {
		w.step()
	}
	return w.lines.String()
}

// step lets some time pass and writes a line.
func (w *world) step() {
	w.now += w.s.unit * pick[int64](w.t, "passes", 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 2)
	switch step := pick(w.t, "step", steps...); {
	case step == "night":
		w.now += w.s.unit * int64(rapid.IntRange(5, 40).Draw(w.t, "night"))
		w.fresh()
	case step == "idle" && !w.o.NoIdle:
		w.idleLine()
	case step == "junk" && !w.o.OnlyEvents:
		w.junk()
	case step == "tick" && w.s.ticks:
		w.record(w.anyPartition(), fields{time: w.eventTime(), top: map[string]string{"k": `"T"`}})
	case step == "copy" && len(w.past) > 0:
		w.copy()
	case step == "answer" && w.s.kind == meter.Requests:
		w.answer()
	default:
		w.fresh()
	}
}

// steps is weighted; rapid prefers the first.
var steps = slices.Concat(slices.Repeat([]string{"fresh"}, 12), slices.Repeat([]string{"answer"}, 5), slices.Repeat([]string{"copy"}, 6),
	[]string{"tick", "tick", "junk", "junk", "idle", "night"})

func (w *world) idleLine() {
	var idle []int32
	for _, p := range append(slices.Clone(w.partitions), 9) {
		if chance(w.t, "idle", 2) {
			idle = append(idle, p)
		}
	}
	text, _ := json.Marshal(append([]int32{}, idle...))
	fmt.Fprintf(&w.lines, `{"idle":%s}`+"\n", text)
}

func (w *world) anyPartition() int32 { return pick(w.t, "partition", w.partitions...) }

// eventTime is about the log's clock: behind it, at it, ahead of it (a fast clock), mostly on the grid.
func (w *world) eventTime() int64 {
	back := pick[int64](w.t, "behind", 0, 0, 1, 1, 0, 2, 2, 3, 3, 4, 5, 8, 13, -1, -2, -6)
	at := w.now - back*w.s.unit
	if w.s.timeUnit != meter.UnitS && chance(w.t, "off the grid", 12) {
		at += pick[int64](w.t, "off by", -1, 1)
	}
	return at
}

// partitionOf keeps an id at home, but for a few that stray (R1's promise broken).
func (w *world) partitionOf(id string) int32 {
	home, ok := w.home[id]
	if !ok {
		home = w.anyPartition()
		w.home[id] = home
	}
	if !w.o.OnePartition && chance(w.t, "strays", 25) {
		return w.anyPartition()
	}
	return home
}

// fresh writes a record that no one wrote before, though its id may have been used.
func (w *world) fresh() {
	id := fmt.Sprintf("r%d", rapid.IntRange(0, 15).Draw(w.t, "id"))
	kind := "Tap"
	if w.s.kind == meter.Requests {
		kinds := []string{"S", "S", "S", "C", "C", "E"}
		if w.s.progress {
			kinds = append(kinds, "P", "P")
		}
		kind = pick(w.t, "word", kinds...)
	}
	if w.o.EqualCopies && kind != "P" {
		id = fmt.Sprintf("r%d", rapid.IntRange(0, 40).Draw(w.t, "id"))
		class := kind
		if class == "E" {
			class = "C"
		}
		if w.used[id+class] {
			return
		}
		w.used[id+class] = true
	}
	w.say(id, kind, w.fields(id, kind))
}

func (w *world) say(id, kind string, f fields) {
	r := said{id: id, kind: kind, fields: f, at: w.partitionOf(id)}
	w.past = append(w.past, r)
	w.record(r.at, f)
}

// answer ends a request whose deadline the watermark has about reached: just in time, just abandoned, or so late
// that its window is nearly final. Without one it lets the watermark come nearer.
func (w *world) answer() {
	var due []said
	for _, r := range w.past {
		wait := w.reachOf(r.at) - w.s.b - (r.fields.time + w.s.a)
		if r.kind == "S" && wait >= -w.s.unit && wait <= w.s.z+w.s.l && !w.used[r.id+"C"] {
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		w.now += w.s.unit
		w.fresh()
		return
	}
	r := pick(w.t, "due", due...)
	if w.o.EqualCopies {
		w.used[r.id+"C"] = true
	}
	kind := pick(w.t, "word", "C", "C", "E")
	w.say(r.id, kind, w.fields(r.id, kind))
}

// copy writes a record again: as it was, with a fresh time, or with another payload.
func (w *world) copy() {
	recent := w.past[max(0, len(w.past)-12):]
	r := pick(w.t, "original", recent...)
	f := fields{time: r.fields.time, top: maps.Clone(r.fields.top), p: maps.Clone(r.fields.p)}
	switch roll := rapid.IntRange(0, 5).Draw(w.t, "copy"); {
	case roll == 0 && !w.o.EqualCopies:
		f.time = w.eventTime()
	case roll == 1:
		again := w.fields(r.id, r.kind)
		f.p = again.p
		if chance(w.t, "other account", 3) && f.top["a"] != "" {
			f.top["a"] = again.top["a"]
		}
	case roll == 2 && r.kind == "C":
		f.top["k"] = `"E"` // an error after a completion
	}
	w.record(w.partitionOf(r.id), f)
}

// fields draws the fields of a record.
func (w *world) fields(id, kind string) fields {
	f := fields{time: w.eventTime(), top: map[string]string{"id": quote(id)}, p: map[string]string{}}
	if w.s.kind == meter.Requests || w.s.kinds {
		f.top["k"] = quote(kind)
	}
	if w.s.identity == "[id, part]" {
		f.top["part"] = "7"
	}
	if chance(w.t, "reference", 4) {
		f.top["ref"] = quote("ref-" + id)
	}
	switch kind {
	case "S", "Tap":
		f.top["a"], f.top["m"] = quote(pick(w.t, "account", accounts...)), quote(pick(w.t, "sku", "m0", "m0", "m0", "m1", "m2"))
		in := w.amount("in", f.p, -1)
		if chance(w.t, "cached", 2) {
			w.amount("cached", f.p, in)
		}
		if chance(w.t, "agent", 3) {
			f.p["agent"] = quote(pick(w.t, "agent is", "bot/1", "web", "cli", ""))
		}
	case "C", "E", "P":
		if chance(w.t, "says nothing", 6) {
			break
		}
		out := w.amount("out", f.p, -1)
		if chance(w.t, "thought", 2) {
			w.amount("thought", f.p, out)
		}
	}
	if kind != "S" && chance(w.t, "status", 5) {
		f.p["status"] = quote(pick(w.t, "status is", "ok", "broken", ""))
	}
	if kind != "S" && chance(w.t, "latency", 5) {
		f.p["latency"] = pick(w.t, "latency is", "5", "-5", "null", "1.5", `"5"`)
	}
	return f
}

// amount draws a quantity, at most most if that is not negative.
func (w *world) amount(name string, p map[string]string, most int64) int64 {
	n := pick[int64](w.t, name, 0, 1, 2, 3, 7, 50, 100, 101, 150, 200, 201, 300)
	if most >= 0 {
		n = min(n, most)
	}
	p[name] = strconv.FormatInt(n, 10)
	return n
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// junk writes a record that no event is in: dead letters of many reasons, ignored records, tombstones.
func (w *world) junk() {
	p := w.anyPartition()
	if w.foreign >= 0 && chance(w.t, "to the foreign one", 2) {
		p = w.foreign
	}
	kind := "Tap"
	if w.s.kind == meter.Requests {
		kind = pick(w.t, "word", "S", "C")
	}
	id := "r0"
	if w.o.EqualCopies || w.o.OnePartition {
		id = fmt.Sprintf("j%d-%d", p, w.offsets[p]) // some are admitted
	}
	f := w.fields(id, kind)
	roll := rapid.IntRange(0, 12).Draw(w.t, "junk")
	if p == w.foreign && roll > 2 {
		roll = 2
	}
	switch roll {
	case 0:
		w.line(p, "null")
	case 1:
		w.line(p, pick(w.t, "text", `""`, `" "`, `"no json"`, `"{} {}"`, `"[1]"`, `"{\"k\":1,\"\\u006b\":2}"`, `{"id":"\ud800"}`))
	case 2:
		if w.s.kind == meter.Events && !w.s.kinds {
			w.line(p, `"17"`)
			return
		}
		f.top["k"] = pick(w.t, "kind", `"Other"`, "null", "7", `"s"`)
		w.record(p, f)
	case 3:
		f.time = w.now + w.s.maxAhead + w.s.unit*pick[int64](w.t, "ahead", 0, 1, 50)
		w.record(p, f)
	case 4:
		f.p["in"], f.p["out"] = pick(w.t, "bad", "-1", "1.5", `"3"`, "1e13", "true"), "-1"
		w.record(p, f)
	case 5:
		f.p["cached"], f.p["thought"] = "1000000000000", "1000000000000"
		w.record(p, f)
	case 6:
		f.p["status"] = "5"
		w.record(p, f)
	case 7:
		delete(f.top, pick(w.t, "lost", "id", "a", "m"))
		w.record(p, f)
	case 8:
		f.top["t"] = pick(w.t, "time", `"x"`, "null", "1e300", "-1e1000000000", "1.00001", `"2026-01-01T00:00:00"`, "true")
		w.record(p, f)
	case 9:
		w.write(p, `"value_base64":`+quote(base64.StdEncoding.EncodeToString([]byte("{\"id\":\"\xff\"}"))))
	default:
		f.time = w.eventTime()
		w.record(p, f) // nothing wrong with it
	}
}

// record writes the fields as a value.
func (w *world) record(p int32, f fields) {
	if f.top["t"] == "" {
		f.top = maps.Clone(f.top)
		f.top["t"] = w.time(f.time)
		if near := min(f.time, w.now); f.time <= w.now+w.s.maxAhead {
			w.reach[p] = max(near, w.reachOf(p))
		}
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(f.top)) {
		parts = append(parts, quote(k)+":"+f.top[k])
	}
	if len(f.p) > 0 {
		var inner []string
		for _, k := range slices.Sorted(maps.Keys(f.p)) {
			inner = append(inner, quote(k)+":"+f.p[k])
		}
		parts = append(parts, `"p":{`+strings.Join(inner, ",")+"}")
	}
	w.line(p, "{"+strings.Join(parts, ",")+"}")
}

func (w *world) reachOf(p int32) int64 {
	if r, ok := w.reach[p]; ok {
		return r
	}
	return meter.MinusInfinity
}

// time writes an event time in the meter's unit.
func (w *world) time(ms int64) string {
	switch w.s.timeUnit {
	case meter.UnitS:
		if ms%1000 == 0 {
			return strconv.FormatInt(ms/1000, 10)
		}
		return fmt.Sprintf("%de-3", ms)
	case meter.UnitUs:
		return strconv.FormatInt(ms*1000, 10)
	case meter.UnitNs:
		return strconv.FormatInt(ms*1_000_000, 10)
	case meter.UnitRFC3339:
		at := time.UnixMilli(ms).In(time.FixedZone("", pick(w.t, "zone", 0, 0, 3600, -5400)))
		return quote(at.Format("2006-01-02T15:04:05.999Z07:00"))
	}
	return strconv.FormatInt(ms, 10)
}

func (w *world) line(p int32, value string) { w.write(p, `"value":`+value) }

// write writes a record's line: its offset, after a hole now and then, and its log time.
func (w *world) write(p int32, value string) {
	if chance(w.t, "hole", 10) {
		w.offsets[p] += int64(rapid.IntRange(1, 3).Draw(w.t, "hole size"))
	}
	logTime := ""
	if !w.noLogTime && !chance(w.t, "no log time", 15) {
		at := w.now
		if chance(w.t, "log clock slips", 20) {
			at -= w.s.unit * 2
		}
		logTime = fmt.Sprintf(`"log_time":%d,`, at)
	}
	fmt.Fprintf(&w.lines, `{"partition":%d,"offset":%d,%s%s}`+"\n", p, w.offsets[p], logTime, value)
	w.offsets[p]++
}
