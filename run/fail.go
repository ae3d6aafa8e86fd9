package run

import "github.com/gatewaymeter/gatewaymeter/archive"

// FailFS makes every step of an archive's folder a named point of fail: "archive:before:link", "archive:after:sync" and
// so on, the verbs of [archive.Op]. A nil fail changes nothing.
func FailFS(fsys archive.FS, fail func(point string) error) archive.FS {
	if fail == nil {
		return fsys
	}
	return archive.Hooked(fsys, func(op archive.Op) error {
		if op.After {
			return fail("archive:after:" + op.Verb)
		}
		return fail("archive:before:" + op.Verb)
	})
}
