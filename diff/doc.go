// Package diff compares two sides of a bill row by row and names the cause of every difference.
//
// A [Side] is a stream of rows by (account, window): the ledger, a recompute, another meter over the same
// archive, or somebody else's file of totals; or it is somebody else's list of single events. [Compare] walks two
// sides, keeps the rows that differ, asks the sides for the records behind them ([ItemSource]) and splits each
// difference into causes. It does no I/O of its own, reads no clock and starts no goroutine: everything comes through
// the functions of the sides.
//
// What it promises, for every row it reports (DESIGN section 9):
//
//   - delta = left - right, for requests, each quantity and money;
//   - the causes of a row sum to its delta exactly, to the pico-dollar, and so do those of the summary;
//   - a record is explained once, by the first cause of [Causes] that applies; what no cause explains is
//     [Unexplained] and says why;
//   - money is (usage difference x right rate) + (left usage x rate difference), in 128 bits; a side without prices
//     is valued at the other side's;
//   - Compare(x, x) reports nothing, Compare(b, a) is Compare(a, b) with every sign turned. One exception: where
//     usage and rate of one cell both differ, the two terms of money depend on the direction; their sum does not.
//
// What the caller owes: rows ordered by account and window, each at most once; items whose verdicts are of the same
// log and the same cut as the rows; and [Options.Comparable], which keeps windows that are not final apart.
//
// The package states three rules for itself, for its own input: which window a partner's event falls in (R5), which
// rate is in force for a cell (R10), and when a window is final (R6).
package diff
