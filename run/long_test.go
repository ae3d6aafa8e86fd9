//go:build unix

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gatewaymeter/gatewaymeter/internal/tracetest"
	"github.com/gatewaymeter/gatewaymeter/ledger/sqlite"
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// longLog is a log in which checkpoints move on, with a third partition of ticks and one id that is sent again for
// ever, each time with a fresh time: R8's lives that are carried.
func longLog(t *testing.T, seconds int64) string {
	t.Helper()
	text, err := os.ReadFile(killLog(t, tempDir(t), seconds))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	offset := 0
	add := func(at int64, value string) {
		fmt.Fprintf(&log, `{"partition":2,"offset":%d,"log_time":%d,"value":%s}`+"\n", offset, at, value)
		offset++
	}
	for i, line := range strings.SplitAfter(strings.Replace(string(text), `"partitions":[0,1]`, `"partitions":[0,1,2]`, 1), "\n") {
		log.WriteString(line)
		var rec struct {
			LogTime int64 `json:"log_time"`
		}
		if i == 0 || line == "" || json.Unmarshal([]byte(line), &rec) != nil || rec.LogTime == 0 {
			continue
		}
		add(rec.LogTime, fmt.Sprintf(`{"event_type":"Heartbeat","ts":%d}`, rec.LogTime))
		if i%40 == 1 {
			add(rec.LogTime, fmt.Sprintf(`{"event_type":"RequestStarted","request_id":"for-ever","tenant_id":"acme","model":"model-00","ts":%d,"payload":{"prompt_tokens":7}}`, rec.LogTime))
		}
	}
	return log.String()
}

// TestLongLog stops and starts on a log that is long enough for checkpoints to move: with and without an archive the
// ledger is the oracle's.
func TestLongLog(t *testing.T) {
	log := longLog(t, 150)
	c, err := tracetest.New("long", "A log in which checkpoints move.", map[string]string{
		"meter.yaml": killMeter, "rates.yaml": gatewayRates(), "log.jsonl": log})
	if err != nil {
		t.Fatal(err)
	}
	for _, archived := range []bool{false, true} {
		t.Run(fmt.Sprint("archive ", archived), func(t *testing.T) {
			s := newSite(t, c)
			carried, replayed := false, int64(0)
			for life := 1; ; life++ {
				ctx, cancel := context.WithCancel(context.Background())
				config := s.config(nil)
				config.Archive.MaxRows = 3000
				if !archived {
					config.Archive = nil
				}
				n, commits := 0, chance(77, 2000)
				out, err := run(ctx, config, func() bool {
					if n++; n == 20_000+life*4_777 { // replayed lines too: each life has to come further than the last
						cancel()
					}
					return commits()
				})
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				replayed += out.Replayed
				positions := s.positions(t)
				carried = carried || len(positions[2].Carried) > 0
				if out.Drained {
					break
				}
			}
			if !carried {
				t.Error("no life was ever carried")
			}
			// The archive's checkpoints carry nothing (DESIGN section 7): with one, the id holds the replay back.
			if whole := int64(strings.Count(log, "\n")); !archived && replayed > 5*whole {
				t.Errorf("%d records were replayed, the log has %d", replayed, whole)
			}
			s.checkOracle(t)
			if archived {
				if err := s.checkArchive(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func (s *site) positions(t *testing.T) []meter.Position {
	t.Helper()
	r, err := sqlite.OpenReader(context.Background(), s.db())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	positions, err := r.Positions(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return positions
}
