package run

import (
	"errors"
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/trace"
)

// A Refusal is a start that would make the ledger or the archive wrong: nothing was changed. Hint says what to do.
type Refusal struct {
	Err  error
	Hint string
}

func (r *Refusal) Error() string { return "run: " + r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// Why a start is refused.
var (
	// ErrDrained: records beyond a drain (R13).
	ErrDrained = errors.New("the log was drained, and there are records beyond its end")
	// ErrTopic: the ledger holds another topic.
	ErrTopic = errors.New("the ledger holds another topic")
	// ErrFingerprint: the ledger's positions are another meter's.
	ErrFingerprint = errors.New("the positions were written under another meter")
	// ErrPartitions: the number of partitions has changed (R1).
	ErrPartitions = errors.New("the partitions of the topic have changed")
	// ErrArchive: the archive is another log's.
	ErrArchive = errors.New("the archive holds another log")
	// ErrPrefix: the file no longer begins with what was read of it.
	ErrPrefix = trace.ErrPrefix
)

func refuse(err error, hint, detail string, args ...any) error {
	return &Refusal{Err: fmt.Errorf("%w: "+detail, append([]any{err}, args...)...), Hint: hint}
}
