package meter

// A Log is a whole bounded log in line order, as a trace file states it.
type Log struct {
	Topic string
	// Partitions that exist, from the header; nil without one: a partition counts from its first record on (R11).
	Partitions []int32
	Steps      []LogStep
}

// A LogStep is a record, or (Idle not nil) the statement that these partitions are idle from here on.
type LogStep struct {
	Record Record
	Idle   []int32
}
