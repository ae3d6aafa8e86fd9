package run

import (
	"fmt"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/stream"
)

// A priceLog collects the rates that cells were priced with, each once: what the ledger keeps as prices used.
type priceLog struct {
	uses   meter.PriceUses
	cards  map[string]*meter.RateCard // by revision
	pricer *stream.Pricer
	meter  *meter.Meter
	cells  map[priceKey]uint64 // quantities whose rates are noted, as bits
	noted  map[meter.PriceUsed]bool
	fresh  []meter.PriceUsed
}

// A priceKey is what decides which rates a cell has.
type priceKey struct {
	sku       string
	tier      int32
	windowEnd int64
}

// maxPriceKeys bounds what is remembered; forgetting only costs looking again.
const maxPriceKeys = 10_000

func newPriceLog(m *meter.Meter, uses meter.PriceUses, cards map[string]*meter.RateCard) *priceLog {
	first := uses[0]
	p := &priceLog{uses: uses, cards: cards, pricer: stream.NewPricer(m, cards[first.Card], cards[first.List]), meter: m,
		cells: map[priceKey]uint64{}, noted: map[meter.PriceUsed]bool{}}
	for _, use := range uses[1:] {
		p.pricer = p.pricer.Then(use.From, cards[use.Card], cards[use.List])
	}
	return p
}

// note remembers the rates of the quantities that the cell has.
func (p *priceLog) note(c *meter.Cell) error {
	key := priceKey{c.SKU, c.Tier, c.WindowEnd}
	seen := p.cells[key]
	for i, n := range c.Quantities {
		if n == 0 || seen>>i&1 == 1 {
			continue
		}
		seen |= 1 << i
		if err := p.noteRate(key, i); err != nil {
			return err
		}
	}
	if len(p.cells) >= maxPriceKeys {
		clear(p.cells)
	}
	p.cells[key] = seen
	return nil
}

// noteRate asks the pricer what one unit of a quantity costs, and looks up which row of the card says so.
func (p *priceLog) noteRate(key priceKey, quantity int) error {
	unit := meter.Cell{CellKey: meter.CellKey{SKU: key.sku, Tier: key.tier, WindowEnd: key.windowEnd},
		Usage: meter.Usage{Quantities: make([]int64, len(p.meter.Event.Quantities))}}
	// A part is billed as itself and its whole less its parts (R9): one of each leaves one unit of the part to pay.
	for i := quantity; i >= 0; i = p.meter.Event.Quantities[i].PartOf {
		unit.Quantities[i] = 1
	}
	priced := p.pricer.Price(&unit)
	use := p.uses.At(key.windowEnd)
	used := meter.PriceUsed{Source: priced.Source, Revision: use.Card}
	switch priced.Source {
	case meter.PriceUnpriced:
		return nil
	case meter.PriceList:
		used.Revision = use.List
	}
	card := p.cards[used.Revision]
	name := p.meter.Event.Quantities[quantity].Name
	found := false
	for _, r := range card.Rates { // the latest one that began by the window's start: rows are sorted by it
		if r.SKU == key.sku && r.Tier == key.tier && r.Quantity == name && r.EffectiveFrom <= key.windowEnd-p.meter.Window.Size {
			used.Rate, found = r, true
		}
	}
	if !found || priced.Amount != meter.From64(used.Pico) {
		return fmt.Errorf("run: R10: the pricer says that one %s of %q costs %s, the card of revision %s does not", name, key.sku, priced.Amount.USD(), used.Revision)
	}
	if len(p.noted) >= maxPriceKeys {
		clear(p.noted)
	}
	if !p.noted[used] {
		p.noted[used] = true
		p.fresh = append(p.fresh, used)
	}
	return nil
}

// take returns the rates that were not taken before.
func (p *priceLog) take() []meter.PriceUsed {
	fresh := p.fresh
	p.fresh = nil
	return fresh
}
