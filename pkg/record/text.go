package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	// version says how to read a text; it is its first part.
	version = "v1"
	// none stands for the hash of a template that has none, and for the Entry of an absent object.
	none = "-"

	stampedMark = '='
	adoptedMark = '~'

	keyDigits   = 8
	entryDigits = 16
	maxToken    = 64
)

// ErrNewer says that a later version of this program wrote the Record: it is neither judged nor replaced.
var ErrNewer = errors.New("a newer version of pod-reloader wrote it: upgrade this one")

// Parse reads the text of a Record, such as
//
//	v1:1c9e04ab…:1c9e04ab:configmap/app=9a0c4f1122334455@81234,secret/db~4417e0aabbccddee@80011,configmap/gone=-
//
// or its compact form. It accepts exactly what Text writes, but for the order of named items. The error is ErrNewer, or
// names the offending part, of which it quotes a bounded piece. The time is linear in the text.
func Parse(s string) (Record, error) {
	r, err := parse(s)
	if err != nil {
		return Record{}, fmt.Errorf("read config record: %w", err)
	}
	return r, nil
}

func parse(s string) (Record, error) {
	rest, err := cutVersion(s)
	if err != nil {
		return Record{}, err
	}
	hash, rest, _ := strings.Cut(rest, ":")
	key, items, ok := strings.Cut(rest, ":")
	r := Record{Hash: strings.TrimPrefix(hash, none), Key: digest.KeyID(key)}
	switch {
	case !ok:
		return Record{}, errors.New("it is not of the form version:hash:key:items")
	case hash != none && !isToken(hash):
		return Record{}, fmt.Errorf(`the hash %s is neither "-" nor 1 to %d letters and digits`, reference.Quote(hash), maxToken)
	case items == "" && key == "":
		return r, nil
	case !isHex(key, keyDigits):
		return Record{}, fmt.Errorf("the key id %s is not %d lower-case hex digits", reference.Quote(key), keyDigits)
	}
	if strings.HasPrefix(items, compactMark) {
		r.compact, err = parseCompact(items)
	} else {
		r.items, err = parseItems(items)
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

func cutVersion(s string) (string, error) {
	tag, rest, _ := strings.Cut(s, ":")
	if tag == version {
		if len(s) > MaxSize {
			return "", fmt.Errorf("it has %d bytes: the limit is %d", len(s), MaxSize)
		}
		return rest, nil
	}
	if number, err := strconv.ParseUint(strings.TrimPrefix(tag, "v"), 10, 31); err == nil && tag[0] == 'v' && number > 1 {
		return "", ErrNewer
	}
	return "", fmt.Errorf("it has version %s: this pod-reloader reads %s", reference.Quote(tag), version)
}

func parseItems(text string) (map[reference.Ref]Item, error) {
	items := make(map[reference.Ref]Item, strings.Count(text, ",")+1)
	n := 0
	for part := range strings.SplitSeq(text, ",") {
		n++
		ref, item, err := parseItem(part)
		if err != nil {
			return nil, fmt.Errorf("item %d, %s: %w", n, reference.Quote(part), err)
		}
		if _, double := items[ref]; double {
			return nil, fmt.Errorf("item %d, %s: there is an earlier one for %s", n, reference.Quote(part),
				reference.Quote(ref.String()))
		}
		items[ref] = item
	}
	return items, nil
}

func parseItem(text string) (reference.Ref, Item, error) {
	mark := strings.IndexAny(text, string([]rune{stampedMark, adoptedMark}))
	if mark < 0 {
		return reference.Ref{}, Item{}, errors.New("it is not of the form kind/name=entry or kind/name~entry")
	}
	ref, err := reference.Parse(text[:mark])
	if err != nil {
		return reference.Ref{}, Item{}, err
	}
	item := Item{Adopted: text[mark] == adoptedMark}
	if text[mark+1:] == none {
		return ref, item, nil
	}
	entry, hint, hinted := strings.Cut(text[mark+1:], "@")
	if !isHex(entry, entryDigits) {
		return ref, Item{}, fmt.Errorf("the entry %s is not %d lower-case hex digits", reference.Quote(entry), entryDigits)
	}
	if hinted && !isToken(hint) {
		return ref, Item{}, fmt.Errorf("the resourceVersion %s is not 1 to %d letters and digits", reference.Quote(hint), maxToken)
	}
	item.Entry, item.Hint = entry, hint
	return ref, item, nil
}

// Text returns the text of the Record in at most limit bytes, and never more than MaxSize: the names of the Refs in
// their order or, where these do not fit, the compact form. It is false where neither fits.
func (r Record) Text(limit int) (string, bool) {
	limit = min(limit, MaxSize)
	if r.compact == nil {
		if text := r.named(); len(text) <= limit {
			return text, true
		}
		var ok bool
		if r.compact, ok = compacted(r.items); !ok {
			return "", false
		}
	}
	text := string(r.compact.appendTo(r.header()))
	return text, len(text) <= limit
}

// String returns the text of the Record, however long it is.
func (r Record) String() string {
	if r.compact != nil {
		return string(r.compact.appendTo(r.header()))
	}
	return r.named()
}

func (r Record) header() []byte {
	hash := r.Hash
	if hash == "" {
		hash = none
	}
	return []byte(version + ":" + hash + ":" + string(r.Key) + ":")
}

func (r Record) named() string {
	b := r.header()
	for i, ref := range slices.SortedFunc(maps.Keys(r.items), reference.Ref.Compare) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, ref.String()...)
		b = r.items[ref].appendTo(b)
	}
	return string(b)
}

func (i Item) appendTo(b []byte) []byte {
	mark := byte(stampedMark)
	if i.Adopted {
		mark = adoptedMark
	}
	b = append(b, mark)
	if i.Absent() {
		return append(b, none...)
	}
	b = append(b, i.Entry...)
	if i.Hint != "" {
		b = append(b, '@')
		b = append(b, i.Hint...)
	}
	return b
}

// isHex reports whether s consists of exactly so many lower-case hex digits.
func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// isToken reports whether s consists of 1 to 64 letters and digits. resourceVersions are numbers, but a client must not
// rely on it.
func isToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
