package main

import "github.com/spf13/cobra"

// verbs lists every verb in the order of --help.
func (a *app) verbs() []*cobra.Command {
	return []*cobra.Command{
		a.stream(), a.bill(), a.status(), a.query(),
		a.recompute(), a.diff(), a.explain(), a.archive(),
		a.init(), a.demo(), a.validate(), a.rates(), a.version(), completion(),
		a.trace(),
	}
}
