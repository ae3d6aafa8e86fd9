package main

import "fmt"

// report prints a step and keeps it.
func (s *size) report(step string, u usage, target float64) {
	rate := float64(s.records) / u.cpu.Seconds() / 1e6
	line := fmt.Sprintf("%-34s %7.2f s wall %7.2f s cpu %6d MB %6.2f M records/core-s", step, u.wall.Seconds(), u.cpu.Seconds(), u.peakMB, rate)
	if target > 0 {
		line += fmt.Sprintf("   target %.1f (%3.0f%%)", target, 100*rate/target)
	}
	fmt.Println(line)
	s.steps = append(s.steps, measured{step, u, target})
}

// growth prints, step by step, how wall time and memory grow with the log: a table to paste.
func growth(all []*size) {
	if len(all) < 2 {
		return
	}
	fmt.Printf("\nwhat grows how: wall seconds, CPU seconds, peak MB\n| step |")
	for _, s := range all {
		fmt.Printf(" %.1f M records |", float64(s.records)/1e6)
	}
	fmt.Print("\n|---|")
	for range all {
		fmt.Print("---|")
	}
	fmt.Println()
	for i, step := range all[0].steps {
		fmt.Printf("| %s |", step.name)
		for _, s := range all {
			u := s.steps[i].usage
			fmt.Printf(" %.1f s, %.1f s, %d MB |", u.wall.Seconds(), u.cpu.Seconds(), u.peakMB)
		}
		fmt.Println()
	}
	for i, d := range all[0].disk {
		fmt.Printf("| %s on disk |", d.name)
		for _, s := range all {
			fmt.Printf(" %.0f MB |", float64(s.disk[i].bytes)/1e6)
		}
		fmt.Println()
	}
}
