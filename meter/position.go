package meter

import "encoding/json"

// A Checkpoint is where a fresh counter may begin so that it is in the same live state as the one that made
// the checkpoint, once it has replayed [Restart, the checkpoint's offset) in silence (R8, theorem 2).
type Checkpoint struct {
	Restart  int64 `json:"restart"`   // offset
	Byte     int64 `json:"byte"`      // where Restart's line begins in a file source
	MaxReach int64 `json:"max_reach"` // highest reach before Restart; MinusInfinity if none
	// Carried holds lives that the replay must not rebuild; empty in archive footers.
	Carried json.RawMessage `json:"carried,omitempty"`
}

// ArchiveHead is the archive as of a position: the next offset it will write and the file before it.
type ArchiveHead struct {
	Next int64 `json:"next"`
	// Checkpoint at Next, nothing carried.
	Checkpoint
	File   string `json:"file,omitempty"` // name of the last published file, "" before the first
	SHA256 string `json:"sha256,omitempty"`
	Rows   int64  `json:"rows"` // cumulative
}

// A Position is all that is durable about one source partition beside its rows (DESIGN section 5).
type Position struct {
	V              int    `json:"v"`
	Topic          string `json:"topic"`
	TopicID        string `json:"topic_id,omitempty"`
	Partition      int32  `json:"partition"`
	PartitionCount int    `json:"partition_count"`
	PrefixHash     string `json:"prefix_hash,omitempty"` // over the file's bytes before NextByte, as trace.Chunk.PrefixHash makes it
	NextByte       int64  `json:"next_byte"`             // of the file: where the next line begins
	Committed      int64  `json:"committed"`             // next offset
	Checkpoint
	Watermark   int64       `json:"watermark"`
	CommitNo    int64       `json:"commit_no"`
	Idle        bool        `json:"idle"`
	Drained     bool        `json:"drained"`
	Fingerprint string      `json:"fingerprint"`
	Archive     ArchiveHead `json:"archive"`
	Summary     Summary     `json:"summary"`
}
