package meter

import "fmt"

// A LogPosition names a record of a topic: a partition and an offset in it.
type LogPosition struct {
	Partition int32
	Offset    int64
}

// String is the position as messages print it: 0@17.
func (p LogPosition) String() string { return fmt.Sprintf("%d@%d", p.Partition, p.Offset) }
