package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A UsedRate is a rate and where it came from (R10).
type UsedRate struct {
	meter.Rate
	Source string // meter.PriceTable, PriceService or PriceList
	// Revision is the card's or list's; "" where it is not known.
	Revision string
	// After and Until bound the ends of the windows that the revision prices, (After, Until] in ms. Both zero: no bound.
	After, Until int64
}

// covers reports whether the rate's card prices the windows that end at end.
func (u UsedRate) covers(end int64) bool {
	return u.After == 0 && u.Until == 0 || end > u.After && end <= u.Until
}

// A PriceBook holds the rates of a side.
type PriceBook struct {
	rates map[rateKey][]UsedRate // by effective_from
	used  []UsedRate             // nil unless the book lists what was used
}

type rateKey struct {
	sku      string
	tier     int32
	quantity string
}

// NewPriceBook is the book of a rate card and a price list; list may be nil.
func NewPriceBook(card, list *meter.RateCard) *PriceBook {
	b := &PriceBook{rates: map[rateKey][]UsedRate{}}
	b.addCard(card, meter.PriceTable)
	b.addCard(list, meter.PriceList)
	b.sort()
	return b
}

// NewUsedBook is the book of the rates that a side wrote down as those it used. Such books of a ledger and of another
// side are compared as a whole: a rate they disagree on is reported even if no row shows it.
func NewUsedBook(used []UsedRate) *PriceBook {
	b := &PriceBook{rates: map[rateKey][]UsedRate{}, used: slices.Clone(used)}
	for _, r := range used {
		b.add(r)
	}
	b.sort()
	return b
}

func (b *PriceBook) addCard(card *meter.RateCard, source string) {
	if card == nil {
		return
	}
	for _, r := range card.Rates {
		b.add(UsedRate{Rate: r, Source: source})
	}
}

func (b *PriceBook) add(r UsedRate) {
	k := rateKey{r.SKU, r.Tier, r.Quantity}
	b.rates[k] = append(b.rates[k], r)
}

func (b *PriceBook) sort() {
	for _, rates := range b.rates {
		slices.SortStableFunc(rates, func(x, y UsedRate) int {
			return cmp.Or(cmp.Compare(rank(x.Source), rank(y.Source)), cmp.Compare(x.EffectiveFrom, y.EffectiveFrom))
		})
	}
}

// rank orders sources as R10 asks them: the card, then the service, then the list.
func rank(source string) int {
	return slices.Index([]string{meter.PriceTable, meter.PriceService, meter.PriceList}, source)
}

// lookup is R10: in the card of the window that ends at end, of the first source that has one, the last rate in force at
// the window's start.
func (b *PriceBook) lookup(sku string, tier int32, quantity string, start, end int64) (UsedRate, bool) {
	var found UsedRate
	ok := false
	for _, r := range b.rates[rateKey{sku, tier, quantity}] {
		if ok && r.Source != found.Source {
			break
		}
		if r.EffectiveFrom <= start && r.covers(end) {
			found, ok = r, true
		}
	}
	return found, ok
}

// candidates are the rates that a cell may have been priced with, the likeliest first: that of lookup, then others in
// force at the window's start. There are several where a book holds the rates of several revisions and does not know
// which windows each priced: then only what the cell cost can tell them apart.
func (b *PriceBook) candidates(sku string, tier int32, quantity string, start, end int64) []UsedRate {
	first, ok := b.lookup(sku, tier, quantity, start, end)
	if !ok {
		return nil
	}
	found := []UsedRate{first}
	all := b.rates[rateKey{sku, tier, quantity}]
	for i := len(all) - 1; i >= 0; i-- {
		r := all[i]
		if r.EffectiveFrom <= start && r.covers(end) && !slices.ContainsFunc(found, func(f UsedRate) bool { return f.Pico == r.Pico && f.Source == r.Source }) {
			found = append(found, r)
		}
	}
	return found
}

// has reports whether the book knows a revision.
func (b *PriceBook) has(revision string) bool {
	for _, rates := range b.rates {
		for _, r := range rates {
			if r.Revision == revision {
				return true
			}
		}
	}
	return false
}

// disagreements are the rates that two used books state differently, in order. A rate is held against its own revision
// where the other book has that one: two revisions may well differ.
func (b *PriceBook) disagreements(o *PriceBook) [][2]UsedRate {
	if b == nil || o == nil || b.used == nil || o.used == nil {
		return nil
	}
	var pairs [][2]UsedRate
	known := map[string]bool{}
	for _, x := range b.used {
		if _, ok := known[x.Revision]; !ok {
			known[x.Revision] = x.Revision != "" && o.has(x.Revision)
		}
		for _, y := range o.rates[rateKey{x.SKU, x.Tier, x.Quantity}] {
			if known[x.Revision] && y.Revision != x.Revision {
				continue
			}
			if x.EffectiveFrom == y.EffectiveFrom && x.Source == y.Source && x.Pico != y.Pico {
				pairs = append(pairs, [2]UsedRate{x, y})
			}
		}
	}
	slices.SortFunc(pairs, func(p, q [2]UsedRate) int {
		return cmp.Or(strings.Compare(p[0].SKU, q[0].SKU), cmp.Compare(p[0].Tier, q[0].Tier),
			strings.Compare(p[0].Quantity, q[0].Quantity), cmp.Compare(p[0].EffectiveFrom, q[0].EffectiveFrom))
	})
	return pairs
}
