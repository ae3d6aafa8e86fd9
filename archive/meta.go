package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Meta is the `_meta` folder: what an audit needs beside the records. Every document is written whole or not at
// all, durable when the call returns, and writing the same again changes nothing.
//
//	_meta/meters/<fingerprint>.yaml     every meter version, as its file read
//	_meta/rates/<revision>.yaml         every rate card and list revision, as its file read
//	_meta/prices/<number>.json          which revisions priced which windows (PriceUse)
//	_meta/drained/<topic>+<part>.json   the mark of a drained end (R13)
//	_meta/head/<topic>+<part>.json      the end of the partition's chain
//	_meta/list.json                     the documents of all kinds but head, each with its sha256
//	_meta/lock                          locked by the process that writes (TakeLock)
//
// A JSON document stands beside its own sha256; a text's name (fingerprint, revision) is its hash.
// Heads are kept here also where a ledger has them: so an archive proves its own tail when it is all there is.
// A Meta is not safe for concurrent use.
type Meta struct{ dirs dirs }

// NewMeta is the `_meta` of an archive.
func NewMeta(fsys FS) *Meta { return &Meta{dirs{fs: fsys}} }

// maxDoc bounds a document of _meta that is read.
const maxDoc = 64 << 20

// A Text is a document that is kept as it was read.
type Text struct {
	Name string // fingerprint or revision
	Text []byte
}

// PutMeter keeps m's text under its fingerprint. Of two texts with one fingerprint both are kept.
func (m *Meta) PutMeter(mt *meter.Meter) error { return m.putText("meters", mt.Fingerprint, mt.Text) }

// PutRates keeps the text of a rate card or list under its revision.
func (m *Meta) PutRates(revision string, text []byte) error {
	return m.putText("rates", revision, text)
}

// Meters lists the meter versions, those of one fingerprint together, by name.
func (m *Meta) Meters() ([]Text, error) { return m.texts("meters") }

// Rates lists the rate card revisions by name.
func (m *Meta) Rates() ([]Text, error) { return m.texts("rates") }

// Meter is the text of the meter version with this fingerprint; fs.ErrNotExist without one.
func (m *Meta) Meter(fingerprint string) ([]byte, error) { return m.text("meters", fingerprint) }

// Rate is the text of the rate card with this revision; fs.ErrNotExist without one.
func (m *Meta) Rate(revision string) ([]byte, error) { return m.text("rates", revision) }

func (m *Meta) putText(kind, name string, text []byte) error {
	if name == "" || len(text) == 0 {
		return fmt.Errorf("archive: keep %s: no name or no text", kind)
	}
	base := escapeTo(name, maxTopicFile)
	err := m.putNew(kind, base, text)
	if errors.Is(err, fs.ErrExist) { // other text that says the same: comments, the order of rates
		sum := sha256.Sum256(text)
		base += "+" + hex.EncodeToString(sum[:8])
		err = m.putNew(kind, base, text)
	}
	if err == nil {
		err = m.enlist(map[string][]byte{path.Join(kind, base+".yaml"): text})
	}
	if err != nil {
		return fmt.Errorf("archive: keep %s %s: %w", kind, name, err)
	}
	return nil
}

// putNew makes a document that is never changed; fs.ErrExist if another stands there.
func (m *Meta) putNew(kind, base string, text []byte) error {
	name := path.Join(metaDir, kind, base+".yaml")
	old, err := readDoc(m.dirs.fs, name, maxDoc)
	switch {
	case err == nil && bytes.Equal(old, text):
		return m.dirs.fs.SyncDir(path.Dir(name)) // the process that made it may have died before
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return writeDoc(&m.dirs, name, "meta+"+kind+"+"+base, text, false)
}

func (m *Meta) text(kind, name string) ([]byte, error) {
	text, err := readDoc(m.dirs.fs, path.Join(metaDir, kind, escapeTo(name, maxTopicFile)+".yaml"), maxDoc)
	if err != nil {
		return nil, fmt.Errorf("archive: read %s %s: %w", kind, name, err)
	}
	return text, m.listed(path.Join(kind, escapeTo(name, maxTopicFile)+".yaml"), text)
}

func (m *Meta) texts(kind string) ([]Text, error) {
	names, err := m.names(kind, ".yaml")
	if err != nil {
		return nil, err
	}
	var texts []Text
	for _, base := range names {
		text, err := readDoc(m.dirs.fs, path.Join(metaDir, kind, base+".yaml"), maxDoc)
		if err != nil {
			return nil, fmt.Errorf("archive: read %s: %w", kind, err)
		}
		name, _, _ := strings.Cut(base, "+")
		texts = append(texts, Text{unescape(name), text})
	}
	return texts, nil
}

// names lists the documents of a kind without their extension, in order.
func (m *Meta) names(kind, ext string) ([]string, error) {
	entries, err := m.dirs.fs.ReadDir(path.Join(metaDir, kind))
	if err != nil {
		return nil, ignore(err, fs.ErrNotExist)
	}
	var names []string
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ext); ok && !e.IsDir() {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names, nil
}

// A PriceUse is one document of `_meta/prices`: a later one replaces what was said of its windows ([meter.InForce]).
type PriceUse = meter.PriceUse

// PutPrices appends a PriceUse, unless the last one is the same.
func (m *Meta) PutPrices(use PriceUse) error {
	uses, err := m.Prices()
	if err != nil {
		return err
	}
	if n := len(uses); n > 0 && uses[n-1] == use {
		return nil
	}
	base := fmt.Sprintf("%08d", len(uses)+1)
	data, err := sealDoc(use)
	if err == nil {
		err = writeDoc(&m.dirs, path.Join(metaDir, "prices", base+".json"), "meta+prices+"+base, data, false)
	}
	if err == nil {
		err = m.enlist(map[string][]byte{"prices/" + base + ".json": data})
	}
	if err != nil {
		return fmt.Errorf("archive: keep prices: %w", err)
	}
	return nil
}

// Prices lists the PriceUses in the order in which they were put.
func (m *Meta) Prices() ([]PriceUse, error) {
	names, err := m.names("prices", ".json")
	if err != nil {
		return nil, fmt.Errorf("archive: read prices: %w", err)
	}
	if err := m.missingOf("prices", names); err != nil {
		return nil, err
	}
	var uses []PriceUse
	for i, base := range names {
		var use PriceUse
		if base != fmt.Sprintf("%08d", i+1) {
			return nil, fmt.Errorf("archive: read prices: %s.json stands where number %d should", base, i+1)
		}
		if err := m.readJSON(path.Join("prices", base+".json"), &use); err != nil {
			return nil, err
		}
		uses = append(uses, use)
	}
	return uses, nil
}

// A Mark is the end of a drained partition (R13).
type Mark struct {
	Next        int64  `json:"next"` // offset: no record from here on was read
	Fingerprint string `json:"fingerprint"`
}

type markDoc struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Mark
}

type headDoc struct {
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	Head      meter.ArchiveHead `json:"head"`
}

// PutDrained marks the end of a partition's log as drained.
func (m *Meta) PutDrained(s Source, mark Mark) error {
	return m.putJSON("drained", s, markDoc{s.Topic, s.Partition, mark})
}

// Drained lists the drained partitions.
func (m *Meta) Drained() (map[Source]Mark, error) {
	marks := map[Source]Mark{}
	err := readAll(m, "drained", func(d *markDoc) Source { s := Source{d.Topic, d.Partition}; marks[s] = d.Mark; return s })
	return marks, err
}

// PutHead keeps the end of a partition's chain: call it after Publish, before the ledger commits the same head.
func (m *Meta) PutHead(s Source, head meter.ArchiveHead) error {
	return m.putJSON("head", s, headDoc{s.Topic, s.Partition, head})
}

// Heads lists the ends of all chains.
func (m *Meta) Heads() (Heads, error) {
	heads := Heads{}
	err := readAll(m, "head", func(d *headDoc) Source { s := Source{d.Topic, d.Partition}; heads[s] = d.Head; return s })
	return heads, err
}

// Head is the end of a partition's chain; false if it has none.
func (m *Meta) Head(s Source) (meter.ArchiveHead, bool, error) {
	heads, err := m.Heads()
	head, ok := heads[s]
	return head, ok, err
}

func docBase(s Source) string { return strings.TrimSuffix(stem(s.Topic, s.Partition), "+") }

func (m *Meta) putJSON(kind string, s Source, doc any) error {
	data, err := sealDoc(doc)
	if err == nil {
		name := path.Join(metaDir, kind, docBase(s)+".json")
		if m.isSame(name, data) {
			err = m.dirs.fs.SyncDir(path.Dir(name))
		} else {
			err = writeDoc(&m.dirs, name, stem(s.Topic, s.Partition)+kind, data, true)
		}
	}
	if err == nil && slices.Contains(listedKinds, kind) {
		err = m.enlist(map[string][]byte{path.Join(kind, docBase(s)+".json"): data})
	}
	if err != nil {
		return fmt.Errorf("archive: keep %s of %s: %w", kind, s, err)
	}
	return nil
}

// readAll reads every document of a kind; each returns whose it says it is. A damaged document does not hide the
// others.
func readAll[T any](m *Meta, kind string, each func(*T) Source) error {
	names, err := m.names(kind, ".json")
	if err != nil {
		return fmt.Errorf("archive: read %s: %w", kind, err)
	}
	var errs []error
	for _, base := range names {
		var doc T
		if err := m.readJSON(path.Join(kind, base+".json"), &doc); err != nil {
			errs = append(errs, err)
		} else if s := each(&doc); docBase(s) != base {
			errs = append(errs, fmt.Errorf("archive: read %s/%s/%s.json: it is about %s", metaDir, kind, base, s))
		}
	}
	return errors.Join(errs...)
}

// sealDoc is the text of a JSON document: the document and the sha256 of its bytes.
func sealDoc(doc any) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return sealed(text), nil
}

func sealed(text []byte) []byte {
	sum := sha256.Sum256(text)
	return fmt.Appendf(nil, "{\"doc\":%s,\"sha256\":\"%x\"}\n", text, sum)
}

// readJSON reads what sealDoc wrote, and nothing else.
func (m *Meta) readJSON(name string, to any) error {
	data, err := readDoc(m.dirs.fs, path.Join(metaDir, name), maxDoc)
	if err == nil {
		var outer struct {
			Doc    json.RawMessage `json:"doc"`
			SHA256 string          `json:"sha256"`
		}
		if err = json.Unmarshal(data, &outer); err == nil && !bytes.Equal(sealed(outer.Doc), data) {
			err = errors.New("its sha256 is not that of its text: it was changed")
		}
		if err == nil {
			err = json.Unmarshal(outer.Doc, to)
		}
	}
	if err != nil {
		return fmt.Errorf("archive: read %s/%s: %w", metaDir, name, err)
	}
	return nil
}
