// Package stream is the pure core of the streaming counter. It performs no I/O, reads no clock and starts no
// goroutine; nothing in it is safe for concurrent use.
//
// A [Counter] counts one partition by R2 to R9. Start with [NewCounter], feed what lies between the checkpoint's
// restart offset and the committed offset to [Counter.Replay], then every record to [Counter.Apply], in log order.
// What it has to say is taken with [Counter.TakeItems] (side outputs) and [Counter.TakeChanges] (cells). What was
// taken, [Counter.Summary] and [Counter.Checkpoint] have to become durable in one act: then a process that stops
// before it loses nothing and counts nothing twice.
//
// A [Merger] adds the partitions' changes up to rows and publishes them by R11. Adding is free of publishing:
// [Merger.Add] at any moment keeps the rows' values right, only [Merger.Publish] writes the journal. In a file run
// the caller publishes where R11 says: after a record that makes [Merger.Due] true, at each idle line, before a
// record of an idle or new partition, and at the drain; each time after it has taken and added the changes of all
// partitions.
//
// A [Pricer] says what a cell costs (R10).
//
// An error of a Counter or a Merger is final: the value must not be used again, and nothing that came of the
// record that caused it may be made durable.
//
// Memory is bounded as R8 says: remembered ids, windows that are not final in the partition (or not yet taken),
// rows that are not final in the merge (or not yet written).
package stream
