// Package trace is the file source: trace files and plain event lines, read, written, generated, counted, hashed
// and replayed at a pace.
//
// A trace file holds JSON lines, plain or compressed (`.gz`, `.zst`): records, the statement that partitions are idle
// from here on (R11), and optionally a header as the first line.
//
//	{"trace":1,"topic":"requests","partitions":[0,1,2],"seed":7,"about":"..."}
//	{"partition":0,"offset":17,"log_time":1767225600123,"key":"req-1","value":{...}}
//	{"idle":[1]}
//
// A record's bytes are the text of value exactly as it stands there; the text itself if it is a string, none (a
// tombstone) if it is null, and the bytes of value_base64 if that stands in its place. Log time and key (or
// key_base64) may be missing. The envelope is ours and strict: a line that is no record is an [*Error] with file
// and line, and so is a compressed file that is cut short. The value is the world's: whatever stands in it
// never fails the line.
//
// Plain event lines ([Values]) are the records' bytes themselves: partition 0, the offset is the line's number from 0.
//
// Start with [Open] and [Reader.Next], which yields a [Chunk] of whole lines at a time. [Chunk.Decode] is a function of
// its chunk alone, so chunks may be parsed on all cores; what concerns the order of lines (offsets rise within a
// partition, partitions are those of the header) is then checked by the owner, line by line, with [Order.Check].
// [ReadLog] does all of it for a log that fits in memory.
//
// The package reads no clock and starts no goroutine. Waiting (for a growing file, for the pace of a replay) is a
// function of the caller's.
package trace
