// Package batch recomputes a bill from an archive: the audit oracle (R15). Both truths are SQL, in the *.sql files of this folder, commented by
// rule: as-streamed gives the verdicts of the stream, lateness and forgetting included; complete gives what a perfect watermark would have.
//
// Start with a [Job] (what to read, of which partition from where to where) and an [Engine]: package batch/duckdb runs the SQL in process.
// [Script] gives the same SQL as text for a plain DuckDB. [Prune] says which files a range needs. Money is not in the SQL: an [Engine] returns
// rows that this package has priced from cells (R10) in exact integers.
//
// A Job is believed: the rows that it names must be whole (the archive's verify says so), their prior_max_reach right. An engine never looks
// at raw bytes. It returns an error rather than a wrong number: a sum that leaves int64 is [ErrSum].
//
// The SQL keeps to what DuckDB, Spark and Trino read alike: integers only, no lists, no structs, no QUALIFY, no engine's own functions; floor
// is written t - mod(mod(t, Z) + Z, Z), every sum is cast, and set_hash comes back as the sums of two halves. What Go fills in (columns of the
// meter, durations, filters) is whole numbers, quoted names and quoted literals. The rules R1 to R15 are in docs/SEMANTICS.md.
package batch
