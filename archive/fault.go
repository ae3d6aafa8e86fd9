package archive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// FaultKind says what is wrong.
type FaultKind string

// The kinds of faults, and of notes (Aside, Beyond, Unlisted).
const (
	Missing    FaultKind = "missing"    // a file that the chain names is not there
	Gap        FaultKind = "gap"        // offsets between two neighbours belong to neither
	Overlap    FaultKind = "overlap"    // offsets belong to two files
	Chain      FaultKind = "chain"      // name or row count of the former file, or the head, do not fit
	Misplaced  FaultKind = "misplaced"  // a file under another's name
	Changed    FaultKind = "changed"    // its bytes are not those that were published (sha256)
	Unreadable FaultKind = "unreadable" // no whole Parquet file of an archive, or rows that cannot be read
	Foreign    FaultKind = "foreign"    // a file that no archive makes
	NoHead     FaultKind = "no_head"    // nothing says where the partition ends
	Column     FaultKind = "column"     // a column is not what decoding the raw bytes again says
	Prior      FaultKind = "prior"      // prior_max_reach, or a footer's max_reach, is not what the rows say
	Rows       FaultKind = "rows"       // more or fewer rows than the footer says
	MetaFault  FaultKind = "meta"       // a document of _meta is damaged or does not fit its name
	NoMeter    FaultKind = "no_meter"   // no decoder for the file's meter: its rows could not be checked
	Unlisted   FaultKind = "unlisted"   // note: a document of _meta that is not on its list
	Aside      FaultKind = "aside"      // note: a file in the making
	Beyond     FaultKind = "beyond"     // note: a file behind the head
)

// A Fault is one thing that is wrong, with where it is. Faults are data: finding them is no error.
type Fault struct {
	Kind      FaultKind
	Topic     string
	Partition int32
	File      string // "" if it is about a partition as a whole
	// Offset is the log position, valid if HasOffset: of a row, or where a range begins that ends at Next (0:
	// no range).
	Offset    int64
	HasOffset bool
	Next      int64
	Detail    string
}

// String is one line for people and logs. The file's name is quoted if it is not harmless.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.Topic != "" {
		fmt.Fprintf(&b, " %s/%d", harmless(f.Topic), f.Partition)
	}
	if f.HasOffset {
		fmt.Fprintf(&b, "@%d", f.Offset)
	}
	if f.File != "" {
		fmt.Fprintf(&b, " %s", harmless(f.File))
	}
	fmt.Fprintf(&b, ": %s", f.Detail)
	return b.String()
}

func harmless(s string) string {
	if q := fmt.Sprintf("%q", s); q != `"`+s+`"` || strings.ContainsAny(s, " :") {
		return q
	}
	return s
}

func (f *File) fault(kind FaultKind, offset int64, format string, args ...any) Fault {
	return Fault{Kind: kind, Topic: f.Topic, Partition: f.Partition, File: f.Name, Offset: offset, HasOffset: true, Detail: fmt.Sprintf(format, args...)}
}

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset), strings.Compare(a.File, b.File))
	})
}
