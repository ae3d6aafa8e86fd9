// Package archive keeps a log in Parquet: the same records, byte for byte, that the streaming counter read,
// so that the batch and the oracle can recompute a bill from it alone.
//
// A [Writer] serves one partition. Its files are contiguous offset ranges, each with the checkpoint that
// belongs to its first offset (R8, theorem 2) and the name and sha256 of the file before it, so the files of a
// partition are a chain whose end is a [meter.ArchiveHead]: the ledger's position holds it, and so does
// `_meta/head`. [Open] lists an archive, [Partition.Select] says which files a recompute needs, [File.Each] and
// [File.Records] read them back, [Verify] proves the whole. [Meta] keeps what an audit needs beside the records:
// meter versions, rate cards, prices used, drained marks, heads.
//
//	archive/topic=T/date=YYYY-MM-DD/hour=HH/part=P/T+P+<first offset, 20 digits>.parquet
//	archive/_aside/   files in the making; never *.parquet; one partition's are swept by its owner at start
//	archive/_meta/    see Meta
//
// What the package promises: a published file is whole and durable (written aside, fsynced, linked under its
// final name, folder fsynced), is never replaced, and is never half visible. A reader refuses a damaged file; it
// does not panic and does not allocate what a damaged number asks for.
//
// What the caller must do: be the only owner of a partition (the ledger's epoch sees to that; two owners get a
// [TakenError], not a broken file), call [Resume] before writing, say when a file is to be closed, and give the
// checkpoint there. The package reads no clock and starts no goroutine.
package archive
