package run

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// beginPrices finds which card prices which windows (R10): what is final keeps the card that made it so, what is not has
// the card at hand.
func (d *driver) beginPrices(s *meter.Standing) error {
	now := d.atHand(meter.MinusInfinity)
	uses := d.resume.Prices
	if n := len(uses); n == 0 {
		uses = meter.PriceUses{now}
	} else if was := uses[n-1]; was.Card != now.Card || was.List != now.List {
		now.From = d.firstOpenWindow()
		d.outcome.Repriced = &Repriced{Was: was, Now: now, Nothing: d.wasDrained}
		if !d.wasDrained {
			uses = uses.Then(now)
		}
	}
	cards, err := d.openCards(uses, s.Cards)
	if err != nil {
		return err
	}
	d.prices = newPriceLog(d.config.Meter, uses, cards)
	d.pricer = d.prices.pricer
	return nil
}

// atHand is the use of the run's own prices.
func (d *driver) atHand(from int64) meter.PriceUse {
	use := meter.PriceUse{Card: d.config.Card.Revision, From: from}
	if d.config.List != nil {
		use.List = d.config.List.Revision
	}
	return use
}

// firstOpenWindow is the end of the last window that was final when this run began.
func (d *driver) firstOpenWindow() int64 {
	g := d.resume.Merge.G
	if d.resume.PrefixHash == "" {
		g = meter.MinusInfinity
	}
	return max(meter.MinusInfinity, g-d.config.Meter.Window.AllowedLateness)
}

// openCards are the cards and lists of uses by revision: those at hand, and those that the ledger kept.
func (d *driver) openCards(uses meter.PriceUses, kept []meter.CardText) (map[string]*meter.RateCard, error) {
	c := d.config
	cards := map[string]*meter.RateCard{c.Card.Revision: c.Card}
	d.texts = map[string][]byte{c.Card.Revision: c.CardText}
	if c.List != nil {
		cards[c.List.Revision], d.texts[c.List.Revision] = c.List, c.ListText
	}
	has := map[string]bool{}
	for _, card := range kept {
		has[card.Revision] = true
		if d.texts[card.Revision] == nil {
			d.texts[card.Revision] = card.Text
		}
	}
	for _, use := range uses {
		for _, revision := range []string{use.Card, use.List} {
			if revision == "" {
				continue
			}
			if text := d.texts[revision]; !has[revision] && len(text) > 0 {
				has[revision] = true
				d.newCards = append(d.newCards, meter.CardText{Revision: revision, Text: bytes.Clone(text)})
			}
			if cards[revision] == nil {
				card, err := d.parseCard(revision)
				if err != nil {
					return nil, err
				}
				cards[revision] = card
			}
		}
	}
	return cards, nil
}

// parseCard reads a card that priced windows before.
func (d *driver) parseCard(revision string) (*meter.RateCard, error) {
	text := d.texts[revision]
	if text == nil || d.config.ParseCard == nil {
		return nil, fmt.Errorf("run: R10: rate card %s priced windows that are final, and the ledger does not have it", revision)
	}
	card, err := d.config.ParseCard(text)
	if err != nil {
		return nil, fmt.Errorf("run: R10: the ledger's rate card %s: %w", revision, err)
	}
	if card.Revision != revision {
		return nil, fmt.Errorf("run: R10: the ledger's rate card %s has the text of %s: it was changed", revision, card.Revision)
	}
	return card, nil
}

// keepRates keeps in the archive which cards price which windows, with their texts.
func (d *driver) keepRates() error {
	if d.config.Card == nil {
		return nil
	}
	written, err := d.meta.Prices()
	if err != nil {
		return err
	}
	if d.merger == nil {
		if len(written) > 0 { // nothing is priced by this run
			return nil
		}
		use := d.atHand(meter.MinusInfinity)
		if _, err := d.openCards(meter.PriceUses{use}, nil); err != nil {
			return err
		}
		if err := d.keepTexts(meter.PriceUses{use}); err != nil {
			return err
		}
		return d.keepUses(meter.PriceUses{use})
	}
	// Another ledger may have written its own, or a run that died before it committed: this one's have to be the last word.
	had, uses := meter.InForce(written), d.prices.uses
	if err := d.keepTexts(uses); err != nil || slices.Equal(had, uses) {
		return err
	}
	same := 0
	for same < min(len(had), len(uses)) && had[same] == uses[same] {
		same++
	}
	return d.keepUses(uses[max(0, same-1):]) // the last that is the same takes back what was said from there on
}

func (d *driver) keepTexts(uses meter.PriceUses) error {
	for _, use := range uses {
		for _, revision := range []string{use.Card, use.List} {
			if revision == "" {
				continue
			}
			if err := d.meta.PutRates(revision, d.texts[revision]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *driver) keepUses(uses meter.PriceUses) error {
	for _, use := range uses {
		if err := d.meta.PutPrices(use); err != nil {
			return err
		}
	}
	return nil
}
