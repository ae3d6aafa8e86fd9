package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// Config configures a run. Meter, Source, Card, CommitEvery and Clock are required, and a ledger or an archive.
type Config struct {
	Meter  *meter.Meter
	Source Source
	// Card and List are the prices (R10); List may be nil. CardText and ListText are their files, which the archive
	// keeps.
	Card, List         *meter.RateCard
	CardText, ListText []byte
	// ParseCard reads the text of a card that priced windows before; needed where the prices have changed.
	ParseCard func(text []byte) (*meter.RateCard, error)

	// Ledger opens the ledger; it is called once the source has shown that it can be read, and Run closes what it
	// returns. Nil: only archive.
	Ledger  func(ctx context.Context) (Ledger, error)
	Archive *Archive // nil: none

	CommitEvery time.Duration // at least a millisecond
	// Drain ends the log at the end of the file (R13). It must be false where Source.Follow is true. Without it a last line
	// that has no line end yet is left unread.
	Drain bool
	// Pace replays the log at this multiple of the speed at which its log times (event times without them) passed.
	// 0: as fast as it goes.
	Pace float64
	// AcceptLoss goes on with a file that no longer begins with what was read of it, and writes down what is lost.
	AcceptLoss bool

	Clock   Clock
	Workers int // decoders; 0: one
	// Progress, if not nil, is called now and then from the owner's goroutine. It must not block.
	Progress func(Progress)
	// Fail, if not nil, is called at named points; an error it returns ends the run there. For tests of recovery.
	Fail func(point string) error
}

// A Source is a file of lines.
type Source struct {
	Path   string // "-" is standard input
	Format trace.Format
	Topic  string // overrides the file's own; "" does not
	// Follow waits for more at the end of the file, looking again after FollowEvery.
	Follow      bool
	FollowEvery time.Duration
}

// Archive says where the archive is and how its files roll. Zero bounds do not roll.
type Archive struct {
	FS       archive.FS
	Version  string // of the program, for the footers
	MaxRows  int64  // records in a file
	MaxBytes int64  // of raw text in a file
	MaxAge   time.Duration
}

// A Clock is the time outside. It decides when to pause, commit and roll, never what is counted.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// A Ledger is where rows and positions live; ledger/sqlite is one. One goroutine at a time uses it.
type Ledger interface {
	// Load reads where the stream stands.
	Load(ctx context.Context) (*meter.Standing, error)
	// RowsByKey reads rows that left memory; those that were never written are not in the answer.
	RowsByKey(ctx context.Context, keys []meter.RowKey) ([]meter.StoredRow, error)
	// Commit makes all of c durable, or nothing.
	Commit(ctx context.Context, c *meter.Commit) error
	Close() error
}

// Progress is how far a run has come.
type Progress struct {
	Records   int64 // of this process, replayed ones apart
	Bytes     int64 // place in the file
	Replayed  int64
	Elapsed   time.Duration
	Watermark int64 // of the merge (G)
}

// Outcome is what a run did.
type Outcome struct {
	Topic string
	// Summary is of the whole log so far (R14). Without a ledger a run that was stopped says what it had read by then.
	Summary meter.Summary
	// Finished says that the log had been drained before: nothing was changed.
	Finished bool
	Drained  bool // by this run, or before
	Stopped  bool // by the context
	Records  int64
	Replayed int64
	Firings  int64 // of this run
	Commits  int64
	Files    int64 // that the archive published in this run
	Lost     []meter.LostRange
	Repriced *Repriced // where the prices are others than before
	Replaced *Replaced // where Config.AcceptLoss went on with another file
	// Unread is the length in bytes of an incomplete last line: without a drain somebody may be writing it.
	Unread int64
}

// Repriced says what became of new prices (R10): no window that was final is priced again.
type Repriced struct {
	Was, Now meter.PriceUse
	// Nothing: every window was final, and nothing has the new prices.
	Nothing bool
}

// Replaced says what a run went on with: a file whose first bytes are not those that were counted.
type Replaced struct {
	Bytes int64 // that the ledger had counted of the former file
	// Reread are the offsets [From, To) of partitions that were counted in the former file, are not archived yet, and are
	// archived from the new one.
	Reread []meter.LostRange
}

func (c *Config) validate() error {
	switch {
	case c.Meter == nil || c.Clock == nil:
		return errors.New("run: a meter and a clock are required")
	case c.Source.Path == "":
		return errors.New("run: no source: name a trace file, or - for standard input")
	case c.Ledger == nil && c.Archive == nil:
		return errors.New("run: neither a ledger nor an archive: nothing would be kept")
	case c.Ledger != nil && c.Card == nil:
		return errors.New("run: a ledger needs a rate card")
	case c.CommitEvery < time.Millisecond:
		return fmt.Errorf("run: commit every %s: want at least 1ms", c.CommitEvery)
	case c.Drain && c.Source.Follow:
		return errors.New("run: a log that is followed has no end to drain: choose one of --drain and --follow")
	case c.Pace < 0:
		return fmt.Errorf("run: pace %v is below zero", c.Pace)
	}
	return nil
}

func (c *Config) failAt(point string) error {
	if c.Fail == nil {
		return nil
	}
	if err := c.Fail(point); err != nil {
		return fmt.Errorf("run: at %s: %w", point, err)
	}
	return nil
}
