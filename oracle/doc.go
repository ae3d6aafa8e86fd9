// Package oracle is the judge: the rules R1 to R11 and R13 to R15 of docs/SEMANTICS.md, stated once more,
// slowly and by definition, over a whole log in memory.
//
// Start with [AsStreamed] and [Complete]. Where the stream folds record after record into state, the oracle
// first writes down for every admitted record the watermark that it met, then cuts the records of each id
// into lives, and then decides each life by reading R7 from top to bottom; what a timer does is looked up in
// the list of watermarks, nothing ever "fires". Only publication (R11) walks the log again, because it is
// about moments.
//
// It shares no rule with the other engines: [Decode] reads the raw bytes with encoding/json and math/big, money
// is computed in big integers. It imports package meter for the nouns and the standard library.
//
// What it does not promise: speed (some microseconds a record) or small memory (all records at once).
package oracle
