package schemas

import (
	"strconv"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// Type is the type of an archive column.
type Type uint8

// The types of columns. Times are Int64, milliseconds since 1970 UTC, wherever a rule reads them.
const (
	Int64 Type = iota + 1
	Int32
	String // UTF-8
	Bytes
	Timestamp // milliseconds, UTC
)

// SQL is the type's name in portable SQL.
func (t Type) SQL() string {
	switch t {
	case Int64:
		return "BIGINT"
	case Int32:
		return "INTEGER"
	case String:
		return "VARCHAR"
	case Bytes:
		return "BLOB"
	case Timestamp:
		return "TIMESTAMP"
	}
	return ""
}

// A Column of the archive. An optional column holds NULL where the record does not state it.
type Column struct {
	Name     string
	Type     Type
	Optional bool
}

// ArchiveColumns lists the columns of m's archive files in order. The path of a file states topic, date, hour
// and part; they are not inside it. Raw is last, so that a recompute never reads it.
func ArchiveColumns(m *meter.Meter) []Column {
	columns := []Column{
		{Name: "log_offset", Type: Int64},
		{Name: "log_time", Type: Int64, Optional: true},
		{Name: "bucket", Type: String},
		{Name: "reason", Type: String, Optional: true},
		{Name: "kind", Type: String, Optional: true},
	}
	optional := func(name string, t Type) {
		columns = append(columns, Column{Name: name, Type: t, Optional: true})
	}
	for i := range IDParts(m) {
		optional("id_"+strconv.Itoa(i+1), String)
	}
	optional("id_hash", Int64) // hash64 of R9, its bits as a signed number
	for i := range m.Event.Reference {
		optional("ref_"+strconv.Itoa(i+1), String)
	}
	optional("account", String)
	optional("sku", String)
	optional("event_time", Int64)
	optional("prior_max_reach", Int64)
	for _, q := range m.Event.Quantities {
		optional(q.Name, Int64)
	}
	for _, a := range m.Event.Attributes {
		optional("attr_"+a.Name, String)
	}
	optional("status", String)
	optional("latency", Int64)
	optional("payload_hash", Int64)
	optional("raw", Bytes)
	return columns
}

// IDParts is how many parts an id of m has: partition and offset where the meter names no identity (R3).
func IDParts(m *meter.Meter) int {
	if m.Event.Identity == nil {
		return 2
	}
	return len(m.Event.Identity)
}
