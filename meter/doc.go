// Package meter holds the nouns of the toolkit: what a meter file says, records and events, ids, cells
// and rows, money and rates, positions. It holds no rule: which window an event falls in, what is a
// duplicate, what is late, what a cell costs. Those are stated once by each engine (stream, batch, oracle).
//
// Times are int64 milliseconds since 1970 UTC, money is pico-dollars in integers. Rule numbers
// (R1 to R15) are those of docs/SEMANTICS.md.
package meter
