package main

import "github.com/gatewaymeter/gatewaymeter/batch"

func (u *audit) storedPath(s scope) string { return "nowhere" }
func (u *audit) store(job *batch.Job, f *recomputeFlags, res *batch.Result) (string, error) {
	return "nowhere", nil
}
