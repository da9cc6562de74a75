package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Why a workload was stamped.
const (
	// CauseConfigChange: a tracked config object had changed.
	CauseConfigChange = "config-change"
	// CauseVerifiedReload: a client asked for it and proved which content it had seen.
	CauseVerifiedReload = "verified-reload"
	// CauseListEdit: the list of config objects on the workload was edited.
	CauseListEdit = "list-edit"
	// CauseRelease: the template changed anyway.
	CauseRelease = "release"
)

// What happened to a config object, or to its place among those that are tracked.
const (
	Created  = "created"
	Modified = "modified"
	Deleted  = "deleted"
	Listed   = "listed"
	Unlisted = "unlisted"
)

// LastReload explains the last reload of a workload, and says when it was, for the refractory gate.
type LastReload struct {
	// Time of the stamp, in whole milliseconds.
	Time time.Time
	// Hash is the config-hash that resulted, in the form that HashName returns; empty where the template has none and the reload needed
	// none, "-" in the text. A LastReload with another hash than the template's is ignored.
	Hash string
	// Digest is the digest of the content where it is not the Hash.
	Digest string
	// Generation is that of the workload from before the reload; 0 if it is not known.
	Generation int64
	// Cause is one of the Cause constants; a later version may know more.
	Cause string
	// Restarted says that the pods restarted without a new template.
	Restarted bool
	// Changes are those that led to it, as many as are kept.
	Changes []Change
	// More counts the Changes that are not kept.
	More int
	// Before are the reloads before it, the newest first: a history for users, and the Events that a leader owes.
	Before []Past
	// Templates are those that reloads have replaced, the newest first, where a reload writes more than the hash.
	Templates []Template
}

// Template says what a pod template with a hash had besides it. When the hash comes back, so does this: the pods of the
// template may still run.
type Template struct {
	Hash string
	// Fields is what a strategy of Stakater's Reloader had written, as a JSON object; empty for nothing.
	Fields string
}

// Past is a reload before the last one.
type Past struct {
	Time        time.Time
	Hash, Cause string
}

// After returns the LastReload with an earlier one, and those before that, as its predecessors. Templates are those of the
// earlier one, where it has none.
func (l LastReload) After(earlier LastReload) LastReload {
	if l.Templates == nil {
		l.Templates = earlier.Templates
	}
	l.Before = append([]Past{{Time: earlier.Time, Hash: earlier.Hash, Cause: earlier.Cause}}, earlier.Before...)
	return l.truncated()
}

// All returns the reload and those before it, the newest first. Of the earlier ones only what is kept of them is set.
func (l LastReload) All() []LastReload {
	all := []LastReload{l}
	for _, p := range l.Before {
		all = append(all, LastReload{Time: p.Time, Hash: p.Hash, Cause: p.Cause})
	}
	return all
}

// Change is one reason of a reload.
type Change struct {
	// Ref is the config object, in text form; "*" where only the hash was known, and it differed.
	Ref string `json:"ref"`
	// Type is one of created, modified, deleted, listed, unlisted; a later version may know more.
	Type string `json:"type"`
	// Because names what has changed below a custom resource, as far as it is known: texts of Refs, with the namespace where it is another
	// one (secret/shop/tls), comma-separated.
	Because string `json:"because,omitempty"`
}

// String is for a message, e.g. "configmap/app modified".
func (c Change) String() string {
	text := c.Ref + " " + c.Type
	if c.Ref == "*" {
		text = "a tracked object " + c.Type
	}
	if c.Because != "" {
		text += " (" + strings.ReplaceAll(c.Because, ",", ", ") + ")"
	}
	return text
}

const (
	// maxChanges is how many Changes a LastReload keeps, in at most maxChangesSize bytes, and maxBefore how many predecessors.
	maxChanges     = 32
	maxChangesSize = 12 << 10
	maxBefore      = 5
	// maxTemplates is how many Templates a LastReload keeps, and maxFields how many bytes of Fields in total.
	maxTemplates = 5
	maxFields    = 4 << 10
	// maxWord bounds each text in a LastReload, in bytes; a Ref with the longest possible name fits.
	maxWord = 512
	// layout is RFC 3339 with milliseconds.
	layout = "2006-01-02T15:04:05.000Z07:00"
	// maxMore bounds a count that a user may have written by hand.
	maxMore = 1 << 30
)

// wire is the JSON form. The time is a text so that it always has three decimals.
type wire struct {
	Time       string   `json:"time"`
	Hash       string   `json:"hash"`
	Digest     string   `json:"digest,omitempty"`
	Generation int64    `json:"generation,omitempty"`
	Cause      string   `json:"cause"`
	Restarted  bool     `json:"restarted,omitempty"`
	Changes    []Change `json:"changes,omitempty"`
	More       int      `json:"more,omitempty"`
	Before     []past   `json:"before,omitempty"`

	Templates []template `json:"templates,omitempty"`
}

type template struct {
	Hash   string          `json:"hash"`
	Fields json.RawMessage `json:"fields,omitempty"`
}

type past struct {
	Time  string `json:"time"`
	Hash  string `json:"hash"`
	Cause string `json:"cause"`
}

// String returns the compact JSON form with at most 32 Changes, the rest being counted, and the time in UTC.
func (l LastReload) String() string {
	l = l.truncated()
	w := wire{
		Time:       l.Time.UTC().Format(layout),
		Hash:       cmp.Or(l.Hash, none),
		Digest:     l.Digest,
		Generation: l.Generation,
		Cause:      l.Cause,
		Restarted:  l.Restarted,
		Changes:    l.Changes,
		More:       l.More,
	}
	for _, p := range l.Before {
		w.Before = append(w.Before, past{Time: p.Time.UTC().Format(layout), Hash: cmp.Or(p.Hash, none), Cause: p.Cause})
	}
	for _, t := range l.Templates {
		w.Templates = append(w.Templates, template{Hash: t.Hash, Fields: json.RawMessage(t.Fields)})
	}
	text, err := json.Marshal(w)
	if err != nil {
		// Texts and numbers always have a JSON form; there is nothing to recover from.
		return ""
	}
	return string(text)
}

// Text returns String, shortened to at most size bytes: it lacks the reloads before, the oldest first, then what templates had,
// then Changes, which are counted. false says that what must be there does not fit.
func (l LastReload) Text(size int) (string, bool) {
	for l = l.truncated(); ; {
		text := l.String()
		if len(text) <= size {
			return text, true
		}
		switch {
		case len(l.Before) > 0:
			l.Before = l.Before[:len(l.Before)-1]
		case len(l.Templates) > 0:
			l.Templates = l.Templates[:len(l.Templates)-1]
		case len(l.Changes) > 0:
			l.Changes, l.More = l.Changes[:len(l.Changes)-1], l.More+1
		default:
			return "", false
		}
	}
}

// Shortest returns what Text leaves of it at most: the reload itself, and how many Changes led to it.
func (l LastReload) Shortest() LastReload {
	l.More += len(l.Changes)
	l.Before, l.Templates, l.Changes = nil, nil, nil
	return l
}

// Unnamed says how many more Changes there are than the named ones; empty for none.
func Unnamed(named, more int) string {
	switch {
	case more <= 0:
		return ""
	case named == 0:
		return fmt.Sprintf("changes whose names do not fit into the annotations: %d", more)
	default:
		return fmt.Sprintf("%d more", more)
	}
}

// Same reports whether both explain the same reload, however much each says about it.
func (l LastReload) Same(other LastReload) bool {
	return l.Time.Equal(other.Time) && l.Hash == other.Hash
}

// truncated keeps the first Changes, counting the others, and the newest predecessors.
func (l LastReload) truncated() LastReload {
	kept, size := 0, 0
	for _, c := range l.Changes[:min(len(l.Changes), maxChanges)] {
		if size += len(c.Ref) + len(c.Because); size > maxChangesSize {
			break
		}
		kept++
	}
	if excess := len(l.Changes) - kept; excess > 0 {
		l.Changes = l.Changes[:kept:kept]
		l.More += excess
	}
	l.Before = l.Before[:min(len(l.Before), maxBefore):min(len(l.Before), maxBefore)]
	size = 0
	for i, t := range l.Templates {
		if size += len(t.Fields); i == maxTemplates || size > maxFields {
			l.Templates = l.Templates[:i:i]
			break
		}
	}
	return l
}

// ParseLastReload reads the JSON form. Members it does not know are left out, since a newer version may have written
// them. The error says what is wrong; what was found is then best taken as "never reloaded".
func ParseLastReload(s string) (LastReload, error) {
	if len(s) > MaxSize {
		return LastReload{}, fmt.Errorf("read last reload: it has %d bytes: the limit is %d", len(s), MaxSize)
	}
	var w wire
	if err := json.Unmarshal([]byte(s), &w); err != nil {
		return LastReload{}, fmt.Errorf("read last reload %s: it is not the expected JSON object", reference.Quote(s))
	}
	at, err := parseTime(w.Time)
	if err != nil {
		return LastReload{}, fmt.Errorf("read last reload: %w", err)
	}
	if err := w.check(); err != nil {
		return LastReload{}, fmt.Errorf("read last reload: %w", err)
	}
	l := LastReload{
		Time: at, Hash: hashOf(w.Hash), Digest: w.Digest, Generation: w.Generation, Cause: w.Cause, Restarted: w.Restarted,
		Changes: w.Changes, More: w.More,
	}
	if len(l.Changes) == 0 {
		l.Changes = nil
	}
	for _, p := range w.Before {
		if at, err = parseTime(p.Time); err != nil {
			return LastReload{}, fmt.Errorf("read last reload: %w", err)
		}
		l.Before = append(l.Before, Past{Time: at, Hash: hashOf(p.Hash), Cause: p.Cause})
	}
	for _, t := range w.Templates {
		l.Templates = append(l.Templates, Template{Hash: t.Hash, Fields: string(t.Fields)})
	}
	return l.truncated(), nil
}

// HashName brings the config-hash found on a template into the form that a LastReload keeps: as it is if it is a word, as all of ours
// are, and otherwise (a user's, or another program's) as a Record keeps it.
func HashName(hash string) string {
	if hash == none || !isWord(hash) {
		return Binding(hash)
	}
	return hash
}

// BelongsTo reports whether the reload resulted in a template with the given config-hash ("" for none).
func (l LastReload) BelongsTo(hash string) bool { return l.Hash == HashName(hash) }

// hashOf returns the hash that a text stands for.
func hashOf(text string) string {
	if text == none {
		return ""
	}
	return text
}

func parseTime(s string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time %s is not in the form of RFC 3339", reference.Quote(s))
	}
	at = at.UTC().Truncate(time.Millisecond)
	if at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, fmt.Errorf("the time %s is out of range", reference.Quote(s))
	}
	return at, nil
}

func (w wire) check() error {
	if w.Hash == "" {
		return errors.New("the hash is missing")
	}
	for _, word := range w.words() {
		if !isWord(word) {
			return fmt.Errorf("%s is not a word of at most %d printable characters", reference.Quote(word), maxWord)
		}
	}
	for i, change := range w.Changes {
		if change.Ref == "" || change.Type == "" || !isWord(change.Ref) || !isWord(change.Type) || !isWord(change.Because) {
			return fmt.Errorf("change %d (%s of %s) is not made of words of at most %d printable characters",
				i+1, reference.Quote(change.Type), reference.Quote(change.Ref), maxWord)
		}
	}
	if w.More < 0 || w.More > maxMore {
		return fmt.Errorf("the number of further changes, %d, is invalid", w.More)
	}
	return nil
}

// words returns the texts that must be words.
func (w wire) words() []string {
	words := []string{w.Hash, w.Digest, w.Cause}
	for _, p := range w.Before {
		words = append(words, p.Hash, p.Cause)
	}
	for _, t := range w.Templates {
		words = append(words, t.Hash)
	}
	return words
}

// isWord reports whether a text is short and consists of visible ASCII characters; empty is one too.
func isWord(s string) bool {
	return len(s) <= maxWord && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
