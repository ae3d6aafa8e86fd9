// Package sqlite is the embedded ledger: one SQLite file that holds what stands, how it came to stand, and up to
// where in the log that is true.
//
// One process writes: [Open] takes a lock beside the file and a new writer epoch in it, and every [Ledger.Commit]
// checks the epoch, so that a process that lost its lock (a zombie) cannot write. A commit is one transaction,
// durable when it returns (WAL, synchronous=FULL): rows, journal, side outputs, dead letters, positions and the
// driver's state become visible together or not at all. [OpenReader] sees one consistent snapshot, also while a
// writer runs.
//
// Amounts are integers of pico-dollars (1e-12 USD). Where one leaves 64 bits it is kept as decimal text, exactly.
// The views in schema.sql are for people with a sqlite3 shell: times and dollars as text, one column a quantity.
//
//	bill               what stands, one row for each (account, window)
//	bill_by_sku        the same by (account, window, sku, tier), with the rate of each quantity
//	journal            the firings in order: main, correction, final, adjustment; total and delta (R11)
//	late conflicts orphans late_completions filtered   the side outputs, priced, with ids and log positions
//	dead_letters       records that no rule admits, with their bytes (R2)
//	positions_view     where each partition stands
//	prices             the rates that cells were priced with
//	lost_ranges        what was gone from the log when the stream went on without it
//	about              the meter, the topic, the writer epoch
package sqlite
