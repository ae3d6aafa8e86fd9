// Package plainjson reads JSON that this program wrote itself, in the one form in which it writes it: no spaces, keys in
// order, text without escapes. A reader that meets anything else starts again with encoding/json, which is several
// times slower and knows all forms.
package plainjson

import (
	"strconv"
	"strings"
)

// A Scanner reads a text from its front.
type Scanner struct {
	Rest string // what is not read yet
	OK   bool   // false once the text was not as wanted; set it to true at first
}

// Want takes s, which has to stand in front.
func (p *Scanner) Want(s string) {
	rest, found := strings.CutPrefix(p.Rest, s)
	p.Rest, p.OK = rest, p.OK && found
}

// Has takes s if it stands in front, and says whether it did.
func (p *Scanner) Has(s string) bool {
	rest, found := strings.CutPrefix(p.Rest, s)
	p.Rest = rest
	return found
}

// Text is a string without escapes up to its closing quote, which is taken too; the opening one was.
func (p *Scanner) Text() string {
	i := strings.IndexByte(p.Rest, '"')
	if i < 0 || strings.IndexByte(p.Rest[:i], '\\') >= 0 {
		p.OK = false
		return ""
	}
	word := p.Rest[:i]
	p.Rest = p.Rest[i+1:]
	return word
}

// Number is a whole number in plain digits.
func (p *Scanner) Number() int64 {
	i := 0
	for i < len(p.Rest) && (p.Rest[i] == '-' || p.Rest[i]-'0' <= 9) {
		i++
	}
	n, err := strconv.ParseInt(p.Rest[:i], 10, 64)
	p.Rest, p.OK = p.Rest[i:], p.OK && err == nil
	return n
}

// Numbers fills own from a list whose opening bracket was taken; the closing one is taken too.
func (p *Scanner) Numbers(own []int64) {
	for j := range own {
		if j > 0 {
			p.Want(",")
		}
		own[j] = p.Number()
	}
	p.Want("]")
}

// CellHead reads what the JSON of a cell begins with, whoever wrote it: sku, tier, requests and the quantities, which fill
// own. The text before the next key is taken too.
func (p *Scanner) CellHead(own []int64) (sku string, tier int32, requests int64) {
	p.Want(`{"sku":"`)
	sku = p.Text()
	p.Want(`,"tier":`)
	wide := p.Number()
	tier = int32(wide)
	p.OK = p.OK && wide == int64(tier)
	p.Want(`,"requests":`)
	requests = p.Number()
	p.Want(`,"quantities":[`)
	p.Numbers(own)
	return sku, tier, requests
}
