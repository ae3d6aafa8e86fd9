package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/story"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

//go:embed starter
var starter embed.FS

// stories are what `init` and `demo` can write: the files that are made beside those of starter/STORY.
var stories = map[string]map[string]func(io.Writer) error{
	"gateway": {"trace.jsonl": func(w io.Writer) error { return story.Gateway(trace.NewWriter(w)) }},
	"ad-clicks": {
		"trace.jsonl": func(w io.Writer) error { return story.AdClicks(trace.NewWriter(w)) },
		"partner.csv": story.PartnerCSV,
	},
}

func (a *app) init() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "init DIR",
		GroupID: groupSetup,
		Short:   "Write a starter folder: a meter, its rates and a small trace; never over an existing one",
		Example: "  gmctl init demo --story gateway && cd demo && gmctl stream",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.writeStarter(args[0], name, "init --story "+name); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, wrap(args[0]+": a meter (gatewaymeter.yaml), its rates (rates.yaml) and a small log (trace.jsonl). Go on with:", columnsFor(a.stdout)))
			for _, verb := range []string{"stream", "recompute", "diff"} {
				fmt.Fprintln(a.stdout, breakCommand("  "+a.command(args[0], verb), columnsFor(a.stdout)))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "story", "gateway", "gateway: requests with a start and an end; ad-clicks: single events")
	return cmd
}

// writeStarter makes the folder of a story, whole or not at all; again is the verb that makes another one.
func (a *app) writeStarter(dir, name, again string) error {
	made, ok := stories[name]
	if !ok {
		return hint(fmt.Errorf("init: no story %q", clip(name)), "use --story gateway or --story ad-clicks")
	}
	if _, err := os.Lstat(dir); err == nil {
		fresh := fmt.Sprintf("%s %s", again, shellWord(freeName(dir)))
		if _, err := os.Stat(filepath.Join(dir, defaultMeter)); err == nil {
			return hint(fmt.Errorf("%s exists; it is left alone", dir), "go on in it with '%s', or make another with '%s'", a.command(dir, "status"), a.command("", fresh))
		}
		return hint(fmt.Errorf("%s exists; it is left alone", dir), "make another with '%s'", a.command("", fresh))
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), ".gmctl-init-*")
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	err = fillStarter(aside, "starter/"+name, made)
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

func fillStarter(dir, from string, made map[string]func(io.Writer) error) error {
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
	for file, write := range made {
		f, err := os.Create(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// freeName is the first of DIR-2, DIR-3, ... that is free.
func freeName(dir string) string {
	for n := 2; ; n++ {
		name := fmt.Sprintf("%s-%d", filepath.Clean(dir), n)
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}
