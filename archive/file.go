package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// A File is a published file of an archive as its footer describes it.
type File struct {
	Name string // relative to the archive's folder, with slashes
	Size int64
	Footer
	// MinTime and MaxTime bound the event times of the admitted rows, ms; valid if HasTime.
	MinTime, MaxTime int64
	HasTime          bool
	// MaxPrior is the highest prior_max_reach of the rows: the highest reach before the last row of the file;
	// MinusInfinity where no row has one.
	MaxPrior int64
	// SHA256 is what the next file's footer or the head says of this file, "" where nothing does.
	SHA256 string

	fs   FS
	plan *plan
}

// A planCache shares the plans of files with the same columns: an archive has many files and few meters.
type planCache map[string]*plan

// maxFooter is the largest Parquet footer that is read. A file of 10,000 row groups of 40 columns has less.
const maxFooter = 64 << 20

var errMagic = errors.New("not a whole Parquet file")

// readFile reads a file's footer. It does not look at the rows, and keeps nothing of the Parquet footer but what
// File says: an archive may have a hundred thousand files.
func readFile(fsys FS, name string, plans planCache) (f *File, err error) {
	defer guard(&err)
	r, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	meta, err := readMetadata(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f = &File{Name: name, Size: r.Size(), fs: fsys, MaxPrior: meter.MinusInfinity}
	if f.plan, err = plans.of(meta); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f.Footer, err = parseFooter(func(key string) (string, bool) {
		i := slices.IndexFunc(meta.KeyValueMetadata, func(kv format.KeyValue) bool { return kv.Key == key })
		if i < 0 {
			return "", false
		}
		return meta.KeyValueMetadata[i].Value, true
	})
	if err == nil && f.Rows != meta.NumRows {
		err = fmt.Errorf("footer says %d rows, the file holds %d", f.Rows, meta.NumRows)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	f.statistics(meta)
	return f, nil
}

// guard turns a panic of the Parquet library over damaged bytes into an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged file: %v", p)
	}
}

// readMetadata reads and checks the Parquet footer: that it is one, and that no number in it would have the
// library allocate or read what is not there.
func readMetadata(r ReadFile) (*format.FileMetaData, error) {
	size := r.Size()
	var tail [8]byte
	if size < 12 {
		return nil, errMagic
	}
	if err := readFull(r, tail[:4], 0); err != nil {
		return nil, err
	}
	head := string(tail[:4])
	if err := readFull(r, tail[:], size-8); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	if head != "PAR1" || string(tail[4:]) != "PAR1" || n > size-12 || n > maxFooter {
		return nil, errMagic
	}
	footer := make([]byte, n)
	if err := readFull(r, footer, size-8-n); err != nil {
		return nil, err
	}
	scan := thriftScan{b: footer}
	if err := scan.fields(nil); err != nil || len(scan.b) != 0 {
		return nil, fmt.Errorf("footer: %w", errThrift)
	}
	meta := new(format.FileMetaData)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, meta); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	return meta, checkMetadata(meta, size-8-n)
}

// checkMetadata checks shapes and ranges; data is the number of bytes before the footer.
func checkMetadata(meta *format.FileMetaData, data int64) error {
	if len(meta.Schema) < 2 || len(meta.Schema) > 1000 || int(meta.Schema[0].NumChildren.V) != len(meta.Schema)-1 {
		return errors.New("footer: the schema is not flat")
	}
	for _, e := range meta.Schema[1:] {
		if e.NumChildren.V != 0 || !e.Type.Valid || !e.RepetitionType.Valid {
			return errors.New("footer: the schema is not flat")
		}
	}
	rows := int64(0)
	for i := range meta.RowGroups {
		g := &meta.RowGroups[i]
		if g.NumRows <= 0 || len(g.Columns) != len(meta.Schema)-1 {
			return fmt.Errorf("footer: row group %d is not whole", i)
		}
		for j := range g.Columns {
			m := &g.Columns[j].MetaData
			start := chunkStart(m)
			if start < 4 || m.TotalCompressedSize <= 0 || m.TotalUncompressedSize <= 0 || start > data-m.TotalCompressedSize ||
				m.NumValues != g.NumRows || m.Type != meta.Schema[j+1].Type.V {
				return fmt.Errorf("footer: row group %d, column %d is not where it says", i, j)
			}
		}
		rows += g.NumRows
	}
	if rows != meta.NumRows || rows <= 0 {
		return fmt.Errorf("footer: %d rows in the row groups, %d in the file", rows, meta.NumRows)
	}
	return nil
}

func chunkStart(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset < m.DataPageOffset {
		return m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

// of reads the plan of a file from its own schema.
func (plans planCache) of(meta *format.FileMetaData) (*plan, error) {
	columns := make([]schemas.Column, 0, len(meta.Schema))
	for _, e := range meta.Schema[1:] {
		c := schemas.Column{Name: e.Name, Optional: e.RepetitionType.V == format.Optional}
		switch {
		case e.Type.V == format.Int64:
			c.Type = schemas.Int64
		case e.Type.V == format.ByteArray && e.LogicalType.Value != nil:
			c.Type = schemas.String
		case e.Type.V == format.ByteArray:
			c.Type = schemas.Bytes
		}
		columns = append(columns, c)
	}
	key := fmt.Sprint(columns)
	if p := plans[key]; p != nil {
		return p, nil
	}
	p, err := newPlan(columns)
	if err == nil && plans != nil {
		plans[key] = p
	}
	return p, err
}

// statistics takes from the row groups what prunes.
func (f *File) statistics(meta *format.FileMetaData) {
	for i := range meta.RowGroups {
		for j := range f.plan.columns {
			s := &meta.RowGroups[i].Columns[j].MetaData.Statistics
			if len(s.MinValue) != 8 || len(s.MaxValue) != 8 {
				continue
			}
			low, high := int64(binary.LittleEndian.Uint64(s.MinValue)), int64(binary.LittleEndian.Uint64(s.MaxValue))
			switch f.plan.columns[j].role {
			case roleTime:
				if !f.HasTime {
					f.MinTime, f.MaxTime, f.HasTime = low, high, true
				}
				f.MinTime, f.MaxTime = min(f.MinTime, low), max(f.MaxTime, high)
			case rolePrior:
				f.MaxPrior = max(f.MaxPrior, high)
			}
		}
	}
}

// Quantities and Attributes name the file's quantity and attribute columns in order: the order of the meter
// that wrote it.
func (f *File) Quantities() []string { return slices.Clone(f.plan.quantities) }

// Attributes names the attributes, see Quantities.
func (f *File) Attributes() []string { return slices.Clone(f.plan.attributes) }

// Hash reads the whole file and returns its sha256 in hex.
func (f *File) Hash() (string, error) { return hashFile(f.fs, f.Name) }

func hashFile(fsys FS, name string) (string, error) {
	r, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(r, 0, r.Size()))
	if err = errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// checkPages walks the page headers of every column chunk of a row group that is to be read: pages lie inside
// their chunk, and their sizes and values add up to what the footer says.
func (f *File) checkPages(r ReadFile, meta *format.FileMetaData, group int, wanted func(*column) bool) error {
	for j := range f.plan.columns {
		if !wanted(&f.plan.columns[j]) {
			continue
		}
		if err := checkChunk(r, &meta.RowGroups[group].Columns[j].MetaData); err != nil {
			return fmt.Errorf("row group %d, column %s: %w", group, f.plan.columns[j].Name, err)
		}
	}
	return nil
}

// A pageHeader is what matters of a Parquet page header.
type pageHeader struct {
	typ                   format.PageType
	plain, packed, values int64 // bytes, bytes, number
	length                int64 // of the header itself
	hasPlain, hasPacked   bool
	hasValues             bool
}

// maxPageHeader bounds a page header. Ours have no statistics and take some 30 bytes.
const maxPageHeader = 4 << 10

func checkChunk(r io.ReaderAt, m *format.ColumnMetaData) error {
	var packed, plain, values int64
	for at, end := chunkStart(m), chunkStart(m)+m.TotalCompressedSize; at < end; {
		window := make([]byte, min(maxPageHeader, end-at))
		if err := readFull(r, window, at); err != nil {
			return err
		}
		h, err := parsePageHeader(window)
		if err != nil {
			return err
		}
		if h.packed > end-at-h.length || h.plain > m.TotalUncompressedSize {
			return errors.New("a page is larger than its column")
		}
		packed += h.length + h.packed
		plain += h.length + h.plain
		if h.typ == format.DataPageV2 {
			values += h.values
		}
		at += h.length + h.packed
	}
	if packed != m.TotalCompressedSize || plain != m.TotalUncompressedSize || values != m.NumValues {
		return errors.New("its pages do not add up to what the footer says")
	}
	return nil
}

func parsePageHeader(window []byte) (pageHeader, error) {
	var h pageHeader
	scan := thriftScan{b: window}
	number := func(to *int64, has *bool) (bool, error) {
		v, err := scan.varint()
		*to, *has = v, true
		return true, err
	}
	var hasType bool
	err := scan.fields(func(id int64, typ byte) (bool, error) {
		switch {
		case id == 1 && typ == thriftI32:
			var v int64
			_, err := number(&v, &hasType)
			h.typ = format.PageType(v)
			return true, err
		case id == 2 && typ == thriftI32:
			return number(&h.plain, &h.hasPlain)
		case id == 3 && typ == thriftI32:
			return number(&h.packed, &h.hasPacked)
		case (id == 7 || id == 8) && typ == thriftStruct:
			return true, scan.fields(func(id int64, typ byte) (bool, error) {
				if id == 1 && typ == thriftI32 {
					return number(&h.values, &h.hasValues)
				}
				return false, nil
			})
		}
		return false, nil
	})
	h.length = int64(len(window) - len(scan.b))
	known := hasType && (h.typ == format.DataPageV2 || h.typ == format.DictionaryPage)
	if err != nil || !known || !h.hasPlain || !h.hasPacked || !h.hasValues || h.plain < 0 || h.packed < 0 || h.values < 0 {
		return h, errors.New("a page header is damaged")
	}
	return h, nil
}

// open opens the file for reading rows, once its footer was looked at again: the file may have changed since it was
// listed. The caller closes r.
func (f *File) open() (pf *parquet.File, r ReadFile, err error) {
	if r, err = f.fs.Open(f.Name); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	defer guard(&err)
	meta, err := readMetadata(r)
	if err != nil {
		return nil, nil, err
	}
	p, err := planCache(nil).of(meta)
	if err != nil {
		return nil, nil, err
	}
	if r.Size() != f.Size || !slices.Equal(p.columns, f.plan.columns) {
		return nil, nil, errors.New("it has changed since it was listed")
	}
	c := parquet.DefaultFileConfig()
	c.SkipPageIndex, c.SkipBloomFilters = true, true
	pf, err = parquet.OpenFile(r, r.Size(), c)
	return pf, r, err
}
