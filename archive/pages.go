package archive

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// A pageFile writes one Parquet file after another from typed columns, with the encodings of parquet-go. The
// library's own writer takes every value as a boxed parquet.Value, which costs more than all encodings together;
// what it would write beyond this (page indexes, bounds of every column) prunes nothing here.
type pageFile struct {
	columns []chunk
	out     io.Writer
	at      int64 // bytes written
	rows    int   // of the open row group
	total   int64 // rows of finished row groups
	groups  []format.RowGroup
	scratch scratch
	batch   batch
}

// scratch is memory that every column uses in turn.
type scratch struct {
	levels, values, packed []byte
	header                 bytes.Buffer
	blocks                 blocks
}

func newPageFile(p *plan) *pageFile {
	f := &pageFile{columns: make([]chunk, len(p.columns))}
	for i := range p.columns {
		f.columns[i] = newChunk(&p.columns[i])
	}
	return f
}

// begin starts a file; what was not finished of another is forgotten.
func (f *pageFile) begin(out io.Writer) error {
	f.out, f.at, f.rows, f.total, f.groups = out, 0, 0, 0, nil
	for i := range f.columns {
		f.columns[i].clear(&f.scratch)
	}
	return f.write([]byte("PAR1"))
}

func (f *pageFile) write(b []byte) error {
	n, err := f.out.Write(b)
	f.at += int64(n)
	return err
}

// endPages ends the pages that are full.
func (f *pageFile) endPages() error {
	for i := range f.columns {
		if c := &f.columns[i]; c.rows >= pageRows || len(c.text) >= pageText {
			if err := c.endPage(&f.scratch); err != nil {
				return err
			}
		}
	}
	return nil
}

// endGroup writes the open row group.
func (f *pageFile) endGroup() error {
	if f.rows == 0 {
		return nil
	}
	g := format.RowGroup{NumRows: int64(f.rows), FileOffset: f.at, Ordinal: int16(len(f.groups))}
	if len(f.groups) >= math.MaxInt16 {
		return parquet.ErrTooManyRowGroups
	}
	for i := range f.columns {
		c := &f.columns[i]
		if err := c.endPage(&f.scratch); err != nil {
			return err
		}
		m, err := f.chunk(c)
		if err != nil {
			return err
		}
		g.TotalByteSize += m.TotalUncompressedSize
		g.TotalCompressedSize += m.TotalCompressedSize
		g.Columns = append(g.Columns, format.ColumnChunk{MetaData: m})
		c.clear(&f.scratch)
	}
	f.groups = append(f.groups, g)
	f.total += g.NumRows
	f.rows = 0
	return nil
}

// chunk writes a column's dictionary and pages and describes them.
func (f *pageFile) chunk(c *chunk) (format.ColumnMetaData, error) {
	m := format.ColumnMetaData{Type: c.physical(), PathInSchema: thrift.Slice[string]{c.Name}, Codec: c.codec(), NumValues: c.values}
	m.Statistics.NullCount = c.nulls
	if c.bounded && c.low <= c.high {
		m.Statistics.MinValue = binary.LittleEndian.AppendUint64(nil, uint64(c.low))
		m.Statistics.MaxValue = binary.LittleEndian.AppendUint64(nil, uint64(c.high))
	}
	start := f.at
	if len(c.words.known) > 0 {
		m.DictionaryPageOffset = f.at
		page, err := c.dictionaryPage(&f.scratch)
		if err != nil {
			return m, err
		}
		if err := f.write(page); err != nil {
			return m, err
		}
		m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1})
	}
	m.DataPageOffset = f.at
	for _, block := range c.body.all() {
		if err := f.write(block); err != nil {
			return m, err
		}
	}
	m.TotalCompressedSize, m.TotalUncompressedSize = f.at-start, c.unpacked
	for i, n := range c.pages {
		if n > 0 {
			m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: format.DataPageV2, Encoding: coding(i).format(), Count: n})
		}
	}
	m.Encoding = encodings(m.EncodingStats)
	return m, nil
}

// encodings lists the encodings of a chunk, levels (RLE) with them.
func encodings(stats []format.PageEncodingStats) thrift.Slice[format.Encoding] {
	list := thrift.Slice[format.Encoding]{format.RLE}
	for _, s := range stats {
		if !slices.Contains(list, s.Encoding) {
			list = append(list, s.Encoding)
		}
	}
	slices.Sort(list)
	return list
}

// end writes the footer with its key-value pairs.
func (f *pageFile) end(pairs [][2]string, createdBy string) error {
	if err := f.endGroup(); err != nil {
		return err
	}
	meta := format.FileMetaData{Version: 2, Schema: f.schema(), NumRows: f.total, RowGroups: f.groups, CreatedBy: createdBy}
	for range f.columns {
		meta.ColumnOrders = append(meta.ColumnOrders, *parquet.Int64Type.ColumnOrder())
	}
	for _, kv := range pairs {
		meta.KeyValueMetadata = append(meta.KeyValueMetadata, format.KeyValue{Key: kv[0], Value: kv[1]})
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		return err
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return f.write(append(footer, "PAR1"...))
}

func (f *pageFile) schema() thrift.Slice[format.SchemaElement] {
	list := thrift.Slice[format.SchemaElement]{{Name: "record", NumChildren: thrift.New(int32(len(f.columns)))}}
	for i := range f.columns {
		c := &f.columns[i]
		e := format.SchemaElement{Name: c.Name, Type: thrift.New(c.physical()), RepetitionType: thrift.New(format.Required)}
		if c.Optional {
			e.RepetitionType = thrift.New(format.Optional)
		}
		if c.Type == schemas.String {
			e.LogicalType.Value = new(format.StringType)
			e.ConvertedType = thrift.New(deprecated.UTF8)
		}
		list = append(list, e)
	}
	return list
}
