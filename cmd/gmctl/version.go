package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// release is the version that CHANGELOG.md describes.
const release = "0.1.0"

func (a *app) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupSetup,
		Short:   "Print the version, the number of the rules and what it was built with",
		RunE: func(*cobra.Command, []string) error {
			revision := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			if asJSON {
				fmt.Fprintf(a.stdout, `{"version":"%s","rules":%d,"revision":"%s","go":"%s"}`+"\n", release, meter.Rules, revision, runtime.Version())
				return nil
			}
			fmt.Fprintf(a.stdout, "gmctl %s, rules %d, revision %s, %s\n", release, meter.Rules, revision, runtime.Version())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as one JSON object")
	return cmd
}
