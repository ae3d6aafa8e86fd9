package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/internal/plainjson"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// appendCells appends the cells of a row as a JSON array, amounts as numbers of pico-dollars or as text where they
// do not fit 64 bits.
func appendCells(buf []byte, cells []meter.PricedCell, width int) []byte {
	buf = append(buf, '[')
	for i := range cells {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendCell(buf, &cells[i], width)
	}
	return append(buf, ']')
}

func appendCell(buf []byte, c *meter.PricedCell, width int) []byte {
	buf = appendText(append(buf, `{"sku":`...), c.SKU)
	buf = strconv.AppendInt(append(buf, `,"tier":`...), int64(c.Tier), 10)
	buf = strconv.AppendInt(append(buf, `,"requests":`...), c.Requests, 10)
	buf = append(append(buf, `,"quantities":`...), ints(c.Quantities, width)...)
	buf = strconv.AppendInt(append(buf, `,"set_hash":`...), int64(c.SetHash), 10)
	buf = append(buf, `,"amount":`...)
	if p, fits := c.Amount.Int64(); fits {
		buf = strconv.AppendInt(buf, p, 10)
	} else {
		buf = appendText(buf, c.Amount.String())
	}
	buf = appendText(append(buf, `,"source":`...), c.Source)
	if len(c.Unpriced) > 0 {
		buf = append(append(buf, `,"unpriced":`...), words(c.Unpriced)...)
	}
	return append(buf, '}')
}

type storedCell struct {
	SKU        string          `json:"sku"`
	Tier       int32           `json:"tier"`
	Requests   int64           `json:"requests"`
	Quantities []int64         `json:"quantities"`
	SetHash    int64           `json:"set_hash"`
	Amount     json.RawMessage `json:"amount"`
	Source     string          `json:"source"`
	Unpriced   []string        `json:"unpriced"`
}

// parseCells reads what appendCells wrote.
func parseCells(text string, key meter.RowKey, width int, words plainjson.Words) ([]meter.PricedCell, error) {
	if text == "[]" {
		return nil, nil
	}
	if cells, ok := quickCells(text, key, width, words); ok {
		return cells, nil
	}
	var stored []storedCell
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("cells: %w", err)
	}
	cells := make([]meter.PricedCell, len(stored))
	for i, s := range stored {
		v, err := meter.ParseInt128(string(bytes.Trim(s.Amount, `"`)))
		if err != nil {
			return nil, fmt.Errorf("cells: amount: %w", err)
		}
		cells[i] = meter.PricedCell{
			Cell: meter.Cell{
				CellKey: meter.CellKey{Account: key.Account, WindowEnd: key.WindowEnd, SKU: s.SKU, Tier: s.Tier},
				Usage:   meter.Usage{Requests: s.Requests, Quantities: s.Quantities, SetHash: uint64(s.SetHash)},
			},
			Priced: meter.Priced{Amount: v, Source: s.Source, Unpriced: s.Unpriced},
		}
	}
	return cells, nil
}

// quickCells reads cells in the form in which appendCells writes ordinary ones: names without escapes, amounts that fit 64
// bits, everything priced. false leaves them to encoding/json.
func quickCells(text string, key meter.RowKey, width int, words plainjson.Words) ([]meter.PricedCell, bool) {
	n := strings.Count(text, `{"sku":"`)
	cells, values := make([]meter.PricedCell, n), make([]int64, n*width)
	p := plainjson.Scanner{Rest: text, OK: true}
	p.Want("[")
	for i := range cells {
		if i > 0 {
			p.Want(",")
		}
		own := values[i*width : (i+1)*width : (i+1)*width]
		sku, tier, requests := p.CellHead(own)
		p.Want(`,"set_hash":`)
		hash := p.Number()
		p.Want(`,"amount":`)
		amount := p.Number()
		p.Want(`,"source":"`)
		source := p.Text()
		p.Want("}")
		if !p.OK {
			return nil, false
		}
		cells[i] = meter.PricedCell{
			Cell: meter.Cell{
				CellKey: meter.CellKey{Account: key.Account, WindowEnd: key.WindowEnd, SKU: words.Get(sku), Tier: tier},
				Usage:   meter.Usage{Requests: requests, Quantities: own, SetHash: uint64(hash)},
			},
			Priced: meter.Priced{Amount: meter.From64(amount), Source: words.Get(source)},
		}
	}
	p.Want("]")
	return cells, p.OK && p.Rest == ""
}
