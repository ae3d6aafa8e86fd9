package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
)

func (a *app) validate() *cobra.Command {
	return &cobra.Command{
		Use:     "validate",
		GroupID: groupSetup,
		Short:   "Check the meter and its rates: every fault at once, and what is legal but dangerous",
		Example: "  gmctl validate\n  gmctl validate -m other/gatewaymeter.yaml",
		Long: `validate checks the meter file and its rate cards, and tries the meter on the
first 1,000 records of run.source where that is a file: how many are dead
letters and why, kinds and quantities that none of them has, skus without a
rate. Exit 1 if a file is wrong; what is legal but dangerous is a warning.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := meter.Load(a.meterPath)
			var faults meter.Faults
			switch {
			case errors.As(err, &faults):
				return a.faulty(faults)
			case err != nil:
				return hint(err, "name the meter file with -m, or make one with 'gmctl init DIR'")
			}
			card, list, err := loadCards(m)
			if errors.As(err, &faults) {
				return a.faulty(faults)
			} else if err != nil {
				return err
			}
			warnings := append(meterWarnings(m), pricing.Warnings(m, card)...)
			tried, err := readSample(cmd.Context(), m, (&folder{Meter: m}).path(m.Run.Source))
			switch {
			case err != nil:
				warnings = append(warnings, "run.source cannot be read: "+err.Error())
			case tried != nil:
				warnings = append(warnings, tried.warnings(card, list)...)
			}
			for _, w := range warnings {
				a.tell("warning: %s", clean(w))
			}
			a.tell("%s: right, %s; version %s, %s (revision %s)", m.Path, plural(len(warnings), "warning"), m.Version(), plural(len(card.Rates), "rate"), card.Revision)
			if list != nil {
				a.tell("list prices: %s (revision %s)", plural(len(list.Rates), "rate"), list.Revision)
			}
			if tried != nil {
				a.tell("tried on %s: the first %s = %s", clean(tried.name), plural(tried.sum.Read, "record"), doorWords(&tried.sum))
			}
			return nil
		},
	}
}

// faulty prints every fault on stdout, where a verb whose job is to look puts what it found.
func (a *app) faulty(faults meter.Faults) error {
	for _, f := range faults {
		fmt.Fprintln(a.stdout, clean(f.String()))
	}
	return found{plural(len(faults), "fault")}
}

// meterWarnings says what is legal and dangerous about a meter.
func meterWarnings(m *meter.Meter) []string {
	var w []string
	if m.Event.Identity == nil {
		w = append(w, "identity: none: nothing is deduplicated; a resent event is billed again")
	}
	if m.Window.AllowedLateness == 0 {
		w = append(w, "window.allowed_lateness: 0s: a minute is never corrected; what comes after its first result goes to the late output")
	}
	if m.Watermark.MaxOutOfOrderness == 0 {
		w = append(w, "watermark.max_out_of_orderness: 0s: an event a millisecond out of order may already be late")
	}
	if m.Run.SourceFormat == "values" && m.Event.Received == nil {
		w = append(w, "run.source_format: values without event.fields.received: there is no log time, so one fast clock can make other people's events late, and max_ahead is not judged")
	}
	if m.Event.Kinds != nil && !hasKind(m, meter.KindTick) {
		w = append(w, "event.kinds has no tick: in a quiet hour minutes stay open until the next event")
	}
	return w
}

func hasKind(m *meter.Meter, kind meter.Kind) bool {
	for _, k := range m.Event.Kinds {
		if k == kind {
			return true
		}
	}
	return false
}
