package main

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/batch/duckdb"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// rowsParquet writes rows as Parquet with the columns of CSV, amounts as exact text.
func rowsParquet(ctx context.Context, w io.Writer, m *meter.Meter, rows []meter.Row, by grouping) error {
	if terminalWidth(w) > 0 {
		return hint(errors.New("a Parquet file is no text for a terminal"), "redirect it: > rows.parquet")
	}
	dir, err := os.MkdirTemp("", "gmctl-rows-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	columns, order := rowColumns(m, by, true), "account, window_end"
	if by == bySKU {
		order += ", sku, tier"
	}
	var types []string
	for _, c := range columns {
		types = append(types, `"`+c.name+`" `+c.sqlType)
	}
	path := filepath.Join(dir, "rows.parquet")
	engine := duckdb.New(duckdb.Config{TempDir: dir})
	row := func(i int) []driver.Value {
		values := make([]driver.Value, len(columns))
		for k, c := range columns {
			values[k] = c.of(&rows[i])
		}
		return values
	}
	if err := engine.WriteParquet(ctx, path, types, order, len(rows), row, nil); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return errors.Join(err, file.Close())
}

// parquetLines is a Parquet file as JSON lines, for a reader of those: whole numbers, text and times as they are. Only
// the reader knows which columns matter, so a float comes as a text that is no number: it cannot pass for exact.
func parquetLines(ctx context.Context, engine *duckdb.Engine, path string) io.Reader {
	r, w := io.Pipe()
	go func() { // ends when the file does, or when the reader fails and the pipe with it
		var names []string
		var line bytes.Buffer
		err := engine.ReadParquet(ctx, path, func(columns []string) error { names = columns; return nil }, func(values []driver.Value) error {
			line.Reset()
			if err := jsonLine(&line, names, values); err != nil {
				return err
			}
			_, err := w.Write(line.Bytes())
			return err
		})
		w.CloseWithError(err)
	}()
	return r
}

func jsonLine(line *bytes.Buffer, names []string, values []driver.Value) error {
	for i, v := range values {
		line.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(names[i])
		if err != nil {
			return err
		}
		line.Write(name)
		line.WriteByte(':')
		if err := jsonValue(line, v); err != nil {
			return fmt.Errorf("column %s: %w", names[i], err)
		}
	}
	line.WriteString("}\n")
	return nil
}

func jsonValue(line *bytes.Buffer, v driver.Value) error {
	switch v := v.(type) {
	case nil:
		line.WriteString("null")
		return nil
	case bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, *big.Int:
		fmt.Fprint(line, v)
		return nil
	case time.Time:
		if v.Nanosecond()%1e6 != 0 {
			return jsonText(line, v.UTC().Format(time.RFC3339Nano)) // the reader says what it wants
		}
		line.WriteString(strconv.FormatInt(v.UnixMilli(), 10))
		return nil
	case fmt.Stringer: // DECIMAL, UUID
		return jsonText(line, v.String())
	case float32, float64:
		return jsonText(line, fmt.Sprintf("the float %v", v))
	case []byte:
		if !utf8.Valid(v) {
			return errors.New("bytes that are no UTF-8 text")
		}
		return jsonText(line, string(v))
	case string:
		return jsonText(line, v)
	}
	return jsonText(line, fmt.Sprint(v))
}

func jsonText(line *bytes.Buffer, s string) error {
	text, err := json.Marshal(s)
	line.Write(text)
	return err
}
