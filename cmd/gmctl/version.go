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
		Example: "  gmctl version\n  gmctl version --json",
		RunE: func(*cobra.Command, []string) error {
			revision := "" // of the source; unknown to a build without version control, such as go run
			if info, ok := debug.ReadBuildInfo(); ok {
				revision = revisionOf(info)
			}
			if asJSON {
				fmt.Fprintf(a.stdout, `{"version":"%s","rules":%d,"revision":"%s","go":"%s"}`+"\n", release, meter.Rules, revision, runtime.Version())
				return nil
			}
			words := "revision " + revision
			if revision == "" {
				words = "built without version control"
			}
			fmt.Fprintf(a.stdout, "gmctl %s, rules %d, %s, %s\n", release, meter.Rules, words, runtime.Version())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as one JSON object; revision is empty for a build without version control")
	return cmd
}

// revisionOf is the revision that a program was built from: of its folder, or of its module's version; "" if it does not say.
func revisionOf(info *debug.BuildInfo) string {
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+changes"
		}
	}
	if revision == "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return revision + modified
}
