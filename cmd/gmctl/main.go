// Command gmctl meters an event log, archives it, recomputes it and reconciles the two to the pico-dollar.
// Verbs stand in one file each; rules and arithmetic stand in the rooms they call.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
)

func main() { os.Exit(mainExit()) }

// mainExit runs the command line of this process: SIGINT ends it with 130, SIGTERM asks it to commit and end.
func mainExit() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a reader that has gone (| head) is seen by the write: see pipe
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt)
	var interrupted atomic.Bool
	go func() {
		<-interrupts
		interrupted.Store(true)
		<-interrupts // a second Ctrl-C does not wait for the commit
		os.Exit(exitInterrupted)
	}()
	defer profile(os.Getenv("GMCTL_CPUPROFILE"))()
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if code == exitDone && interrupted.Load() {
		return exitInterrupted // stopped by hand, with what was done committed
	}
	return code
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
