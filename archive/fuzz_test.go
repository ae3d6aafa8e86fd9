package archive_test

import (
	"maps"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
)

// FuzzRead reads arbitrary bytes as an archive file: it may say no, it must not panic, hang or take the memory that
// a number asks for.
func FuzzRead(f *testing.F) {
	m := parseMeter(f, requestsYAML)
	good := newMemFS()
	writeLog(f, config(good, m, "usage", 0), m, gatewayLog(5, 0, 12), 12)
	name := good.files()[0]
	whole := good.now[name].data
	delete(good.now, "_meta/head/usage+0.json")
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		disk := &memFS{now: maps.Clone(good.now)}
		disk.now[name] = &inode{data: data}
		a, err := archive.Open(disk, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range a.Partitions {
			for _, file := range p.Files {
				_ = file.Each(func(*archive.Row) error { return nil })
			}
		}
	})
}
