package reference_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		want   reference.Ref
		err    string
	}{
		"config map": {
			reason: "The plain case.",
			text:   "configmap/foo",
			want:   reference.Ref{Kind: reference.ConfigMap, Name: "foo"},
		},
		"secret with dots": {
			reason: "Names of config objects may have dots, unlike those of most other objects.",
			text:   "secret/sh.helm.release.v1.app",
			want:   reference.Ref{Kind: reference.Secret, Name: "sh.helm.release.v1.app"},
		},
		"custom resource": {
			reason: "Its kind is the name of the resource with the group.",
			text:   "kafkaproxies.kroxylicious.io/my-proxy",
			want:   reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "my-proxy"},
		},
		"custom, bad":   {reason: "A resource is a DNS name.", text: "Kafka.kroxylicious.io/x", err: "unknown kind"},
		"custom, dot":   {reason: "It has a group.", text: "kafkaproxies./x", err: "unknown kind"},
		"no slash":      {reason: "A bare name has no kind.", text: "foo", err: `"foo" is not of the form kind/name`},
		"empty":         {reason: "Nothing is no Ref.", text: "", err: "not of the form"},
		"no kind":       {reason: "The kind is not guessed.", text: "/foo", err: "unknown kind"},
		"no name":       {reason: "A kind alone names nothing.", text: "secret/", err: "the name is empty"},
		"upper case":    {reason: "There is one text for each Ref.", text: "ConfigMap/foo", err: `unknown kind "ConfigMap"`},
		"plural":        {reason: "There is one text for each Ref.", text: "secrets/foo", err: "unknown kind"},
		"other kind":    {reason: "A newer version may know it, this one must not guess.", text: "widget/foo", err: "unknown kind"},
		"path":          {reason: "A name is never a path.", text: "configmap/a/../../secret", err: "'/' at position 2"},
		"two dots":      {reason: "A name is never a path.", text: "configmap/..", err: "must start and end with"},
		"white space":   {reason: "Trimming is for the parser of lists.", text: "configmap/ foo", err: "' ' at position 1"},
		"separator":     {reason: "Texts of Records are split at commas.", text: "configmap/a,secret/b", err: "',' at position 2"},
		"control":       {reason: "Control characters do not reach logs as they are.", text: "configmap/a\x1b[2J", err: `'\x1b' at position 2`},
		"invalid utf-8": {reason: "Users write annotations.", text: "configmap/a\xffb", err: "an unreadable character at position 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := reference.Parse(tc.text)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err, tc.reason)
				return
			}
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.want, got, tc.reason)
			assert.Equal(t, tc.text, got.String(), "String is the inverse of Parse")
		})
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		name   string
		err    string
	}{
		"letter":            {reason: "The shortest name.", name: "a"},
		"digits":            {reason: "A name may be a number.", name: "007"},
		"first characters":  {reason: "The ranges are inclusive.", name: "a0"},
		"last characters":   {reason: "The ranges are inclusive.", name: "z9"},
		"dots and hyphens":  {reason: "All that is possible at once.", name: "a-b.c--d.0"},
		"longest":           {reason: "The limit is inclusive.", name: strings.Repeat("a", 253)},
		"long label":        {reason: "Labels of a subdomain have no limit of their own here, as in the API server.", name: strings.Repeat("a", 200) + ".b"},
		"empty":             {reason: "Nothing is no name.", name: "", err: "the name is empty"},
		"too long":          {reason: "The error names the limit.", name: strings.Repeat("a", 254), err: "254 bytes long: the limit is 253"},
		"upper case":        {reason: "The frequent mistake.", name: "myConfig", err: "'C' at position 3"},
		"underscore":        {reason: "The other frequent mistake.", name: "my_config", err: "'_' at position 3"},
		"unicode":           {reason: "Letters are a to z.", name: "größe", err: "'ö' at position 3"},
		"look-alike":        {reason: "A Cyrillic а is not a Latin one.", name: "аpp", err: "'а' at position 1"},
		"leading hyphen":    {reason: "Rule of DNS.", name: "-a", err: "must start and end with a letter or a digit"},
		"trailing dot":      {reason: "Rule of DNS.", name: "a.", err: "must start and end with a letter or a digit"},
		"only a dot":        {reason: "Not a path either.", name: ".", err: "must start and end"},
		"consecutive dots":  {reason: "Rule of DNS.", name: "a..b", err: `beside '.'`},
		"hyphen before dot": {reason: "Rule of DNS.", name: "a-.b", err: `'-' beside '.'`},
		"hyphen after dot":  {reason: "Rule of DNS.", name: "a.-b", err: `'.' beside '-'`},
		"new line":          {reason: "Nothing of it reaches a log line unescaped.", name: "a\nb", err: `'\n' at position 2`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := reference.ValidName(tc.name)
			assert.Equal(t, len(validation.IsDNS1123Subdomain(tc.name)) == 0, err == nil, "the API server thinks the same")
			assert.Equal(t, err == nil, reference.IsName(tc.name), "both say the same")
			if tc.err == "" {
				assert.NoError(t, err, tc.reason)
				return
			}
			assert.ErrorContains(t, err, tc.err, tc.reason)
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	want := []reference.Ref{
		{Kind: reference.ConfigMap, Name: "a"},
		{Kind: reference.ConfigMap, Name: "a-b"},
		{Kind: reference.ConfigMap, Name: "a.b"},
		{Kind: reference.ConfigMap, Name: "b"},
		{Kind: reference.Secret, Name: "a"},
	}
	got := []reference.Ref{want[4], want[2], want[0], want[3], want[1]}
	slices.SortFunc(got, reference.Ref.Compare)
	assert.Equal(t, want, got, "digests that are stored on workloads depend on this very order")
}

func TestQuote(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"short":              {reason: "A short text is shown whole.", text: "foo", want: `"foo"`},
		"exactly":            {reason: "The bound is inclusive.", text: strings.Repeat("a", 64), want: `"` + strings.Repeat("a", 64) + `"`},
		"long":               {reason: "A long one is cut, and one sees that.", text: strings.Repeat("a", 65), want: `"` + strings.Repeat("a", 64) + `"…`},
		"huge":               {reason: "The largest annotation there can be.", text: strings.Repeat("a", 256<<10), want: `"` + strings.Repeat("a", 64) + `"…`},
		"character":          {reason: "No character is cut in two.", text: strings.Repeat("a", 63) + "ö", want: `"` + strings.Repeat("a", 63) + `"…`},
		"escape":             {reason: "A terminal must not obey a user's text.", text: "\x1b]0;x\a", want: `"\x1b]0;x\a"`},
		"permission to left": {reason: "Nor must its order of characters lie.", text: "a\u202eb", want: `"a\u202eb"`},
		"invalid":            {reason: "Bytes that are no text are shown as such.", text: "\xff", want: `"\xff"`},
		"no beginning": {
			reason: "A character has at most four bytes: no beginning of one is looked for any further.",
			text:   strings.Repeat("\x80", 70), want: `"` + strings.Repeat(`\x80`, 60) + `"…`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, reference.Quote(tc.text), tc.reason)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("configmap/app")
	f.Add("secret/sh.helm.release.v1.app.v1")
	f.Add("configmap/../secret")
	f.Add("configmap/a\xff\x00")
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := reference.Parse(s)
		if err != nil {
			assert.Less(t, len(err.Error()), 1024, "a message is bounded whatever the input")
			assert.True(t, utf8.ValidString(err.Error()), "a message can be put into an Event")
			return
		}
		assert.Equal(t, s, ref.String(), "there is one text for each Ref")
		assert.NoError(t, reference.ValidName(ref.Name), "only names that can exist are read")
	})
}

func FuzzValidName(f *testing.F) {
	f.Add("a-b.c")
	f.Add("a-.b")
	f.Add("A")
	f.Add("")
	f.Add(strings.Repeat("a", 254))
	f.Fuzz(func(t *testing.T, name string) {
		theirs := validation.IsDNS1123Subdomain(name)
		assert.Equal(t, len(theirs) == 0, reference.ValidName(name) == nil, "the API server says of %q: %v", name, theirs)
		assert.Equal(t, len(theirs) == 0, reference.IsName(name), "the API server says of %q: %v", name, theirs)
	})
}
