package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func (a *app) status() *cobra.Command {
	var format rowFormat
	cmd := &cobra.Command{
		Use:     "status",
		GroupID: groupDaily,
		Short:   "Where each partition stands, and which one holds the bill back",
		Example: "  gmctl status\n  gmctl status --format json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := format.check(); err != nil {
				return err
			}
			o, err := a.open()
			if err != nil {
				return err
			}
			return a.printStatus(cmd.Context(), o, format.format)
		},
	}
	a.ledgerFlag(cmd)
	format.flags(cmd)
	return cmd
}

func (a *app) printStatus(ctx context.Context, o *folder, format string) (err error) {
	r, err := openLedger(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	positions, err := r.Positions(ctx)
	if err != nil {
		return err
	}
	lost, err := r.Lost(ctx)
	if err != nil {
		return err
	}
	if format == "json" {
		for _, p := range positions {
			line, err := json.Marshal(struct {
				Topic     string `json:"topic"`
				Partition int32  `json:"partition"`
				Committed int64  `json:"committed"`
				Archived  int64  `json:"archived"`
				Watermark string `json:"watermark"`
				Idle      bool   `json:"idle"`
				Drained   bool   `json:"drained"`
				Commits   int64  `json:"commits"`
			}{p.Topic, p.Partition, p.Committed, p.Archive.Next, watermark(p.Watermark), p.Idle, p.Drained, p.CommitNo})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s\n", line)
		}
		return nil
	}
	a.tell("meter %s (version %s), ledger %s, topic %s, %s", o.Name, o.Version(), o.Run.Ledger, cell(r.About.Topic), plural(r.About.LastFiring, "firing"))
	t := newTable(">partition", ">committed", ">archived", "watermark", "")
	holder := slowest(positions)
	for _, p := range positions {
		t.row(text(int64(p.Partition)), text(p.Committed), text(p.Archive.Next), watermark(p.Watermark), statusNote(p, holder))
	}
	if err := t.print(a.stdout, terminalWidth(a.stdout)); err != nil {
		return err
	}
	for _, l := range lost {
		fmt.Fprintf(a.stdout, "lost: partition %d, offsets [%d, %d)\n", l.Partition, l.From, l.To)
	}
	sum := sumOfPositions(positions)
	if err := (&summaryFormat{format: "text"}).print(a.stdout, &sum); err != nil {
		return err
	}
	a.noteNothingJudged(o.Meter, &sum)
	return nil
}

// slowest is the partition that holds the merge back: the lowest watermark of those that are not idle (R11).
func slowest(positions []meter.Position) int32 {
	holder, low := int32(-1), meter.PlusInfinity
	for _, p := range positions {
		if !p.Idle && !p.Drained && p.Watermark < low {
			holder, low = p.Partition, p.Watermark
		}
	}
	return holder
}

func statusNote(p meter.Position, holder int32) string {
	switch {
	case p.Drained:
		return "finished and drained"
	case p.Idle:
		return "idle"
	case p.Partition == holder:
		return "holds the bill back"
	}
	return ""
}

func watermark(w int64) string {
	switch {
	case w <= meter.MinusInfinity:
		return "none yet"
	case w >= meter.PlusInfinity:
		return "the end"
	}
	return meter.Time(w)
}
