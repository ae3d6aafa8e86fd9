package stream

import (
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// filters are the meter's, in order (R9). What attributes say is worked out at the start and kept in a bit each,
// so that a life need not hold texts.
type filters struct {
	all []filter
	n   int // filters on attributes
}

type filter struct {
	meter.Filter
	mark int // FilterAttribute: its bit
}

func newFilters(m *meter.Meter) filters {
	var fs filters
	for _, f := range m.Filters {
		fs.all = append(fs.all, filter{f, fs.n})
		if f.Field == meter.FilterAttribute {
			fs.n++
		}
	}
	return fs
}

// mark sets the bits of the attribute filters that match. A missing attribute never matches.
func (fs *filters) mark(words []uint64, attributes []string) {
	clear(words)
	for i := range fs.all {
		f := &fs.all[i]
		if f.Field != meter.FilterAttribute {
			continue
		}
		if text := attributes[f.Index]; text != "" && f.matchesText(text) {
			words[f.mark/64] |= 1 << (f.mark % 64)
		}
	}
}

// first is the name of the first filter that matches the billable record, "" if none does.
func (fs *filters) first(b *billable) string {
	for i := range fs.all {
		if fs.all[i].matches(b) {
			return fs.all[i].Name
		}
	}
	return ""
}

func (f *filter) matches(b *billable) bool {
	switch f.Field {
	case meter.FilterAttribute:
		return b.marks[f.mark/64]>>(f.mark%64)&1 == 1
	case meter.FilterQuantity:
		return f.matchesNumber(b.quantities[f.Index])
	case meter.FilterAccount:
		return f.matchesText(b.account)
	case meter.FilterSKU:
		return f.matchesText(b.sku)
	case meter.FilterStatus:
		return f.matchesText(b.status)
	}
	return false
}

func (f *filter) matchesText(text string) bool {
	if f.Op == meter.OpPrefix {
		return slices.ContainsFunc(f.Values, func(v string) bool { return strings.HasPrefix(text, v) })
	}
	return slices.Contains(f.Values, text)
}

func (f *filter) matchesNumber(n int64) bool {
	switch f.Op {
	case meter.OpAbove:
		return n > f.Ints[0]
	case meter.OpBelow:
		return n < f.Ints[0]
	}
	return slices.Contains(f.Ints, n)
}
