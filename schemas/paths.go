package schemas

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

// A node is one step of the paths that a meter reads; the root is the record's object.
type node struct {
	members []member
	span    int // index of the span that ends here, or -1
	first   int // the member that stood first last time: most records look like the one before
}

type member struct {
	name string
	node *node
	// quoted is the name with the quote that closes it, as it stands in most records; its first bytes, up to 8, are
	// head where mask is set. A name that JSON has to escape has a head that nothing matches.
	quoted     string
	head, mask uint64
	follow     int // the member that came after this one last time
}

// begin is where the guess of an object's first member is kept.
func (n *node) begin() *int {
	if n == nil {
		return new(int)
	}
	return &n.first
}

func newMember(name string) member {
	m := member{name: name, node: &node{span: -1}, quoted: name + `"`, head: 1}
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError }) {
		var first [8]byte
		n := copy(first[:], m.quoted)
		m.head, m.mask = binary.LittleEndian.Uint64(first[:]), ^uint64(0)>>(8*(8-n))
	}
	return m
}

// match is the member whose name stands at b[i:] with its closing quote and no escapes, and where it ends; -1 if none
// does or too few bytes follow. The guess is looked at first.
func (n *node) match(b []byte, i, guess int) (k, end int) {
	if n == nil || i+8 > len(b) || len(n.members) == 0 {
		return -1, 0
	}
	w := binary.LittleEndian.Uint64(b[i:])
	if end := n.members[guess].ends(b, i, w); end > 0 {
		return guess, end
	}
	for k := range n.members {
		if end := n.members[k].ends(b, i, w); end > 0 {
			return k, end
		}
	}
	return -1, 0
}

func (m *member) ends(b []byte, i int, w uint64) int {
	if w&m.mask != m.head {
		return 0
	}
	end := i + len(m.quoted)
	if len(m.quoted) <= 8 || end <= len(b) && string(b[i+8:end]) == m.quoted[8:] {
		return end
	}
	return 0
}

// find is the index of the member called word, or -1. A nil node has none.
func (n *node) find(word []byte) int {
	if n == nil {
		return -1
	}
	for k := range n.members {
		if n.members[k].name == string(word) {
			return k
		}
	}
	return -1
}

// paths compiles the paths of a meter into a trie; equal paths share a span.
type paths struct {
	root  node
	spans int
}

func newPaths() *paths { return &paths{root: node{span: -1}} }

// add returns the index of path's span; -1 for no path at all.
func (p *paths) add(path meter.FieldPath) int {
	if len(path) == 0 {
		return -1
	}
	n := &p.root
	for _, name := range path {
		k := slices.IndexFunc(n.members, func(m member) bool { return m.name == name })
		if k < 0 {
			k = len(n.members)
			n.members = append(n.members, newMember(name))
		}
		n = n.members[k].node
	}
	if n.span < 0 {
		n.span = p.spans
		p.spans++
	}
	return n.span
}

func (p *paths) addAll(list []meter.FieldPath) []int {
	var spans []int
	for _, path := range list {
		spans = append(spans, p.add(path))
	}
	return spans
}
