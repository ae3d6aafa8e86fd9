package meter

import "slices"

// A PriceUse says which revisions priced the windows that end after From, until the next PriceUse (R10).
type PriceUse struct {
	Card string `json:"card"`           // revision of the rate card
	List string `json:"list,omitempty"` // revision of the list prices
	From int64  `json:"from"`           // ms; MinusInfinity for the first
}

// PriceUses say which revisions priced which windows: by From, the first from MinusInfinity.
type PriceUses []PriceUse

// At is what priced the windows that end at end; the zero value where nothing is known.
func (u PriceUses) At(end int64) PriceUse {
	var found PriceUse
	for _, use := range u {
		if end > use.From || use.From == MinusInfinity {
			found = use
		}
	}
	return found
}

// Then is u with use in force from use.From on.
func (u PriceUses) Then(use PriceUse) PriceUses {
	u = slices.DeleteFunc(slices.Clone(u), func(old PriceUse) bool { return old.From >= use.From })
	if n := len(u); n > 0 && u[n-1].Card == use.Card && u[n-1].List == use.List {
		return u
	}
	return append(u, use)
}

// InForce is what a list in the order of writing comes to: a later entry replaces what was said of its windows.
func InForce(written []PriceUse) PriceUses {
	var u PriceUses
	for _, use := range written {
		u = u.Then(use)
	}
	return u
}

// A CardText is a rate card or list as its file reads, which a ledger keeps to price what comes late to windows that it
// made final.
type CardText struct {
	Revision string
	Text     []byte
}
