package archive

import "github.com/gatewaymeter/gatewaymeter/meter"

// differ names the columns of an archived row that are not what e, decoded from the row's bytes again, says.
func (p *plan) differ(r *Row, e *meter.Event) []string {
	var names []string
	for i := range p.columns {
		if c := &p.columns[i]; !p.same(c, r, e) {
			names = append(names, c.Name)
		}
	}
	return names
}

// same compares one column. What is not admitted has nothing but its bucket, reason and kind.
func (p *plan) same(c *column, r *Row, e *meter.Event) bool {
	a := &r.Event
	switch c.role {
	case roleOffset, roleRaw, rolePrior:
		return true // the record itself; the caller checks prior_max_reach
	case roleLogTime:
		return a.HasLogTime == e.HasLogTime && a.LogTime == e.LogTime
	case roleBucket:
		return a.Bucket == e.Bucket
	case roleReason:
		return a.Reason == e.Reason
	case roleKind:
		return a.Kind == e.Kind
	}
	if !e.Admitted() {
		return unset(c, a)
	}
	return sameAdmitted(c, a, e, p.refs > 0)
}

func sameAdmitted(c *column, a, e *meter.Event, refs bool) bool {
	switch c.role {
	case roleID:
		return a.ID == e.ID
	case roleIDHash:
		return a.IDHash == e.ID.Hash64() || e.ID == "" && a.IDHash == 0
	case roleReference:
		return !refs || a.Reference == e.Reference || e.Reference == "" && emptyParts(a.Reference)
	case roleAccount:
		return a.Account == e.Account
	case roleSKU:
		return a.SKU == e.SKU
	case roleTime:
		return a.Time == e.Time
	case roleQuantity:
		v, ok := quantity(e, c.index)
		w, has := quantity(a, c.index)
		return v == w && ok == has
	case roleAttribute:
		return attribute(a, c.index) == attribute(e, c.index)
	case roleStatus:
		return a.Status == e.Status
	case roleLatency:
		return a.Latency == e.Latency && a.HasLatency == e.HasLatency
	case rolePayload:
		return !hasPayload(e) && a.PayloadHash == 0 || a.PayloadHash == e.PayloadHash
	}
	return false
}

// unset reports whether a column of a record that was not admitted is null.
func unset(c *column, a *meter.Event) bool {
	switch c.role {
	case roleID:
		return a.ID == ""
	case roleReference:
		return emptyParts(a.Reference)
	case roleQuantity:
		return a.Present == 0
	case roleAttribute:
		return attribute(a, c.index) == ""
	case roleIDHash:
		return a.IDHash == 0
	case roleTime:
		return a.Time == 0
	case roleLatency:
		return !a.HasLatency
	case rolePayload:
		return a.PayloadHash == 0
	}
	return a.Account == "" && a.SKU == "" && a.Status == ""
}

func emptyParts(id meter.ID) bool {
	for s := string(id); s != ""; {
		part, ok := cutPart(&s)
		if !ok || part != "" {
			return false
		}
	}
	return true
}
