package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

func TestLastReloadText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 28, 23, 59, 58, 123e6, time.UTC)
	tests := map[string]struct {
		reason string
		last   record.LastReload
		text   string
	}{
		"config change": {
			reason: "The plain case.",
			last: record.LastReload{
				Time: at, Hash: "abc", Cause: record.CauseConfigChange,
				Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}, {Ref: "secret/db", Type: record.Deleted}},
			},
			text: `{"time":"2026-02-28T23:59:58.123Z","hash":"abc","cause":"config-change",` +
				`"changes":[{"ref":"configmap/app","type":"modified"},{"ref":"secret/db","type":"deleted"}]}`,
		},
		"release": {
			reason: "A release that changed no configuration has no Changes.",
			last:   record.LastReload{Time: at, Hash: "abc", Cause: record.CauseRelease},
			text:   `{"time":"2026-02-28T23:59:58.123Z","hash":"abc","cause":"release"}`,
		},
		"with predecessors": {
			reason: "A history, newest first.",
			last: record.LastReload{Time: at, Hash: "abc", Cause: record.CauseRelease, Before: []record.Past{
				{Time: at.Add(-time.Hour), Hash: "def", Cause: record.CauseListEdit},
			}},
			text: `{"time":"2026-02-28T23:59:58.123Z","hash":"abc","cause":"release",` +
				`"before":[{"time":"2026-02-28T22:59:58.123Z","hash":"def","cause":"list-edit"}]}`,
		},
		"no hash": {
			reason: "An Argo Rollout is restarted although its template was never stamped.",
			last: record.LastReload{Time: at, Cause: record.CauseConfigChange, Restarted: true, Before: []record.Past{
				{Time: at.Add(-time.Hour), Cause: record.CauseConfigChange},
			}},
			text: `{"time":"2026-02-28T23:59:58.123Z","hash":"-","cause":"config-change","restarted":true,` +
				`"before":[{"time":"2026-02-28T22:59:58.123Z","hash":"-","cause":"config-change"}]}`,
		},
		"other digest": {
			reason: "Where the hash is SAP's, the content's digest is recorded beside it.",
			last:   record.LastReload{Time: at, Hash: "abc", Digest: "def", Cause: record.CauseVerifiedReload, More: 3},
			text:   `{"time":"2026-02-28T23:59:58.123Z","hash":"abc","digest":"def","cause":"verified-reload","more":3}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.text, tc.last.String(), tc.reason)
			got, err := record.ParseLastReload(tc.text)
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.last, got, tc.reason)
		})
	}
}

func TestLastReloadIsBounded(t *testing.T) {
	t.Parallel()
	last := record.LastReload{Time: time.Unix(1, 999_999_999).In(time.FixedZone("x", 3600)), Hash: "abc", Cause: record.CauseListEdit, More: 1}
	for i := range 200 {
		last.Changes = append(last.Changes, record.Change{Ref: fmt.Sprintf("configmap/%s%03d", strings.Repeat("a", 250), i), Type: record.Listed})
	}
	text := last.String()
	assert.Less(t, len(text), record.MaxSize, "as long as it may be")
	assert.Len(t, last.Changes, 200, "the value stays as it is")
	got, err := record.ParseLastReload(text)
	require.NoError(t, err)
	assert.Equal(t, last.Changes[:32], got.Changes, "the first are kept")
	assert.Equal(t, 1+200-32, got.More, "the others are counted")
	assert.Equal(t, time.Unix(1, 999_000_000).UTC(), got.Time, "times are in whole milliseconds, in UTC")
}

// The text of a custom resource is the longest one, and what has changed below it is named beside it.
func TestLastReloadOfCustomResourcesIsBounded(t *testing.T) {
	t.Parallel()
	last := record.LastReload{Time: time.Unix(1, 0), Hash: "abc", Cause: record.CauseConfigChange}
	for i := range 100 {
		last.Changes = append(last.Changes, record.Change{
			Ref: strings.Repeat("a", 250) + ".b" + "/" + fmt.Sprintf("%03d", i) + strings.Repeat("c", 250), Type: record.Modified, Because: strings.Repeat("d", 320),
		})
	}
	text := last.String()
	assert.Less(t, len(text), record.MaxSize)
	got, err := record.ParseLastReload(text)
	require.NoError(t, err)
	require.NotEmpty(t, got.Changes)
	assert.Equal(t, last.Changes[:len(got.Changes)], got.Changes)
	assert.Equal(t, 100-len(got.Changes), got.More)
}

// Limits are of bytes: what fills one is kept, and what comes behind the first that is too long is left out, too.
func TestLastReloadKeepsWhatFillsItsLimits(t *testing.T) {
	t.Parallel()
	change := func(size int) record.Change {
		return record.Change{Ref: strings.Repeat("a", size), Type: record.Modified}
	}
	fields := func(size int) record.Template {
		return record.Template{Hash: "h", Fields: `{"from":"` + strings.Repeat("a", size-len(`{"from":""}`)) + `"}`}
	}
	last := record.LastReload{Time: time.Unix(1, 0), Hash: "abc", Cause: strings.Repeat("c", 512)}
	last.Changes = slices.Repeat([]record.Change{change(512)}, 24)
	last.Templates = []record.Template{fields(2048), fields(2048)}
	got, err := record.ParseLastReload(last.String())
	require.NoError(t, err)
	assert.Equal(t, last.Cause, got.Cause, "a word of 512 bytes")
	assert.Equal(t, last.Changes, got.Changes, "12 KiB")
	assert.Zero(t, got.More)
	assert.Equal(t, last.Templates, got.Templates, "4 KiB")

	last.Changes = slices.Insert(last.Changes, 23, change(511), change(2))
	last.Templates[0] = fields(2049)
	got, err = record.ParseLastReload(last.String())
	require.NoError(t, err)
	assert.Equal(t, last.Changes[:24], got.Changes, "a byte more than 12 KiB")
	assert.Equal(t, 2, got.More)
	assert.Equal(t, last.Templates[:1], got.Templates, "a byte more than 4 KiB")
}

func TestAChangeNamesWhatIsBelow(t *testing.T) {
	t.Parallel()
	c := record.Change{Ref: "kafkaproxies.kroxylicious.io/p", Type: record.Modified, Because: "configmap/a,secret/b"}
	assert.Equal(t, "kafkaproxies.kroxylicious.io/p modified (configmap/a, secret/b)", c.String())
	assert.Equal(t, "a tracked object modified", record.Change{Ref: "*", Type: record.Modified}.String())
	assert.Equal(t, "configmap/a created", record.Change{Ref: "configmap/a", Type: record.Created}.String())
}

func TestParseLastReload(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		text   string
		want   string
		err    string
	}{
		"newer version": {
			reason: "A newer replica may write more; what is known of it still counts.",
			text:   `{"time":"2026-01-01T00:00:00Z","hash":"abc","cause":"window-opened","changes":[{"ref":"kafka.example.org/a","type":"rotated","x":1}],"by":{"a":[]}}`,
			want:   `{"time":"2026-01-01T00:00:00.000Z","hash":"abc","cause":"window-opened","changes":[{"ref":"kafka.example.org/a","type":"rotated"}]}`,
		},
		"other zone and fractions": {
			reason: "A user has written it.",
			text:   `{"time":"2026-01-01T01:00:00.7008+01:00","hash":"abc","cause":""}`,
			want:   `{"time":"2026-01-01T00:00:00.700Z","hash":"abc","cause":""}`,
		},
		"empty changes": {
			reason: "No Changes have one form.",
			text:   `{"time":"2026-01-01T00:00:00Z","hash":"abc","cause":"release","changes":[]}`,
			want:   `{"time":"2026-01-01T00:00:00.000Z","hash":"abc","cause":"release"}`,
		},
		"too many changes": {
			reason: "They are bounded in memory too.",
			text:   `{"time":"2026-01-01T00:00:00Z","hash":"abc","changes":[` + strings.Repeat(`{"ref":"a/b","type":"c"},`, 99) + `{"ref":"a/b","type":"c"}]}`,
			want: `{"time":"2026-01-01T00:00:00.000Z","hash":"abc","cause":"","changes":[` +
				strings.TrimSuffix(strings.Repeat(`{"ref":"a/b","type":"c"},`, 32), ",") + `],"more":68}`,
		},
		"nothing":           {reason: "No annotation is the caller's case.", text: "", err: "not the expected JSON object"},
		"no JSON":           {reason: "Edited by hand.", text: "yesterday", err: `read last reload "yesterday"`},
		"null":              {reason: "A reload has a time.", text: "null", err: `the time "" is not in the form`},
		"list":              {reason: "Another shape.", text: "[]", err: "not the expected JSON object"},
		"trailing data":     {reason: "Two values are none.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc"} {}`, err: "not the expected"},
		"number as time":    {reason: "A time is a text.", text: `{"time":1,"hash":"abc"}`, err: "not the expected"},
		"no time":           {reason: "A reload has a time.", text: `{"hash":"abc"}`, err: `the time "" is not`},
		"wrong time":        {reason: "The gate must not guess.", text: `{"time":"2026-13-01T00:00:00Z","hash":"abc"}`, err: "is not in the form of RFC 3339"},
		"past all years":    {reason: "It could not be written again.", text: `{"time":"9999-12-31T23:59:59-01:00","hash":"abc"}`, err: "out of range"},
		"before any":        {reason: "It could not be written again.", text: `{"time":"0000-06-01T00:00:00Z","hash":"abc"}`, err: "out of range"},
		"no hash":           {reason: "Without it the loop cannot know whether it belongs to the template.", text: `{"time":"2026-01-01T00:00:00Z"}`, err: "the hash is missing"},
		"strange hash":      {reason: "It is shown to users.", text: `{"time":"2026-01-01T00:00:00Z","hash":"a\u001bb"}`, err: `"a\x1bb" is not a word`},
		"strange first":     {reason: "Each character counts.", text: `{"time":"2026-01-01T00:00:00Z","hash":"\u001ba"}`, err: `"\x1ba" is not a word`},
		"long cause":        {reason: "It is shown to users.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","cause":"` + strings.Repeat("a", 513) + `"}`, err: "is not a word"},
		"empty ref":         {reason: "A Change has a Ref.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","changes":[{"type":"modified"}]}`, err: "change 1"},
		"ref as markup":     {reason: "It is shown to users.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","changes":[{"ref":"a b","type":"modified"}]}`, err: "change 1"},
		"negative more":     {reason: "A count is not negative.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","more":-1}`, err: "further changes, -1, is invalid"},
		"huge more":         {reason: "Counts are added to.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","more":9223372036854775807}`, err: "further changes, 9223372036854775807, is invalid"},
		"too long":          {reason: "We never write one of this length.", text: `{"time":"` + strings.Repeat(" ", 24<<10) + `"}`, err: "the limit is 24576"},
		"wrong time before": {reason: "A history is of reloads.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","before":[{"time":"x","hash":"a"}]}`, err: `the time "x"`},
		"long hash before":  {reason: "It is shown to users.", text: `{"time":"2026-01-01T00:00:00Z","hash":"abc","before":[{"time":"2026-01-01T00:00:00Z","hash":"` + strings.Repeat("a", 513) + `"}]}`, err: "is not a word"},
		"deep": {
			reason: "Depth costs nothing.",
			text:   strings.Repeat(`{"x":`, 3000), err: "not the expected",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := record.ParseLastReload(tc.text)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err, tc.reason)
				assert.Less(t, len(err.Error()), 1024, "a message is bounded whatever the input")
				assert.Equal(t, record.LastReload{}, got)
				return
			}
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.want, got.String(), tc.reason)
		})
	}
}

func TestLastReloadKeepsFivePredecessors(t *testing.T) {
	t.Parallel()
	var last record.LastReload
	for i := range 8 {
		next := record.LastReload{Time: time.Unix(int64(i), 0).UTC(), Hash: fmt.Sprintf("hash%d", i), Cause: record.CauseConfigChange}
		if i > 0 {
			next = next.After(last)
		}
		last = next
	}
	require.Len(t, last.Before, 5)
	assert.Equal(t, record.Past{Time: time.Unix(6, 0).UTC(), Hash: "hash6", Cause: record.CauseConfigChange}, last.Before[0], "the newest first")
	assert.Equal(t, "hash2", last.Before[4].Hash, "the oldest go")
	parsed, err := record.ParseLastReload(last.String())
	require.NoError(t, err)
	assert.Equal(t, last, parsed)
}

func FuzzParseLastReload(f *testing.F) {
	f.Add(`{"time":"2026-02-28T23:59:58Z","hash":"abc","cause":"config-change","changes":[{"ref":"configmap/app","type":"modified"}],"more":2}`)
	f.Add(`{"time":"9999-12-31T23:59:59-01:00","hash":"a<b>&c","digest":"\u2028","cause":"x"}`)
	f.Add(`{"TIME":"2026-01-01T00:00:00.5+23:59","hash":"abc","changes":[]}`)
	f.Add(`{"time":"2026-02-28T23:59:58Z","hash":"abc","before":[{"time":"2026-02-28T23:59:58Z","hash":"d","cause":"x"}]}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, s string) {
		last, err := record.ParseLastReload(s)
		if err != nil {
			assert.Less(t, len(err.Error()), 2048, "a message is bounded whatever the input")
			assert.True(t, utf8.ValidString(err.Error()), "a message can be put into an Event")
			return
		}
		again, err := record.ParseLastReload(last.String())
		require.NoError(t, err, "what is written can be read")
		require.Equal(t, last, again, "and says the same")
	})
}

func TestAllReloadsOfALastReload(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := record.LastReload{Time: t0, Hash: "1", Cause: record.CauseListEdit}
	second := record.LastReload{Time: t0.Add(time.Minute), Hash: "2", Cause: record.CauseConfigChange, More: 3}.After(first)
	third := record.LastReload{Time: t0.Add(time.Hour), Hash: "3", Cause: record.CauseRelease, More: 4}.After(second)
	all := third.All()
	assert.Equal(t, []record.LastReload{
		third,
		{Time: t0.Add(time.Minute), Hash: "2", Cause: record.CauseConfigChange},
		{Time: t0, Hash: "1", Cause: record.CauseListEdit},
	}, all, "the newest first; the Changes of the earlier ones are not kept")
}

func TestTemplatesAreKept(t *testing.T) {
	t.Parallel()
	last := record.LastReload{Time: time.Unix(1_800_000_000, 0).UTC(), Hash: "abc", Cause: record.CauseConfigChange, Templates: []record.Template{
		{Hash: "def", Fields: `{"from":"x"}`}, {Hash: "ghi"},
	}}
	assert.Contains(t, last.String(), `"templates":[{"hash":"def","fields":{"from":"x"}},{"hash":"ghi"}]`)
	read, err := record.ParseLastReload(last.String())
	require.NoError(t, err)
	assert.Equal(t, last, read)
	later := record.LastReload{Time: last.Time, Hash: "mno", Cause: record.CauseConfigChange}.After(last)
	assert.Equal(t, last.Templates, later.Templates, "a reload that replaces no template keeps them")
	for range 9 {
		last.Templates = append(last.Templates, record.Template{Hash: "jkl"})
	}
	assert.Equal(t, 5, strings.Count(last.String(), `{"hash":"`), "five at most")
	last.Templates = []record.Template{{Hash: "def"}, {Hash: "ghi", Fields: `{"from":"` + strings.Repeat("x", 5000) + `"}`}, {Hash: "jkl"}}
	assert.NotContains(t, last.String(), "ghi", "as many bytes as there is a budget for")
	_, err = record.ParseLastReload(`{"time":"2026-01-01T00:00:00.000Z","hash":"abc","cause":"release","templates":[{"hash":"a b"}]}`)
	require.ErrorContains(t, err, "a b")
}

// The shorter the text must be, the less it says, but it never becomes another reload.
func TestLastReloadIsShortened(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	last := record.LastReload{
		Time: t0, Hash: "abc", Digest: "def", Generation: 7, Cause: record.CauseConfigChange, More: 2,
		Changes:   []record.Change{{Ref: "configmap/a", Type: record.Modified}, {Ref: "configmap/b", Type: record.Created}},
		Templates: []record.Template{{Hash: "t1"}, {Hash: "t2"}},
	}.After(record.LastReload{Time: t0.Add(-time.Minute), Hash: "1", Cause: record.CauseRelease, Before: []record.Past{{Time: t0, Hash: "2", Cause: record.CauseRelease}}})
	size := len(last.String())
	text, fits := last.Text(size)
	assert.True(t, fits, "it fits exactly")
	assert.Equal(t, last.String(), text, "nothing is left out without need")
	shortest, fits := last.Text(len(last.Shortest().String()))
	assert.True(t, fits, "the shortest form fits")
	assert.Equal(t, last.Shortest().String(), shortest)
	_, fits = last.Text(len(shortest) - 1)
	assert.False(t, fits, "the shortest form is a byte too long")
	var left []string
	for text, fits = last.Text(size); fits; text, fits = last.Text(size) {
		assert.LessOrEqual(t, len(text), size)
		size = len(text) - 1
		got, err := record.ParseLastReload(text)
		require.NoError(t, err)
		assert.True(t, last.Same(got), "it is still the same reload")
		assert.Equal(t, []any{last.Digest, last.Generation, last.Cause}, []any{got.Digest, got.Generation, got.Cause}, "a client recognises its request by them")
		assert.Equal(t, 4, len(got.Changes)+got.More, "what is not named is counted")
		left = append(left, fmt.Sprintf("%d %d %d", len(got.Before), len(got.Templates), len(got.Changes)))
	}
	assert.Equal(t, []string{"2 2 2", "1 2 2", "0 2 2", "0 1 2", "0 0 2", "0 0 1", "0 0 0"}, left, "the reloads before, templates and changes")
	assert.Empty(t, text)
	assert.Len(t, last.Changes, 2, "the value stays as it is")
	assert.False(t, last.Same(record.LastReload{Time: t0, Hash: "other"}), "the hash differs")
	assert.False(t, last.Same(record.LastReload{Time: t0.Add(time.Second), Hash: "abc"}), "the time differs")
}

func TestChangesThatAreNotNamedAreCounted(t *testing.T) {
	t.Parallel()
	assert.Empty(t, record.Unnamed(3, 0))
	assert.Empty(t, record.Unnamed(0, 0))
	assert.Equal(t, "1 more", record.Unnamed(3, 1))
	assert.Equal(t, "2 more", record.Unnamed(1, 2))
	assert.Equal(t, "changes whose names do not fit into the annotations: 2", record.Unnamed(0, 2))
}
