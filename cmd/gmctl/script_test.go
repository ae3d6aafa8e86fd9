package main

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript" // the go command's own way of testing command lines, kept by its authors
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gmctl": main})
}

// Each script is one verb as its user meets it: stdout, stderr, exit code, files that are there or not.
func TestScripts(t *testing.T) {
	scripts, err := os.ReadDir("testdata/script")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "Asia/Kolkata") // no output may depend on the machine's zone (K13.1)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "duckdb": plainSelect},
	})
}

// exits runs a command and checks its exit code: exits 2 gmctl bill.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; want != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// plainSelect runs a file of statements in a plain DuckDB and compares the one value that the last of them selects.
func plainSelect(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: duckdb FILE VALUE")
	}
	db, err := sql.Open("duckdb", "")
	ts.Check(err)
	defer func() { ts.Check(db.Close()) }()
	_, err = db.Exec("SET file_search_path = '" + ts.MkAbs(".") + "'")
	ts.Check(err)
	var value any
	ts.Check(db.QueryRow(ts.ReadFile(args[0])).Scan(&value))
	if got := fmt.Sprint(value); got != args[1] {
		ts.Fatalf("%s selects %s, want %s", args[0], got, args[1])
	}
}
