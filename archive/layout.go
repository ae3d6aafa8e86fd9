package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	asideDir  = "_aside"
	metaDir   = "_meta"
	extension = ".parquet"
	asideExt  = ".aside"
	// maxComponent is the longest name a common file system takes; a file's name needs up to 41 bytes beside the topic.
	maxComponent = 255
	maxTopicDir  = maxComponent - len("topic=")
	maxTopicFile = maxComponent - 45
)

// escape writes text as one harmless part of a path, the way Hive and Spark do: everything but letters, digits,
// '-', '_' and '.' as %XX. So '/', '+', '=', NUL, line breaks and escape codes never reach a path.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// escapeTo is escape, shortened to at most limit bytes: text that is longer ends in a hash of the whole after a
// '~', which escape never writes. The footer states the topic in full.
func escapeTo(text string, limit int) string {
	e := escape(text)
	if len(e) <= limit {
		return e
	}
	sum := sha256.Sum256([]byte(text))
	return e[:limit-33] + "~" + hex.EncodeToString(sum[:16])
}

// unescape reads what escape wrote; text that is no escape stays as it is.
func unescape(text string) string {
	if s, err := url.PathUnescape(text); err == nil {
		return s
	}
	return text
}

// dirOf is the folder of a file whose first record has this log time (ms). Without one, or with one that no
// calendar date of four digits names, it is that of 1970.
func dirOf(topic string, partition int32, logTime int64, hasLogTime bool) string {
	t := time.UnixMilli(0).UTC()
	if hasLogTime && logTime >= 0 {
		if l := time.UnixMilli(logTime).UTC(); l.Year() <= 9999 {
			t = l
		}
	}
	return path.Join("topic="+escapeTo(topic, maxTopicDir), "date="+t.Format("2006-01-02"), "hour="+t.Format("15"), "part="+strconv.Itoa(int(partition)))
}

// stem begins the names of everything that belongs to one partition.
func stem(topic string, partition int32) string {
	return escapeTo(topic, maxTopicFile) + "+" + strconv.Itoa(int(partition)) + "+"
}

func fileName(topic string, partition int32, first int64) string {
	return fmt.Sprintf("%s%020d%s", stem(topic, partition), first, extension)
}

// A place is what the path of a file says about it.
type place struct {
	topic     string // escaped
	date      string
	hour      string
	partition int32
	first     int64
}

// dir is the folder that the place states.
func (p place) dir() string {
	return path.Join("topic="+p.topic, "date="+p.date, "hour="+p.hour, "part="+strconv.Itoa(int(p.partition)))
}

// parsePlace reads a path; false if no writer of ours makes such a path.
func parsePlace(name string) (place, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 5 {
		return place{}, false
	}
	var p place
	var part string
	ok := true
	for i, want := range []struct {
		key string
		to  *string
	}{{"topic=", &p.topic}, {"date=", &p.date}, {"hour=", &p.hour}, {"part=", &part}} {
		var found bool
		*want.to, found = strings.CutPrefix(parts[i], want.key)
		ok = ok && found
	}
	base, found := strings.CutSuffix(parts[4], extension)
	words := strings.Split(base, "+")
	if !ok || !found || len(words) != 3 || len(words[2]) != 20 || words[1] != part {
		return place{}, false
	}
	n, err := strconv.ParseInt(part, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != part {
		return place{}, false
	}
	first, err := strconv.ParseUint(words[2], 10, 63)
	if err != nil {
		return place{}, false
	}
	p.partition, p.first = int32(n), int64(first)
	return p, true
}

// isTemporary reports whether name is a file in the making, or what a crash left of one.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, asideDir+"/") && strings.HasSuffix(name, asideExt)
}
