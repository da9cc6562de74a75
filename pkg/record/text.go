package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	// version says how to read a text; it is its first part.
	version = "v1"
	// gone stands for the Entry of an absent object.
	gone = "-"
	// all stands in the place of a Ref when the Record is folded.
	all = "*"

	keyDigits   = 8
	entryDigits = 16
	setDigits   = 8
	maxToken    = 64
)

// Parse reads the text of a Record, such as
//
//	v1:1c9e04ab:configmap/app=9a0c4f1122334455@81234,configmap/gone=-,secret/db=4417e0aabbccddee@80011
//
// It is strict: whatever String would not write is an error, but for the order of the items. The error names the
// offending part, of which it quotes a bounded piece. It takes time linear in the text.
func Parse(s string) (Record, error) {
	rest, err := cutVersion(s)
	if err != nil {
		return Record{}, fmt.Errorf("read config record: %w", err)
	}
	key, items, found := strings.Cut(rest, ":")
	if !found {
		return Record{}, errors.New(`read config record: the ":" after the key id is missing`)
	}
	r, err := parseItems(key, items)
	if err != nil {
		return Record{}, fmt.Errorf("read config record: %w", err)
	}
	return r, nil
}

// String returns the text of the Record, the items in the order of their Refs. The Record of no Refs is "v1::". An
// item under another key than that of the first present one cannot be expressed and is left out: unknown is harmless,
// an Entry read under the wrong key is a Change.
func (r Record) String() string {
	return r.text("")
}

// text returns the text with something put in between the key id and the items.
func (r Record) text(middle string) string {
	refs := r.refs()
	key := r.key(refs)
	b := make([]byte, 0, r.size()+len(middle))
	b = append(b, version...)
	b = append(b, ':')
	b = append(b, key...)
	b = append(b, ':')
	b = append(b, middle...)
	if r.Fold != nil {
		return string(r.Fold.appendTo(b))
	}
	separator := ""
	for _, ref := range refs {
		item := r.Items[ref]
		if item.Key != key && !item.Absent() {
			continue
		}
		b = append(b, separator...)
		b = append(b, ref.Kind...)
		b = append(b, '/')
		b = append(b, ref.Name...)
		b = append(b, '=')
		b = item.appendTo(b)
		separator = ","
	}
	return string(b)
}

func cutVersion(s string) (string, error) {
	tag, rest, found := strings.Cut(s, ":")
	if tag != version {
		return "", fmt.Errorf("it has version %s: this pod-reloader reads %s", reference.Quote(tag), version)
	}
	if !found {
		return "", errors.New(`the ":" after the version is missing`)
	}
	return rest, nil
}

// parseItems reads what follows the key id.
func parseItems(key, items string) (Record, error) {
	if items == "" {
		if key != "" && !isHex(key, keyDigits) {
			return Record{}, keyError(key)
		}
		return Record{}, nil
	}
	if !isHex(key, keyDigits) {
		return Record{}, keyError(key)
	}
	id := digest.KeyID(key)
	if strings.HasPrefix(items, all+"=") {
		return parseFold(id, items)
	}
	r := Record{Items: make(map[reference.Ref]Item, strings.Count(items, ",")+1)}
	n := 0
	for text := range strings.SplitSeq(items, ",") {
		n++
		ref, item, err := parseItem(id, text)
		if err != nil {
			return Record{}, fmt.Errorf("item %d, %s: %w", n, reference.Quote(text), err)
		}
		if _, double := r.Items[ref]; double {
			return Record{}, fmt.Errorf("item %d, %s: there is an earlier one for %s", n, reference.Quote(text),
				reference.Quote(ref.String()))
		}
		r.Items[ref] = item
	}
	return r, nil
}

func parseItem(id digest.KeyID, text string) (reference.Ref, Item, error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return reference.Ref{}, Item{}, errors.New(`it is not of the form kind/name=entry`)
	}
	ref, err := reference.Parse(name)
	if err != nil {
		return reference.Ref{}, Item{}, err
	}
	entry, hint, hinted := strings.Cut(value, "@")
	if entry != gone && !isHex(entry, entryDigits) {
		return ref, Item{}, fmt.Errorf("the entry %s is not %d lower-case hex digits", reference.Quote(entry), entryDigits)
	}
	if hinted && !validHint(hint) {
		return ref, Item{}, fmt.Errorf("the resourceVersion %s is not 1 to %d letters and digits", reference.Quote(hint), maxToken)
	}
	return ref, Item{Key: id, Entry: strings.TrimPrefix(entry, gone), Hint: hint}, nil
}

func parseFold(id digest.KeyID, text string) (Record, error) {
	entry, set, _ := strings.Cut(strings.TrimPrefix(text, all+"="), "@")
	if !isHex(entry, entryDigits) || !isHex(set, setDigits) {
		return Record{}, fmt.Errorf("the folded item %s is not of the form *=ENTRY@SET with %d and %d lower-case hex digits",
			reference.Quote(text), entryDigits, setDigits)
	}
	return Record{Fold: &Fold{Key: id, Entry: entry, Set: set}}, nil
}

func keyError(key string) error {
	return fmt.Errorf("the key id %s is not %d lower-case hex digits", reference.Quote(key), keyDigits)
}

func roomError(size, limit int) error {
	return fmt.Errorf("the annotations have room for a config record of %d bytes: at least %d are needed", limit, size)
}

// refs returns the Refs of the items, sorted.
func (r Record) refs() []reference.Ref {
	refs := make([]reference.Ref, 0, len(r.Items))
	for ref := range r.Items {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, reference.Ref.Compare)
	return refs
}

// key returns the key of the whole Record: that of the fold, of the first present item, or else of the first item.
func (r Record) key(refs []reference.Ref) digest.KeyID {
	if r.Fold != nil {
		return r.Fold.Key
	}
	for _, ref := range refs {
		if item := r.Items[ref]; !item.Absent() {
			return item.Key
		}
	}
	if len(refs) == 0 {
		return ""
	}
	return r.Items[refs[0]].Key
}

// size returns the length of the text, without making it; with items under several keys it is an upper bound.
func (r Record) size() int {
	n := len(version) + 2
	if r.Fold != nil {
		return n + len(r.Fold.Key) + len(all) + 2 + len(r.Fold.Entry) + len(r.Fold.Set)
	}
	if len(r.Items) > 0 {
		n += keyDigits - 1 // the last item has no ","
	}
	for ref, item := range r.Items {
		n += len(ref.Kind) + 1 + len(ref.Name) + 2 // and "=" and ","
		n += max(len(item.Entry), len(gone))
		if item.Hint != "" {
			n += 1 + len(item.Hint)
		}
	}
	return n
}

func (f *Fold) appendTo(b []byte) []byte {
	b = append(b, all+"="...)
	b = append(b, f.Entry...)
	b = append(b, '@')
	return append(b, f.Set...)
}

func (i Item) appendTo(b []byte) []byte {
	if i.Absent() {
		b = append(b, gone...)
	}
	b = append(b, i.Entry...)
	if i.Hint != "" {
		b = append(b, '@')
		b = append(b, i.Hint...)
	}
	return b
}

// isHex tells whether s consists of exactly so many lower-case hex digits.
func isHex(s string, digits int) bool {
	if len(s) != digits {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isToken tells whether s consists of 1 to 64 letters and digits.
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

// validHint tells whether a resourceVersion can stand in a Record. They are numbers, but a client must not rely on it.
func validHint(rv string) bool {
	return isToken(rv)
}
