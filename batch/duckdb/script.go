package duckdb

import (
	"fmt"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/batch"
)

// Script is the job's SQL as a plain DuckDB can run it (`--print-sql`): the last statement selects cells and counts of verdicts as cells.sql
// says. Prices are not in it.
func Script(job *batch.Job) (string, error) {
	text, err := batch.Texts(job)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The recompute of meter %s (fingerprint %s), truth %s. Rules R1 to R15: docs/SEMANTICS.md.\n", job.Meter.Name, job.Meter.Fingerprint, job.Truth)
	b.WriteString("-- Rows with a window_end are cells (verdict null); the others only count records of a verdict. set_hash = hash_hi * 2^32 + hash_lo mod 2^64.\n")
	fmt.Fprintf(&b, "%s;\n", dearHelp)
	fmt.Fprintf(&b, "CREATE OR REPLACE TEMP VIEW %s AS\n%s;\n\n", batch.Archive, scan(job))
	fmt.Fprintf(&b, "CREATE OR REPLACE TEMP TABLE %s AS\n%s;\n\n", batch.TallyTable, text.Tally)
	fmt.Fprintf(&b, "%s;\n", text.Cells)
	return b.String(), nil
}
