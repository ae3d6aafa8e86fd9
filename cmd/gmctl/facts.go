package main

import (
	"fmt"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// facts are the provenance of a report: what was compared, as of which log positions.
func (s *sides) facts(from, to *int64) [][2]string {
	bound := func(ms *int64) string {
		if ms == nil {
			return "everything"
		}
		return meter.Time(*ms)
	}
	facts := [][2]string{
		{"meter", clean(s.Name)},
		{"version of the meter (fingerprint)", s.Fingerprint},
		{"rate card at hand (revision)", s.card.Revision},
		{"topic", clean(s.audit.topic)},
		{"truth of the recompute", s.flags.truth},
		{"from", bound(from)},
		{"to", bound(to)},
	}
	for _, c := range s.cuts {
		facts = append(facts, [2]string{fmt.Sprintf("partition %d", c.Partition), fmt.Sprintf("judged up to offset %d; the ledger committed %d", c.Offset, c.Committed)})
	}
	recompute := "run for this report"
	if s.made != "" {
		recompute = "stored at " + s.made + "; archive, prices and program are the same since"
	}
	return append(facts, [2]string{"recompute", recompute}, [2]string{"gmctl", release}, [2]string{"made at", meter.Time(time.Now().UnixMilli())})
}
