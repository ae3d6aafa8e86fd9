package run

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/gatewaymeter/gatewaymeter/archive"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A witness holds the records of a log against those that the archive has of it already, byte by byte: where the archive
// is ahead of the ledger (a crash, another ledger over the same archive) or there is no ledger, no hash says that both
// are of one log.
type witness struct {
	from, to int64 // offsets that it compares
	next     func() (*meter.Record, error, bool)
	stop     func()
}

// newWitness compares the records from `from` up to `to`, where a file ends; files is where the first file begins that
// can hold some.
func newWitness(fsys archive.FS, s archive.Source, files, from, to int64) *witness {
	w := &witness{from: from, to: to}
	records := archive.RecordsFrom(fsys, s, files)
	w.next, w.stop = iter.Pull2(func(yield func(*meter.Record, error) bool) {
		for r, err := range records {
			if (err != nil || r.Offset >= from) && !yield(r, err) {
				return
			}
		}
	})
	return w
}

// check compares a record of the log with the archive's next one. Records come in order, each once.
func (w *witness) check(rec *meter.Record) error {
	if w == nil || rec.Offset < w.from || rec.Offset >= w.to {
		return nil
	}
	kept, err, ok := w.next()
	switch {
	case err != nil:
		return err
	case !ok:
		return foreign("offset %d is in the log and not in the archive", rec.Offset)
	case kept.Offset != rec.Offset:
		return foreign("offset %d follows in the log, offset %d in the archive", rec.Offset, kept.Offset)
	case kept.Null != rec.Null || !bytes.Equal(kept.Value, rec.Value):
		return foreign("the record at offset %d is another one", rec.Offset)
	}
	return nil
}

// end checks that the log had every record that the archive has.
func (w *witness) end() error {
	if w == nil {
		return nil
	}
	kept, err, ok := w.next()
	switch {
	case err != nil:
		return err
	case ok:
		return foreign("the archive has a record at offset %d, the log has not", kept.Offset)
	}
	return nil
}

// settleWitness lets the witness go, once the log is behind what it knows.
func (p *partition) settleWitness() error {
	err := p.witness.end()
	p.witness.close()
	p.witness = nil
	return err
}

func (w *witness) close() {
	if w != nil {
		w.stop()
	}
}

func foreign(detail string, args ...any) error {
	return refuse(ErrArchive, "bring the log back that was archived, or name another archive", "%s", fmt.Sprintf(detail, args...))
}
