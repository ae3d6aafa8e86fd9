package oracle

import "github.com/gatewaymeter/gatewaymeter/meter"

// NeverForgetting is AsStreamed of an engine that remembers every id for ever: the other side of theorem 1 (R8).
func NeverForgetting(m *meter.Meter, card, list *meter.RateCard, log *meter.Log, drain bool) (*Result, error) {
	return asStreamed(&ruling{m: m, drain: drain, neverForgets: true}, newPrices(m, card, list), log)
}
