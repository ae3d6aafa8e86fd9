package archive_test

import (
	"testing"

	"github.com/gatewaymeter/gatewaymeter/archive"
)

// FuzzRead reads arbitrary bytes as an archive file: it may say no, it must not panic, hang or take the memory that
// a number asks for.
func FuzzRead(f *testing.F) {
	good, _, _ := threeFiles(f)
	name := good.files()[0]
	whole := good.now[name].data
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		bad := good.clone()
		bad.now[name].data = data
		delete(bad.now, "_meta/head/usage+0.json")
		a, err := archive.Open(bad, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range a.Partitions {
			for _, file := range p.Files {
				file.SHA256 = ""
				_ = file.Each(func(*archive.Row) error { return nil })
			}
		}
	})
}
