// Package schemas is the wire: it turns the raw bytes of a record into a [meter.Event] and declares the
// columns of the archive.
//
// Start with [NewDecoder]; use one Decoder per goroutine. [Decoder.Decode] never fails: every record ends in
// exactly one bucket of R2, and a dead letter carries the first reason of R2 in the rule's own order. It reads
// no clock, does no I/O and keeps nothing of the record's bytes. A Decoder allocates the event's ID and
// little else; accounts, skus, statuses and attributes are interned in tables of fixed size.
//
// The JSON is strict (RFC 8259, UTF-8, no unpaired surrogate escape, no duplicate name at any depth, compared
// unescaped, nesting up to 1,000), names match exactly, and numbers are judged by their decimal text, never as
// floats: 1e3 and 10.0 are whole, 9007199254740993 is itself.
//
// What this package does not promise: that an admitted event is counted. Lateness, copies and filters are
// rules of the engines.
package schemas
