package main

import (
	"strings"
	"testing"
)

// A table stands in its columns while they fit, closer if need be, then row by row; a cell is never cut.
func TestTable(t *testing.T) {
	rows := newTable("name", ">count", "note")
	rows.row("acme", "12", "")
	rows.row("birch-and-sons", "3", "late")
	for columns, want := range map[int]string{
		0:  "name            count  note\nacme               12\nbirch-and-sons      3  late\n",
		25: "name           count note\nacme              12\nbirch-and-sons     3 late\n",
		24: "acme\n  count 12\nbirch-and-sons\n  count 3  note late\n",
		12: "acme\n  count 12\nbirch-and-sons\n  count 3\n  note late\n",
	} {
		var b strings.Builder
		if err := rows.print(&b, columns); err != nil || b.String() != want {
			t.Errorf("in %d columns (%v):\n%swant\n%s", columns, err, b.String(), want)
		}
	}
}

// One huge cell shifts its own row and pads no other.
func TestTableHugeCell(t *testing.T) {
	rows := newTable("raw", "n")
	rows.row(strings.Repeat("x", 100_000), "1")
	for range 1000 {
		rows.row("y", "2")
	}
	var b strings.Builder
	if err := rows.print(&b, 0); err != nil || b.Len() > 300_000 {
		t.Errorf("%d bytes (%v)", b.Len(), err)
	}
}
