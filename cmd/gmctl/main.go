// Command gmctl meters an event log, archives it, recomputes it and reconciles the two to the pico-dollar.
// Verbs stand in one file each; rules and arithmetic stand in the rooms they call.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainExit()) }

// mainExit runs the command line of this process: SIGINT ends it with 130, SIGTERM asks it to commit and end.
func mainExit() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() { // a second Ctrl-C does not wait for the commit
		<-interrupted
		<-interrupted
		os.Exit(exitInterrupted)
	}()
	return execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
