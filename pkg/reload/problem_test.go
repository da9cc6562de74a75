package reload

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestMissingObjectsAreNamedUpToANumber(t *testing.T) {
	t.Parallel()
	assert.Empty(t, missing(nil, 0))
	assert.Empty(t, missing(nil, 3), "none of those that were read is missing")
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	assert.Equal(t, "not found in this namespace: configmap/app; check the name, or create it", missing([]reference.Ref{app}, 0))
	named, others := divide(slices.Repeat([]reference.Ref{app}, 45000))
	thousands := missing(named, len(others))
	assert.Contains(t, thousands, "configmap/app and up to 44992 more; check", "the others are not read")
	assert.Less(t, len(thousands), 500, "it is remembered for every workload")
}

// What seems to be missing is looked for once more before it is reported: the workload may come to the caches earlier than the
// objects that were created before it.
func TestMissingObjectIsReportedOnlyIfTheAPIServerHasNone(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	tests := map[string]struct {
		store Store
		count int
		why   string
	}{
		"the object exists":         {&reloadtest.Store{States: map[reference.Ref]digest.State{app: {UID: "u"}}}, 0, "its event brings the workload back"},
		"the object is absent":      {&reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}}, 2, "that it is missing, and what follows"},
		"the object cannot be read": {&reloadtest.Store{Err: errors.New("away")}, 2, "what the watch says is the best there is"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			l := newLoop(loopDependencies{Dependencies: Dependencies{Events: out, Store: tc.store}}, Options{})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
			for range 2 {
				l.problems.report(t.Context(), s, policy.Input{
					Refs: []reference.Ref{app}, Current: map[reference.Ref]digest.State{app: {Absent: true}},
				}, nil)
				l.problems.reportHold(t.Context(), s, policy.Verdict{
					Action: policy.Hold, Changes: []policy.Change{{Ref: app, Type: policy.Deleted}}, Reason: "configmap/app deleted",
				})
			}
			assert.Len(t, out.Messages, tc.count, tc.why)
		})
	}
}

// What an expression has matched, and an optional reference, may be absent on purpose.
func TestOnlyListedAndRequiredObjectsAreMissing(t *testing.T) {
	t.Parallel()
	listed := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	other := reference.Ref{Kind: reference.Secret, Name: "db"}
	for name, c := range map[string]struct {
		ref      reference.Ref
		required bool
		count    int
	}{
		"listed":   {listed, false, 1},
		"required": {other, true, 1},
		"neither":  {other, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			absent := map[reference.Ref]digest.State{c.ref: {Absent: true}}
			out := &reloadtest.Outbox{}
			l := newLoop(loopDependencies{Dependencies: Dependencies{Events: out, Store: &reloadtest.Store{States: absent}}}, Options{})
			s := reloadtest.Web(t)
			s.View.Required = map[reference.Ref]bool{c.ref: c.required}
			l.problems.report(t.Context(), s, policy.Input{Refs: []reference.Ref{c.ref}, Current: absent}, nil)
			assert.Len(t, out.Messages, c.count)
		})
	}
}

// What is to be read may say more of what is missing: all of it is one Event.
func TestMissingObjectIsReportedAfterAReadOfWhatIsUnknown(t *testing.T) {
	t.Parallel()
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	for name, tc := range map[string]struct {
		refs, reads []reference.Ref
		count       int
	}{
		"all is known":                    {[]reference.Ref{app}, []reference.Ref{app}, 1},
		"what is unknown is read":         {[]reference.Ref{app, db}, []reference.Ref{db}, 0},
		"nothing is read, as by a Record": {[]reference.Ref{app, db}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			absent := map[reference.Ref]digest.State{app: {Absent: true}}
			l := newLoop(loopDependencies{Dependencies: Dependencies{Events: out, Store: &reloadtest.Store{States: absent}}}, Options{})
			l.problems.report(t.Context(), reloadtest.Web(t), policy.Input{Refs: tc.refs, Current: absent}, tc.reads)
			assert.Len(t, out.Messages, tc.count)
		})
	}
}

// An Event has a limited length: it counts the custom resources that it does not name.
func TestHeldCustomResourcesBeyondTheFirstAreCounted(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(loopDependencies{Dependencies: Dependencies{Events: out, Store: &reloadtest.Store{}}}, Options{Now: func() time.Time { return now }})
	in := policy.Input{Current: map[reference.Ref]digest.State{}}
	for n := range reference.MaxNamed + 2 {
		ref := reference.Ref{Kind: "kafkas.example.com", Name: "cluster-" + strconv.Itoa(n)}
		in.Refs = append(in.Refs, ref)
		in.Current[ref] = digest.State{Hold: &digest.Hold{Reason: "missing", Since: now.Add(-digest.ReportHoldAfter)}}
	}
	l.problems.report(t.Context(), reloadtest.Web(t), in, nil)
	require.Len(t, out.Notes(), 1)
	assert.Contains(t, out.Notes()[0], "kafkas.example.com/cluster-7: missing; and 2 more")
}

// An Event is written some time after it was reported: that nothing is due does not take it back.
func TestHeldCustomResourceStaysReportedWhereNothingIsDue(t *testing.T) {
	t.Parallel()
	kafka := reference.Ref{Kind: "kafkas.example.com", Name: "cluster"}
	out := &reloadtest.Outbox{}
	l := newLoop(loopDependencies{Dependencies: Dependencies{Events: out, Store: &reloadtest.Store{}}}, Options{})
	s := reloadtest.Web(t)
	look := func(hold *digest.Hold) {
		l.problems.report(t.Context(), s, policy.Input{
			Refs: []reference.Ref{kafka}, Current: map[reference.Ref]digest.State{kafka: {Hold: hold}},
		}, nil)
		l.actions.Close(t.Context(), action.InOrder{Subject: s})
	}
	look(&digest.Hold{Reason: "missing", Since: time.Now().Add(-digest.ReportHoldAfter)})
	require.Equal(t, []string{"the pods keep the last valid state of custom resources: kafkas.example.com/cluster: missing"}, out.Notes())
	assert.True(t, out.Messages[0].Valid(), "the object is still missing")
	look(&digest.Hold{Reason: "missing", Since: time.Now().Add(-digest.ReportHoldAfter)})
	assert.Len(t, out.Messages, 1, "the same is no news")
	look(nil)
	assert.False(t, out.Messages[0].Valid(), "it has come")
}
