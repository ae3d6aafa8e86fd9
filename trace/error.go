package trace

import (
	"errors"
	"fmt"
)

// An Error says which line of which file is at fault; the command exits with 2 on it.
type Error struct {
	File string
	Line int64 // from 1; 0 if no line is at fault
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("trace: read %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("trace: read %s:%d: %v", e.File, e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// The causes that a caller may want to tell apart.
var (
	// ErrCutShort: a compressed file ends before its own end.
	ErrCutShort = errors.New("the compressed file is cut short; fetch it whole again")
	// ErrDamaged: what was compressed is not as the compressor wrote it.
	ErrDamaged = errors.New("the compressed file is damaged; fetch it again, or write it anew")
	// ErrPrefix: the file no longer begins as it did.
	ErrPrefix = errors.New("the file does not begin with the bytes that were read before")
	// ErrReplaced: the file that was followed is no longer there under its name, or has become shorter.
	ErrReplaced = errors.New("the file was replaced or cut while it was followed")
)
