package oracle

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// absent is the content of an object that does not exist.
const absent = 0

// edit is one change of a content.
type edit struct {
	version int64
	at      time.Time
	// content is a number for what the object then has; absent, or the same for the same data.
	content int
}

// history has the contents of one config object.
type history struct {
	edits []edit
	// touched has all writes, those that change no content too.
	touched []versionTime
}

// at returns the content at a version.
func (h *history) at(version int64) int {
	if h == nil {
		return absent
	}
	i := sort.Search(len(h.edits), func(i int) bool { return h.edits[i].version > version })
	if i == 0 {
		return absent
	}
	return h.edits[i-1].content
}

// beforeAbsence returns the last content of an object that is absent at a version; false if it is there, or never was.
func (h *history) beforeAbsence(version int64) (content int, ok bool) {
	if h == nil || h.at(version) != absent {
		return absent, false
	}
	for _, e := range slices.Backward(h.edits) {
		if e.version <= version && e.content != absent {
			return e.content, true
		}
	}
	return absent, false
}

// now returns the present content.
func (h *history) now() int {
	if h == nil || len(h.edits) == 0 {
		return absent
	}
	return h.edits[len(h.edits)-1].content
}

// lastTouch returns when an object that exists was written last; false if it does not exist.
func (h *history) lastTouch() (last versionTime, exists bool) {
	if h.now() == absent {
		return versionTime{}, false
	}
	return h.touched[len(h.touched)-1], true
}

// within returns the edits with from < version ≤ to.
func (h *history) within(from, to int64) []edit {
	if h == nil {
		return nil
	}
	first := sort.Search(len(h.edits), func(i int) bool { return h.edits[i].version > from })
	last := sort.Search(len(h.edits), func(i int) bool { return h.edits[i].version > to })
	if last <= first {
		return nil
	}
	return h.edits[first:last]
}

// touchedWithin reports whether the object was written with from < version ≤ to.
func (h *history) touchedWithin(from, to int64) bool {
	if h == nil {
		return false
	}
	first := h.firstTouch(from)
	return first < len(h.touched) && h.touched[first].version <= to
}

// firstTouch returns the index of the first write after a version.
func (h *history) firstTouch(from int64) int {
	return sort.Search(len(h.touched), func(i int) bool { return h.touched[i].version > from })
}

// contents has the history of every config object.
type contents struct {
	histories map[id]*history
	numbers   map[string]int
	// sums has, by content, the SHA-1 of its keys and values, whichever field they are in. That of a ConfigMap is the one of Stakater's
	// Reloader: an empty key that moves to binaryData restarts the pods, and the SHA-1 stays.
	sums map[int]string
}

func newContents() contents {
	c := contents{map[id]*history{}, map[string]int{}, map[int]string{}}
	c.sums[absent] = sumOf() // Reloader takes a deleted object for an empty one
	return c
}

func isConfig(plural string) bool { return plural == "configmaps" || plural == "secrets" }

// of returns the history of what a workload in a namespace lists; nil if it never existed.
func (c *contents) of(namespace string, r ref) *history {
	return c.histories[id{r.plural, namespace, r.name}]
}

// commit records a stored change and reports whether it is one of the content.
func (c *contents) commit(commit world.Commit) bool {
	key := idOf(commit.Key)
	h := c.histories[key]
	if h == nil {
		h = &history{}
		c.histories[key] = h
	}
	h.touched = append(h.touched, versionTime{commit.At, commit.Version})
	content := c.number(commit.New)
	if content == h.now() {
		return false
	}
	h.edits = append(h.edits, edit{commit.Version, commit.At, content})
	return true
}

// number returns the same number for the same content: data and binaryData, nothing else.
func (c *contents) number(object world.Object) int {
	if object == nil {
		return absent
	}
	var b strings.Builder
	var pairs []string
	for _, field := range []string{"data", "binaryData"} {
		data := world.Section(object, field)
		for _, name := range slices.Sorted(maps.Keys(data)) {
			value := world.Text(data, name)
			b.WriteString(field + " " + strconv.Itoa(len(name)) + " " + name + " " + strconv.Itoa(len(value)) + " " + value)
			pairs = append(pairs, name+"="+value)
		}
	}
	content := c.numberOf(b.String())
	c.sums[content] = sumOf(pairs...)
	return content
}

// sumOf returns the SHA-1 of pairs of keys and values as Stakater's Reloader computes it.
func sumOf(pairs ...string) string {
	sum := sha1.Sum([]byte(strings.Join(slices.Sorted(slices.Values(pairs)), ";")))
	return hex.EncodeToString(sum[:])
}

// sameSum reports whether two contents may be one to Stakater's Reloader.
func (c *contents) sameSum(a, b int) bool {
	sum, present := c.sums[a]
	return a == b || present && sum == c.sums[b]
}

// numberOf returns the same number for the same text.
func (c *contents) numberOf(text string) int {
	n, known := c.numbers[text]
	if !known {
		n = len(c.numbers) + 1
		c.numbers[text] = n
	}
	return n
}
