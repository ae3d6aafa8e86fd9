package meter

// A Rate is one row of a rate card (R10): what one unit of a quantity costs from a time on.
type Rate struct {
	SKU           string
	Tier          int32
	Quantity      string
	Pico          int64 // pico-dollars per unit, exact
	EffectiveFrom int64 // ms, on a window boundary: in force for windows that start at or after it
}

// A RateCard is a list of rates as one file states them. Which row is in force for a cell is R10, and
// each engine picks it by itself.
type RateCard struct {
	Rates    []Rate // sorted by sku, tier, quantity, effective_from; no two equal in all four
	Revision string // names the content: equal cards have equal revisions
}
