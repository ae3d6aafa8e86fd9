package trace

import (
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Format is how the lines of a file are written (`source_format`).
type Format string

// The formats.
const (
	Trace  Format = "trace"  // envelopes with partition, offset and log time
	Values Format = "values" // plain event lines: partition 0, offset is the line's number from 0
)

// A Header is the optional first line of a trace file.
type Header struct {
	Topic      string  `json:"topic,omitempty"`
	Partitions []int32 `json:"partitions,omitempty"` // those that exist, also if they are silent; nil: not stated
	Seed       *uint64 `json:"seed,omitempty"`
	About      string  `json:"about,omitempty"`
	// Stated says that the file has a header line; without one the topic is made of the file's name.
	Stated bool `json:"-"`
}

// A Line is one parsed line: a record, or (Idle not nil) the statement that partitions are idle from here on.
type Line struct {
	Record meter.Record // Byte is where the line begins; Value and Key may alias the chunk's memory
	Idle   []int32
	Number int64 // from 1, for errors
	End    int64 // where the next line begins
}
