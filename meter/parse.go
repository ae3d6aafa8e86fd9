package meter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Load reads a meter file. The error is Faults if the file can be read and is wrong.
func Load(path string) (*Meter, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	return Parse(path, text)
}

// Parse checks a meter file whole: every fault at once (DESIGN section 3, docs/meter.md).
func Parse(path string, text []byte) (*Meter, error) {
	y := &YAML{File: path}
	m := &Meter{Path: path, Text: slices.Clone(text)}
	if root := y.Root(text); root != nil {
		parseMeter(y, root, m)
	}
	if len(y.Faults) > 0 {
		slices.SortStableFunc(y.Faults, func(a, b Fault) int { return a.Line - b.Line })
		return nil, y.Faults
	}
	m.fingerprint()
	return m, nil
}

const notYet = "is not built yet; take it out (nothing is read and then ignored)"

func parseMeter(y *YAML, root *yaml.Node, m *Meter) {
	top := y.Mapping(root, "meter", "meter", "kind", "event", "watermark", "window", "assembly", "filter", "pricing", "run",
		"latency_windows", "alerts", "effective")
	for _, key := range []string{"latency_windows", "alerts", "effective"} {
		top.Refuse(key, notYet)
	}
	m.Name = y.Text(top.Need("meter", "a name such as tenant-cost"), "meter")
	if m.Name != "" && !nameRE.MatchString(m.Name) {
		y.Faultf(top.Get("meter"), "meter: %q is no name; use letters, digits, - and _", clip(m.Name))
	}
	m.Kind = MeterKind(y.Word(top.Need("kind", "requests or events"), "kind", string(Requests), string(Events)))
	parseEvent(y, top.Need("event", "the part that says where fields stand"), m)
	parseWindows(y, top, m)
	if n := top.Get("filter"); n != nil {
		parseFilters(y, n, m)
	}
	pricing := y.Mapping(top.Need("pricing", "{rate_card: rates.yaml}"), "pricing", "rate_card", "list", "service")
	pricing.Refuse("service", notYet)
	m.Pricing.RateCard = y.Text(pricing.Need("rate_card", "the file with the rates"), "pricing.rate_card")
	m.Pricing.List = y.Text(pricing.Get("list"), "pricing.list")
	parseRun(y, top.Get("run"), m)
}

// nameRE are the names of meters; columnRE those of quantities and attributes, which become columns.
var (
	nameRE   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	columnRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// reserved are the archive's own columns: a quantity has its own column under its own name.
var reserved = []string{"log_offset", "log_time", "bucket", "reason", "kind", "id_hash", "account", "sku", "event_time",
	"prior_max_reach", "status", "latency", "payload_hash", "raw", "topic", "date", "hour", "part"}

func parseEvent(y *YAML, n *yaml.Node, m *Meter) {
	e := &m.Event
	e.TierOn = -1
	ev := y.Mapping(n, "event", "format", "fields", "time_unit", "kinds", "latency", "quantities", "tier", "attributes",
		"max_ahead", "max_bytes", "min_time")
	y.Word(ev.Need("format", "json"), "event.format", "json")
	parseFields(y, ev.Need("fields", "identity, account, sku and time"), e)
	parseKinds(y, ev, m)
	e.TimeUnit = TimeUnit(y.Word(ev.Need("time_unit", "ms, s, us, ns or rfc3339"), "event.time_unit",
		string(UnitMs), string(UnitS), string(UnitUs), string(UnitNs), string(UnitRFC3339)))
	e.Latency = y.Path(ev.Get("latency"), "event.latency")
	parseQuantities(y, ev.Need("quantities", "what is counted"), m)
	parseAttributes(y, ev.Get("attributes"), m)
	if t := ev.Get("tier"); t != nil {
		parseTier(y, t, e)
	}
	e.MaxAhead = y.Duration(ev.Need("max_ahead", "how far an event time may be ahead of its log time, such as 5m"), "event.max_ahead", 0)
	e.MaxBytes = 1 << 20
	if b := ev.Get("max_bytes"); b != nil {
		e.MaxBytes = y.Int(b, "event.max_bytes", 1, 1<<30)
	}
	e.MinTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	if t := ev.Get("min_time"); t != nil {
		e.MinTime = y.Time(t, "event.min_time")
	}
}

func parseFields(y *YAML, n *yaml.Node, e *EventMap) {
	f := y.Mapping(n, "event.fields", "kind", "identity", "account", "sku", "time", "status", "received", "reference")
	e.KindPath = y.Path(f.Get("kind"), "event.fields.kind")
	if id := f.Need("identity", "the list of fields that name an event, or none"); id != nil {
		if !(id.Kind == yaml.ScalarNode && id.Value == "none") {
			e.Identity = y.Paths(id, "event.fields.identity")
		}
	}
	e.Account = y.Source(f.Need("account", "who pays"), "event.fields.account")
	e.SKU = y.Source(f.Need("sku", "what is used: a path, or {const: WORD}"), "event.fields.sku")
	e.Time = y.Path(f.Need("time", "the event time"), "event.fields.time")
	e.Status = y.Path(f.Get("status"), "event.fields.status")
	e.Received = y.Path(f.Get("received"), "event.fields.received")
	e.Reference = y.Paths(f.Get("reference"), "event.fields.reference")
}

// kindsOf are the kinds that each kind of meter may declare, and those it must.
var kindsOf = map[MeterKind]struct{ may, must []Kind }{
	Requests: {[]Kind{KindStart, KindProgress, KindComplete, KindError, KindTick}, []Kind{KindStart, KindComplete}},
	Events:   {[]Kind{KindEvent, KindTick}, []Kind{KindEvent}},
}

func parseKinds(y *YAML, ev Mapping, m *Meter) {
	n := ev.Get("kinds")
	if m.Kind == Events && n == nil && m.Event.KindPath == nil {
		return
	}
	switch {
	case n == nil:
		ev.Need("kinds", "the word of each kind, as they stand under event.fields.kind")
		return
	case m.Event.KindPath == nil:
		y.Faultf(n, "event.kinds: there is no event.fields.kind to find these words under")
	}
	rule, ok := kindsOf[m.Kind]
	if !ok {
		return
	}
	var known []string
	for _, k := range rule.may {
		known = append(known, k.String())
	}
	kinds := y.Mapping(n, "event.kinds", known...)
	m.Event.Kinds = map[string]Kind{}
	for _, k := range rule.may {
		node := kinds.Get(k.String())
		if node == nil && slices.Contains(rule.must, k) {
			kinds.Need(k.String(), "a "+string(m.Kind)+" meter needs it")
		}
		word := y.Text(node, "event.kinds."+k.String())
		if word == "" {
			continue
		}
		if other, dup := m.Event.Kinds[word]; dup {
			y.Faultf(node, "event.kinds.%s: %q is already the word of %s", k, clip(word), other)
		}
		m.Event.Kinds[word] = k
	}
}

// maxQuantities is what Event.Present has bits for.
const maxQuantities = 64

// maxQuantity is the greatest quantity of one event (R2).
const maxQuantity = 1_000_000_000_000

func parseQuantities(y *YAML, n *yaml.Node, m *Meter) {
	e := &m.Event
	parts := map[int]*yaml.Node{}
	names := columnNames{y: y, seen: map[string]bool{}}
	y.Names(n, "event.quantities", func(key, value *yaml.Node) {
		what := "event.quantities." + clip(key.Value)
		names.add(key, what, true)
		q := Quantity{Name: key.Value, PartOf: -1}
		keys := y.Mapping(value, what, "path", "const", "on", "part_of", "default")
		parseAmount(y, keys, what, &q)
		if part := keys.Get("part_of"); part != nil {
			parts[len(e.Quantities)] = part
		}
		parseOn(y, keys, what, m.Kind, &q)
		e.Quantities = append(e.Quantities, q)
	})
	if n != nil && len(e.Quantities) == 0 || len(e.Quantities) > maxQuantities {
		y.Faultf(n, "event.quantities: want 1 to %d quantities", maxQuantities)
	}
	for i, node := range parts {
		q := &e.Quantities[i]
		whole := slices.IndexFunc(e.Quantities, func(w Quantity) bool { return w.Name == node.Value })
		switch {
		case whole < 0 || whole == i:
			y.Faultf(node, "event.quantities.%s: part_of %q is no other quantity", q.Name, clip(node.Value))
		case parts[whole] != nil:
			y.Faultf(node, "event.quantities.%s: %q is itself a part; name the whole", q.Name, clip(node.Value))
		default:
			q.PartOf, q.OnEnd = whole, e.Quantities[whole].OnEnd
		}
	}
}

// parseAmount reads where a quantity's number comes from.
func parseAmount(y *YAML, keys Mapping, what string, q *Quantity) {
	path, constant := keys.Get("path"), keys.Get("const")
	switch {
	case path != nil && constant != nil:
		y.Faultf(constant, "%s: path and const exclude each other", what)
	case constant != nil:
		q.Const, q.IsConst = y.Int(constant, what+".const", 0, maxQuantity), true
		keys.Refuse("default", "has no use beside const")
	default:
		q.Path = y.Path(keys.Need("path", "where the number stands, or const: 1"), what+".path")
	}
	if d := keys.Get("default"); d != nil {
		q.Default, q.HasDefault = y.Int(d, what+".default", 0, maxQuantity), true
	}
}

func parseOn(y *YAML, keys Mapping, what string, kind MeterKind, q *Quantity) {
	on := keys.Get("on")
	switch {
	case kind == Events:
		keys.Refuse("on", "is for requests meters; an events meter has one kind")
	case keys.Get("part_of") != nil:
		keys.Refuse("on", "is taken from the whole; take it out")
	case kind == Requests && on == nil:
		keys.Need("on", "start or end")
	default:
		q.OnEnd = y.Word(on, what+".on", "start", "end") == "end"
	}
}

// columnNames keeps names that become columns apart, as engines do: without case.
type columnNames struct {
	y    *YAML
	seen map[string]bool
}

func (c columnNames) add(key *yaml.Node, what string, own bool) {
	lower := strings.ToLower(key.Value)
	switch {
	case !columnRE.MatchString(key.Value):
		c.y.Faultf(key, "%s: no name for a column; use letters, digits and _", what)
	case own && (slices.Contains(reserved, lower) || reservedRE.MatchString(lower)):
		c.y.Faultf(key, "%s: the archive has a column of its own by that name; choose another", what)
	case c.seen[lower]:
		c.y.Faultf(key, "%s: stands twice but for upper and lower case", what)
	}
	c.seen[lower] = true
}

// reservedRE are the archive's numbered and prefixed columns.
var reservedRE = regexp.MustCompile(`^(id_[0-9]+|ref_[0-9]+|attr_.*)$`)

func parseAttributes(y *YAML, n *yaml.Node, m *Meter) {
	names := columnNames{y: y, seen: map[string]bool{}}
	y.Names(n, "event.attributes", func(key, value *yaml.Node) {
		what := "event.attributes." + clip(key.Value)
		names.add(key, what, false)
		m.Event.Attributes = append(m.Event.Attributes, Attribute{Name: key.Value, Path: y.Path(value, what)})
	})
}

func parseTier(y *YAML, n *yaml.Node, e *EventMap) {
	t := y.Mapping(n, "event.tier", "on", "above")
	on := t.Need("on", "the quantity whose size decides")
	if name := y.Text(on, "event.tier.on"); name != "" {
		e.TierOn = slices.IndexFunc(e.Quantities, func(q Quantity) bool { return q.Name == name })
		if e.TierOn < 0 {
			y.Faultf(on, "event.tier.on: %q is no quantity", clip(name))
		}
	}
	above := t.Need("above", "the thresholds, such as [200000]")
	if above == nil {
		return
	}
	if above.Kind != yaml.SequenceNode || len(above.Content) == 0 {
		y.Faultf(above, "event.tier.above: want a list of rising numbers")
		return
	}
	for i, item := range above.Content {
		v := y.Int(item, "event.tier.above", 0, maxQuantity)
		if i > 0 && v <= e.TierAbove[i-1] {
			y.Faultf(item, "event.tier.above: thresholds have to rise")
		}
		e.TierAbove = append(e.TierAbove, v)
	}
}

func parseWindows(y *YAML, top Mapping, m *Meter) {
	wm := y.Mapping(top.Need("watermark", "{max_out_of_orderness: 20s, idleness: 1m}"), "watermark", "max_out_of_orderness", "idleness")
	m.Watermark.MaxOutOfOrderness = y.Duration(wm.Need("max_out_of_orderness", "how far out of order events come, such as 20s"), "watermark.max_out_of_orderness", 0)
	m.Watermark.Idleness = time.Minute.Milliseconds()
	if idle := wm.Get("idleness"); idle != nil {
		m.Watermark.Idleness = y.Duration(idle, "watermark.idleness", time.Millisecond)
	}
	win := y.Mapping(top.Need("window", "{size: 1m, allowed_lateness: 2m}"), "window", "size", "allowed_lateness")
	m.Window.Size = y.Duration(win.Need("size", "such as 1m"), "window.size", time.Millisecond)
	m.Window.AllowedLateness = y.Duration(win.Need("allowed_lateness", "such as 2m, or 0s"), "window.allowed_lateness", 0)
	if m.Kind == Events {
		top.Refuse("assembly", "is for requests meters; take it out")
		return
	}
	as := y.Mapping(top.Need("assembly", "{abandon_after: 5m}"), "assembly", "abandon_after")
	n := as.Need("abandon_after", "how long a start waits for its end, such as 5m")
	m.AbandonAfter = y.Duration(n, "assembly.abandon_after", time.Millisecond)
	if n != nil && m.AbandonAfter < m.Window.Size+m.Window.AllowedLateness {
		y.Faultf(n, "assembly.abandon_after: has to be at least window.size + window.allowed_lateness (%s)",
			time.Duration(m.Window.Size+m.Window.AllowedLateness)*time.Millisecond)
	}
}

func parseRun(y *YAML, n *yaml.Node, m *Meter) {
	r := y.Mapping(n, "run", "source", "source_format", "archive", "ledger", "http")
	m.Run = RunConfig{Source: y.Text(r.Get("source"), "run.source"), SourceFormat: "trace", Archive: "archive", Ledger: "sqlite:gatewaymeter.db"}
	if strings.Contains(m.Run.Source, "://") {
		y.Faultf(r.Get("source"), "run.source: %s %s; name a trace file, or - for standard input", scheme(m.Run.Source), unbuilt)
	}
	if f := r.Get("source_format"); f != nil {
		m.Run.SourceFormat = y.Word(f, "run.source_format", "trace", "values")
	}
	if a := r.Get("archive"); a != nil {
		if m.Run.Archive = y.Text(a, "run.archive"); strings.Contains(m.Run.Archive, "://") {
			y.Faultf(a, "run.archive: %s %s; name a folder", scheme(m.Run.Archive), unbuilt)
		}
	}
	if l := r.Get("ledger"); l != nil {
		m.Run.Ledger = y.Text(l, "run.ledger")
		switch file, ok := strings.CutPrefix(m.Run.Ledger, "sqlite:"); {
		case m.Run.Ledger == "" || m.Run.Ledger == "none" || ok && file != "":
		case strings.Contains(m.Run.Ledger, "://"):
			y.Faultf(l, "run.ledger: %s %s; use sqlite:FILE", scheme(m.Run.Ledger), unbuilt)
		default:
			y.Faultf(l, "run.ledger: %q is no ledger; use sqlite:FILE, or none", clip(m.Run.Ledger))
		}
	}
	if h := r.Get("http"); h != nil && h.Value != "" {
		y.Faultf(h, "run: \"http\" %s", notYet)
	}
}

const unbuilt = "is not built yet"

// scheme is what a URL begins with, such as kafka://; the rest may hold a password.
func scheme(url string) string {
	at := strings.Index(url, "://")
	return clip(url[:at]) + "://"
}

// fingerprint hashes the parsed values that decide a verdict, so 60s and 1m are one.
func (m *Meter) fingerprint() {
	event := m.Event
	event.Reference = nil
	part := struct {
		Rules int
		Kind  MeterKind
		Event EventMap
	}{Rules, m.Kind, event}
	m.EventFingerprint = hashJSON(part)
	m.Fingerprint = hashJSON(struct {
		Event             any
		MaxOutOfOrderness int64
		Window            Window
		AbandonAfter      int64
		Filters           []Filter
	}{part, m.Watermark.MaxOutOfOrderness, m.Window, m.AbandonAfter, m.Filters})
}

func hashJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: plain structs of words and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
