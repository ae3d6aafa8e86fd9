package trace

import (
	"context"
	"errors"
	"io"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// ReadLog reads a whole file into memory: for the exam, the oracle and other logs that fit.
func ReadLog(path string, f Format) (*meter.Log, error) {
	r, err := Open(path, Options{Format: f})
	if err != nil {
		return nil, err
	}
	log, err := readAll(r)
	return log, errors.Join(err, r.Close())
}

// ReadLogFrom reads a whole log from r; name is what errors call it.
func ReadLogFrom(r io.Reader, name string, f Format) (*meter.Log, error) {
	reader, err := NewReader(r, name, Options{Format: f})
	if err != nil {
		return nil, err
	}
	log, err := readAll(reader)
	return log, errors.Join(err, reader.Close())
}

func readAll(r *Reader) (*meter.Log, error) {
	h, err := r.Header(context.Background())
	if err != nil {
		return nil, err
	}
	log := &meter.Log{Topic: h.Topic, Partitions: h.Partitions}
	err = Each(context.Background(), r, func(_ *Chunk, l *Line) error {
		log.Steps = append(log.Steps, meter.LogStep{Record: l.Record, Idle: l.Idle})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return log, nil
}

// Each calls f for every line in order, its place in the order checked. The line lasts until f returns; what its record
// aliases lasts as long as anything points to it.
func Each(ctx context.Context, r *Reader, f func(*Chunk, *Line) error) error {
	h, err := r.Header(ctx)
	if err != nil {
		return err
	}
	order := NewOrder(r.name, h)
	var lines []Line
	for {
		c, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		lines, err = c.Parse(lines[:0])
		for i := range lines {
			if err := order.Check(&lines[i]); err != nil {
				return err
			}
			if err := f(c, &lines[i]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}
