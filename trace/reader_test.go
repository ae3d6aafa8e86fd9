package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/gatewaymeter/gatewaymeter/meter"
)

func record(partition int32, offset int64) string {
	return fmt.Sprintf(`{"partition":%d,"offset":%d,"log_time":%d,"key":"k%d","value":{"n":%d}}`, partition, offset, 1767225600000+offset, offset, offset)
}

func read(t *testing.T, text string, f Format) (*meter.Log, error) {
	t.Helper()
	return ReadLogFrom(strings.NewReader(text), "log.jsonl", f)
}

// offsets lists the records as partition@offset, idle lines as idle.
func offsets(log *meter.Log) string {
	var all []string
	for _, s := range log.Steps {
		if s.Idle != nil {
			all = append(all, "idle"+fmt.Sprint(s.Idle))
		} else {
			all = append(all, fmt.Sprintf("%d@%d", s.Record.Partition, s.Record.Offset))
		}
	}
	return strings.Join(all, " ")
}

func TestReadLog(t *testing.T) {
	const header = `{"trace":1,"topic":"requests","partitions":[0,1],"seed":7,"about":"x"}`
	a, b, c := record(0, 5), record(1, 0), record(0, 9)
	for _, text := range []string{
		a + "\n" + b + "\n" + `{"idle":[1]}` + "\n" + c + "\n",
		a + "\r\n" + b + "\r\n" + `{"idle":[1]}` + "\r\n" + c + "\r\n",
		a + "\n" + b + "\n" + `{"idle":[1]}` + "\n" + c, // no line end at the end
		a + "\r\n" + b + "\r\n" + `{"idle":[1]}` + "\r\n" + c + "\r",
	} {
		for _, head := range []string{"", header + "\n", header + "\r\n", ` { "trace" : 1 , "partitions":[0,1] }` + "\n"} {
			log, err := read(t, head+text, Trace)
			if err != nil || offsets(log) != "0@5 1@0 idle[1] 0@9" {
				t.Fatalf("%v %v", log, err)
			}
			want := meter.Record{Partition: 1, LogTime: 1767225600000, HasLogTime: true, Key: []byte("k0"), Value: []byte(`{"n":0}`)}
			got := log.Steps[1].Record
			if at := got.Byte; !strings.HasPrefix((head + text)[at:], b) {
				t.Errorf("byte %d of %q", at, head+text)
			}
			if got.Byte = 0; !reflect.DeepEqual(got, want) {
				t.Errorf("%+v", got)
			}
			if topic := map[bool]string{true: "requests", false: "log"}[strings.Contains(head, "requests")]; log.Topic != topic || (log.Partitions != nil) != (head != "") {
				t.Errorf("topic %q, partitions %v of %q", log.Topic, log.Partitions, head)
			}
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", `{"trace":1}`, `{"trace":1}` + "\n"} {
		if log, err := read(t, text, Trace); err != nil || len(log.Steps) != 0 {
			t.Errorf("%q: %v %v", text, log, err)
		}
	}
	if log, err := read(t, "", Values); err != nil || len(log.Steps) != 0 {
		t.Errorf("%v %v", log, err)
	}
}

func TestValues(t *testing.T) {
	log, err := read(t, "{\"trace\":1}\r\n\n {\n\xff\x00\r\nlast", Values)
	if err != nil || log.Topic != "log" || fmt.Sprint(log.Partitions) != "[0]" {
		t.Fatalf("%+v %v", log, err)
	}
	want := []meter.Record{
		{Offset: 0, Received: true, Value: []byte(`{"trace":1}`)}, {Offset: 1, Received: true, Value: []byte{}, Byte: 13},
		{Offset: 2, Received: true, Value: []byte(" {"), Byte: 14}, {Offset: 3, Received: true, Value: []byte("\xff\x00"), Byte: 17}, {Offset: 4, Received: true, Value: []byte("last"), Byte: 21},
	}
	for i, s := range log.Steps {
		if !reflect.DeepEqual(s.Record, want[i]) {
			t.Errorf("%+v, want %+v", s.Record, want[i])
		}
	}
	if len(log.Steps) != len(want) {
		t.Errorf("%d records", len(log.Steps))
	}
}

func TestBadFilesNameTheirLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{record(0, 1) + "\n" + "oops\n", "log.jsonl:2: not a record"},
		{record(0, 1) + "\n\n" + record(0, 2), "log.jsonl:2: not a record"},
		{record(0, 1) + "\n" + record(0, 1) + "\n", "log.jsonl:2: partition 0: offset 1 comes after offset 1"},
		{record(0, 1) + "\n" + record(1, 1) + "\n" + record(0, 0), "log.jsonl:3: partition 0: offset 0 comes after offset 1"},
		{record(0, 1) + "\n" + `{"trace":1}` + "\n", `log.jsonl:2: "trace" is no name`},
		{`{"trace":1,"partitions":[0,2]}` + "\n" + record(0, 1) + "\n" + record(1, 1), "log.jsonl:3: partition 1 is none of the header's [0 2]"},
		{`{"trace":1,"partitions":[0,2]}` + "\n" + `{"idle":[1]}`, "log.jsonl:2: partition 1 is none of the header's"},
		{`{"trace":1,"partitions":[]}` + "\n" + record(0, 1), "log.jsonl:2: partition 0 is none of the header's"},
		{`{"trace":2}`, `log.jsonl:1: header: want "trace":1`},
		{`{"trace":"1"}`, `log.jsonl:1: header: `},
		{`{"trace":null}`, `log.jsonl:1: header: `},
		{`{"trace":1} x`, `log.jsonl:1: header: something follows`},
		{`{"trace":1,"partition":[0]}`, `log.jsonl:1: header: json: unknown field`},
		{`{"trace":1,"partitions":[0,0]}`, `log.jsonl:1: header: partition 0`},
		{`{"trace":1,"partitions":[-1]}`, `log.jsonl:1: header: partition -1`},
		{`{"trace":1,"topic":"../x"}`, `log.jsonl:1: header: topic`},
		{`{"trace":1,"topic":"a/b"}`, `log.jsonl:1: header: topic`},
		{`{"trace":1`, `log.jsonl:1: header: `},
		{"\ufeff" + record(0, 1), "log.jsonl:1: not a record"},
		{record(0, 1) + "\n" + record(0, 2)[:40], "log.jsonl:2: "},
		{record(0, 1) + "\n" + strings.Repeat(`{"idle":[`, 100_000), "log.jsonl:2: "},
		{record(0, 1) + "\n" + strings.Repeat("\x00", 1<<20), "log.jsonl:2: "},
	} {
		_, err := read(t, c.text, Trace)
		var at *Error
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &at) || at.File != "log.jsonl" {
			t.Errorf("%.120q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestLongLines is K11.5: a line of any length is a line.
func TestLongLines(t *testing.T) {
	long := func(n int) string {
		return fmt.Sprintf(`{"partition":0,"offset":%d,"value":{"pad":"%s"}}`, n, strings.Repeat("x", n))
	}
	text := record(0, 1) + "\n" + long(70_000) + "\n" + long(1<<20) + "\n" + record(0, 1<<21) + "\n" + long(3<<20)
	for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		log, err := ReadLogFrom(r, "log.jsonl", Trace)
		if err != nil || offsets(log) != "0@1 0@70000 0@1048576 0@2097152 0@3145728" || len(log.Steps[2].Record.Value) != 1<<20+len(`{"pad":""}`) {
			t.Fatalf("%v", err)
		}
	}
}

func gzipped(t *testing.T, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range members {
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(m))
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func zstded(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = z.Write([]byte(text))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompressed(t *testing.T) {
	one, two := record(0, 1)+"\n", record(0, 2)+"\n"
	for name, b := range map[string][]byte{
		"a.jsonl.gz": gzipped(t, one, two), "b.gz": gzipped(t, one[:10], one[10:]+two, ""), "a.jsonl.zst": zstded(t, one+two),
		"c.zst": append(zstded(t, one), zstded(t, two)...),
	} {
		log, err := ReadLogFrom(bytes.NewReader(b), name, Trace)
		if err != nil || offsets(log) != "0@1 0@2" || log.Topic != name[:1] {
			t.Errorf("%s: %v %v", name, log, err)
		}
		for n := range b { // cut short anywhere but between two members
			if n == len(gzipped(t, one)) && name == "a.jsonl.gz" || n == len(zstded(t, one)) && name == "c.zst" || name == "b.gz" {
				continue
			}
			if _, err := ReadLogFrom(bytes.NewReader(b[:n]), name, Trace); err == nil {
				t.Errorf("%s: %d of %d bytes are read as a whole file", name, n, len(b))
			} else if !errors.Is(err, ErrCutShort) || strings.Contains(err.Error(), "\n") { // said once, by reading, not again by closing
				t.Errorf("%s: %d of %d bytes: %v", name, n, len(b), err)
			}
		}
		for i := 0; i < len(b); i += 3 { // a changed byte is an error or changes nothing
			bad := bytes.Clone(b)
			bad[i] ^= 0x10
			if log, err := ReadLogFrom(bytes.NewReader(bad), name, Trace); err == nil && offsets(log) != "0@1 0@2" {
				t.Errorf("%s: byte %d changed: %s", name, i, offsets(log))
			}
		}
	}
	for _, ending := range []string{".gz", ".zst"} {
		whole, kind := gzipped(t, one), "gzip"
		if ending == ".zst" {
			whole, kind = zstded(t, one), "zstd"
		}
		if _, err := ReadLogFrom(strings.NewReader(one), "x"+ending, Trace); err == nil || !strings.Contains(err.Error(), "x"+ending+":1: it is no "+kind+" file") &&
			!strings.Contains(err.Error(), "x"+ending+": it is no "+kind+" file") {
			t.Error(err)
		}
		for _, junk := range []string{"\n", "junk", one, strings.Repeat("\x00", 512)} {
			_, err := ReadLogFrom(strings.NewReader(string(whole)+junk), "x"+ending, Trace)
			if !errors.Is(err, ErrDamaged) && !(errors.Is(err, ErrCutShort) && len(junk) < 18) || !strings.Contains(err.Error(), "x"+ending) {
				t.Errorf("%s and %q: %v", ending, junk[:1], err)
			}
		}
		whole[len(whole)-5] ^= 1
		if _, err := ReadLogFrom(bytes.NewReader(whole), "x"+ending, Trace); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s with a changed checksum: %v", ending, err)
		}
	}
}

func TestReadError(t *testing.T) {
	r := io.MultiReader(strings.NewReader(record(0, 1)+"\n"+record(0, 2)+"\n{"), iotest.ErrReader(errors.New("disk on fire")))
	if _, err := ReadLogFrom(r, "log.jsonl", Trace); err == nil || !strings.Contains(err.Error(), "log.jsonl:3: disk on fire") {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "none.jsonl"): "no such file", dir: "is a folder"} {
		if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	path := filepath.Join(dir, "x.jsonl.gz")
	if err := os.WriteFile(path, gzipped(t, record(0, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{Wait: func(context.Context) error { return nil }}); err == nil || !strings.Contains(err.Error(), "followed") {
		t.Error(err)
	}
	log, err := ReadLog(path, Trace)
	if err != nil || offsets(log) != "0@1" || log.Topic != "x" {
		t.Errorf("%v %v", log, err)
	}
}

func TestTopicOf(t *testing.T) {
	for path, want := range map[string]string{"a/requests.jsonl": "requests", "x.jsonl.gz": "x", "x.zst": "x", "x.2026-01.jsonl": "x.2026-01", "my file.jsonl": "my_file", ".jsonl": ".jsonl",
		"é.jsonl": "_", "stdin": "stdin", "..": "log", "": "log", strings.Repeat("y", 300) + ".jsonl": strings.Repeat("y", 200)} {
		if got := TopicOf(path); got != want && !(path == "" || path == "..") || !IsTopic(got) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// chunks reads all, in chunks of about size bytes.
func chunks(t *testing.T, r *Reader) []Line {
	t.Helper()
	var all []Line
	for {
		c, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all, err = c.Parse(all); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResume stops before and after every line of a file, takes the position and goes on from it.
func TestResume(t *testing.T) {
	for _, text := range []string{
		"{\"trace\":1}\n" + record(0, 1) + "\n" + record(1, 1) + "\r\n{\"idle\":[1]}\n" + record(0, 2) + "\n",
		record(0, 1) + "\n" + record(1, 1) + "\n" + record(0, 2), // the last line has no end
	} {
		whole, err := NewReader(strings.NewReader(text), "log.jsonl", Options{ChunkBytes: 7})
		if err != nil {
			t.Fatal(err)
		}
		lines := chunks(t, whole)
		at := func(n int) (int64, string) { // the position before line n
			if n == len(lines) {
				return int64(len(text)), hashOf(t, text)
			}
			return lines[n].Record.Byte, hashOf(t, text[:lines[n].Record.Byte])
		}
		for next := range len(lines) + 1 {
			end, hash := at(next)
			for from := range next + 1 {
				restart, _ := at(from)
				for _, grown := range []string{text, text + "\n" + record(0, 3)} {
					for _, chunk := range []int{1, 50, 1 << 20} {
						r, err := NewReader(iotest.OneByteReader(strings.NewReader(grown)), "log.jsonl", Options{ChunkBytes: chunk})
						if err != nil {
							t.Fatal(err)
						}
						if strings.HasSuffix(text, "\n") {
							grown = strings.Replace(grown, "\n\n", "\n", 1)
							r, _ = NewReader(strings.NewReader(grown), "log.jsonl", Options{ChunkBytes: chunk})
						}
						if err := r.Resume(context.Background(), restart, end, hash); err != nil {
							t.Fatalf("from %d of %d, %q: %v", restart, end, grown, err)
						}
						got := chunks(t, r)
						want := len(lines) - from + strings.Count(grown, "\n") - strings.Count(strings.TrimSuffix(text, "\n"), "\n")
						if grown == text {
							want = len(lines) - from
						}
						if len(got) != want || want > 0 && from < len(lines) && (got[0].Record.Offset != lines[from].Record.Offset || got[0].Number != lines[from].Number) {
							t.Fatalf("from line %d, next %d of %q: %d lines, want %d: %+v", from, next, grown, len(got), want, got)
						}
						if n := len(got); n > 0 && grown != text && got[n-1].Number != lines[len(lines)-1].Number+1 {
							t.Errorf("the new line is number %d", got[n-1].Number)
						}
					}
				}
			}
		}
	}
}

func hashOf(t *testing.T, text string) string {
	t.Helper()
	c := Chunk{Data: []byte(text), end: -1}
	return c.PrefixHash(int64(len(text)))
}

func TestResumeOfAnotherFile(t *testing.T) {
	text := record(0, 1) + "\n" + record(0, 2) + "\n" + record(0, 3) + "\n"
	second := int64(strings.Index(text, "\n") + 1)
	third := int64(strings.LastIndex(text[:len(text)-1], "\n") + 1)
	for name, c := range map[string]struct {
		text          string
		restart, next int64
	}{
		"changed before restart":             {strings.Replace(text, `"offset":1`, `"offset":0`, 1), second, third},
		"changed before next":                {strings.Replace(text, `"offset":2`, `"offset":4`, 1), second, third},
		"too short for next":                 {text[:third-1], second, third},
		"too short for restart":              {text[:second-1], second, third},
		"empty":                              {"", second, third},
		"restart in a line":                  {text, second + 3, third},
		"header grew":                        {`{"trace":1,"about":"` + strings.Repeat("x", 400) + `"}` + "\n" + text, second, third},
		"last line went on":                  {text[:third-1] + `x` + text[third-1:], third - 1, third - 1},
		"last line went on, and is replayed": {text[:third-1] + `  ` + text[third-1:], second, third - 1},
	} {
		for _, chunk := range []int{1, 1 << 20} {
			r, err := NewReader(strings.NewReader(c.text), "log.jsonl", Options{ChunkBytes: chunk})
			if err != nil {
				t.Fatal(err)
			}
			err = r.Resume(context.Background(), c.restart, c.next, hashOf(t, text[:c.next]))
			for err == nil {
				_, err = r.Next(context.Background())
			}
			var at *Error
			if !errors.Is(err, ErrPrefix) || !errors.As(err, &at) {
				t.Errorf("%s: %v", name, err)
			}
		}
		path := filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Resume(context.Background(), c.restart, c.next, hashOf(t, text[:c.next]))
		if strings.HasPrefix(name, "last line went on, and") {
			_, err = r.Next(context.Background())
		}
		if !errors.Is(err, ErrPrefix) {
			t.Errorf("%s, a file: %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPrefixHashes: at every line's end, however the file is cut into chunks.
func TestPrefixHashes(t *testing.T) {
	text, _ := generated(t, NewGen(meter.Requests))
	text = text[:40_000]
	for _, size := range []int{1, 1000, 1 << 20} {
		r, err := NewReader(bytes.NewReader(text), "log.jsonl", Options{ChunkBytes: size, Format: Values})
		if err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		for {
			c, err := r.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || c.Byte != end {
				t.Fatalf("chunk at %d, want %d: %v", c.Byte, end, err)
			}
			lines, err := c.Parse(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if l.Record.Byte != end {
					t.Fatalf("line %d at %d, want %d", l.Number, l.Record.Byte, end)
				}
				if end = l.End; l.Number%37 == 0 && c.PrefixHash(end) != hashOf(t, string(text[:end])) {
					t.Fatalf("hash at %d", end)
				}
			}
		}
		if end != int64(len(text)) {
			t.Errorf("%d of %d bytes", end, len(text))
		}
	}
}

// TestFollow: a line without its end waits, a growing file goes on, and the end is the context's.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	grow := func(s string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(s)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	header, a, b := `{"trace":1,"topic":"late"}`+"\n", record(0, 1)+"\n", record(0, 2)+"\n"
	steps := []string{header[:5], header[5:], a[:20], a[20:] + b[:3], b[3 : len(b)-1], "\n"}
	grow("")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := Open(path, Options{Wait: func(ctx context.Context) error {
		if len(steps) == 0 {
			stop()
			return ctx.Err()
		}
		grow(steps[0])
		steps = steps[1:]
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Header(ctx); err != nil || h.Topic != "late" || len(steps) != 4 {
		t.Fatalf("%+v %v", h, err)
	}
	for left, want := range map[int]string{2: a} {
		c, err := r.Next(ctx)
		if err != nil || string(c.Data) != want || len(steps) != left {
			t.Fatalf("%+v %v, %d steps left", c, err, len(steps))
		}
	}
	if c, err := r.Next(ctx); err != nil || string(c.Data) != b || len(steps) != 0 {
		t.Fatalf("%+v %v", c, err)
	}
	if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestGrowing: the incomplete last line of a file that somebody still writes is left unread, wherever it is cut, a header
// too; what was read before as a line without its end stays one.
func TestGrowing(t *testing.T) {
	ctx := context.Background()
	whole := `{"trace":1,"topic":"late"}` + "\n" + record(0, 1) + "\n" + record(0, 2) + "\r\n"
	for cut := range len(whole) + 1 {
		text := whole[:cut]
		r, err := NewReader(strings.NewReader(text), "log", Options{Growing: true, ChunkBytes: 50})
		if err != nil {
			t.Fatal(err)
		}
		h, err := r.Header(ctx)
		if err != nil || h.Stated != strings.Contains(text, "\n") {
			t.Fatalf("cut at %d: header %+v, %v", cut, h, err)
		}
		lines := chunks(t, r)
		want := max(0, strings.Count(text, "\n")-1)
		if unread := len(text) - (strings.LastIndexByte(text, '\n') + 1); len(lines) != want || r.Unread() != int64(unread) {
			t.Errorf("cut at %d: %d lines, %d bytes unread, want %d and %d", cut, len(lines), r.Unread(), want, unread)
		}
	}

	old := whole[:len(whole)-2]
	for restart, want := range map[int]int{strings.LastIndexByte(old, '\n') + 1: 1, len(old): 0} {
		r, err := NewReader(strings.NewReader(old), "log", Options{Growing: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Resume(ctx, int64(restart), int64(len(old)), hashOf(t, old)); err != nil {
			t.Fatal(err)
		}
		if lines := chunks(t, r); len(lines) != want || r.Unread() != 0 {
			t.Errorf("from byte %d: %d lines, %d bytes unread", restart, len(lines), r.Unread())
		}
	}
}

func TestFollowSeesARotation(t *testing.T) {
	for name, rotate := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 3) },
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		},
	} {
		path := filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(path, []byte(record(0, 1)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, Options{Wait: func(context.Context) error { return rotate(path) }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(context.Background()); !errors.Is(err, ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
		_ = r.Close()
	}
}

// TestChunksInParallel: chunks are parsed while later ones are read, and together are the file.
func TestChunksInParallel(t *testing.T) {
	text, want := generated(t, NewGen(meter.Requests))
	r, err := NewReader(iotest.HalfReader(bytes.NewReader(text)), "log.jsonl", Options{ChunkBytes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	type parsed struct {
		lines []Line
		err   error
	}
	var results []chan parsed
	for {
		c, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan parsed, 1)
		results = append(results, result)
		go func() {
			lines, err := c.Parse(nil)
			result <- parsed{lines, err}
		}()
	}
	order := NewOrder("log.jsonl", Header{Partitions: []int32{0, 1, 2}})
	var n int64
	for _, result := range results {
		p := <-result
		if p.err != nil {
			t.Fatal(p.err)
		}
		for i := range p.lines {
			if err := order.Check(&p.lines[i]); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n != want || len(results) < 50 {
		t.Errorf("%d lines in %d chunks, want %d", n, len(results), want)
	}
}

// TestRelease: memory that was given back is used again, and never while a chunk that still has it may be looked at.
func TestRelease(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var text bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&text, `{"partition":0,"offset":%d,"value":{"x":"%s"}}`+"\n", i, strings.Repeat(string(rune('a'+i%26)), rng.IntN(200)))
	}
	for _, piece := range []int{7, 100, 1 << 20} {
		r, err := NewReader(&slow{bytes.NewReader(text.Bytes()), piece}, "log.jsonl", Options{ChunkBytes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		type held struct {
			*Chunk
			was []byte
		}
		var chunks []held
		look := func(h held) {
			if !bytes.Equal(h.Data, h.was) || h.PrefixHash(h.End()) != hashOf(t, text.String()[:h.End()]) {
				t.Fatalf("the chunk at %d has changed", h.Byte)
			}
		}
		end, memories := int64(0), map[*memory]bool{}
		for {
			c, err := r.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || c.Byte != end || !bytes.Equal(c.Data, text.Bytes()[c.Byte:c.End()]) {
				t.Fatalf("chunk at %d, want %d: %v", c.Byte, end, err)
			}
			end = c.End()
			memories[c.memory] = true
			chunks = append(chunks, held{c, bytes.Clone(c.Data)})
			for len(chunks) > rng.IntN(6) {
				i := rng.IntN(len(chunks))
				look(chunks[i])
				chunks[i].Release()
				if c := chunks[i].Chunk; c.PrefixHash(c.End()) != hashOf(t, text.String()[:c.End()]) {
					t.Fatalf("the hash at %d has changed", c.End())
				}
				chunks = slices.Delete(chunks, i, i+1)
			}
		}
		if end != int64(text.Len()) || len(memories) > 2*maxSpare {
			t.Errorf("%d of %d bytes, in %d pieces of memory", end, text.Len(), len(memories))
		}
	}
}

// slow reads at most so many bytes at a time.
type slow struct {
	r    io.Reader
	most int
}

func (s *slow) Read(b []byte) (int, error) { return s.r.Read(b[:min(len(b), s.most)]) }
