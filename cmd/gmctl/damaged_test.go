package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedFile: a flipped bit in a file of the archive that keeps DuckDB from reading it is told by the file's name and
// with what to do, whatever verb meets it.
func TestDamagedFile(t *testing.T) {
	dir, m, _ := storedFolder(t, 300)
	files, err := filepath.Glob(filepath.Join(dir, "archive/topic=*/*/*/*/*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	path := files[len(files)-1]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	verbs := [][]string{{"recompute"}, {"diff"}, {"query", "select count(hash(a)) from archive a"}, {"explain", "r-0001"}}
	for i, at := range []int{4, 30, 300, 900, len(whole) - 3000, len(whole) - 2000, len(whole) - 1500, len(whole) - 1000, len(whole) - 600, len(whole) - 9, len(whole) - 2} {
		if at < 0 || at >= len(whole) {
			continue
		}
		bad := bytes.Clone(whole)
		bad[at] ^= 0x40
		write(t, path, string(bad))
		var out, said bytes.Buffer
		verb := verbs[i%len(verbs)]
		if code := execute(context.Background(), append([]string{"-m", m}, verb...), nil, &out, &said); code != 2 {
			continue // it is no part of what the verb reads, or the listing has said so
		}
		stopped++
		words := strings.Join(strings.Fields(said.String()), " ")
		if !strings.Contains(words, filepath.Base(path)) && !strings.Contains(words, "no record of") || !strings.Contains(words, "archive verify") && !strings.Contains(words, "no record of") {
			t.Errorf("%v with byte %d of %d flipped: %s", verb, at, len(whole), said.Bytes())
		}
	}
	if stopped < 3 {
		t.Errorf("only %d flipped bits stopped a verb: the test proves little", stopped)
	}
}
