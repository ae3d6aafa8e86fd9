package main

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// deadLetters reads the dead letters of the archive as far as they can be read, so that a difference that they cause has
// a name. No verdict depends on it.
func (u *audit) deadLetters(ctx context.Context) ([]diff.Dead, error) {
	var all []diff.Dead
	text := "SELECT part, log_offset, reason, kind, raw FROM archive WHERE bucket = 'dead_letter' ORDER BY part, log_offset"
	err := u.engine().Query(ctx, u.job(scope{truth: batch.Complete}), nil, nil, text, func([]string) error { return nil }, func(v []driver.Value) error {
		d := diff.Dead{}
		d.Partition, _ = v[0].(int32)
		d.Offset, _ = v[1].(int64)
		d.Reason, d.Kind = named(meter.Reasons(), v[2]), named(meter.Kinds(), v[3])
		raw, _ := v[4].([]byte)
		salvage(u.Meter, &d, raw)
		all = append(all, d)
		return nil
	})
	return all, err
}

// named finds the value that a column names; the zero value for NULL.
func named[T fmt.Stringer](values []T, column driver.Value) T {
	for _, v := range values {
		if v.String() == column {
			return v
		}
	}
	var none T
	return none
}

// salvage reads what it can of a dead letter.
func salvage(m *meter.Meter, d *diff.Dead, raw []byte) {
	d.Quantities = make([]int64, len(m.Event.Quantities))
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if dec.Decode(&object) != nil {
		return
	}
	word := func(path meter.FieldPath) string { return plainWord(lookup(object, path)) }
	source := func(s meter.Source) string {
		if s.IsConst {
			return s.Const
		}
		return word(s.Path)
	}
	words := func(paths []meter.FieldPath) meter.ID {
		parts := make([]string, len(paths))
		for i, p := range paths {
			if parts[i] = word(p); parts[i] == "" {
				return ""
			}
		}
		return meter.NewID(parts...)
	}
	d.Account, d.SKU = source(m.Event.Account), source(m.Event.SKU)
	d.ID = words(m.Event.Identity)
	if m.Event.Identity == nil {
		d.ID = meter.PositionID(d.Partition, d.Offset)
	}
	d.Reference = d.ID
	if m.Event.Reference != nil {
		d.Reference = words(m.Event.Reference)
	}
	d.Time, d.HasTime = plainTime(m.Event.TimeUnit, word(m.Event.Time))
	for i, q := range m.Event.Quantities {
		n, err := strconv.ParseInt(word(q.Path), 10, 64)
		if q.IsConst {
			n, err = q.Const, nil
		}
		if err == nil {
			d.Quantities[i], d.Present = n, d.Present|1<<i
		}
	}
}

func lookup(v any, path meter.FieldPath) any {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}

func plainWord(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

func plainTime(unit meter.TimeUnit, text string) (int64, bool) {
	if unit == meter.UnitRFC3339 {
		t, err := time.Parse(time.RFC3339Nano, text)
		return t.UnixMilli(), err == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false
	}
	switch unit {
	case meter.UnitS:
		return n * 1000, n < 1<<50
	case meter.UnitUs:
		return n / 1000, true
	case meter.UnitNs:
		return n / 1_000_000, true
	}
	return n, true
}
