package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A Life is all that is known of one id: what `explain` shows. The caller collects it; [Life.WriteText] and
// [Life.WriteJSON] tell it.
type Life struct {
	// ID is what was asked for, an id or a reference.
	ID    meter.ID
	Meter string // its name
	Topic string
	// WindowSize, Lateness, AbandonAfter and MaxOutOfOrderness are Z, L, A and B of the rules, in ms; A is 0 in an events
	// meter.
	WindowSize, Lateness, AbandonAfter, MaxOutOfOrderness int64
	Quantities                                            []meter.Quantity
	// Records are those of the id in log order, dead letters that could be recognised too.
	Records []LifeRecord
	// AsStreamed and Complete are the items of the two truths that hold these records; Complete may be nil.
	AsStreamed, Complete []meter.Item
	Prices               *PriceBook
	// Ledger and Recompute are the rows that the items are in, as far as they are there.
	Ledger, Recompute []meter.Row
}

// A LifeRecord is one record and the watermark it met.
type LifeRecord struct {
	meter.Event
	Watermark int64 // W(r) of R4; meter.MinusInfinity before the first admitted record
}

// A chapter is one record with what the as-streamed rules say of it.
type chapter struct {
	record  *LifeRecord
	log     string
	verdict string
	rule    string
	why     string
}

// An ending is one item, priced.
type ending struct {
	item   *meter.Item
	log    []string
	why    string
	amount meter.Int128
	lines  []priceLine
}

// A priceLine is one quantity of an item: what is billed of it, at which price.
type priceLine struct {
	quantity string
	billed   int64
	rate     UsedRate
	priced   bool
}

func (l *Life) chapters() []chapter {
	all := make([]chapter, len(l.Records))
	for i := range l.Records {
		r := &l.Records[i]
		c := chapter{record: r, log: l.at(r.Partition, r.Offset)}
		c.verdict, c.rule, c.why = l.judge(r)
		all[i] = c
	}
	return all
}

func (l *Life) at(partition int32, offset int64) string {
	return fmt.Sprintf("%s/%d@%d", l.Topic, partition, offset)
}

// judge says what became of a record, by which rule, and in words.
func (l *Life) judge(r *LifeRecord) (verdict, rule, why string) {
	switch r.Bucket {
	case meter.BucketDeadLetter:
		return r.Bucket.String(), "R2", "dead letter: " + r.Reason.String() + "; its bytes are kept"
	case meter.BucketTick, meter.BucketTombstone, meter.BucketIgnored:
		return r.Bucket.String(), "R2", "it counts nothing"
	}
	if r.Kind == meter.KindProgress {
		return meter.VerdictProgress.String(), "R7", "a running total, used only if the request is abandoned"
	}
	for i := range l.AsStreamed {
		it := &l.AsStreamed[i]
		if slices.Contains(positionsOf(it), position{r.Partition, r.Offset}) {
			rule, why := l.whyItem(it)
			return it.Verdict.String(), rule, why
		}
	}
	return "", "", "no verdict is known of it"
}

// whyItem says by which rule an item has its verdict.
func (l *Life) whyItem(it *meter.Item) (rule, why string) {
	closes := it.WindowEnd + l.Lateness
	switch it.Verdict {
	case meter.VerdictCounted:
		return l.whyCounted(it, closes)
	case meter.VerdictFiltered:
		return "R9", "taken out by the filter " + it.Filter + ", before lateness is judged"
	case meter.VerdictLate:
		return l.whyLate(it, closes)
	case meter.VerdictDuplicate:
		return "R3", "a copy of a remembered record, equal in every mapped field"
	case meter.VerdictConflict:
		return "R3", "a copy of a remembered record that says something else; never billed"
	case meter.VerdictOrphan:
		return "R7", "no start came before the watermark reached its time + " + span(l.AbandonAfter)
	case meter.VerdictLateCompletion:
		return "R7", "its request had been billed as abandoned, and it came too late to take that place"
	case meter.VerdictOpen:
		return "R7", "waits for its other half"
	}
	return "", ""
}

func (l *Life) whyCounted(it *meter.Item, closes int64) (rule, why string) {
	rule = "R6"
	why = fmt.Sprintf("judged at watermark %s, before its window is final at %s", watermarkText(it.Judged), watermarkText(closes))
	if it.Judged >= it.WindowEnd {
		why += ": a correction, the window had fired"
	}
	switch {
	case it.Abandoned:
		return "R7", "abandoned: no end by " + timeText(it.Time) + " (start + " + span(l.AbandonAfter) + "); " + why
	case it.Superseded:
		return "R7", "its end took the place of the abandoned record; " + why
	}
	return rule, why
}

func (l *Life) whyLate(it *meter.Item, closes int64) (rule, why string) {
	if it.Door {
		return "R7", fmt.Sprintf("late at the door: at watermark %s it could not change any open window", watermarkText(it.Judged))
	}
	return "R6", fmt.Sprintf("judged at watermark %s, and its window was final at %s", watermarkText(it.Judged), watermarkText(closes))
}

// endings prices items, each by itself.
func (l *Life) endings(items []meter.Item) []ending {
	all := make([]ending, len(items))
	for i := range items {
		it := &items[i]
		e := ending{item: it}
		for _, p := range positionsOf(it) {
			e.log = append(e.log, l.at(p.partition, p.offset))
		}
		_, e.why = l.whyItem(it)
		e.amount, e.lines = l.price(it)
		all[i] = e
	}
	return all
}

// price is what an item costs at the price of its window (R3, R10): a whole is billed less its parts.
func (l *Life) price(it *meter.Item) (meter.Int128, []priceLine) {
	var sum meter.Int128
	var lines []priceLine
	billed := make([]int64, len(l.Quantities))
	for i, q := range l.Quantities {
		n := quantityAt(it.Usage.Quantities, i)
		billed[i] += n
		if q.PartOf >= 0 {
			billed[q.PartOf] -= n
		}
	}
	for i, q := range l.Quantities {
		if billed[i] == 0 {
			continue
		}
		line := priceLine{quantity: q.Name, billed: billed[i]}
		if l.Prices != nil && it.SKU != "" {
			line.rate, line.priced = l.Prices.lookup(it.SKU, it.Tier, q.Name, it.WindowEnd-l.WindowSize, it.WindowEnd)
		}
		if line.priced {
			sum = sum.Add(meter.Mul64(billed[i], line.rate.Pico))
		}
		lines = append(lines, line)
	}
	return sum, lines
}

// usageWords lists what is not zero.
func (l *Life) usageWords(requests int64, quantities []int64) string {
	words := []string{fmt.Sprintf("requests=%d", requests)}
	for i, q := range l.Quantities {
		words = append(words, fmt.Sprintf("%s=%d", printable(q.Name), quantityAt(quantities, i)))
	}
	return strings.Join(words, " ")
}

// watermarkText writes a watermark for people; the infinities by name.
func watermarkText(w int64) string {
	switch {
	case w >= meter.PlusInfinity/2:
		return "the end of the log"
	case w <= meter.MinusInfinity/2:
		return "none yet"
	}
	return timeText(w)
}

// span writes a duration for people.
func span(ms int64) string {
	switch {
	case ms != 0 && ms%60_000 == 0:
		return fmt.Sprintf("%dm", ms/60_000)
	case ms%1000 == 0:
		return fmt.Sprintf("%ds", ms/1000)
	}
	return fmt.Sprintf("%dms", ms)
}
