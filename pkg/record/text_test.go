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
	type items = map[reference.Ref]record.Item
	return map[string]struct {
		reason string
		record record.Record
		text   string
	}{
		"empty": {
			reason: "Nothing is known; it is under no key, so that rotation does not change it.",
			record: record.New("", key, nil),
			text:   "v1:-::",
		},
		"empty beside a hash": {
			reason: "Opted out: the hash stays on the template and says nothing.",
			record: record.New("abc", key, nil),
			text:   "v1:abc::",
		},
		"one": {
			reason: "The plain case.",
			record: record.New("abc", key, items{configMap("app"): {Entry: entryA, Hint: "81234"}}),
			text:   "v1:abc:1c9e04ab:configmap/app=9a0c4f1122334455@81234",
		},
		"without a hint": {
			reason: "A resourceVersion only saves a read.",
			record: record.New("abc", key, items{configMap("app"): {Entry: entryA}}),
			text:   "v1:abc:1c9e04ab:configmap/app=9a0c4f1122334455",
		},
		"absent": {
			reason: "That an object was not there is recorded, which is not the same as knowing nothing.",
			record: record.New("abc", key, items{secret("gone"): {}}),
			text:   "v1:abc:1c9e04ab:secret/gone=-",
		},
		"adopted": {
			reason: "No rollout brought it.",
			record: record.New("", key, items{configMap("app"): {Entry: entryA, Hint: "7", Adopted: true}, secret("gone"): {Adopted: true}}),
			text:   "v1:-:1c9e04ab:configmap/app~9a0c4f1122334455@7,secret/gone~-",
		},
		"several": {
			reason: "Items are in the order of their Refs: ConfigMaps first, then by name.",
			record: record.New("abc", key, items{
				secret("db"):      {Entry: entryB, Hint: "80011"},
				configMap("gone"): {},
				configMap("app"):  {Entry: entryA, Hint: "81234"},
			}),
			text: "v1:abc:1c9e04ab:configmap/app=9a0c4f1122334455@81234,configmap/gone=-,secret/db=4417e0aabbccddee@80011",
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
			text:   "v1:-:1c9e04ab:secret/db=4417e0aabbccddee,configmap/app=-",
			want:   "v1:-:1c9e04ab:configmap/app=-,secret/db=4417e0aabbccddee",
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
	const head = "v1:abc:1c9e04ab:"
	item := "AAAAAAAAAAAAAAAAAAAAAAA"
	tests := map[string]struct {
		reason string
		text   string
		err    string
	}{
		"nothing":           {reason: "No Record is the caller's case, not a Record.", text: "", err: `it has version "": this pod-reloader reads v1`},
		"older version":     {reason: "There never was one; the error says what is read.", text: "v0:1c9e04ab:", err: `it has version "v0": this pod-reloader reads v1`},
		"version alone":     {reason: "Cut off by hand.", text: "v1", err: "not of the form version:hash:key:items"},
		"no items part":     {reason: "Cut off by hand.", text: "v1:abc:1c9e04ab", err: "not of the form version:hash:key:items"},
		"no version number": {reason: "It is of no version.", text: "v:abc::", err: `"v"`},
		"no v":              {reason: "It is of no version.", text: "2:abc::", err: `"2"`},
		"no key":            {reason: "An Entry without its key cannot be compared.", text: "v1:abc::configmap/a=-", err: `the key id "" is not 8 lower-case hex digits`},
		"key in capitals":   {reason: "Hex is in lower case.", text: "v1:abc:1C9E04AB:configmap/a=-", err: `"1C9E04AB" is not 8`},
		"short key":         {reason: "A key id has 8 digits.", text: "v1:abc:1c9e04a:configmap/a=-", err: "not 8 lower-case"},
		"key of nothing":    {reason: "The empty Record is under no key.", text: "v1:abc:1c9e04ab:", err: "item 1"},
		"null byte":         {reason: "Nothing is read past it either.", text: "v1:abc:1c9e04ab\x00:configmap/a=-", err: `"1c9e04ab\x00"`},
		"no hash":           {reason: "No hash is a hyphen.", text: "v1::1c9e04ab:configmap/a=-", err: `the hash "" is neither`},
		"strange hash":      {reason: "Another program's is hashed.", text: "v1:a-b:1c9e04ab:configmap/a=-", err: `the hash "a-b" is neither`},
		"hint of nothing":   {reason: "An absent object has no version.", text: head + "configmap/a=-@1", err: "is not 16"},
		"compact, empty":    {reason: "The empty Record has no items.", text: head + "*A", err: "the compact items have 1 digits"},
		"compact, cut off":  {reason: "Cut off by hand.", text: head + "*A" + item[1:], err: "the compact items have 23 digits"},
		"compact salt":      {reason: "It is one digit.", text: head + "*!" + item, err: `the salt "!"`},
		"compact twice":     {reason: "It is open which of the two counts.", text: head + "*A" + item + item, err: "it is not behind the one before it"},
		"compact digits":    {reason: "They are those of base64.", text: head + "*A" + item[1:] + "=", err: "not made of base64 digits"},
		"compact overflow":  {reason: "An Entry has 64 bits.", text: head + "*A" + item[:5] + "_" + item[6:], err: "too large"},
		"compact state":     {reason: "A newer version may know it.", text: head + "*A" + item[:16] + "I" + item[17:], err: "contradict"},
		"compact absence":   {reason: "An absent object has no content.", text: head + "*A" + item[:15] + "BB" + item[17:], err: "contradict"},
		"compact hint":      {reason: "A version without the bit that says so.", text: head + "*A" + item[:22] + "B", err: "contradict"},
		"trailing comma":    {reason: "What came after it is unknown.", text: head + "configmap/a=-,", err: `item 2, "": it is not of the form`},
		"leading comma":     {reason: "What came before it is unknown.", text: head + ",configmap/a=-", err: `item 1, "": it is not of the form`},
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
		"new line":          {reason: "A text is one line.", text: head + "configmap/a=-\n", err: `the entry "-\n"`},
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

// TestParseHugeTexts: 256 KiB is what an annotation can have; none of it takes much time or memory.
func TestParseHugeTexts(t *testing.T) {
	t.Parallel()
	const size = 256 << 10
	for name, text := range map[string]string{
		"version":    strings.Repeat("v", size),
		"hash":       "v1:" + strings.Repeat("a", size),
		"key":        "v1:abc:" + strings.Repeat("a", size),
		"name":       "v1:abc:1c9e04ab:configmap/" + strings.Repeat("a", size) + "=-",
		"entry":      "v1:abc:1c9e04ab:configmap/a=" + strings.Repeat("a", size),
		"hint":       "v1:abc:1c9e04ab:configmap/a=9a0c4f1122334455@" + strings.Repeat("1", size),
		"commas":     "v1:abc:1c9e04ab:" + strings.Repeat(",", size),
		"repetition": "v1:abc:1c9e04ab:" + strings.Repeat("configmap/a=-,", size/14),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := record.Parse(text)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 1024, "a message is bounded whatever the input")
		})
	}
}

func TestRecordOfANewerVersionIsRecognised(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"v2:abc:1c9e04ab:configmap/a=-", "v10", "v3::\x00"} {
		_, err := record.Parse(text)
		require.ErrorIs(t, err, record.ErrNewer, text)
	}
	for _, text := range []string{"v1:x", "v0:", "v-2:", "2:", "", "V2:"} {
		_, err := record.Parse(text)
		require.Error(t, err)
		require.NotErrorIs(t, err, record.ErrNewer, text)
	}
}

func FuzzParse(f *testing.F) {
	for _, tc := range texts() {
		f.Add(tc.text)
	}
	f.Add("v1:abc:1c9e04ab:secret/db=4417e0aabbccddee,configmap/app=-")
	f.Add("v1:abc:1c9e04ab:*AAAAAAAAAAAAAAAAAAAAAAABBBBBBAAAAAAAAAAEAAAAAH")
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
		if limited, ok := r.Text(len(s)); ok {
			_, err = record.Parse(limited)
			require.NoError(t, err, "in little space, too")
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, n := range []int{3, 200} {
		items := map[reference.Ref]record.Item{}
		for i := range n {
			items[configMap(fmt.Sprintf("configuration-%03d", i))] = record.Item{Entry: entryA, Hint: "81234"}
		}
		r := record.New("abc", key, items)
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
