package archive

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// Bounds of a page, beyond which it ends at the next batch. Text pages of 128 KiB pack nearly as small as larger ones and
// stay in the cache.
const (
	pageRows = 20_000
	pageText = 128 << 10
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
	levels levels  // of an optional column
	rows   int
	there  int // rows that are not NULL

	// The finished pages.
	body      body
	unpacked  int64 // bytes with headers
	values    int64 // rows
	nulls     int64
	pages     [4]int32 // data pages by coding
	low, high int64
	words     dictionaryOf
}

func newChunk(c *column) chunk {
	k := chunk{column: c, coding: c.coding()}
	switch c.role {
	case roleOffset, roleLogTime, roleTime, rolePrior:
		k.bounded = true
	}
	k.low, k.high = math.MaxInt64, math.MinInt64
	return k
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

// clear empties the chunk for the next row group.
func (c *chunk) clear(sc *scratch) {
	c.clearPage()
	c.body.clear(&sc.blocks)
	c.unpacked, c.values, c.nulls, c.pages = 0, 0, 0, [4]int32{}
	c.low, c.high = math.MaxInt64, math.MinInt64
	c.words.clear()
}

func (c *chunk) clearPage() {
	if cap(c.text) > 4*pageText {
		c.text = nil // one huge record does not hold memory for ever
	}
	c.ints, c.text, c.index, c.rows, c.there = c.ints[:0], c.text[:0], c.index[:0], 0, 0
	c.levels.clear()
}

// mark adds n rows of which those have values whose bits are set; the caller adds the values.
func (c *chunk) mark(there uint64, n int) {
	c.rows += n
	c.there += bits.OnesCount64(there)
	if c.Optional {
		c.levels.add(there, n)
	}
}

// addInts adds n rows: v[i] where bit i is set, else NULL.
func (c *chunk) addInts(v *[batchRows]int64, there uint64, n int) {
	c.mark(there, n)
	switch {
	case c.coding == plainInts:
		for ; there != 0; there &= there - 1 {
			c.text = binary.LittleEndian.AppendUint64(c.text, uint64(v[bits.TrailingZeros64(there)]))
		}
	case there == firstRows(n):
		c.ints = append(c.ints, v[:n]...)
	default:
		for ; there != 0; there &= there - 1 {
			c.ints = append(c.ints, v[bits.TrailingZeros64(there)])
		}
	}
}

// addTexts adds a row for each text: NULL for those without a bit.
func (c *chunk) addTexts(texts []string, there uint64) {
	c.mark(there, len(texts))
	for ; there != 0; there &= there - 1 {
		s := texts[bits.TrailingZeros64(there)]
		c.text = binary.LittleEndian.AppendUint32(c.text, uint32(len(s)))
		c.text = append(c.text, s...)
	}
}

// addWords is addTexts for a dictionary, as long as it has room.
func (c *chunk) addWords(words []string, there uint64, sc *scratch) error {
	if c.words.full {
		c.addTexts(words, there)
		return nil
	}
	for left := there; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		at, ok := c.words.find(words[i])
		if !ok { // what came before it is a page, the rest of the row group is plain
			c.mark(there&firstRows(i), i)
			if err := c.endPage(sc); err != nil {
				return err
			}
			c.addTexts(words[i:], there>>i)
			return nil
		}
		c.index = append(c.index, at)
	}
	c.mark(there, len(words))
	return nil
}

// endPage moves the open page to the finished ones.
func (c *chunk) endPage(sc *scratch) error {
	if c.rows == 0 {
		return nil
	}
	sc.levels = sc.levels[:0]
	if c.Optional {
		sc.levels = c.levels.encode(sc.levels, c.there)
	}
	values, how, err := c.encode(sc)
	if err != nil {
		return err
	}
	plain := len(sc.levels) + len(values)
	values, packed := c.pack(sc, values, how)
	h := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: int32(plain), CompressedPageSize: int32(len(sc.levels) + len(values)),
		CRC: int32(crc32.Update(crc32.ChecksumIEEE(sc.levels), crc32.IEEETable, values))}
	h.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{NumValues: int32(c.rows), NumNulls: int32(c.rows - c.there), NumRows: int32(c.rows),
		Encoding: how.format(), DefinitionLevelsByteLength: int32(len(sc.levels)), IsCompressed: thrift.New(packed)})
	header, err := sc.encodeHeader(&h)
	if err != nil {
		return err
	}
	c.body.add(&sc.blocks, header, sc.levels, values)
	c.pages[how]++
	c.unpacked += int64(len(header) + plain)
	c.values += int64(c.rows)
	c.nulls += int64(c.rows - c.there)
	c.clearPage()
	return nil
}

func (sc *scratch) encodeHeader(h *format.PageHeader) ([]byte, error) {
	sc.header.Reset()
	err := thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&sc.header)).Encode(h)
	return sc.header.Bytes(), err
}

// encode makes the page's values.
func (c *chunk) encode(sc *scratch) (values []byte, how coding, err error) {
	if c.bounded && c.there > 0 {
		c.low, c.high = min(c.low, slices.Min(c.ints)), max(c.high, slices.Max(c.ints))
	}
	switch {
	case c.there == 0:
		return nil, plainText, nil
	case c.coding == deltaInts:
		sc.values, err = parquet.DeltaBinaryPacked.EncodeInt64(sc.values[:0], c.ints)
		return sc.values, deltaInts, err
	case c.coding == plainInts:
		return c.text, plainInts, nil
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
	sc.pack(c.words.text)
	h := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(len(c.words.text)), CompressedPageSize: int32(len(sc.packed)),
		CRC: int32(crc32.ChecksumIEEE(sc.packed))}
	h.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(len(c.words.known)), Encoding: format.Plain})
	header, err := sc.encodeHeader(&h)
	c.unpacked += int64(len(header) + len(c.words.text))
	return append(header, sc.packed...), err
}
