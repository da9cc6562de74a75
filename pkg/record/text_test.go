package record_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	key      = digest.KeyID("1c9e04ab")
	otherKey = digest.KeyID("77aa00ff")
	entryA   = "9a0c4f1122334455"
	entryB   = "4417e0aabbccddee"
)

func configMap(name string) reference.Ref {
	return reference.Ref{Kind: reference.ConfigMap, Name: name}
}

func secret(name string) reference.Ref {
	return reference.Ref{Kind: reference.Secret, Name: name}
}

// texts are pairs of a Record and its one text.
func texts() map[string]struct {
	reason string
	record record.Record
	text   string
} {
	return map[string]struct {
		reason string
		record record.Record
		text   string
	}{
		"empty": {
			reason: "A workload that tracks nothing has a Record that says so; it is under no key, so that rotation does not change it.",
			text:   "v1::",
		},
		"one": {
			reason: "The plain case.",
			record: record.Record{Items: map[reference.Ref]record.Item{configMap("app"): {Key: key, Entry: entryA, Hint: "81234"}}},
			text:   "v1:1c9e04ab:configmap/app=9a0c4f1122334455@81234",
		},
		"without a hint": {
			reason: "A resourceVersion only saves a read.",
			record: record.Record{Items: map[reference.Ref]record.Item{configMap("app"): {Key: key, Entry: entryA}}},
			text:   "v1:1c9e04ab:configmap/app=9a0c4f1122334455",
		},
		"absent": {
			reason: "That an object was not there is recorded, which is not the same as knowing nothing.",
			record: record.Record{Items: map[reference.Ref]record.Item{secret("gone"): {Key: key}}},
			text:   "v1:1c9e04ab:secret/gone=-",
		},
		"absent with a hint": {
			reason: "A difference that means nothing else.",
			record: record.Record{Items: map[reference.Ref]record.Item{secret("gone"): {Key: key, Hint: "7"}}},
			text:   "v1:1c9e04ab:secret/gone=-@7",
		},
		"several": {
			reason: "Items are in the order of their Refs: ConfigMaps first, then by name.",
			record: record.Record{Items: map[reference.Ref]record.Item{
				secret("db"):      {Key: key, Entry: entryB, Hint: "80011"},
				configMap("gone"): {Key: key},
				configMap("app"):  {Key: key, Entry: entryA, Hint: "81234"},
			}},
			text: "v1:1c9e04ab:configmap/app=9a0c4f1122334455@81234,configmap/gone=-,secret/db=4417e0aabbccddee@80011",
		},
		"folded": {
			reason: "A Record that would be too long is one Entry and one digest of the set.",
			record: record.Record{Fold: &record.Fold{Key: key, Entry: entryA, Set: "0badcafe"}},
			text:   "v1:1c9e04ab:*=9a0c4f1122334455@0badcafe",
		},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, tc := range texts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.text, tc.record.String(), tc.reason)
			got, err := record.Parse(tc.text)
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.record, got, tc.reason)
		})
	}
}

func TestParseOtherForms(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"any order": {
			reason: "The order of items carries no meaning.",
			text:   "v1:1c9e04ab:secret/db=4417e0aabbccddee,configmap/app=-",
			want:   "v1:1c9e04ab:configmap/app=-,secret/db=4417e0aabbccddee",
		},
		"empty under a key": {
			reason: "Of no Refs, a key says nothing.",
			text:   "v1:1c9e04ab:",
			want:   "v1::",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := record.Parse(tc.text)
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.want, got.String(), tc.reason)
		})
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	const head = "v1:1c9e04ab:"
	tests := map[string]struct {
		reason string
		text   string
		err    string
	}{
		"nothing":           {reason: "No Record is the caller's case, not a Record.", text: "", err: `it has version "": this pod-reloader reads v1`},
		"older version":     {reason: "There never was one; the error says what is read.", text: "v0:1c9e04ab:", err: `it has version "v0": this pod-reloader reads v1`},
		"newer version":     {reason: "An older replica must not misread it.", text: "v2:1c9e04ab:configmap/a=-", err: `it has version "v2": this pod-reloader reads v1`},
		"longer version":    {reason: "A version is compared whole.", text: "v10:1c9e04ab:", err: `"v10"`},
		"version alone":     {reason: "Cut off by hand.", text: "v1", err: `the ":" after the version is missing`},
		"no items part":     {reason: "Cut off by hand.", text: "v1:1c9e04ab", err: `the ":" after the key id is missing`},
		"no key":            {reason: "An Entry without its key cannot be compared.", text: "v1::configmap/a=-", err: `the key id "" is not 8 lower-case hex digits`},
		"key in capitals":   {reason: "Hex is in lower case.", text: "v1:1C9E04AB:", err: `"1C9E04AB" is not 8`},
		"short key":         {reason: "A key id has 8 digits.", text: "v1:1c9e04a:configmap/a=-", err: "not 8 lower-case"},
		"trailing comma":    {reason: "Nobody knows what came after it.", text: head + "configmap/a=-,", err: `item 2, "": it is not of the form`},
		"leading comma":     {reason: "Nobody knows what came before it.", text: head + ",configmap/a=-", err: `item 1, "": it is not of the form`},
		"only a comma":      {reason: "Two empty items.", text: head + ",", err: "item 1"},
		"white space":       {reason: "Nothing is trimmed.", text: head + "configmap/a=-, secret/b=-", err: `unknown kind " secret"`},
		"twice":             {reason: "It is open which of the two counts.", text: head + "configmap/a=-,configmap/a=9a0c4f1122334455", err: `item 2, "configmap/a=9a0c4f1122334455": there is an earlier one for "configmap/a"`},
		"twice the same":    {reason: "Nor is it right when both say the same.", text: head + "configmap/a=-,configmap/a=-", err: "there is an earlier one"},
		"no entry":          {reason: "An item has two sides.", text: head + "configmap/a", err: "not of the form kind/name=entry"},
		"empty entry":       {reason: "Absent is a hyphen.", text: head + "configmap/a=", err: `the entry "" is not 16 lower-case hex digits`},
		"entry in capitals": {reason: "Hex is in lower case.", text: head + "configmap/a=9A0C4F1122334455", err: "not 16 lower-case hex digits"},
		"short entry":       {reason: "An Entry has 16 digits.", text: head + "configmap/a=9a0c4f112233445", err: "not 16"},
		"long entry":        {reason: "An Entry has 16 digits.", text: head + "configmap/a=9a0c4f11223344556", err: "not 16"},
		"not hex":           {reason: "An Entry is hex.", text: head + "configmap/a=9a0c4f112233445g", err: "not 16"},
		"empty hint":        {reason: "An unknown resourceVersion has no @.", text: head + "configmap/a=9a0c4f1122334455@", err: `the resourceVersion "" is not`},
		"two hints":         {reason: "There is one.", text: head + "configmap/a=9a0c4f1122334455@1@2", err: `the resourceVersion "1@2" is not`},
		"strange hint":      {reason: "It is an opaque word.", text: head + "configmap/a=9a0c4f1122334455@1 2", err: `"1 2"`},
		"long hint":         {reason: "Its length is bounded.", text: head + "configmap/a=9a0c4f1122334455@" + strings.Repeat("1", 65), err: "1 to 64"},
		"hyphen and entry":  {reason: "An object is absent or has an Entry.", text: head + "configmap/a=-9a0c4f1122334455", err: "is not 16"},
		"impossible name":   {reason: "There is no such object.", text: head + "configmap/..=-", err: "must start and end"},
		"another kind":      {reason: "A newer version may know it, this one must not guess.", text: head + "widget/a=-", err: "unknown kind"},
		"fold with others":  {reason: "A fold stands for all.", text: head + "*=9a0c4f1122334455@0badcafe,configmap/a=-", err: "the folded item"},
		"fold at the end":   {reason: "A fold stands for all.", text: head + "configmap/a=-,*=9a0c4f1122334455@0badcafe", err: `item 2`},
		"fold without set":  {reason: "Under another set an Entry cannot be compared.", text: head + "*=9a0c4f1122334455", err: "the folded item"},
		"fold with hint":    {reason: "A fold has a set of 8 digits there.", text: head + "*=9a0c4f1122334455@81234", err: "the folded item"},
		"folded absence":    {reason: "A fold is never absent.", text: head + "*=-", err: "the folded item"},
		"new line":          {reason: "A text is one line.", text: head + "configmap/a=-\n", err: `the entry "-\n"`},
		"null byte":         {reason: "Nothing is read past it either.", text: "v1:1c9e04ab\x00:configmap/a=-", err: `"1c9e04ab\x00"`},
		"baseline":          {reason: "A Baseline is not a Record.", text: head + "-:configmap/a=-", err: `unknown kind "-:configmap"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := record.Parse(tc.text)
			require.ErrorContains(t, err, tc.err, tc.reason)
			require.ErrorContains(t, err, "read config record: ", "the error says what was attempted")
			assert.Equal(t, record.Record{}, got, "nothing of a wrong text is used")
		})
	}
}

// TestParseHugeTexts: 256 KiB is what an annotation can have; none of it takes time or room.
func TestParseHugeTexts(t *testing.T) {
	t.Parallel()
	const size = 256 << 10
	for name, text := range map[string]string{
		"version":    strings.Repeat("v", size),
		"key":        "v1:" + strings.Repeat("a", size),
		"name":       "v1:1c9e04ab:configmap/" + strings.Repeat("a", size) + "=-",
		"entry":      "v1:1c9e04ab:configmap/a=" + strings.Repeat("a", size),
		"hint":       "v1:1c9e04ab:configmap/a=9a0c4f1122334455@" + strings.Repeat("1", size),
		"commas":     "v1:1c9e04ab:" + strings.Repeat(",", size),
		"fold":       "v1:1c9e04ab:*=" + strings.Repeat("@", size),
		"repetition": "v1:1c9e04ab:" + strings.Repeat("configmap/a=-,", size/14),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := record.Parse(text)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 1024, "a message is bounded whatever the input")
			_, err = record.ParseBaseline(text)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 1024, "a message is bounded whatever the input")
		})
	}
}

// TestStringOfMixedKeys: a text has one key; an Entry must never be read under another than its own.
func TestStringOfMixedKeys(t *testing.T) {
	t.Parallel()
	mixed := record.Record{Items: map[reference.Ref]record.Item{
		configMap("a"): {Key: otherKey},
		configMap("b"): {Key: key, Entry: entryA},
		configMap("c"): {Key: otherKey, Entry: entryB},
		secret("d"):    {Key: key, Entry: entryB},
		secret("e"):    {Key: otherKey},
	}}
	for range 20 { // the order of a map is another each time
		assert.Equal(t, "v1:1c9e04ab:configmap/a=-,configmap/b=9a0c4f1122334455,secret/d=4417e0aabbccddee,secret/e=-", mixed.String(),
			"the first Entry's key is that of the text, an Entry under another is left out, absence is under every key")
	}
}

func FuzzParse(f *testing.F) {
	for _, tc := range texts() {
		f.Add(tc.text)
	}
	f.Add("v1:1c9e04ab:secret/db=4417e0aabbccddee,configmap/app=-")
	f.Add("v0:1c9e04ab:configmap/a=-,")
	f.Add("v1:1C9E04AB:configmap/a=9A0C4F1122334455@")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := record.Parse(s)
		if err != nil {
			assert.Less(t, len(err.Error()), 2048, "a message is bounded whatever the input")
			assert.True(t, utf8.ValidString(err.Error()), "a message can be put into an Event")
			return
		}
		text := r.String()
		again, err := record.Parse(text)
		require.NoError(t, err, "what is written can be read")
		require.Equal(t, r, again, "and says the same")
		require.Equal(t, text, again.String())
		require.LessOrEqual(t, len(text), len(s), "no text grows by being read")
		for ref := range r.Items {
			require.NoError(t, reference.ValidName(ref.Name))
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, n := range []int{3, 200} {
		r := record.Record{Items: map[reference.Ref]record.Item{}}
		for i := range n {
			r.Items[configMap(fmt.Sprintf("configuration-%03d", i))] = record.Item{Key: key, Entry: entryA, Hint: "81234"}
		}
		text := r.String()
		b.Run(fmt.Sprintf("String/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = r.String()
			}
		})
		b.Run(fmt.Sprintf("Parse/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := record.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
