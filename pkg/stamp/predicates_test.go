package stamp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// someKey is the id of a digest key, and someHash a config-hash under it.
const someKey = "1c9e04ab"

var (
	someHash = someKey + strings.Repeat("1", 56)
	someTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// recordedFor returns the text of a Record of a template with a hash that has one object of some name.
func recordedFor(hash, name string, adopted bool) string {
	return record.New(hash, someKey, map[reference.Ref]record.Item{cm(name): {Adopted: adopted}}).String()
}

// tracking returns what the rules see of a workload that tracks some ConfigMaps, in Reloader's dialect.
func tracking(names ...string) View {
	intent := annotation.Intent{Asked: len(names) > 0, Tracked: map[reference.Ref]annotation.Trigger{}}
	for _, name := range names {
		intent.Tracked[cm(name)] = annotation.Trigger{}
	}
	return View{Intent: intent, Managed: Managed{}}
}

// listing is tracking in SAP's dialect.
func listing(names ...string) View {
	v := tracking(names...)
	v.Intent.ConfigMaps = names
	return v
}

// having returns managed annotations that have a key, unless its value is empty.
func having(key Key, value string) Managed {
	if value == "" {
		return Managed{}
	}
	return Managed{key: value}
}

// A second call for one write must not take the explanation of the first for a new one.
func TestSameReload(t *testing.T) {
	t.Parallel()
	at := func(hash string, at time.Time, changes ...record.Change) record.LastReload {
		return record.LastReload{Time: at, Hash: hash, Cause: record.CauseConfigChange, Changes: changes}
	}
	long := at(someHash, someTime, record.Change{Ref: "configmap/a", Type: record.Modified})
	for name, c := range map[string]struct {
		before, now string
		want        bool
	}{
		"none in both":                   {want: true},
		"the same text":                  {before: long.String(), now: long.String(), want: true},
		"the same text, unreadable":      {before: "x", now: "x", want: true},
		"a shortened form":               {before: long.String(), now: long.Shortest().String(), want: true},
		"another time":                   {before: long.String(), now: at(someHash, someTime.Add(time.Second)).String()},
		"another hash":                   {before: long.String(), now: at("other", someTime).String()},
		"the first one":                  {now: long.String()},
		"the first one after noise":      {before: "x", now: at("", time.Time{}).String()},
		"taken away":                     {before: long.String()},
		"unreadable":                     {before: long.String(), now: "x"},
		"unreadable, before unreadable":  {before: "x", now: "y"},
		"the zero one became unreadable": {before: at("", time.Time{}).String(), now: "y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, edit{having(LastReload, c.before), having(LastReload, c.now)}.sameReload())
		})
	}
}

// No webhook call takes longer than 30 seconds: an explanation that is older is of another write. Generation 0 names no version.
func TestLastReloadThatNamesNoVersionMayExplainIfRecent(t *testing.T) {
	t.Parallel()
	for distance, want := range map[time.Duration]bool{
		0: true, 30 * time.Second: true, -30 * time.Second: true, 30*time.Second + 1: false, -30*time.Second - 1: false,
	} {
		assert.Equal(t, want, View{}.mayExplain(record.LastReload{Time: someTime.Add(distance)}, someTime), "%v away", distance)
	}
}

// A time before the creation of a workload would be taken for that of a reload of another one.
func TestReloadTime(t *testing.T) {
	t.Parallel()
	at := func(offset time.Duration) string {
		return record.LastReload{Time: someTime.Add(offset), Hash: someHash, Cause: record.CauseConfigChange}.String()
	}
	for name, c := range map[string]struct {
		created time.Time
		last    string
		want    time.Duration
	}{
		"created before":  {created: someTime.Add(-time.Second)},
		"created now":     {created: someTime},
		"not created yet": {},
		"the clock is right, that of the last one ahead": {created: someTime.Add(-time.Second), last: at(time.Hour)},
		"the clock is behind":                            {created: someTime.Add(time.Minute), want: time.Minute},
		"behind, reloaded since":                         {created: someTime.Add(time.Minute), last: at(2 * time.Minute), want: 2*time.Minute + time.Millisecond},
		"behind, reloaded at the time of the creation":   {created: someTime.Add(time.Minute), last: at(time.Minute), want: time.Minute + time.Millisecond},
		"behind, copied from another workload":           {created: someTime.Add(time.Minute), last: at(-time.Hour), want: time.Minute},
		"behind, the last one is unreadable":             {created: someTime.Add(time.Minute), last: "{", want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := View{created: c.created, Managed: Managed{LastReload: c.last}}
			assert.Equal(t, someTime.Add(c.want), view.ReloadTime(someTime))
		})
	}
}

func TestRecordsStamp(t *testing.T) {
	t.Parallel()
	stamped, adopted := recordedFor(someHash, "a", false), recordedFor(someHash, "a", true)
	for name, c := range map[string]struct {
		before, now string
		want        bool
	}{
		"a stamp":             {before: adopted, now: stamped, want: true},
		"the first stamp":     {now: stamped, want: true},
		"an adoption":         {before: stamped, now: adopted},
		"the stored Record":   {before: stamped, now: stamped},
		"of something else":   {before: adopted, now: recordedFor(someHash, "b", false)},
		"noise":               {before: adopted, now: "x"},
		"taken away":          {before: adopted},
		"neither has one":     {},
		"what nothing tracks": {before: stamped, now: record.New(someHash, someKey, nil).String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, edit{having(Record, c.before), having(Record, c.now)}.recordsStamp([]reference.Ref{cm("a")}))
		})
	}
}

// Without lists there is no revision digest. A write that lacks the hash, or a request with an empty text, must not be taken for it.
func TestNoDigestProvesNothing(t *testing.T) {
	t.Parallel()
	unlisted := live{policy.Input{
		Refs: []reference.Ref{cm("a")}, Current: map[reference.Ref]digest.State{cm("a"): {Absent: true}}, Ring: digesttest.Ring(t, "1"),
	}}
	hash, err := unlisted.hash()
	require.NoError(t, err)
	assert.True(t, unlisted.proves(hash), "the hash of the present state")
	assert.False(t, unlisted.proves(""), "a missing digest proves nothing")
}

// An adoption must have the Entry of everything: what was not read proves nothing.
func TestRecordsLive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hash  string // of the Record
		refs  []reference.Ref
		state map[reference.Ref]digest.State
		want  bool
	}{
		"absent, as recorded":  {hash: someHash, refs: []reference.Ref{cm("a")}, state: map[reference.Ref]digest.State{cm("a"): {Absent: true}}, want: true},
		"nothing is asked":     {hash: someHash},
		"not recorded":         {hash: someHash, refs: []reference.Ref{cm("b")}, state: map[reference.Ref]digest.State{cm("b"): {Absent: true}}},
		"not read":             {hash: someHash, refs: []reference.Ref{cm("a")}},
		"neither":              {hash: someHash, refs: []reference.Ref{cm("b")}},
		"of another template":  {hash: "other", refs: []reference.Ref{cm("a")}, state: map[reference.Ref]digest.State{cm("a"): {Absent: true}}},
		"one of two is absent": {hash: someHash, refs: []reference.Ref{cm("a"), cm("b")}, state: map[reference.Ref]digest.State{cm("a"): {Absent: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adoption := edit{Managed{Hash: someHash}, Managed{Record: recordedFor(c.hash, "a", true)}}
			assert.Equal(t, c.want, adoption.recordsLive(live{policy.Input{Current: c.state}}, c.refs))
		})
	}
}

// Rule 5: the hash is over other Refs than before. Opting in restarts nothing by itself, but for SAP's lists.
func TestTracksOtherRefsWhenRefsAreAddedOrDropped(t *testing.T) {
	t.Parallel()
	unstamped := policy.Known{}
	hashed := policy.Known{Hash: someHash}
	recorded := policy.KnownOf(someHash, recordedFor(someHash, "a", false))
	for name, c := range map[string]struct {
		old, now View
		known    policy.Known
		release  bool
		want     bool
	}{
		"one is added":                           {old: tracking("a"), now: tracking("a", "b"), known: recorded, release: true, want: true},
		"one is added, the hash alone is known":  {old: tracking("a"), now: tracking("a", "b"), known: hashed, release: true, want: true},
		"one is added, no release":               {old: tracking("a"), now: tracking("a", "b"), known: recorded},
		"one is added to a list, no release":     {old: listing("a"), now: listing("a", "b"), known: recorded, want: true},
		"one is dropped":                         {old: tracking("a", "b"), now: tracking("b"), known: recorded, release: true, want: true},
		"one is dropped that was never recorded": {old: tracking("a", "b"), now: tracking("a"), known: recorded, release: true},
		"nothing moves":                          {old: tracking("a"), now: tracking("a"), known: recorded, release: true},
		"opting in":                              {old: tracking(), now: tracking("a"), known: unstamped, release: true},
		"opting in by a list":                    {old: tracking(), now: listing("a"), known: unstamped, release: true, want: true},
		"opting in again, the hash is known":     {old: tracking(), now: tracking("a"), known: hashed, release: true, want: true},
		"opting in again, another is recorded":   {old: tracking(), now: tracking("b"), known: recorded, release: true, want: true},
		"opting in again, it is recorded":        {old: tracking(), now: tracking("a"), known: recorded, release: true},
		"one more, never stamped":                {old: tracking("a"), now: tracking("a", "b"), known: unstamped, release: true, want: true},
		"by a newer version":                     {old: tracking("a"), now: tracking("b"), known: policy.Known{Newer: true}, release: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, Write{Old: c.old, New: c.now, TemplateChanged: c.release}.tracksOtherRefs(c.known))
		})
	}
}

// Only pod-reloader clean takes managed annotations away.
func TestCleans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ignored bool
		request string
		want    bool
	}{
		"clean":                    {ignored: true, request: digest.Clean + "@4", want: true},
		"not excluded":             {request: digest.Clean + "@4"},
		"not bound":                {ignored: true, request: digest.Clean},
		"for another generation":   {ignored: true, request: digest.Clean + "@3"},
		"another request":          {ignored: true, request: digest.AnyCurrent + "@4"},
		"a request without digest": {ignored: true, request: "@4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := Write{Old: View{Generation: 4}, New: View{Ignored: c.ignored, Managed: Managed{Dummy: c.request}}}
			assert.Equal(t, c.want, req.cleans())
		})
	}
	assert.False(t, Write{New: View{Ignored: true}}.cleans(), "no request")
}

func TestRemainsAreEmptyOnlyIfThereAreNone(t *testing.T) {
	t.Parallel()
	assert.True(t, Remains{}.Empty(), "neither the template nor the workload has annotations of ours")
	assert.False(t, Remains{OnTemplate: []string{"a"}, OnWorkload: []string{"b"}}.Empty(), "both have")
	assert.False(t, Remains{OnTemplate: []string{"a"}}.Empty(), "the template has")
	assert.False(t, Remains{OnWorkload: []string{"b"}}.Empty(), "the workload has")
}

// What is as long as the budget fits. The annotation of the strategy is the first to go.
func TestAnnotationsThatFillTheTemplateStay(t *testing.T) {
	t.Parallel()
	for less, want := range map[int]string{0: "source", 1: ""} {
		managed := Managed{Hash: someHash}
		managed.setFields(strategy.Fields{From: "source"})
		d := &draft{Result: Result{Managed: managed, Stamped: true}}
		d.New.TemplateBudget = len(someHash) + managed.sourceSize() - less
		d.dropUntilValid()
		assert.Equal(t, want, d.Managed.fields().From)
		assert.Equal(t, someHash, d.Managed[Hash])
		assert.True(t, d.Stamped, "the stamp remains")
		assert.Empty(t, d.Warnings)
	}
}

func TestRecordIsDroppedBeforeTheLastReload(t *testing.T) {
	t.Parallel()
	rec := recordedFor(someHash, "a", false)
	last := record.LastReload{Time: someTime, Hash: someHash, Cause: record.CauseConfigChange}.String()
	for less, want := range map[int]Managed{
		0: {Record: rec, LastReload: last}, 1: {LastReload: last}, len(rec): {LastReload: last}, len(rec) + 1: {},
	} {
		managed := Managed{Record: rec, LastReload: last}
		View{WorkloadBudget: len(rec) + len(last) - less}.shorten(managed, nil)
		assert.Equal(t, want, managed, "%d bytes less than needed", less)
	}
}

func TestShortenSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ have, before, want string }{
		"the text is longer":  {have: "longer", before: "short", want: "short"},
		"the text is shorter": {have: "short", before: "longer", want: "short"},
		"as long":             {have: "newer", before: "older", want: "newer"},
		"the first one":       {have: "first", want: ""},
		"none":                {before: "older", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			managed, before := Managed{}, Managed{}
			managed.setFields(strategy.Fields{From: c.have})
			before.setFields(strategy.Fields{From: c.before})
			managed.shortenSource(before)
			assert.Equal(t, c.want, managed.fields().From)
			size := 0
			if c.want != "" {
				size = len(strategy.Annotation) + len(c.want)
			}
			assert.Equal(t, size, managed.sourceSize())
		})
	}
}

// A place that is no object hides no other: what can be written is.
func TestOperationsGoOnBehindAnImpossiblePlace(t *testing.T) {
	t.Parallel()
	raw := decode(t, []byte(`{"metadata":{"annotations":{"x":"y"}},"spec":{"template":{"metadata":"x","spec":{}}}}`))
	o := workload.Object{Kind: workload.Deployment(), Raw: raw}
	require.True(t, o.HasTemplate(), "its spec has a template")
	ops := Reader{Keys: annotation.DefaultKeys()}.Operations(o, Managed{Hash: "h", Record: "b"})
	require.Len(t, ops, 1)
	assert.Contains(t, ops[0].Path, "config-record")
}

// Reloader's reload is one of what is due, with nothing else in the same write.
func TestReloadedByReloader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, now []string
		edit        func(managed Managed)
		want        []string
	}{
		"a due variable":                       {now: []string{variableB}, want: []string{variableB}},
		"a due variable beside a stored one":   {before: []string{variableA}, now: []string{variableA, variableB}, want: []string{variableB}},
		"a due variable and another one":       {now: []string{variableA, variableB}},
		"a due variable, a stored one is lost": {before: []string{variableA}, now: []string{variableB}},
		"a due variable, and the hash":         {now: []string{variableB}, edit: func(m Managed) { m[Hash] = "other" }},
		"a due variable, and the Record":       {now: []string{variableB}, edit: func(m Managed) { m[Record] = "other" }},
		"a due variable, and config-restart":   {now: []string{variableB}, edit: func(m Managed) { m[Restart] = "4" }},
		"a due variable, and the last reload":  {now: []string{variableB}, edit: func(m Managed) { m[LastReload] = "{}" }},
		"nothing":                              {before: []string{variableB}, now: []string{variableB}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := func(names []string) Managed {
				m := Managed{Hash: someHash, Record: "r"}
				var fields strategy.Fields
				for i, name := range names {
					fields.Variables = append(fields.Variables, strategy.Variable{Container: "c", Index: i, Name: name, Value: "1"})
				}
				m.setFields(fields)
				return m
			}
			now := with(c.now)
			if c.edit != nil {
				c.edit(now)
			}
			assert.Equal(t, c.want, edit{with(c.before), now}.setByReloader([]reference.Ref{cm("b")}))
		})
	}
}

func TestReaderWithoutObjectsLeavesSelectionsUnresolved(t *testing.T) {
	t.Parallel()
	intent := annotation.Intent{Asked: true, Selections: []annotation.Selection{{}}}
	resolved, problems, err := Reader{}.resolve("shop", intent, nil, Managed{}, nil)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Equal(t, intent, resolved)
}
