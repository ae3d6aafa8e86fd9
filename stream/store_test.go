package stream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// TestStoreIsAMap: whatever is added, found, blanked and removed, and however hashes collide, the store answers as
// a map by id does (R3: ids are compared byte for byte, not by hash).
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := benchMeter(meter.Requests)
		if rapid.Bool().Draw(t, "references") {
			m.Event.Reference = []meter.FieldPath{{"ref"}}
		}
		s := newStore(newLayout(m, rapid.IntRange(0, 70).Draw(t, "attribute filters")))
		hashes := rapid.SampledFrom([]uint64{1, 3, 1 << 20, 0}).Draw(t, "distinct hashes")
		type known struct {
			ref       uint32
			reference meter.ID
		}
		model := map[meter.ID]known{}
		hash := func(id meter.ID) uint64 {
			if hashes == 0 {
				return id.Hash64()
			}
			return id.Hash64() % hashes * 0x9e3779b97f4a7c15
		}
		id := rapid.Custom(func(t *rapid.T) meter.ID {
			n := rapid.IntRange(0, 40).Draw(t, "n")
			return meter.NewID(strings.Repeat("x", n%11), fmt.Sprint(n))
		})
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			x := id.Draw(t, "id")
			ref := s.find(x, hash(x))
			want, ok := model[x]
			if (ref != 0) != ok || ok && ref != want.ref {
				t.Fatalf("%v is at %d, want %d", x.Parts(), ref, want.ref)
			}
			if !ok {
				reference := meter.NewID(strings.Repeat("r", rapid.IntRange(0, 20).Draw(t, "reference")))
				ref, err := s.add(x, hash(x), reference)
				if err != nil {
					t.Fatal(err)
				}
				s.at(ref).setPhase(open)
				model[x] = known{ref, reference}
				continue
			}
			if got := s.idOf(s.at(ref)); got != x {
				t.Fatalf("at %d is %q, want %q", ref, got, x)
			}
			reference := want.reference
			if s.refLen == 0 {
				reference = x
			}
			if got := s.reference(ref); got != reference {
				t.Fatalf("%q is called %q, want %q", x, got, reference)
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				s.remove(ref)
				delete(model, x)
			case 1:
				s.setReference(ref, meter.NewID("other"))
				model[x] = known{ref, meter.NewID("other")}
			case 2:
				s.blank(ref)
				s.setReference(ref, meter.NewID("again"))
				model[x] = known{ref, meter.NewID("again")}
			}
			if s.n != len(model) {
				t.Fatalf("%d lives, want %d", s.n, len(model))
			}
		}
	})
}

// TestStoreGrowsAndShrinks fills many chunks, forgets, and fills again in the same room.
func TestStoreGrowsAndShrinks(t *testing.T) {
	s := newStore(newLayout(benchMeter(meter.Requests), 0))
	id := func(i int) meter.ID { return meter.NewID(fmt.Sprintf("req-%08d", i)) }
	const n = 30_000
	var chunks int
	for round := range 3 {
		for i := range n {
			x := id(i + round*n)
			if _, err := s.add(x, x.Hash64(), x); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			chunks = len(s.chunks)
		}
		for i := range n {
			x := id(i + round*n)
			ref := s.find(x, x.Hash64())
			if ref == 0 {
				t.Fatalf("%v is lost", x)
			}
			s.remove(ref)
		}
	}
	if len(s.chunks) != chunks || s.n != 0 || chunks < 4 {
		t.Errorf("%d chunks, %d lives; want %d, 0", len(s.chunks), s.n, chunks)
	}
}

// TestStoreIsFull: the arena ends with an error, not with a wrong place.
func TestStoreIsFull(t *testing.T) {
	s := newStore(newLayout(benchMeter(meter.Requests), 0))
	s.chunks = append(make([][]uint64, maxChunks-1), make([]uint64, chunkWords))
	s.used = chunkWords
	if _, err := s.add("x", 1, ""); err != errFull {
		t.Errorf("got %v", err)
	}
}

// TestIDOrder: part by part, byte for byte, as meter.ID orders (R4).
func TestIDOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore(newLayout(benchMeter(meter.Requests), 0))
		part := rapid.SampledFrom([]string{"", "a", "b", "aa", "ab", "a\x00", "abcdefgh", "abcdefghi", "\xff"})
		draw := func() meter.ID { return meter.NewID(part.Draw(t, "part"), part.Draw(t, "part")) }
		a, b := draw(), draw()
		p, _ := s.add(a, a.Hash64(), a)
		q, _ := s.add(b, b.Hash64(), b)
		if s.lessID(p, q) != a.Less(b) || s.lessID(q, p) != b.Less(a) {
			t.Fatalf("%q %q", a, b)
		}
	})
}

// TestNamesComeAndGo: a name lives as long as something holds it.
func TestNamesComeAndGo(t *testing.T) {
	n := newNames()
	a, b := n.hold("a"), n.hold("b")
	n.share(a)
	n.release(a)
	n.release(b)
	if n.text(a) != "a" || n.hold("c") != b || n.hold("a") != a || n.hold("") != 0 {
		t.Errorf("%+v", n)
	}
	for range 3 {
		n.release(0)
	}
	n.release(a)
	n.release(a)
	if _, known := n.ids["a"]; known || n.text(0) != "" {
		t.Errorf("%+v", n)
	}
}

// TestQueueOrders: a queue is a sort.
func TestQueueOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queue[int64]{less: earlier}
		in := rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(t, "in")
		for _, x := range in {
			q.push(x)
		}
		var out []int64
		for !q.empty() {
			out = append(out, q.pop())
		}
		slices.Sort(in)
		if !slices.Equal(in, out) {
			t.Fatalf("%v, want %v", out, in)
		}
	})
}
