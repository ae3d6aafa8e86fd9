// Package tracetest runs the exam: the traces in testdata/traces, one txtar file a case, that every engine sits.
//
// A trace is named by its rule; its comment says by hand why its answer is right. Its files are `meter.yaml`,
// `rates.yaml`, an optional `list-rates.yaml`, the log (`log.jsonl` in the trace format, or `values.jsonl` of plain
// event lines), an optional `options` (the word `no-drain`), and what is wanted, a line a fact:
//
//	want/rows      the as-streamed recompute by account and window end (required)
//	want/complete  the same for the complete truth
//	want/bill      the ledger's rows: state, revision, amount, adjustment, total
//	want/journal   firings in the order of their publication
//	want/items     side outputs: filtered, late, conflict, orphan, late_completion
//	want/dead      dead letters by partition and offset
//	want/summary   the buckets that are not zero (required)
//
// Start with [Run]. Where an engine and the wanted text differ the test shows both lines. What no hand can
// compute is compared with the oracle instead: set_hash, cells, and the summary of the complete truth.
// A folder without traces fails. Only the oracle may rewrite what is wanted ([Bless]).
package tracetest
