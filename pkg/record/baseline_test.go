package record_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func itemsOf(refs ...reference.Ref) map[reference.Ref]record.Item {
	items := map[reference.Ref]record.Item{}
	for _, ref := range refs {
		items[ref] = record.Item{Key: key, Entry: entryA, Hint: "1"}
	}
	return items
}

func TestBaselineText(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	tests := map[string]struct {
		reason   string
		baseline record.Baseline
		text     string
	}{
		"first adoption": {
			reason:   "The template bears no hash yet.",
			baseline: record.Baseline{Record: record.Record{Items: itemsOf(configMap("app"))}},
			text:     "v1:1c9e04ab:-:configmap/app=9a0c4f1122334455@1",
		},
		"over a hash": {
			reason:   "Adopted after a stamp.",
			baseline: record.Baseline{Over: hash, Record: record.Record{Items: itemsOf(secret("db"))}},
			text:     "v1:1c9e04ab:" + hash + ":secret/db=9a0c4f1122334455@1",
		},
		"folded": {
			reason:   "A Baseline is bounded as well.",
			baseline: record.Baseline{Over: "0", Record: record.Record{Fold: &record.Fold{Key: key, Entry: entryA, Set: "0badcafe"}}},
			text:     "v1:1c9e04ab:0:*=9a0c4f1122334455@0badcafe",
		},
		"empty": {
			reason: "Nothing was adopted.",
			text:   "v1::-:",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.text, tc.baseline.String(), tc.reason)
			got, err := record.ParseBaseline(tc.text)
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.baseline, got, tc.reason)
		})
	}
}

func TestParseBaselineRejects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		err    string
	}{
		"nothing":       {reason: "No Baseline is the caller's case.", text: "", err: `it has version "": this pod-reloader reads v1`},
		"older version": {reason: "There never was one.", text: "v0:1c9e04ab:-:", err: `it has version "v0": this pod-reloader reads v1`},
		"a Record":      {reason: "A Record is not a Baseline: it does not say what it overlays.", text: "v1:1c9e04ab:configmap/a=-", err: "version:key:hash:items"},
		"no hash":       {reason: "No hash is a hyphen.", text: "v1:1c9e04ab::configmap/a=-", err: `the hash "" is neither`},
		"strange hash":  {reason: "A foreign hash is digested before it is written.", text: "v1:1c9e04ab:a b:configmap/a=-", err: `the hash "a b" is neither`},
		"long hash":     {reason: "Its length is bounded.", text: "v1:1c9e04ab:" + strings.Repeat("a", 65) + ":configmap/a=-", err: "is neither"},
		"wrong key":     {reason: "As in a Record.", text: "v1:1c9:-:configmap/a=-", err: `the key id "1c9"`},
		"wrong item":    {reason: "As in a Record.", text: "v1:1c9e04ab:-:configmap/a=-,", err: "item 2"},
		"one too many":  {reason: "There are four parts.", text: "v1:1c9e04ab:-:-:configmap/a=-", err: "unknown kind"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := record.ParseBaseline(tc.text)
			require.ErrorContains(t, err, tc.err, tc.reason)
			require.ErrorContains(t, err, "read config baseline: ", "the error says what was attempted")
			assert.Equal(t, record.Baseline{}, got, "nothing of a wrong text is used")
		})
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	const emptySpace = "36a9e7f1c95b82ffb99743e0c5c4ce95d83c9a430aac59f84ef3cbfab6145068" // SHA-256 of one space
	tests := map[string]struct {
		reason string
		hash   string
		want   string
	}{
		"none":     {reason: "No hash stays no hash.", hash: "", want: ""},
		"ours":     {reason: "A SHA-256 in hex is kept as it is.", hash: strings.Repeat("0f", 32), want: strings.Repeat("0f", 32)},
		"another":  {reason: "So is any short word: somebody reading the annotation recognises it.", hash: "Abc123", want: "Abc123"},
		"a space":  {reason: "What would break the text is digested.", hash: " ", want: emptySpace},
		"a hyphen": {reason: "A hash that looks like no hash is not none.", hash: "-", want: "3973e022e93220f9212c18d0d0c543ae7c309e46640da93a4a0314de999f5112"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, record.Over(tc.hash), tc.reason)
			assert.Equal(t, record.Over(tc.hash), record.Over(record.Over(tc.hash)), "it is done once")
		})
	}
	for _, hash := range []string{strings.Repeat("a", 65), strings.Repeat("x:", 100<<10), "a,b", "\xff"} {
		assert.Regexp(t, "^[0-9a-f]{64}$", record.Over(hash), "a foreign hash is bounded")
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	const hash = "abc"
	fold := &record.Fold{Key: key, Entry: entryA, Set: "0badcafe"}
	stored := record.Record{Items: itemsOf(configMap("a"), configMap("b"))}
	newer := map[reference.Ref]record.Item{configMap("b"): {Key: otherKey, Entry: entryB}, secret("c"): {Key: otherKey}}
	overlaid := map[reference.Ref]record.Item{
		configMap("a"): {Key: key, Entry: entryA, Hint: "1"},
		configMap("b"): {Key: otherKey, Entry: entryB},
		secret("c"):    {Key: otherKey},
	}
	tests := map[string]struct {
		reason   string
		record   record.Record
		baseline *record.Baseline
		template string
		want     record.Known
	}{
		"nothing": {reason: "At first sight all is unknown."},
		"record only": {
			reason: "After a stamp.", record: stored, template: hash,
			want: record.Known{Items: stored.Items},
		},
		"baseline only": {
			reason:   "After the first adoption, before any stamp.",
			baseline: &record.Baseline{Record: record.Record{Items: newer}},
			want:     record.Known{Items: newer},
		},
		"overlay": {
			reason: "The Baseline says what is newer than the Record, item by item.", record: stored, template: hash,
			baseline: &record.Baseline{Over: hash, Record: record.Record{Items: newer}},
			want:     record.Known{Items: overlaid},
		},
		"void": {
			reason: "A Baseline that came back by a rollout undo, a restore or a late write does no harm.", record: stored, template: hash,
			baseline: &record.Baseline{Over: "other", Record: record.Record{Items: newer}},
			want:     record.Known{Items: stored.Items},
		},
		"void since there was no hash": {
			reason: "A stamp came after the adoption.", record: stored, template: hash,
			baseline: &record.Baseline{Record: record.Record{Items: newer}},
			want:     record.Known{Items: stored.Items},
		},
		"void since there is no hash": {
			reason:   "The template has lost its hash.",
			baseline: &record.Baseline{Over: hash, Record: record.Record{Items: newer}},
		},
		"foreign hash": {
			reason: "The hash of another tool is compared in the form that the Baseline keeps.", template: "sha1:x y",
			baseline: &record.Baseline{Over: record.Over("sha1:x y"), Record: record.Record{Items: newer}},
			want:     record.Known{Items: newer},
		},
		"empty baseline": {
			reason: "Nothing overlays nothing.", record: stored, template: hash,
			baseline: &record.Baseline{Over: hash},
			want:     record.Known{Items: stored.Items},
		},
		"folded record": {
			reason: "Without a Baseline the fold is what is known.", record: record.Record{Fold: fold}, template: hash,
			want: record.Known{Fold: fold},
		},
		"folded record and a baseline": {
			reason: "One cannot overlay a fold: the Baseline is complete.", record: record.Record{Fold: fold}, template: hash,
			baseline: &record.Baseline{Over: hash, Record: record.Record{Items: newer}},
			want:     record.Known{Items: newer},
		},
		"folded record and an empty baseline": {
			reason: "An empty one must not make all unknown.", record: record.Record{Fold: fold}, template: hash,
			baseline: &record.Baseline{Over: hash},
			want:     record.Known{Fold: fold},
		},
		"folded record and a void baseline": {
			reason: "Void is void.", record: record.Record{Fold: fold}, template: hash,
			baseline: &record.Baseline{Over: "other", Record: record.Record{Items: newer}},
			want:     record.Known{Fold: fold},
		},
		"folded baseline": {
			reason: "A fold does not overlay: it is complete.", record: stored, template: hash,
			baseline: &record.Baseline{Over: hash, Record: record.Record{Fold: fold}},
			want:     record.Known{Fold: fold},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.record.String()
			known := record.Resolve(tc.record, tc.baseline, tc.template)
			assert.Equal(t, tc.want, known, tc.reason)
			assert.Equal(t, len(tc.want.Items) == 0 && tc.want.Fold == nil, known.Empty())
			assert.Equal(t, before, tc.record.String(), "the Record stays as it is")
		})
	}
}

func FuzzParseBaseline(f *testing.F) {
	f.Add("v1:1c9e04ab:-:configmap/app=9a0c4f1122334455@1")
	f.Add("v1:1c9e04ab:" + strings.Repeat("ab", 32) + ":secret/db=-")
	f.Add("v1::-:")
	f.Add("v1:1c9e04ab:0:*=9a0c4f1122334455@0badcafe")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := record.ParseBaseline(s)
		if err != nil {
			assert.Less(t, len(err.Error()), 2048, "a message is bounded whatever the input")
			assert.True(t, utf8.ValidString(err.Error()), "a message can be put into an Event")
			return
		}
		text := b.String()
		again, err := record.ParseBaseline(text)
		require.NoError(t, err, "what is written can be read")
		require.Equal(t, b, again, "and says the same")
		require.Equal(t, text, again.String())
		require.Equal(t, b.Over, record.Over(b.Over), "what is overlaid has the form in which it is compared")
	})
}

func FuzzOver(f *testing.F) {
	f.Add("")
	f.Add("-")
	f.Add("abc")
	f.Add("a b\xff")
	f.Fuzz(func(t *testing.T, hash string) {
		b := record.Baseline{Over: record.Over(hash), Record: record.Record{Items: itemsOf(configMap("a"))}}
		parsed, err := record.ParseBaseline(b.String())
		require.NoError(t, err, "whatever hash a template bears, its Baseline can be read")
		require.Equal(t, b, parsed)
		require.False(t, record.Resolve(record.Record{}, &parsed, hash).Empty(), "and is valid over it")
	})
}
