package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/internal/filelock"
	"github.com/gatewaymeter/gatewaymeter/meter"
	_ "modernc.org/sqlite" // the pure-Go SQLite: no cgo above batch/duckdb
)

// schemaNumber is the number of the tables' shape.
const schemaNumber = 1

// ErrFenced says that another writer has taken the ledger since this one opened it. Nothing was written.
var ErrFenced = errors.New("another writer has taken this ledger over; nothing was written")

// ErrLocked says that another process is writing to the ledger.
var ErrLocked = errors.New("another process is writing to this ledger")

// ErrMissing says that there is no ledger at the path.
var ErrMissing = errors.New("there is no ledger here yet")

// Options configure a writer. Path and Meter are required.
type Options struct {
	Path  string
	Meter *meter.Meter
	// Fail, if not nil, is called at named points of every commit; an error it returns is treated as the
	// failure of the act that follows (or, "after:...", followed it). For tests of recovery.
	Fail func(point string) error
}

// A Ledger is the only writer of a SQLite file. It is not safe for concurrent use.
type Ledger struct {
	db    *sql.DB // nil while there is no file yet: the first commit makes it
	lock  *filelock.Lock
	path  string
	meter *meter.Meter
	fail  func(point string) error
	epoch int64
}

//go:embed schema.sql
var schemaSQL string

// Open takes the ledger at o.Path for writing. If there is none the first commit makes it: a run that fails before it
// leaves nothing behind.
func Open(ctx context.Context, o Options) (l *Ledger, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ledger: open %s: %w", o.Path, err)
		}
	}()
	if info, err := os.Stat(filepath.Dir(o.Path)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder: make it first", filepath.Dir(o.Path))
	}
	l = &Ledger{path: o.Path, meter: o.Meter, fail: o.Fail}
	if l.fail == nil {
		l.fail = func(string) error { return nil }
	}
	if l.lock, err = filelock.Take(o.Path + ".lock"); err != nil {
		var held *filelock.HeldError
		if errors.As(err, &held) {
			err = fmt.Errorf("%w%s: wait for it to end, or stop it", ErrLocked, held.Holder())
		}
		return nil, err
	}
	defer func(l *Ledger) {
		if err != nil {
			_ = l.Close()
		}
	}(l)
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	return l, l.openFile(ctx, false)
}

// openFile opens the file, or makes it. A file that is to be made must not be there by now: then another writer has
// begun since Open found none.
func (l *Ledger) openFile(ctx context.Context, fresh bool) (err error) {
	if l.db, err = openDB(l.path, "_txlock=immediate", "_pragma=busy_timeout(10000)", "_pragma=journal_mode(WAL)",
		"_pragma=synchronous(FULL)", "_pragma=wal_autocheckpoint(4000)", "_pragma=cache_size(-65536)"); err != nil {
		return err
	}
	if err := l.begin(ctx, fresh); err != nil {
		err = errors.Join(err, l.db.Close())
		l.db = nil
		return err
	}
	return nil
}

// openDB opens one connection: a transaction and what is read beside it must see each other.
func openDB(path string, query ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: strings.Join(query, "&")}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// begin makes what is missing, checks what is there and takes a new epoch, in one transaction.
func (l *Ledger) begin(ctx context.Context, fresh bool) error {
	return l.within(ctx, func(tx *sql.Tx) error {
		old, err := readMeta(ctx, tx)
		if err != nil {
			return err
		}
		if len(old) > 0 && fresh {
			return ErrFenced
		}
		if len(old) > 0 {
			if err := l.check(old); err != nil {
				return err
			}
		} else if err := l.create(ctx, tx); err != nil {
			return err
		}
		l.epoch = old.number("epoch") + 1
		return putMeta(ctx, tx, "epoch", l.epoch)
	})
}

func (l *Ledger) create(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, schemaSQL); err != nil {
		return err
	}
	for _, view := range views(l.meter) {
		if _, err := tx.ExecContext(ctx, view); err != nil {
			return fmt.Errorf("%w in %s", err, view)
		}
	}
	for key, value := range map[string]any{
		"schema": schemaNumber, "meter": l.meter.Name, "fingerprint": l.meter.Fingerprint, "version": l.meter.Version(),
		"window_ms": l.meter.Window.Size, "lateness_ms": l.meter.Window.AllowedLateness,
		"quantities": words(l.meter.QuantityNames()), "topic": "",
	} {
		if err := putMeta(ctx, tx, key, value); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a ledger that this program or this meter must not write to.
func (l *Ledger) check(m meta) error {
	if n := m.number("schema"); n != schemaNumber {
		return fmt.Errorf("its tables are of schema %d, this program writes %d", n, schemaNumber)
	}
	if f := m.text("fingerprint"); f != l.meter.Fingerprint {
		return fmt.Errorf("it was written under another meter (fingerprint %.12s, this one is %.12s): "+
			"a changed verdict needs a ledger of its own; name another ledger, or bring the old meter file back", f, l.meter.Fingerprint)
	}
	return nil
}

// Close gives the lock back. What was committed stays.
func (l *Ledger) Close() error {
	if l.db == nil {
		return l.lock.Remove()
	}
	return errors.Join(l.db.Close(), l.lock.Release())
}

// within runs do in one transaction.
func (l *Ledger) within(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	if err := l.fail("ledger:before:commit"); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return l.fail("ledger:after:commit")
}

// ignoreDone drops the error of a rollback that SQLite did by itself (a full disk, a cancelled context).
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) || err != nil && strings.Contains(err.Error(), "no transaction is active") {
		return nil
	}
	return err
}
