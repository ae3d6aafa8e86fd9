package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
)

func (a *app) rates() *cobra.Command {
	cmd := &cobra.Command{Use: "rates", GroupID: groupSetup, Short: "Work with rate cards", Example: "  gmctl rates check rates.yaml"}
	cmd.AddCommand(&cobra.Command{
		Use:     "check FILE",
		Short:   "Check a rate card against the meter: every fault at once",
		Example: "  gmctl rates check rates.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := meter.Load(a.meterPath)
			if err != nil {
				return hint(err, "a rate card is checked against a meter; name its file with -m")
			}
			card, err := loadCard(m, args[0])
			var faults meter.Faults
			if errors.As(err, &faults) {
				return a.faulty(faults)
			} else if err != nil {
				return err
			}
			for _, w := range pricing.Warnings(m, card) {
				a.tell("warning: %s", clean(w))
			}
			a.tell("%s: right, %s (revision %s)", args[0], plural(len(card.Rates), "rate"), card.Revision)
			return nil
		},
	})
	return cmd
}

// loadCard reads a card named on the command line: relative to the working folder, not to the meter file.
func loadCard(m *meter.Meter, path string) (*pricing.Card, error) {
	here := *m
	here.Path = ""
	return pricing.LoadFile(&here, path)
}
