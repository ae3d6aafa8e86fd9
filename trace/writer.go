package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Writer writes a trace file. What it writes, a Reader reads back byte for byte. Nothing is sure to be
// written before Flush.
type Writer struct {
	w   io.Writer
	buf []byte
	err error
}

// NewWriter writes to w. The caller compresses and closes.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, buf: make([]byte, 0, writeBytes+4096)} }

const writeBytes = 64 << 10

// Header writes the header; it has to be the first line.
func (w *Writer) Header(h Header) error {
	if err := h.validate(); err != nil {
		return fmt.Errorf("trace: write: %w", err)
	}
	line, err := json.Marshal(struct {
		Trace int `json:"trace"`
		Header
	}{version, h})
	if err != nil {
		return fmt.Errorf("trace: write header: %w", err)
	}
	w.buf = append(append(w.buf, line...), '\n')
	return w.full()
}

// Idle writes that partitions are idle from here on.
func (w *Writer) Idle(partitions []int32) error {
	w.buf = append(w.buf, `{"idle":[`...)
	for i, p := range partitions {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = strconv.AppendInt(w.buf, int64(p), 10)
	}
	w.buf = append(w.buf, "]}\n"...)
	return w.full()
}

// Record writes a record.
func (w *Writer) Record(r *meter.Record) error {
	w.envelope(r)
	switch {
	case r.Null:
		w.buf = append(w.buf, `,"value":null`...)
	case standsAsItIs(r.Value):
		w.buf = append(append(w.buf, `,"value":`...), r.Value...)
	case utf8.Valid(r.Value):
		w.buf = appendString(append(w.buf, `,"value":`...), r.Value)
	default:
		w.buf = append(w.buf, `,"value_base64":"`...)
		w.buf = append(base64.StdEncoding.AppendEncode(w.buf, r.Value), '"')
	}
	w.buf = append(w.buf, '}', '\n')
	return w.full()
}

// Value writes a record as a plain event line: of its value alone, which must hold no line end.
func (w *Writer) Value(r *meter.Record) error {
	if r.Null || bytes.ContainsAny(r.Value, "\r\n") {
		return fmt.Errorf("trace: write %d@%d as a plain line: it is null or holds a line end", r.Partition, r.Offset)
	}
	w.buf = append(append(w.buf, r.Value...), '\n')
	return w.full()
}

func (w *Writer) envelope(r *meter.Record) {
	w.buf = strconv.AppendInt(append(w.buf, `{"partition":`...), int64(r.Partition), 10)
	w.buf = strconv.AppendInt(append(w.buf, `,"offset":`...), r.Offset, 10)
	if r.HasLogTime {
		w.buf = strconv.AppendInt(append(w.buf, `,"log_time":`...), r.LogTime, 10)
	}
	switch {
	case r.Key == nil:
	case utf8.Valid(r.Key):
		w.buf = appendString(append(w.buf, `,"key":`...), r.Key)
	default:
		w.buf = append(w.buf, `,"key_base64":"`...)
		w.buf = append(base64.StdEncoding.AppendEncode(w.buf, r.Key), '"')
	}
}

// standsAsItIs reports whether a value may stand in the envelope as an object: sound JSON, so that any tool
// reads the line, and on one line.
func standsAsItIs(value []byte) bool {
	return len(value) > 0 && value[0] == '{' && value[len(value)-1] == '}' && !bytes.ContainsAny(value, "\r\n") &&
		utf8.Valid(value) && json.Valid(value) && closing(value, 0, '{', '}') == len(value)
}

// full writes what has gathered once it is much.
func (w *Writer) full() error {
	if len(w.buf) < writeBytes {
		return w.err
	}
	return w.Flush()
}

// Flush writes what has gathered.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		if _, err := w.w.Write(w.buf); err != nil {
			w.err = fmt.Errorf("trace: write: %w", err)
		}
	}
	w.buf = w.buf[:0]
	return w.err
}
