// Command bench measures the main job as a user meets it: real processes of gmctl over generated logs of one shape, a
// gateway's day (5 M requests, 400 accounts, one with 40 % of the traffic, 30 models, five records a request), whole or
// its first minutes. Every step is printed with its wall time, CPU time, peak memory and records per core-second,
// beside the target. Every answer is checked: the buckets add up, the recompute equals the bill, the diff agrees, a run
// that was killed halfway and started again bills what an undisturbed one bills. A wrong answer ends it with 1, a slow
// one does not.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

func main() {
	gmctl := flag.String("gmctl", "bin/gmctl", "the program")
	dir := flag.String("dir", "", "where to work (default: a temporary folder that is removed)")
	sizes := flag.String("sizes", "1000000,5000000", "records, roughly; 25000000 is the whole day")
	profiles := flag.String("profiles", "", "a folder in which every process leaves its CPU profile")
	flag.Parse()
	if err := bench(*gmctl, *dir, *sizes, *profiles); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(gmctl, dir, sizes, profiles string) error {
	gmctl, err := filepath.Abs(gmctl)
	if err != nil {
		return err
	}
	if profiles != "" {
		if profiles, err = filepath.Abs(profiles); err != nil {
			return err
		}
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "gmctl-bench-*"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	fmt.Printf("%s, %s, %d cores\n", runtime.Version(), runtime.GOARCH, runtime.NumCPU())
	var all []*size
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 10_000 {
			return fmt.Errorf("-sizes %q: want numbers of records, 10000 at least", sizes)
		}
		s := &size{gmctl: gmctl, dir: filepath.Join(dir, text), profiles: profiles}
		if err := s.run(n); err != nil {
			return fmt.Errorf("%d records: %w", n, err)
		}
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
		all = append(all, s)
	}
	growth(all)
	return nil
}
