package archive

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Where a file's log times come from.
const (
	LogTimeEnvelope = "envelope" // the broker or the trace line
	LogTimeReceived = "received" // the meter's `received` field of the record itself
)

// A Footer is what a file says about itself. It is kept as key-value pairs in the Parquet footer.
type Footer struct {
	Topic     string
	TopicID   string
	Partition int32
	// First and Next are the offsets that were consumed, [First, Next): First is the former file's Next,
	// so a hole between two files cannot be told from a missing record unless the chain says so.
	First, Next int64
	Rows        int64
	// CumulativeRows counts this file and all files of the partition before it.
	CumulativeRows   int64
	Fingerprint      string
	EventFingerprint string
	PrevName         string // of the partition's previous file, "" for the first
	PrevSHA256       string
	// Checkpoint belongs to First, with nothing carried: MaxReach is the highest reach before Restart.
	Checkpoint meter.Checkpoint
	LogTime    string // LogTimeEnvelope or LogTimeReceived
	Version    string // of the program that wrote it
}

// pairs lists the footer as it is written.
func (f *Footer) pairs() [][2]string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return [][2]string{
		{"gm.topic", f.Topic},
		{"gm.topic_id", f.TopicID},
		{"gm.partition", n(int64(f.Partition))},
		{"gm.first", n(f.First)},
		{"gm.next", n(f.Next)},
		{"gm.rows", n(f.Rows)},
		{"gm.cumulative_rows", n(f.CumulativeRows)},
		{"gm.fingerprint", f.Fingerprint},
		{"gm.event_fingerprint", f.EventFingerprint},
		{"gm.prev_name", f.PrevName},
		{"gm.prev_sha256", f.PrevSHA256},
		{"gm.restart", n(f.Checkpoint.Restart)},
		{"gm.restart_byte", n(f.Checkpoint.Byte)},
		{"gm.max_reach", n(f.Checkpoint.MaxReach)},
		{"gm.log_time", f.LogTime},
		{"gm.version", f.Version},
	}
}

// parseFooter reads what pairs wrote, and checks what a footer can be checked for alone.
func parseFooter(get func(key string) (string, bool)) (Footer, error) {
	var f Footer
	var errs []error
	text := func(key string, to *string) {
		v, ok := get(key)
		if !ok {
			errs = append(errs, fmt.Errorf("footer has no %s", key))
		}
		*to = v
	}
	number := func(key string, to *int64) {
		var s string
		text(key, &s)
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || strconv.FormatInt(v, 10) != s {
			errs = append(errs, fmt.Errorf("footer: %s is no number", key))
		}
		*to = v
	}
	var partition int64
	text("gm.topic", &f.Topic)
	text("gm.topic_id", &f.TopicID)
	number("gm.partition", &partition)
	number("gm.first", &f.First)
	number("gm.next", &f.Next)
	number("gm.rows", &f.Rows)
	number("gm.cumulative_rows", &f.CumulativeRows)
	text("gm.fingerprint", &f.Fingerprint)
	text("gm.event_fingerprint", &f.EventFingerprint)
	text("gm.prev_name", &f.PrevName)
	text("gm.prev_sha256", &f.PrevSHA256)
	number("gm.restart", &f.Checkpoint.Restart)
	number("gm.restart_byte", &f.Checkpoint.Byte)
	number("gm.max_reach", &f.Checkpoint.MaxReach)
	text("gm.log_time", &f.LogTime)
	text("gm.version", &f.Version)
	f.Partition = int32(partition)
	if len(errs) > 0 {
		return f, errors.Join(errs...)
	}
	return f, f.check(partition)
}

func (f *Footer) check(partition int64) error {
	switch {
	case partition != int64(f.Partition) || partition < 0:
		return fmt.Errorf("footer: partition %d", partition)
	case f.First < 0 || f.Next <= f.First:
		return fmt.Errorf("footer: offsets [%d, %d)", f.First, f.Next)
	case f.Rows <= 0 || f.Rows > f.Next-f.First:
		return fmt.Errorf("footer: %d rows in offsets [%d, %d)", f.Rows, f.First, f.Next)
	case f.CumulativeRows < f.Rows:
		return fmt.Errorf("footer: %d rows so far, %d in this file", f.CumulativeRows, f.Rows)
	case (f.PrevName == "") != (f.PrevSHA256 == ""), f.PrevName == "" && f.CumulativeRows != f.Rows:
		return errors.New("footer: the file before it is named by halves")
	case f.Checkpoint.Restart < 0 || f.Checkpoint.Restart > f.First:
		return fmt.Errorf("footer: restart %d is not before %d", f.Checkpoint.Restart, f.First)
	case f.LogTime != LogTimeEnvelope && f.LogTime != LogTimeReceived:
		return fmt.Errorf("footer: log_time %q", f.LogTime)
	}
	return nil
}
