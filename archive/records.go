package archive

import (
	"errors"
	"fmt"
	"iter"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// RecordsFrom hands out a partition's records in the files that begin at offset from or behind it, in order. The record
// is the callee's only until the next one. An error ends it.
func RecordsFrom(fsys FS, s Source, from int64) iter.Seq2[*meter.Record, error] {
	return func(yield func(*meter.Record, error) bool) {
		err := recordsFrom(fsys, s, from, yield)
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("archive: records of %s from %d on: %w", s, from, err))
		}
	}
}

// errEnough ends a walk that has been left.
var errEnough = errors.New("enough")

func recordsFrom(fsys FS, s Source, from int64, yield func(*meter.Record, error) bool) error {
	files, err := partitionFiles(fsys, s)
	if err != nil {
		return err
	}
	for _, p := range files {
		if p.first < from {
			continue
		}
		f, err := readFile(fsys, p.name, planCache{})
		if err != nil {
			return err
		}
		if err := f.Records(func(r *meter.Record) error {
			if !yield(r, nil) {
				return errEnough
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
