// Package run drives an embedded stream: one file (or standard input) is read, decoded on all cores, counted in line
// order by one owner, archived, and made durable in a ledger, commit by commit.
//
// Start with [Run]. It owns every goroutine that it starts and returns when all have ended; cancelling its context is the
// only way to stop it, and then it closes the open archive files, commits and returns nil. All counters and the merge
// belong to one goroutine. Everything between the goroutines is bounded: a slow disk slows the reader down.
//
// What it promises: the ledger at any moment is that of a whole prefix of the file. A process that dies at any moment,
// started again, goes on as if it had not died: rows, states, journal and side outputs are a function of the
// file alone (R11), not of when commits happened.
//
// The cycle (every Config.CommitEvery): the archive publishes the files it has closed; then rows, journal, side outputs,
// positions and the archive's head become durable in one act of the [Ledger]. The start: load, check, begin at the
// lowest byte that a counter or the archive still needs, replay in silence what is below each one's own mark.
//
// The package reads no clock but the one it is given, and uses it for pauses, ages and rates only.
package run
