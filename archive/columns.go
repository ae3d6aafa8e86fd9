package archive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gatewaymeter/gatewaymeter/schemas"
)

// A role is what a column holds.
type role uint8

const (
	roleOffset role = iota + 1
	roleLogTime
	roleBucket
	roleReason
	roleKind
	roleID // index: part
	roleIDHash
	roleReference // index: part
	roleAccount
	roleSKU
	roleTime
	rolePrior
	roleQuantity  // index
	roleAttribute // index
	roleStatus
	roleLatency
	rolePayload
	roleRaw
)

// A column is one of schemas.ArchiveColumns with what it holds.
type column struct {
	schemas.Column
	role  role
	index int
}

// A plan is how events lie in the columns of a file. It comes from the columns' names and types, so a file is
// read by what it says itself, whatever meter wrote it.
type plan struct {
	columns    []column
	idParts    int
	refs       int
	quantities []string
	attributes []string
}

// fixed are the columns that every file has; the others stand between them.
var fixed = map[string]role{
	"log_offset": roleOffset, "log_time": roleLogTime, "bucket": roleBucket, "reason": roleReason, "kind": roleKind,
	"id_hash": roleIDHash, "account": roleAccount, "sku": roleSKU, "event_time": roleTime, "prior_max_reach": rolePrior,
	"status": roleStatus, "latency": roleLatency, "payload_hash": rolePayload, "raw": roleRaw,
}

// newPlan gives every column its role, and refuses columns that are not in the order of schemas.ArchiveColumns.
func newPlan(columns []schemas.Column) (*plan, error) {
	p := &plan{}
	seen := roleOffset - 1
	for _, d := range columns {
		c := column{Column: d}
		n := 0
		switch id, isID := strings.CutPrefix(d.Name, "id_"); {
		case fixed[d.Name] != 0:
			c.role = fixed[d.Name]
		case isID:
			c.role, c.index = roleID, p.idParts
			p.idParts++
			n = number(id)
		case strings.HasPrefix(d.Name, "ref_"):
			c.role, c.index = roleReference, p.refs
			p.refs++
			n = number(d.Name[len("ref_"):])
		case strings.HasPrefix(d.Name, "attr_"):
			c.role, c.index = roleAttribute, len(p.attributes)
			p.attributes = append(p.attributes, d.Name[len("attr_"):])
		default:
			c.role, c.index = roleQuantity, len(p.quantities)
			p.quantities = append(p.quantities, d.Name)
		}
		repeats := c.role == roleID || c.role == roleReference || c.role == roleQuantity || c.role == roleAttribute
		inOrder := c.role > seen && skippable(seen+1, c.role) || repeats && c.role == seen
		if !inOrder || n != 0 && n != c.index+1 || d.Type != c.typ() || d.Optional != c.nullable() {
			return nil, fmt.Errorf("column %q is not what stands there in an archive", d.Name)
		}
		seen = c.role
		p.columns = append(p.columns, c)
	}
	if seen != roleRaw || p.idParts == 0 || len(p.quantities) > 64 {
		return nil, errors.New("columns are missing")
	}
	return p, nil
}

// skippable reports whether a file may have no column of the roles in [from, to).
func skippable(from, to role) bool {
	for r := from; r < to; r++ {
		if r != roleReference && r != roleQuantity && r != roleAttribute {
			return false
		}
	}
	return true
}

// number reads the N of id_N; -1 if it is none.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || strconv.Itoa(n) != s {
		return -1
	}
	return n
}

func (c *column) typ() schemas.Type {
	switch c.role {
	case roleOffset, roleLogTime, roleIDHash, roleTime, rolePrior, roleQuantity, roleLatency, rolePayload:
		return schemas.Int64
	case roleRaw:
		return schemas.Bytes
	}
	return schemas.String
}

func (c *column) nullable() bool { return c.role != roleOffset && c.role != roleBucket }
