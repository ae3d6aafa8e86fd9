// Package trace is the file source: trace files and plain event lines, read, written, generated, counted, hashed
// and replayed at a pace. The format is in docs/trace.md.
//
// Start with [Open] and [Reader.Next], which yields a [Chunk] of whole lines at a time. [Chunk.Parse] is a pure
// function of its chunk, so chunks may be parsed on all cores; what concerns the order of lines (offsets rise
// within a partition, partitions are those of the header) is then checked by the owner, line by line, with
// [Order.Check]. [ReadLog] does all of it for a log that fits in memory.
//
// The envelope is ours and strict: a line that is no record is an [*Error] with file and line, and so is a
// compressed file that is cut short. The value is the world's: whatever stands in it never fails the line.
//
// The package reads no clock and starts no goroutine. Waiting (for a growing file, for the pace of a replay) is a
// function of the caller's.
package trace
