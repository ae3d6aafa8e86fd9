package story

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/trace"
)

// LargestPartner is the one whose log is compared with the bill, for the ten minutes from AdClicksFrom to AdClicksTo.
const LargestPartner = "noodle-bar"

// AdClicksFrom and AdClicksTo (ms) bound the ten minutes of the dispute.
var (
	AdClicksFrom = at("2026-03-02T12:00:00Z")
	AdClicksTo   = at("2026-03-02T12:10:00Z")
)

// Minute by minute: how many people tapped, how many of those taps a train tunnel held back until after the minute had
// been closed, and how many the phone sent again because the acknowledgement was lost.
var (
	tapped = [10]int{41, 44, 39, 43, 45, 40, 42, 44, 41, 43}
	tunnel = [10]int{0, 6, 2, 0, 5, 1, 8, 0, 3, 3}
	resent = [10]int{3, 1, 2, 2, 0, 1, 1, 4, 1, 2}
)

// longTunnel of the taps held back come even after the corrected meter's ten minutes.
const longTunnel = 4

// partners are the other kitchens.
var partners = [19]string{"bao-house", "curry-corner", "dosa-den", "empanada-yard", "falafel-fix", "gyoza-gate", "hummus-hall", "idli-inn", "jollof-joint",
	"kebab-kiosk", "laksa-lane", "mezze-market", "naan-nook", "okonomi", "pho-place", "quesadilla", "ramen-row", "sushi-stop", "taco-truck"}

// tap is one tap on a promoted menu.
type tap struct {
	click, partner, agent string
	phone                 int64 // when the phone says it was tapped
}

func (t tap) arrive(at int64) arrival {
	value := fmt.Sprintf(`{"click_id":"%s","partner":"%s","phone_time":"%s","server_time":"%s","agent":"%s"}`, t.click, t.partner, meter.Time(t.phone), meter.Time(at), t.agent)
	return arrival{at: at, key: t.click, value: value}
}

// taps is the log in the making.
type taps struct {
	dice    *rand.Rand
	clicks  int
	all     []arrival
	partner []tap // what the largest partner's own log holds: every tap of a person, once
}

func (s *taps) tap(partner string, phone int64) tap {
	s.clicks++
	agent := [...]string{"app/5.2 ios", "app/5.2 android", "web/121"}[s.dice.IntN(3)]
	return tap{click: fmt.Sprintf("c-%06d", 100000+s.clicks*7), partner: partner, agent: agent, phone: phone}
}

// AdClicks writes the log of twenty partners from 12:00 to 12:25.
func AdClicks(w *trace.Writer) error {
	s := makeTaps()
	return write(w, trace.Header{Topic: "taps", Partitions: []int32{0}, About: "twenty partners, paid for each tap on a promoted menu"}, s.all)
}

// PartnerCSV writes the largest partner's own log of the ten minutes.
func PartnerCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"account", "time", "reference", "taps"}); err != nil {
		return err
	}
	for _, t := range makeTaps().partner {
		if err := out.Write([]string{t.partner, meter.Time(t.phone), t.click, strconv.Itoa(1)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func makeTaps() *taps {
	s := &taps{dice: dice(12)}
	longest := 0
	for m := range tapped {
		start := AdClicksFrom + int64(m)*minute
		for i := range tapped[m] {
			t := s.tap(LargestPartner, start+between(s.dice, 0, minute))
			s.partner = append(s.partner, t)
			switch {
			case i < tunnel[m]:
				s.throughTunnel(t, start+minute, m, &longest)
			case i < tunnel[m]+resent[m]:
				s.sentTwice(t)
			default:
				s.all = append(s.all, t.arrive(t.phone+between(s.dice, 80, 2500)))
			}
		}
	}
	s.bots()
	s.others()
	return s
}

// throughTunnel holds a tap back until its minute, which ends at end, is closed: the counter has seen a tap stamped 5 s
// or more after it. A few early ones stay in the tunnel for more than ten minutes.
func (s *taps) throughTunnel(t tap, end int64, m int, longest *int) {
	held := between(s.dice, 12*second, 200*second)
	if m >= 1 && m <= 4 && *longest < longTunnel && s.dice.IntN(3) == 0 {
		*longest++
		held = between(s.dice, 11*minute, 13*minute)
	}
	s.all = append(s.all, t.arrive(end+held))
}

// sentTwice: the first copy and its resend both come before the minute is closed.
func (s *taps) sentTwice(t tap) {
	first := t.phone + between(s.dice, 80, 1200)
	s.all = append(s.all, t.arrive(first), t.arrive(first+between(s.dice, 900, 2400)))
}

// bots tap the largest partner's menu too; nobody pays for those.
func (s *taps) bots() {
	for range 12 {
		t := s.tap(LargestPartner, AdClicksFrom+between(s.dice, 0, 10*minute))
		t.agent = "bot/price-crawler"
		s.all = append(s.all, t.arrive(t.phone+between(s.dice, 80, 900)))
	}
}

// others are the nineteen other partners, whose taps keep the watermark moving, one every half second or so.
func (s *taps) others() {
	for t := AdClicksFrom - 2*second; t < AdClicksTo+15*minute; t += between(s.dice, 200, 800) {
		tap := s.tap(partners[s.dice.IntN(len(partners))], t)
		s.all = append(s.all, tap.arrive(t+between(s.dice, 80, 1500)))
	}
}
