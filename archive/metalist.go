package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// listName is the document of `_meta` that lists the others with their sha256, so that a missing or a changed one is
// seen. Heads are not in it: they change with every file, and each partition with a file has one.
var listName = path.Join(metaDir, "list.json")

// listedKinds are the folders of `_meta` whose documents are listed.
var listedKinds = []string{"meters", "rates", "prices", "drained"}

type listDoc struct {
	Documents map[string]string `json:"documents"` // sha256 by name below _meta
}

// list reads the list; fs.ErrNotExist without one.
func (m *Meta) list() (listDoc, error) {
	var doc listDoc
	err := m.readJSON("list.json", &doc)
	if doc.Documents == nil {
		doc.Documents = map[string]string{}
	}
	return doc, err
}

// enlist puts documents, which are durable by now, on the list.
func (m *Meta) enlist(documents map[string][]byte) error {
	doc, err := m.list()
	if err := ignore(err, fs.ErrNotExist); err != nil {
		return err
	}
	changed := err != nil
	for name, text := range documents {
		sum := sha256.Sum256(text)
		if hash := hex.EncodeToString(sum[:]); doc.Documents[name] != hash {
			doc.Documents[name], changed = hash, true
		}
	}
	if !changed {
		return nil
	}
	data, err := sealDoc(doc)
	if err != nil {
		return err
	}
	return writeDoc(&m.dirs, listName, "meta+list", data, true)
}

// Adopt makes the list of an archive that was written before there were lists, of what stands there.
func (m *Meta) Adopt() error {
	if _, err := m.list(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	there, err := m.documents()
	if err != nil || len(there) == 0 {
		return err
	}
	if err := m.enlist(there); err != nil {
		return fmt.Errorf("archive: list _meta: %w", err)
	}
	return nil
}

// documents are those that belong on the list.
func (m *Meta) documents() (map[string][]byte, error) {
	there := map[string][]byte{}
	for _, kind := range listedKinds {
		names, err := m.names(kind, metaKinds[kind])
		if err != nil {
			return nil, err
		}
		for _, base := range names {
			name := path.Join(kind, base+metaKinds[kind])
			if there[name], err = readDoc(m.dirs.fs, path.Join(metaDir, name), maxDoc); err != nil {
				return nil, fmt.Errorf("archive: read %s/%s: %w", metaDir, name, err)
			}
		}
	}
	return there, nil
}

// Check holds the documents against the list. A document that is not on it is a note: a crash may have come between.
func (m *Meta) Check() (faults, notes []Fault, err error) {
	there, err := m.documents()
	if err != nil {
		return nil, nil, err
	}
	doc, err := m.list()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f := Fault{Kind: MetaFault, File: listName, Detail: "the list of what _meta holds is not here: what is missing of it cannot be seen"}
		if _, err := m.dirs.fs.ReadDir(metaDir); errors.Is(err, fs.ErrNotExist) || len(there) == 0 {
			return nil, nil, nil
		}
		if !m.hasLock() { // written before there were lists
			return nil, []Fault{f}, nil
		}
		return []Fault{f}, nil, nil
	case err != nil:
		return []Fault{{Kind: MetaFault, File: listName, Detail: err.Error()}}, nil, nil
	}
	for name, hash := range doc.Documents {
		text, ok := there[name]
		sum := sha256.Sum256(text)
		f := Fault{Kind: MetaFault, File: path.Join(metaDir, name)}
		switch {
		case !ok:
			f.Detail = "it was written and is not here"
		case hex.EncodeToString(sum[:]) != hash:
			f.Detail = "its bytes are not those that were written"
		default:
			continue
		}
		faults = append(faults, f)
	}
	for name := range there {
		if doc.Documents[name] == "" {
			notes = append(notes, Fault{Kind: Unlisted, File: path.Join(metaDir, name), Detail: "not on the list of what was written"})
		}
	}
	byFile := func(a, b Fault) int { return strings.Compare(a.File, b.File) }
	slices.SortFunc(faults, byFile)
	slices.SortFunc(notes, byFile)
	return faults, notes, nil
}

func (m *Meta) hasLock() bool {
	entries, err := m.dirs.fs.ReadDir(metaDir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return path.Join(metaDir, e.Name()) == lockName })
}

// listed is an error unless a document that was read is the one on the list.
func (m *Meta) listed(name string, text []byte) error {
	doc, err := m.list()
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	sum := sha256.Sum256(text)
	if want := doc.Documents[name]; want != "" && want != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("archive: read %s/%s: its bytes are not those that were written", metaDir, name)
	}
	return nil
}

// missingOf is an error if a document of a kind that is on the list is not among those that were read.
func (m *Meta) missingOf(kind string, read []string) error {
	doc, err := m.list()
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Documents)) {
		base, ok := strings.CutPrefix(name, kind+"/")
		if ok && !slices.Contains(read, strings.TrimSuffix(base, path.Ext(base))) {
			return fmt.Errorf("archive: %s/%s was written and is not here", metaDir, name)
		}
	}
	return nil
}

// isSame reports whether a document stands there already with these bytes.
func (m *Meta) isSame(name string, data []byte) bool {
	old, err := readDoc(m.dirs.fs, name, maxDoc)
	return err == nil && bytes.Equal(old, data)
}
