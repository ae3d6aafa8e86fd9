package oracle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gatewaymeter/gatewaymeter/meter"
	"github.com/gatewaymeter/gatewaymeter/oracle"
)

// TestLongLog: 30,000 records, also of one id only and with a partition that is idle but speaks, are judged in
// seconds: nothing looks at the whole log for every record.
func TestLongLog(t *testing.T) {
	if testing.Short() {
		t.Skip("judges 90,000 records")
	}
	for name, line := range map[string]func(i int) string{
		"requests": func(i int) string {
			kind := "S"
			if i%2 == 1 {
				kind = "C"
			}
			return fmt.Sprintf(`{"k":%q,"id":"r%d","a":"acme%d","m":"m","t":%d,"in":1,"out":1}`, kind, i/2, i/2%50, i/10)
		},
		"one id": func(i int) string {
			return fmt.Sprintf(`{"k":%q,"id":"r","a":"acme","m":"m","t":%d,"in":1,"out":%d}`, []string{"S", "P", "C"}[i%3], i*300, i%100)
		},
		"an idle partition speaks": func(i int) string {
			return fmt.Sprintf(`{"k":"S","id":"r%d","a":"a%d","m":"m","t":%d,"in":1}`, i, i%20, i/2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, card := small(t, requestsMeter)
			log := &meter.Log{Partitions: []int32{0, 1, 2}}
			if name == "an idle partition speaks" {
				log.Steps = append(log.Steps, meter.LogStep{Idle: []int32{1}})
			} else {
				log.Partitions = nil
			}
			for i := range int64(30_000) {
				r := meter.Record{Offset: i, Value: []byte(line(int(i)))}
				if name == "an idle partition speaks" && i%2 == 1 {
					r.Partition, r.Value = 1, []byte(`{"k":"none"}`)
				}
				log.Steps = append(log.Steps, meter.LogStep{Record: r})
			}
			start := time.Now()
			r, err := oracle.AsStreamed(m, card, nil, log, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = oracle.Complete(m, card, nil, log, oracle.Options{Drain: true}); err != nil {
				t.Fatal(err)
			}
			if r.Summary.Read != 30_000 {
				t.Fatalf("read %d", r.Summary.Read)
			}
			t.Logf("both truths of 30,000 records in %v, %d rows", time.Since(start).Round(time.Millisecond), len(r.Rows))
		})
	}
}
