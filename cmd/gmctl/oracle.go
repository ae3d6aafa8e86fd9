package main

import (
	"context"
	"errors"

	"github.com/gatewaymeter/gatewaymeter/batch"
	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// oracle runs a job on the naive engine, from the raw bytes: nothing that the archiver's decoder made of a record is
// looked at. It is never pruned.
func (u *audit) oracle(ctx context.Context, job *batch.Job) (*batch.Result, error) {
	log, drained, err := u.rawLog(ctx, job)
	if err != nil {
		return nil, err
	}
	var res *oracle.Result
	if job.Truth == batch.Complete {
		options := oracle.Options{Drain: drained}
		if h := job.Horizon; h != nil {
			options.AuditHorizon = &oracle.Range{From: h.FromLog, To: h.ToLog}
		}
		res, err = oracle.Complete(u.Meter, job.Card, job.List, log, options)
	} else {
		res, err = oracle.AsStreamed(u.Meter, job.Card, job.List, log, drained)
	}
	if err != nil {
		return nil, err
	}
	out := &batch.Result{Summary: res.Summary}
	for _, r := range res.Rows {
		if (job.From == nil || r.WindowEnd > *job.From) && (job.To == nil || r.WindowEnd <= *job.To) && (job.Account == "" || r.Account == job.Account) {
			out.Rows = append(out.Rows, r)
		}
	}
	return out, u.reprice(out.Rows)
}

// rawLog reads every record of the job's partitions back. The order between partitions matters to no row.
func (u *audit) rawLog(ctx context.Context, job *batch.Job) (*meter.Log, bool, error) {
	log := &meter.Log{Topic: u.topic}
	drained := 0
	for i, p := range u.parts {
		log.Partitions = append(log.Partitions, p.Partition)
		if job.Parts[i].Drained {
			drained++
		}
		for _, f := range p.Files {
			if err := ctx.Err(); err != nil {
				return nil, false, err
			}
			err := f.Records(func(r *meter.Record) error {
				if r.Offset < job.Parts[i].End {
					r.Value, r.Key = append([]byte(nil), r.Value...), nil
					log.Steps = append(log.Steps, meter.LogStep{Record: *r})
				}
				return nil
			})
			if err != nil {
				return nil, false, err
			}
		}
	}
	if drained != 0 && drained != len(u.parts) {
		return nil, false, errors.New("recompute: some partitions are drained and some are not; the oracle wants --drain or --no-drain")
	}
	return log, drained > 0, nil
}
