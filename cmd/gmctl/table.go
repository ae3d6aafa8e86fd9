package main

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// A table prints rows in columns. Where it goes to a terminal that is too narrow for them, each row is a few lines of
// "heading value"; off a terminal every cell is whole.
type table struct {
	heads []string
	right []bool // by column: numbers stand at the right
	rows  [][]string
}

// newTable takes the headings; one that begins with > is of a column set to the right.
func newTable(heads ...string) *table {
	t := &table{}
	for _, h := range heads {
		name, right := strings.CutPrefix(h, ">")
		t.column(name, right)
	}
	return t
}

func (t *table) column(name string, right bool) {
	t.heads, t.right = append(t.heads, name), append(t.right, right)
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// dropLast leaves the last column out.
func (t *table) dropLast() {
	last := len(t.heads) - 1
	t.heads = t.heads[:last]
	for i := range t.rows {
		t.rows[i] = t.rows[i][:last]
	}
}

// widestColumn bounds the padding: a cell that is wider shifts its own row only.
const widestColumn = 60

func (t *table) widths() ([]int, int) {
	widths := make([]int, len(t.heads))
	for i, h := range t.heads {
		widths[i] = utf8.RuneCountInString(h)
	}
	widest := 0
	for _, row := range t.rows {
		total := 0
		for i, c := range row {
			n := utf8.RuneCountInString(c)
			widths[i] = max(widths[i], min(n, widestColumn))
			total += max(0, n-widestColumn)
		}
		widest = max(widest, total)
	}
	for _, n := range widths {
		widest += n + 2
	}
	return widths, widest - 2
}

// print writes the table for so many columns; 0: as wide as it is.
func (t *table) print(w io.Writer, columns int) error {
	out := bufio.NewWriter(w)
	widths, all := t.widths()
	gap := 2
	if columns > 0 && all > columns {
		all, gap = all-(len(t.heads)-1), 1 // closer, before it is stacked
	}
	if columns > 0 && all > columns {
		for _, row := range t.rows {
			t.stack(out, row, columns)
		}
		return out.Flush()
	}
	t.line(out, t.heads, widths, gap)
	for _, row := range t.rows {
		t.line(out, row, widths, gap)
	}
	return out.Flush()
}

func (t *table) line(out *bufio.Writer, cells []string, widths []int, between int) {
	gap := 0
	for i, c := range cells {
		pad := max(0, widths[i]-utf8.RuneCountInString(c))
		if t.right[i] {
			gap += pad
		}
		if c != "" {
			for range gap {
				out.WriteByte(' ')
			}
			out.WriteString(c)
			gap = 0
		}
		if !t.right[i] {
			gap += pad
		}
		gap += between
	}
	out.WriteByte('\n')
}

// stack writes a row as its first cell and, below it, each other heading with its value.
func (t *table) stack(out *bufio.Writer, cells []string, columns int) {
	out.WriteString(cells[0] + "\n")
	at := 0
	for i, c := range cells[1:] {
		if c == "" {
			continue
		}
		pair := strings.TrimLeft(t.heads[i+1]+" "+c, " ")
		n := utf8.RuneCountInString(pair)
		if at > 0 && at+2+n > columns {
			out.WriteByte('\n')
			at = 0
		}
		out.WriteString("  " + pair)
		at += 2 + n
	}
	if at > 0 {
		out.WriteByte('\n')
	}
}

// indented prints the table two columns in.
func (t *table) indented(w io.Writer, columns int) error {
	var text strings.Builder
	err := t.print(&text, columns)
	for line := range strings.Lines(text.String()) {
		if err == nil {
			_, err = io.WriteString(w, "  "+line)
		}
	}
	return err
}
