// Command gmctl meters an event log, archives it, recomputes it and reconciles the two to the pico-dollar.
// Verbs stand in one file each; rules and arithmetic stand in the rooms they call.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
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
	defer profile(os.Getenv("GMCTL_CPUPROFILE"))()
	return execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// profile writes a CPU profile of the process to path, for whoever works on its speed; "" writes none.
func profile(path string) (stop func()) {
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gmctl: profile:", err)
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "gmctl: profile:", err)
		}
	}
}
