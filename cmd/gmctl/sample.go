package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/pricing"
	"github.com/gatewaymeter/gatewaymeter/schemas"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// sampleRecords is how many of the source's first records validate tries the meter on.
const sampleRecords = 1000

// A sample is what a meter reads from the first records of its source: enough to see a path that leads nowhere.
type sample struct {
	m       *meter.Meter
	name    string
	sum     meter.Summary
	kinds   map[meter.Kind]int64
	words   map[string]int64 // of ignored records: what stands where the kind should
	stated  []bool           // by quantity: some record has its field
	skus    map[string]int64
	decoder *schemas.Decoder
}

// readSample reads the beginning of run.source; nil where there is nothing to read yet, or no file. An error says what
// stream would say.
func readSample(ctx context.Context, o *meter.Meter, path string) (s *sample, err error) {
	if o.Run.Source == "" || o.Run.Source == "-" || isURL(o.Run.Source) {
		return nil, nil
	}
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil
	}
	r, err := trace.Open(path, trace.Options{Format: trace.Format(o.Run.SourceFormat), Growing: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s = &sample{m: o, name: o.Run.Source, kinds: map[meter.Kind]int64{}, words: map[string]int64{}, skus: map[string]int64{},
		stated: make([]bool, len(o.Event.Quantities)), decoder: schemas.NewDecoder(o)}
	for s.sum.Read < sampleRecords {
		chunk, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		lines, err := chunk.Parse(nil)
		if err != nil {
			return nil, err
		}
		for i := range lines {
			if lines[i].Idle == nil && s.sum.Read < sampleRecords {
				s.add(&lines[i].Record)
			}
		}
	}
	return s, nil
}

func (s *sample) add(r *meter.Record) {
	var e meter.Event
	s.decoder.Decode(r, &e)
	s.sum.Read++
	s.kinds[e.Kind]++
	switch e.Bucket {
	case meter.BucketTombstone:
		s.sum.Tombstone++
		return
	case meter.BucketTick:
		s.sum.Tick++
		return
	case meter.BucketDeadLetter:
		s.sum.DeadLetter[e.Reason]++
		return
	}
	d := json.NewDecoder(bytes.NewReader(r.Value))
	d.UseNumber()
	var object map[string]any
	if d.Decode(&object) != nil {
		return // cannot happen: the record was admitted or ignored, so it is an object
	}
	if e.Bucket == meter.BucketIgnored {
		s.sum.Ignored++
		s.words[plainWord(lookup(object, s.m.Event.KindPath))]++
		return
	}
	s.sum.Event++
	if e.SKU != "" {
		s.skus[e.SKU]++
	}
	for i, q := range s.m.Event.Quantities {
		s.stated[i] = s.stated[i] || lookup(object, q.Path) != nil
	}
}

// warnings says what of the meter and its cards (list may be nil) does not fit the source.
func (s *sample) warnings(card, list *pricing.Card) []string {
	var w []string
	switch dead := s.sum.DeadLetters(); {
	case dead == 1:
		w = append(w, s.of()+"1 is a dead letter: "+reasonsText(s.m, &s.sum))
	case dead > 1:
		w = append(w, fmt.Sprintf("%s%d are dead letters: %s", s.of(), dead, reasonsText(s.m, &s.sum)))
	}
	return slices.Concat(w, s.kindWarnings(), s.quantityWarnings(), s.rateWarnings(card, list))
}

func (s *sample) of() string {
	return fmt.Sprintf("%s: of the first %s ", s.name, plural(s.sum.Read, "record"))
}

// kindWarnings says which kinds no record is of while others are ignored: their words may be wrong.
func (s *sample) kindWarnings() []string {
	if s.sum.Ignored == 0 {
		return nil
	}
	ignored := sortedByCount(s.words)
	var absent []string
	for word, kind := range s.m.Event.Kinds {
		must := kind == meter.KindStart || kind == meter.KindComplete || kind == meter.KindEvent
		if s.kinds[kind] == 0 && (must || len(meter.Nearest(word, ignored)) > 0) {
			absent = append(absent, fmt.Sprintf("%q (event.kinds.%s)", word, kind))
		}
	}
	if len(absent) == 0 {
		return nil // the records of somebody else
	}
	slices.Sort(absent)
	var found []string
	for _, word := range ignored[:min(3, len(ignored))] {
		found = append(found, fmt.Sprintf("%q (%d)", clip(word), s.words[word]))
	}
	return []string{fmt.Sprintf("%s%s ignored: event.fields.kind: %s is %s in them, and nowhere %s", s.of(), countVerb(s.sum.Ignored),
		strings.Join(s.m.Event.KindPath, "."), strings.Join(found, ", "), strings.Join(absent, ", "))}
}

func countVerb(n int64) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// quantityWarnings says which quantities count as their default in every record, as they do where the path is wrong.
func (s *sample) quantityWarnings() []string {
	starts := s.kinds[meter.KindStart] + s.kinds[meter.KindEvent]
	ends := s.kinds[meter.KindProgress] + s.kinds[meter.KindComplete] + s.kinds[meter.KindError]
	var w []string
	for i, q := range s.m.Event.Quantities {
		read := starts
		if q.OnEnd {
			read = ends
		}
		if q.HasDefault && !s.stated[i] && read > 0 && s.sum.Event > 0 {
			w = append(w, fmt.Sprintf("%snone has %s, so event.quantities.%s counts as its default %d in all of them", s.of(), strings.Join(q.Path, "."), q.Name, q.Default))
		}
	}
	return w
}

// rateWarnings says which skus of the source have no rate at all.
func (s *sample) rateWarnings(card, list *pricing.Card) []string {
	rated := map[string]bool{}
	for _, c := range []*pricing.Card{card, list} {
		if c != nil {
			for _, r := range c.Rates {
				rated[r.SKU] = true
			}
		}
	}
	var missing []string
	for _, sku := range sortedByCount(s.skus) {
		if !rated[sku] {
			missing = append(missing, fmt.Sprintf("%q (%d)", clip(sku), s.skus[sku]))
		}
	}
	if len(missing) == 0 || s.m.Event.SKU.IsConst { // one that is constant is checked with the card
		return nil
	}
	if more := len(missing) - 4; more > 0 {
		missing = append(missing[:4], plural(more, "other"))
	}
	return []string{s.of() + "some are of a sku without a rate, which is unpriced: " + strings.Join(missing, ", ")}
}

// sortedByCount are the words, the most frequent first.
func sortedByCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}
