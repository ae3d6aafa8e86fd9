package archive

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/rle"
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
}

// scratch is memory that every page uses in turn.
type scratch struct {
	levels, values, packed []byte
	header                 bytes.Buffer
}

// Bounds of a page, and of a dictionary, beyond which words are written as they are. Text pages of 64 KiB pack as
// small as ones of 512 KiB in four fifths of the time: they stay in the cache.
const (
	pageRows     = 20_000
	pageText     = 64 << 10
	maxWordText  = 1 << 20
	maxWordCount = 1 << 15
)

// A coding is how a column's values lie in its pages.
type coding uint8

const (
	deltaInts  coding = iota // times, offsets, quantities: packed as small as zstd makes them, at a third of the cost
	plainInts                // hashes: nothing makes them smaller
	plainText                // ids, raw: Snappy
	dictionary               // words: indexes into a dictionary; Snappy for what does not fit one
)

func (c *column) coding() coding {
	switch c.role {
	case roleOffset, roleLogTime, roleTime, rolePrior, roleQuantity, roleLatency:
		return deltaInts
	case roleIDHash, rolePayload:
		return plainInts
	case roleBucket, roleReason, roleKind, roleAccount, roleSKU, roleAttribute, roleStatus:
		return dictionary
	}
	return plainText
}

// A chunk is a column of the open row group.
type chunk struct {
	*column
	coding  coding
	bounded bool // its bounds go into the footer: they prune

	// The open page.
	ints   []int64
	text   []byte  // values as plain encoding has them
	index  []int32 // into the dictionary
	levels []byte  // of an optional column: for each row 1, or 0 for NULL
	rows   int

	// The finished pages.
	body         []byte
	unpacked     int64 // bytes with headers
	values       int64 // rows
	nulls        int64
	pages        [4]int32 // data pages by coding
	low, high    int64
	words        map[string]int32
	wordText     []byte
	recent       []recent // words put lately, by a rough hash: most columns have few
	dictionaryUp bool     // the dictionary is full: the rest of the row group is plain
}

type recent struct {
	word  string
	index int32
}

const recentWords = 64 // a power of two

func newPageFile(p *plan) *pageFile {
	f := &pageFile{columns: make([]chunk, len(p.columns))}
	for i := range p.columns {
		c := &f.columns[i]
		c.column, c.coding = &p.columns[i], p.columns[i].coding()
		switch c.role {
		case roleOffset, roleLogTime, roleTime, rolePrior:
			c.bounded = true
		}
		if c.coding == dictionary {
			c.words, c.recent = map[string]int32{}, make([]recent, recentWords)
		}
		c.clear()
	}
	return f
}

// begin starts a file; what was not finished of another is forgotten.
func (f *pageFile) begin(out io.Writer) error {
	f.out, f.at, f.rows, f.total, f.groups = out, 0, 0, 0, nil
	for i := range f.columns {
		f.columns[i].clear()
	}
	return f.write([]byte("PAR1"))
}

func (f *pageFile) write(b []byte) error {
	n, err := f.out.Write(b)
	f.at += int64(n)
	return err
}

// row ends a row, once every column has its value.
func (f *pageFile) row(text int) error {
	f.rows++
	if f.rows%64 != 0 && text < pageText/4 {
		return nil
	}
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
		c.clear()
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
	if len(c.words) > 0 {
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
	if err := f.write(c.body); err != nil {
		return m, err
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

func (c coding) format() format.Encoding {
	switch c {
	case deltaInts:
		return format.DeltaBinaryPacked
	case dictionary:
		return format.RLEDictionary
	}
	return format.Plain
}

func (c *column) physical() format.Type {
	if c.Type == schemas.Int64 {
		return format.Int64
	}
	return format.ByteArray
}

func (c *chunk) codec() format.CompressionCodec {
	if c.coding == deltaInts || c.coding == plainInts {
		return format.Uncompressed
	}
	return format.Snappy
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

func (c *chunk) clear() {
	c.clearPage()
	c.body, c.unpacked, c.values, c.nulls, c.pages = c.body[:0], 0, 0, 0, [4]int32{}
	c.low, c.high = math.MaxInt64, math.MinInt64
	clear(c.words)
	clear(c.recent)
	c.wordText, c.dictionaryUp = c.wordText[:0], false
}

func (c *chunk) clearPage() {
	if cap(c.text) > 4*pageText {
		c.text = nil // one huge record does not hold memory for ever
	}
	c.ints, c.text, c.index, c.levels, c.rows = c.ints[:0], c.text[:0], c.index[:0], c.levels[:0], 0
}

func (c *chunk) level(l byte) {
	c.rows++
	if c.Optional {
		c.levels = append(c.levels, l)
	}
}

func (c *chunk) null() { c.level(0) }

func (c *chunk) int(v int64) {
	c.level(1)
	c.ints = append(c.ints, v)
}

// intIf puts v, or NULL.
func (c *chunk) intIf(v int64, ok bool) {
	if ok {
		c.int(v)
	} else {
		c.level(0)
	}
}

func (c *chunk) bytes(b []byte) {
	c.level(1)
	c.text = binary.LittleEndian.AppendUint32(c.text, uint32(len(b)))
	c.text = append(c.text, b...)
}

// word puts s, or NULL for "".
func (c *chunk) word(s string, sc *scratch) error {
	if s == "" {
		c.level(0)
		return nil
	}
	if c.coding == dictionary && !c.dictionaryUp {
		if i, ok := c.indexOf(s); ok {
			c.level(1)
			c.index = append(c.index, i)
			return nil
		}
		if err := c.endPage(sc); err != nil {
			return err
		}
		c.dictionaryUp = true
	}
	c.level(1)
	c.text = binary.LittleEndian.AppendUint32(c.text, uint32(len(s)))
	c.text = append(c.text, s...)
	return nil
}

// indexOf is the index of s in the dictionary; false if it has no place there.
func (c *chunk) indexOf(s string) (int32, bool) {
	h := uint32(len(s))
	for i := max(0, len(s)-4); i < len(s); i++ {
		h = h*31 + uint32(s[i])
	}
	slot := &c.recent[h%recentWords]
	if slot.word == s {
		return slot.index, true
	}
	i, ok := c.words[s]
	if !ok {
		if len(c.words) >= maxWordCount || len(c.wordText)+len(s) > maxWordText {
			return 0, false
		}
		i = int32(len(c.words))
		c.words[s] = i
		c.wordText = binary.LittleEndian.AppendUint32(c.wordText, uint32(len(s)))
		c.wordText = append(c.wordText, s...)
	}
	*slot = recent{s, i}
	return i, true
}

// endPage moves the open page to the finished ones.
func (c *chunk) endPage(sc *scratch) error {
	if c.rows == 0 {
		return nil
	}
	there := c.rows
	sc.levels = sc.levels[:0]
	if c.Optional {
		there = bytes.Count(c.levels, []byte{1})
		var err error
		if sc.levels, err = appendLevels(sc.levels, c.levels, there); err != nil {
			return err
		}
	}
	values, how, err := c.encode(sc, there)
	if err != nil {
		return err
	}
	plain := len(sc.levels) + len(values)
	values, packed := c.pack(sc, values, how)
	h := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: int32(plain), CompressedPageSize: int32(len(sc.levels) + len(values)),
		CRC: int32(crc32.Update(crc32.ChecksumIEEE(sc.levels), crc32.IEEETable, values))}
	h.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{NumValues: int32(c.rows), NumNulls: int32(c.rows - there), NumRows: int32(c.rows),
		Encoding: how.format(), DefinitionLevelsByteLength: int32(len(sc.levels)), IsCompressed: thrift.New(packed)})
	if err := c.header(sc, &h); err != nil {
		return err
	}
	c.body = append(append(c.body, sc.levels...), values...)
	c.pages[how]++
	c.unpacked += int64(plain)
	c.values += int64(c.rows)
	c.nulls += int64(c.rows - there)
	c.clearPage()
	return nil
}

// header adds a page header to the body.
func (c *chunk) header(sc *scratch, h *format.PageHeader) error {
	sc.header.Reset()
	if err := thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&sc.header)).Encode(h); err != nil {
		return err
	}
	c.body = append(c.body, sc.header.Bytes()...)
	c.unpacked += int64(sc.header.Len())
	return nil
}

// appendLevels encodes definition levels: a run where they are all alike.
func appendLevels(dst, levels []byte, there int) ([]byte, error) {
	if there == 0 || there == len(levels) {
		return append(binary.AppendUvarint(dst, uint64(len(levels))<<1), levels[0]), nil
	}
	return (&rle.Encoding{BitWidth: 1}).EncodeLevels(dst, levels)
}

// encode makes the page's values.
func (c *chunk) encode(sc *scratch, there int) (values []byte, how coding, err error) {
	if c.bounded && there > 0 {
		c.low, c.high = min(c.low, slices.Min(c.ints)), max(c.high, slices.Max(c.ints))
	}
	switch {
	case there == 0:
		return nil, plainText, nil
	case c.coding == deltaInts:
		sc.values, err = parquet.DeltaBinaryPacked.EncodeInt64(sc.values[:0], c.ints)
		return sc.values, deltaInts, err
	case c.coding == plainInts:
		sc.values = sc.values[:0]
		for _, v := range c.ints {
			sc.values = binary.LittleEndian.AppendUint64(sc.values, uint64(v))
		}
		return sc.values, plainInts, nil
	case len(c.index) > 0:
		sc.values, err = parquet.RLEDictionary.EncodeInt32(sc.values[:0], c.index)
		return sc.values, dictionary, err
	}
	return c.text, plainText, nil
}

// pack compresses text where it helps. Indexes are as tight as bits are: nothing makes them smaller.
func (c *chunk) pack(sc *scratch, values []byte, how coding) (packed []byte, isPacked bool) {
	if how != plainText || len(values) == 0 {
		return values, false
	}
	sc.pack(values)
	if len(sc.packed) >= len(values) {
		return values, false
	}
	return sc.packed, true
}

// pack compresses text into sc.packed. Snappy, which every reader of Parquet has: of gateway events zstd at its fastest
// makes 60 bytes a row where Snappy makes 90, and takes four times the CPU.
func (sc *scratch) pack(text []byte) {
	if n := s2.MaxEncodedLen(len(text)); cap(sc.packed) < n {
		sc.packed = make([]byte, n)
	}
	sc.packed = s2.EncodeSnappy(sc.packed[:cap(sc.packed)], text)
}

// dictionaryPage is the dictionary with its header. It is compressed whether that helps or not: a dictionary page
// cannot say otherwise.
func (c *chunk) dictionaryPage(sc *scratch) ([]byte, error) {
	sc.pack(c.wordText)
	packed := sc.packed
	h := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(len(c.wordText)), CompressedPageSize: int32(len(packed)),
		CRC: int32(crc32.ChecksumIEEE(packed))}
	h.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(len(c.words)), Encoding: format.Plain})
	sc.header.Reset()
	if err := thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&sc.header)).Encode(&h); err != nil {
		return nil, err
	}
	c.unpacked += int64(sc.header.Len() + len(c.wordText))
	return append(sc.header.Bytes(), packed...), nil
}
