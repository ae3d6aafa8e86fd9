package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/diff"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

func (a *app) explain() *cobra.Command {
	var format rowFormat
	cmd := &cobra.Command{
		Use:     "explain ID [PART...]",
		GroupID: groupAudit,
		Short:   "One id's whole life: its records, the rules that judged them, the price",
		Long: `explain finds every record of an id, or of a reference (event.fields.reference),
in the archive: the watermark it met, the rule that judged it, the price, and
where it stands. An identity of several fields is given part by part.`,
		Example: "  gmctl explain r-0004\n  gmctl explain tenant-7 4711 --format json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			o, err := a.open()
			if err != nil {
				return err
			}
			u, err := openAudit(cmd.Context(), o, "archive")
			if err != nil {
				return err
			}
			life, err := u.life(cmd.Context(), args)
			if err != nil {
				return err
			}
			switch {
			case len(life.Records) == 0:
				return hint(fmt.Errorf("explain: no record of %s in the archive", clip(strings.Join(args, " "))), "an identity of this meter has %s; 'gmctl query' finds records by their other fields", plural(max(1, len(o.Event.Identity)), "part"))
			case format.format == "json":
				return life.WriteJSON(a.stdout)
			}
			return life.WriteText(a.page(), columnsFor(a.stdout))
		},
	}
	a.archiveFlag(cmd)
	a.ledgerFlag(cmd)
	format.flags(cmd)
	return cmd
}

// life collects all that is known of an id or reference.
func (u *audit) life(ctx context.Context, parts []string) (*diff.Life, error) {
	job := u.job(scope{truth: batch.AsStreamed})
	l := &diff.Life{ID: meter.NewID(parts...), Meter: u.Name, Topic: u.topic, WindowSize: u.Window.Size, Lateness: u.Window.AllowedLateness,
		AbandonAfter: u.AbandonAfter, MaxOutOfOrderness: u.Watermark.MaxOutOfOrderness, Quantities: u.Event.Quantities, Prices: cardBook(u.prices)}
	var err error
	if l.Records, err = u.recordsOf(ctx, job, parts); err != nil || len(l.Records) == 0 {
		return l, err
	}
	var ids []meter.ID
	for i := range l.Records {
		if id := l.Records[i].ID; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return l, nil
	}
	if l.AsStreamed, err = u.engine().Items(ctx, job, batch.ItemFilter{IDs: ids}); err != nil {
		return nil, err
	}
	if l.Complete, err = u.engine().Items(ctx, u.job(scope{truth: batch.Complete}), batch.ItemFilter{IDs: ids}); err != nil {
		return nil, err
	}
	return l, u.rowsOf(ctx, l)
}

// rowsOf finds the rows that the items stand in, in the ledger and in a recompute of their windows.
func (u *audit) rowsOf(ctx context.Context, l *diff.Life) error {
	keys := map[meter.RowKey]bool{}
	low, high := meter.PlusInfinity, meter.MinusInfinity
	for _, it := range slices.Concat(l.AsStreamed, l.Complete) {
		if it.Verdict == meter.VerdictCounted {
			keys[meter.RowKey{Account: it.Account, WindowEnd: it.WindowEnd}] = true
			low, high = min(low, it.WindowEnd-u.Window.Size), max(high, it.WindowEnd)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	keep := func(rows []meter.Row) []meter.Row {
		return slices.DeleteFunc(rows, func(r meter.Row) bool { return !keys[r.RowKey] })
	}
	rows, err := billRows(ctx, u.folder, sqlite.Range{From: &low, To: &high}, 0)
	switch {
	case err == nil:
		l.Ledger = keep(rows)
	case !errors.Is(err, sqlite.ErrMissing):
		return err
	}
	res, err := u.recompute(ctx, u.job(scope{truth: batch.AsStreamed, from: &low, to: &high}), "duckdb")
	if err != nil {
		return err
	}
	l.Recompute = keep(res.Rows)
	return nil
}

// recordsOf finds the records of an id or reference, dead letters that can be recognised among them, in log order.
func (u *audit) recordsOf(ctx context.Context, job *batch.Job, parts []string) ([]diff.LifeRecord, error) {
	var match []string
	if len(parts) == max(len(u.Event.Identity), 1) && u.Event.Identity != nil {
		match = append(match, equalParts("id_", parts))
	}
	if len(parts) == len(u.Event.Reference) {
		match = append(match, equalParts("ref_", parts))
	}
	if u.Event.Identity == nil && len(parts) == 2 {
		match = append(match, equalParts("id_", parts))
	}
	var records []diff.LifeRecord
	if len(match) > 0 {
		columns := []string{"part", "log_offset", "log_time", "kind", "event_time", "prior_max_reach", "account", "sku", "status", "latency"}
		columns = append(columns, numbered("id_", max(len(u.Event.Identity), u.positionParts()))...)
		columns = append(columns, u.QuantityNames()...)
		for i, c := range columns {
			columns[i] = `"` + c + `"`
		}
		text := "SELECT " + strings.Join(columns, ", ") + " FROM archive WHERE bucket = 'event' AND (" + strings.Join(match, " OR ") + ") ORDER BY log_time, part, log_offset"
		err := u.engine().Query(ctx, job, nil, nil, text, func([]string) error { return nil }, func(v []driver.Value) error {
			records = append(records, u.lifeRecord(v))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	dead, err := u.deadLetters(ctx)
	want := meter.NewID(parts...)
	for _, d := range dead {
		if d.ID == want || d.Reference == want {
			records = append(records, diff.LifeRecord{Watermark: meter.MinusInfinity, Event: meter.Event{Partition: d.Partition, Offset: d.Offset,
				Bucket: meter.BucketDeadLetter, Reason: d.Reason, Kind: d.Kind, ID: "", Account: d.Account, SKU: d.SKU, Time: d.Time, Quantities: d.Quantities, Present: d.Present}})
		}
	}
	return records, err
}

// positionParts is how many parts an id has where the meter has no identity: partition and offset (R3).
func (u *audit) positionParts() int {
	if u.Event.Identity == nil {
		return 2
	}
	return 0
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return names
}

func equalParts(prefix string, parts []string) string {
	tests := make([]string, len(parts))
	for i, name := range numbered(prefix, len(parts)) {
		tests[i] = name + " = '" + strings.ReplaceAll(parts[i], "'", "''") + "'"
	}
	return "(" + strings.Join(tests, " AND ") + ")"
}

// lifeRecord reads a row of recordsOf.
func (u *audit) lifeRecord(v []driver.Value) diff.LifeRecord {
	r := diff.LifeRecord{Watermark: meter.MinusInfinity}
	e := &r.Event
	e.Bucket = meter.BucketEvent
	number := func(v driver.Value) int64 {
		n, _ := v.(int64)
		return n
	}
	word := func(v driver.Value) string {
		s, _ := v.(string)
		return s
	}
	if p, ok := v[0].(int32); ok {
		e.Partition = p
	}
	e.Offset, e.LogTime, e.HasLogTime, e.Time = number(v[1]), number(v[2]), v[2] != nil, number(v[4])
	e.Kind = named(meter.Kinds(), v[3])
	if v[5] != nil {
		r.Watermark = number(v[5]) - u.Watermark.MaxOutOfOrderness
	}
	e.Account, e.SKU, e.Status, e.Latency, e.HasLatency = word(v[6]), word(v[7]), word(v[8]), number(v[9]), v[9] != nil
	v = v[10:]
	var id []string
	for range max(len(u.Event.Identity), u.positionParts()) {
		id, v = append(id, word(v[0])), v[1:]
	}
	e.ID = meter.NewID(id...)
	e.Reference = e.ID
	for i, q := range v {
		e.Quantities = append(e.Quantities, number(q))
		if q != nil {
			e.Present |= 1 << i
		}
	}
	return r
}
