package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

//go:embed starter
var starter embed.FS

// starterKind is the kind of meter of each story.
var starterKind = map[string]meter.MeterKind{"gateway": meter.Requests, "ad-clicks": meter.Events}

func (a *app) init() *cobra.Command {
	var story string
	cmd := &cobra.Command{
		Use:     "init DIR",
		GroupID: groupSetup,
		Short:   "Write a starter folder: a meter, its rates and a small trace; never over an existing one",
		Example: "  gmctl init demo --story gateway && cd demo && gmctl stream",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writeStarter(args[0], story); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s: a meter (gatewaymeter.yaml), its rates (rates.yaml) and a small log (trace.jsonl).\nGo on with: cd %s && gmctl stream && gmctl recompute && gmctl diff\n", args[0], args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&story, "story", "gateway", "gateway: requests with a start and an end; ad-clicks: single events")
	return cmd
}

// writeStarter makes the folder of a story, whole or not at all.
func writeStarter(dir, story string) error {
	kind, ok := starterKind[story]
	if !ok {
		return hint(fmt.Errorf("init: no story %q", clip(story)), "use --story gateway or --story ad-clicks")
	}
	if _, err := os.Lstat(dir); err == nil {
		return hint(fmt.Errorf("init: %s exists; it is left alone", dir), "name a new folder")
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), ".gmctl-init-*")
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	err = fillStarter(aside, "starter/"+story, kind)
	if err == nil {
		err = os.Chmod(aside, 0o755)
	}
	if err == nil {
		err = os.Rename(aside, dir)
	}
	if err != nil {
		return fmt.Errorf("init: %w", errors.Join(err, os.RemoveAll(aside)))
	}
	return nil
}

func fillStarter(dir, from string, kind meter.MeterKind) error {
	files, err := starter.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := starter.ReadFile(from + "/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), text, 0o644); err != nil {
			return err
		}
	}
	if kind == meter.Requests {
		if err := os.WriteFile(filepath.Join(dir, "rates.yaml"), []byte(gatewayRates()), 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "trace.jsonl"))
	if err != nil {
		return err
	}
	return errors.Join(starterTrace(f, kind), f.Close())
}

// starterTrace is a few minutes with a little of everything in it.
func starterTrace(w io.Writer, kind meter.MeterKind) error {
	g := trace.NewGen(kind)
	g.Seed, g.Duration = 7, 240_000
	_, err := g.Write(w)
	return err
}

// gatewayRates prices the models of generated traces.
func gatewayRates() string {
	var b strings.Builder
	b.WriteString("# Prices per million tokens. A quantity of a sku without a rate is unpriced: kept and shown, never guessed.\nrates:\n")
	for i := range trace.NewGen(meter.Requests).SKUs {
		for _, q := range []struct{ name, usd string }{
			{"prompt_tokens", fmt.Sprintf("%d.50", i+1)}, {"cached_tokens", fmt.Sprintf("0.%d5", i+1)}, {"completion_tokens", fmt.Sprintf("%d.00", 4*(i+1))},
		} {
			fmt.Fprintf(&b, "  - {sku: %s, tier: 0, quantity: %s, usd: \"%s\", per: 1000000, effective_from: 2026-01-01T00:00:00Z}\n", trace.SKUName(i), q.name, q.usd)
		}
	}
	return b.String()
}
