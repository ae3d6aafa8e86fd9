package meter

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// parseFilters reads the `filter:` list (R9): each entry has a name, one thing to look at and one comparison.
func parseFilters(y *YAML, n *yaml.Node, m *Meter) {
	if n.Kind != yaml.SequenceNode {
		y.Faultf(n, "filter: want a list such as [{name: bots, attribute: agent, prefix: bot/}]")
		return
	}
	seen := map[string]bool{}
	for _, item := range n.Content {
		keys := y.Mapping(item, "filter", "name", "attribute", "quantity", "field", "equals", "in", "prefix", "above", "below")
		f := Filter{Name: y.Text(keys.Need("name", "it is counted under this name"), "filter.name")}
		if f.Name != "" && (seen[f.Name] || !nameRE.MatchString(f.Name)) {
			y.Faultf(keys.Get("name"), "filter.name: %q stands twice or is no name (letters, digits, - and _)", clip(f.Name))
		}
		seen[f.Name] = true
		if parseFilterField(y, keys, m, &f) {
			parseFilterOp(y, keys, &f)
		}
		m.Filters = append(m.Filters, f)
	}
}

func parseFilterField(y *YAML, keys Mapping, m *Meter, f *Filter) bool {
	n, key := onlyOne(y, keys, "attribute", "quantity", "field")
	if n == nil {
		return false
	}
	switch key {
	case "attribute":
		f.Field = FilterAttribute
		f.Index = slices.IndexFunc(m.Event.Attributes, func(a Attribute) bool { return a.Name == n.Value })
	case "quantity":
		f.Field = FilterQuantity
		f.Index = slices.IndexFunc(m.Event.Quantities, func(q Quantity) bool { return q.Name == n.Value })
	default:
		f.Field = FilterField(y.Word(n, "filter.field", "account", "sku", "status"))
		return f.Field != ""
	}
	if f.Index < 0 {
		y.Faultf(n, "filter: %s %q is not declared under event", key, clip(n.Value))
	}
	return f.Index >= 0
}

func parseFilterOp(y *YAML, keys Mapping, f *Filter) {
	n, op := onlyOne(y, keys, "equals", "in", "prefix", "above", "below")
	if n == nil {
		return
	}
	number := f.Field == FilterQuantity
	items := []*yaml.Node{n}
	if op == "in" {
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			y.Faultf(n, "filter.in: want a list of values")
			return
		}
		items = n.Content
	}
	switch {
	case op == "prefix" && number:
		y.Faultf(n, "filter.prefix: a quantity is a number; use equals, in, above or below")
	case (op == "above" || op == "below") && !number:
		y.Faultf(n, "filter.%s: only a quantity can be compared by size; use equals, in or prefix", op)
	}
	f.Op = FilterOp(op)
	if op == "equals" {
		f.Op = OpIn
	}
	for _, item := range items {
		if number {
			f.Ints = append(f.Ints, y.Int(item, "filter."+op, 0, maxQuantity))
		} else {
			f.Values = append(f.Values, y.Text(item, "filter."+op))
		}
	}
}

// onlyOne is the one key of a group that has to be there exactly once.
func onlyOne(y *YAML, keys Mapping, group ...string) (*yaml.Node, string) {
	var found *yaml.Node
	var name string
	for _, key := range group {
		n := keys.Get(key)
		if n == nil {
			continue
		}
		if found != nil {
			y.Faultf(n, "filter: %s and %s exclude each other; write two filters", name, key)
			return nil, ""
		}
		found, name = n, key
	}
	if found == nil {
		y.Faultf(keys.Node, "filter: one of %v is needed", group)
	}
	return found, name
}
