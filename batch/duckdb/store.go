package duckdb

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/zeebo/xxh3"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// sealKey is the metadata under which a stored recompute keeps the hash of all its rows and of its provenance.
const sealKey = "gm.xxh3"

// ErrSeal says that a stored recompute is not as it was written.
var ErrSeal = errors.New("its rows or its provenance are not what was written")

// Store writes rows as a Parquet file, in the order given: one row a (account, window), integers for counts and pico-dollars,
// text where an amount leaves 64 bits, the cells as JSON, and the provenance as key-value metadata, sealed with a hash over all
// of it. The same rows and provenance give the same table. The file appears under path as a whole only if path's folder is the
// caller's alone: write aside and rename.
func (e *Engine) Store(ctx context.Context, path string, m *meter.Meter, rows []meter.Row, provenance map[string]string) error {
	if err := storeRows(ctx, path, m, rows, provenance); err != nil {
		return fmt.Errorf("duckdb: write %s: %w", path, err)
	}
	return nil
}

// Load reads what Store wrote. fits judges the provenance before a row is read; its error is returned as it is. The rows
// come as they were stored, the cells without prices. A file whose rows or provenance were changed is ErrSeal.
func (e *Engine) Load(ctx context.Context, path string, m *meter.Meter, fits func(provenance map[string]string) error) (rows []meter.Row, provenance map[string]string, err error) {
	s, err := e.openFor(ctx, keepOrder)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	provenance = map[string]string{}
	err = s.each(ctx, "SELECT decode(key), decode(value) FROM parquet_kv_metadata("+quote(path)+")", func(v []driver.Value) error {
		provenance[text(v[0])] = text(v[1])
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("duckdb: read %s: %w", path, err)
	}
	want := provenance[sealKey]
	delete(provenance, sealKey)
	if err := fits(provenance); err != nil {
		return nil, provenance, err
	}
	if rows, err = s.loadRows(ctx, path, m, provenance, want); err != nil {
		return nil, provenance, fmt.Errorf("duckdb: read %s: %w", path, err)
	}
	return rows, provenance, nil
}

func (s *session) loadRows(ctx context.Context, path string, m *meter.Meter, provenance map[string]string, want string) (rows []meter.Row, err error) {
	seal := newSeal(m)
	words := plainjson.Words{}
	err = s.parquet(ctx, path,
		func(names []string) error {
			if !slices.EqualFunc(names, seal.columns, func(name string, c storedColumn) bool { return name == c.name }) {
				return fmt.Errorf("%w: it has other columns", ErrSeal)
			}
			return nil
		}, func(v []driver.Value) error {
			seal.row(v)
			row, err := loadedRow(m, v, words)
			rows = append(rows, row)
			return err
		})
	if err == nil && seal.sum(provenance) != want {
		err = ErrSeal
	}
	return rows, err
}

// A storedColumn is a column of a stored recompute.
type storedColumn struct {
	name string
	node func() parquet.Node
}

func storedColumns(m *meter.Meter) []storedColumn {
	before := []storedColumn{{"account", storedWord}, {"window_start", storedWhole}, {"window_end", storedWhole}, {"window_end_utc", storedTime}, {"state", storedWord},
		{"requests", storedWhole}}
	after := []storedColumn{{"total_pico", func() parquet.Node { return parquet.Optional(storedWhole()) }}, {"total_usd", storedText}, {"overflow", storedFlag},
		{"price_source", storedWord}, {"unpriced_requests", storedWhole}, {"set_hash", storedText}, {"cells", storedText}}
	var taken []string
	for _, c := range slices.Concat(before, after) {
		taken = append(taken, c.name)
	}
	columns := before
	for _, name := range m.QuantityColumns(taken...) {
		columns = append(columns, storedColumn{name, storedWhole})
	}
	return append(columns, after...)
}

// The types of columns. Words are few; times are microseconds without a zone, as DuckDB's TIMESTAMP is.
func storedWord() parquet.Node  { return parquet.Encoded(parquet.String(), &parquet.RLEDictionary) }
func storedText() parquet.Node  { return parquet.Compressed(parquet.String(), &parquet.Snappy) }
func storedWhole() parquet.Node { return parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked) }
func storedFlag() parquet.Node  { return parquet.Leaf(parquet.BooleanType) }
func storedTime() parquet.Node {
	return parquet.Encoded(parquet.TimestampAdjusted(parquet.Microsecond, false), &parquet.DeltaBinaryPacked)
}

// appendHash appends 16 hexadecimal digits.
func appendHash(b []byte, h uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[h>>shift&15])
	}
	return b
}

// appendCells writes what was counted in each cell; what it costs is for the reader's card to say.
func appendCells(b []byte, cells []meter.PricedCell) []byte {
	b = append(b, '[')
	for i := range cells {
		c := &cells[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"sku":`...)
		b = meter.AppendText(b, c.SKU)
		b = append(b, `,"tier":`...)
		b = strconv.AppendInt(b, int64(c.Tier), 10)
		b = append(b, `,"requests":`...)
		b = strconv.AppendInt(b, c.Requests, 10)
		b = append(b, `,"quantities":[`...)
		for j, q := range c.Quantities {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, q, 10)
		}
		b = append(b, `],"set_hash":"`...)
		b = appendHash(b, c.SetHash)
		b = append(b, `"}`...)
	}
	return append(b, ']')
}

// loadedRow is the row that storedRow wrote.
func loadedRow(m *meter.Meter, v []driver.Value, words plainjson.Words) (meter.Row, error) {
	n := len(m.Event.Quantities)
	r := meter.Row{RowKey: meter.RowKey{Account: words.Get(text(v[0])), WindowEnd: whole(v[2])}}
	switch text(v[4]) {
	case meter.Recomputed.String():
		r.State = meter.Recomputed
	case meter.Open.String():
		r.State = meter.Open
	default:
		return r, ErrSeal
	}
	r.Usage.Requests, r.Usage.Quantities = whole(v[5]), make([]int64, n)
	for i := range n {
		r.Usage.Quantities[i] = whole(v[6+i])
	}
	v = v[6+n:]
	var err, err2, err3 error
	if r.Amount = meter.From64(whole(v[0])); v[0] == nil {
		r.Amount, err = meter.ParseUSD128(text(v[1]))
	}
	r.Source, r.Unpriced = words.Get(text(v[3])), whole(v[4])
	r.Usage.SetHash, err2 = strconv.ParseUint(text(v[5]), 16, 64)
	r.Cells, err3 = loadedCells(r.RowKey, n, text(v[6]), words)
	if err := errors.Join(err, err2, err3); err != nil {
		return r, fmt.Errorf("%w: %w", ErrSeal, err)
	}
	return r, nil
}

func loadedCells(key meter.RowKey, quantities int, text string, words plainjson.Words) ([]meter.PricedCell, error) {
	if cells, ok := quickCells(key, quantities, text, words); ok {
		return cells, nil
	}
	var list []struct {
		SKU        string  `json:"sku"`
		Tier       int32   `json:"tier"`
		Requests   int64   `json:"requests"`
		Quantities []int64 `json:"quantities"`
		SetHash    string  `json:"set_hash"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	cells := make([]meter.PricedCell, len(list))
	for i, c := range list {
		hash, err := strconv.ParseUint(c.SetHash, 16, 64)
		if err != nil || len(c.Quantities) != quantities {
			return nil, fmt.Errorf("cells of %s at window end %d: %w", key.Account, key.WindowEnd, ErrSeal)
		}
		cells[i].Cell = meter.Cell{CellKey: meter.CellKey{Account: key.Account, WindowEnd: key.WindowEnd, SKU: words.Get(c.SKU), Tier: c.Tier},
			Usage: meter.Usage{Requests: c.Requests, Quantities: c.Quantities, SetHash: hash}}
	}
	return cells, nil
}

// quickCells reads cells written exactly as appendCells writes them, names without escapes; false leaves it to the JSON
// reader, which is slower.
func quickCells(key meter.RowKey, quantities int, text string, words plainjson.Words) ([]meter.PricedCell, bool) {
	n := strings.Count(text, `{"sku":"`)
	cells, values := make([]meter.PricedCell, n), make([]int64, n*quantities)
	p := plainjson.Scanner{Rest: text, OK: true}
	p.Want("[")
	for i := range cells {
		if i > 0 {
			p.Want(",")
		}
		own := values[i*quantities : (i+1)*quantities : (i+1)*quantities]
		sku, tier, requests := p.CellHead(own)
		p.Want(`,"set_hash":"`)
		hash, err := strconv.ParseUint(p.Text(), 16, 64)
		p.Want("}")
		if !p.OK || err != nil {
			return nil, false
		}
		cells[i].Cell = meter.Cell{CellKey: meter.CellKey{Account: key.Account, WindowEnd: key.WindowEnd, SKU: words.Get(sku), Tier: tier},
			Usage: meter.Usage{Requests: requests, Quantities: own, SetHash: hash}}
	}
	p.Want("]")
	return cells, p.OK && p.Rest == ""
}

// A seal hashes a stored recompute: every value of every row in order, and the provenance. It finds a file that was changed
// after it was written, by a disk, a person or a program. It holds no secret: who writes a new file with a seal of its own
// is not found by it.
type seal struct {
	columns []storedColumn
	hash    *xxh3.Hasher
	buf     []byte
}

func newSeal(m *meter.Meter) *seal {
	s := &seal{columns: storedColumns(m), hash: xxh3.New()}
	for _, c := range s.columns {
		s.text(c.name)
	}
	s.flush()
	return s
}

// row adds a row as DuckDB reads it. Every value begins with its kind and has a length that its kind or its first bytes say.
func (s *seal) row(values []driver.Value) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			s.null()
		case int64:
			s.whole(v)
		case string:
			s.text(v)
		case bool:
			s.flag(v)
		case time.Time:
			s.whole(v.UnixMicro())
		default: // no value of ours
			s.buf = append(s.buf, 'x')
		}
	}
	s.full()
}

// block adds rows as they are written.
func (s *seal) block(b *storedBlock) {
	for i := range b.rows() {
		for _, column := range b.columns {
			switch v := column[i]; v.Kind() {
			case parquet.Int64:
				s.whole(v.Int64())
			case parquet.ByteArray:
				s.bytes(v.ByteArray())
			case parquet.Boolean:
				s.flag(v.Boolean())
			default:
				s.null()
			}
		}
		s.full()
	}
}

func (s *seal) null() { s.buf = append(s.buf, 'n') }

func (s *seal) whole(n int64) {
	s.buf = binary.LittleEndian.AppendUint64(append(s.buf, 'i'), uint64(n))
}

func (s *seal) flag(is bool) {
	s.buf = append(s.buf, 'b', 0)
	if is {
		s.buf[len(s.buf)-1] = 1
	}
}

func (s *seal) text(t string) { s.buf = append(s.length(len(t)), t...) }

func (s *seal) bytes(t []byte) { s.buf = append(s.length(len(t)), t...) }

func (s *seal) length(n int) []byte {
	return binary.LittleEndian.AppendUint32(append(s.buf, 's'), uint32(min(n, math.MaxUint32)))
}

func (s *seal) full() {
	if len(s.buf) > 1<<16 {
		s.flush()
	}
}

func (s *seal) flush() {
	_, _ = s.hash.Write(s.buf) // cannot fail
	s.buf = s.buf[:0]
}

// sum ends the seal.
func (s *seal) sum(provenance map[string]string) string {
	s.buf = append(s.buf, 'p')
	for _, key := range slices.Sorted(maps.Keys(provenance)) {
		s.text(key)
		s.text(provenance[key])
	}
	s.flush()
	sum := s.hash.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}
