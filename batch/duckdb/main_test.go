package duckdb_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// checks is how many logs a property here is tried on without -rapid.checks: DuckDB takes half a second and more for the
// statements of one, and the hundred that is usual kept the whole suite waiting for this package.
const checks = "60"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}
