package story

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/trace"
)

func TestSameBytesEveryTime(t *testing.T) {
	for name, write := range map[string]func(*trace.Writer) error{"ad-clicks": AdClicks, "gateway": Gateway} {
		var a, b bytes.Buffer
		if err := write(trace.NewWriter(&a)); err != nil {
			t.Fatal(err)
		}
		if err := write(trace.NewWriter(&b)); err != nil {
			t.Fatal(err)
		}
		if a.Len() < 10_000 || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: %d and %d bytes", name, a.Len(), b.Len())
		}
	}
}

// The world of the dispute: 422 taps, 28 held back, 17 sent twice, two minutes in which the two cancel.
func TestAdClicksWorld(t *testing.T) {
	var taps, held, again, right int
	for m := range tapped {
		taps, held, again = taps+tapped[m], held+tunnel[m], again+resent[m]
		if tunnel[m] == resent[m] {
			right++
		}
	}
	if taps != 422 || held != 28 || again != 17 || right != 2 {
		t.Errorf("%d taps, %d held back, %d sent twice, %d minutes right", taps, held, again, right)
	}
	var csv bytes.Buffer
	if err := PartnerCSV(&csv); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(csv.String(), "\n"); lines != 423 {
		t.Errorf("the partner's log has %d lines", lines)
	}
}
