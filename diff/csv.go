package diff

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes one line per row and cause. Columns: account, window_end, state, cause, requests, every quantity,
// delta_usd, ids and log (each a JSON list), why. What is not compared is empty.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := append([]string{"account", "window_end", "state", "cause", "requests"}, r.Quantities...)
	if err := out.Write(append(head, "delta_usd", "ids", "log", "why")); err != nil {
		return err
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		for n := range d.Shares {
			if err := out.Write(r.csvLine(d, &d.Shares[n])); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func (r *Report) csvLine(d *Difference, s *Share) []string {
	number := func(on bool, n int64) string {
		if !on {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	line := []string{d.Account, timeText(d.WindowEnd), d.State.String(), s.Cause.String(), number(r.HasRequests, s.Requests)}
	for i, q := range s.Quantities {
		line = append(line, number(r.HasQuantity[i], q))
	}
	money := ""
	if r.HasMoney {
		money = s.Pico.USD()
	}
	var ids, log, why jsonWriter
	ids.raw("[")
	for i, id := range s.IDs {
		if i > 0 {
			ids.raw(",")
		}
		ids.list(id.Parts())
	}
	ids.raw("]")
	log.list(s.Log)
	why.list(s.Why)
	return append(line, money, string(ids.b), string(log.b), string(why.b))
}
