package reload

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	app := record.Change{Ref: "configmap/app", Type: record.Modified}
	db := record.Change{Ref: "secret/db", Type: record.Created}
	tests := map[string]struct {
		last    record.LastReload
		pending string
		want    string
		kinds   string
	}{
		"one cause": {
			last: record.LastReload{Cause: record.CauseConfigChange, Changes: []record.Change{app}},
			want: "stamped: configmap/app modified", kinds: "configmap",
		},
		"all causes are named": {
			last: record.LastReload{Cause: record.CauseConfigChange, Changes: []record.Change{app, db}, More: 3},
			want: "stamped: configmap/app modified, secret/db created, 3 more", kinds: "several",
		},
		"the pods have to wait": {
			last:    record.LastReload{Cause: record.CauseConfigChange, Changes: []record.Change{db}},
			pending: "paused",
			want:    "stamped, rollout pending (paused): secret/db created", kinds: "secret",
		},
		"with a release": {
			last: record.LastReload{Cause: record.CauseRelease, Changes: []record.Change{app}},
			want: "stamped: configmap/app modified, together with a change of the pod template", kinds: "configmap",
		},
		"a client": {
			last: record.LastReload{Cause: record.CauseVerifiedReload},
			want: "stamped: a client asked for it with a verified digest", kinds: record.CauseVerifiedReload,
		},
		"a list": {
			last: record.LastReload{Cause: record.CauseListEdit},
			want: "stamped: the list of config objects was edited", kinds: record.CauseListEdit,
		},
		"written by hand": {
			last: record.LastReload{Cause: "my-own", Changes: []record.Change{{Ref: "pod/x", Type: "seen"}}},
			want: "stamped: pod/x seen", kinds: "other",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, sentence(tc.last, tc.pending))
			assert.Equal(t, tc.kinds, causeKinds(tc.last), "the label of the metric")
		})
	}
}

func TestRelated(t *testing.T) {
	t.Parallel()
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	tests := map[string]struct {
		causes []reference.Ref
		want   runtime.Object
		why    string
	}{
		"none":        {why: "an Event about the workload alone"},
		"a Secret":    {causes: []reference.Ref{db}, want: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "db"}},
		"a ConfigMap": {causes: []reference.Ref{app}, want: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "app"}},
		"several":     {causes: []reference.Ref{app, db}, why: "there is room for one: to name the first would say that the others had no part in it"},
		"folded":      {causes: []reference.Ref{policy.Any}, why: "no object has this name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, related("shop", tc.causes), tc.why)
		})
	}
}

func TestMissingObjectsAreNamedUpToANumber(t *testing.T) {
	t.Parallel()
	assert.Empty(t, missing(nil))
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	assert.Equal(t, "not found in this namespace: configmap/app; check the name, or create it", missing([]reference.Ref{app}))
	thousands := missing(slices.Repeat([]reference.Ref{app}, 45000))
	assert.Contains(t, thousands, "configmap/app and 44992 more; check")
	assert.Less(t, len(thousands), 500, "it is remembered for every workload")
}

// lagging is a Store whose watch has not seen what the API server has.
type lagging struct {
	Store
	live map[reference.Ref]digest.State
	err  error
}

func (l lagging) Live(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return l.live, l.err
}

// What seems to be missing is looked for once more before anybody is told: the workload may come to the caches earlier than
// the objects that were created before it.
func TestNobodyIsToldOfALag(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	tests := map[string]struct {
		store Store
		told  int
		why   string
	}{
		"it exists":            {lagging{live: map[reference.Ref]digest.State{app: {UID: "u"}}}, 0, "its event brings the workload back"},
		"it is absent":         {lagging{live: map[reference.Ref]digest.State{app: {Absent: true}}}, 2, "that it is missing, and what follows"},
		"it cannot be told of": {lagging{err: errors.New("away")}, 2, "what the watch says is the best there is"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(10)
			l := &loop{store: tc.store, memory: newMemory(), now: time.Now, recorder: recorder}
			l.metrics = newMetrics(prometheus.NewRegistry(), l.memory, l.now)
			s := subject{key: Key{Namespace: "shop", Name: "web"}, view: viewOf(t)}
			for range 2 {
				l.complain(t.Context(), s, map[reference.Ref]digest.State{app: {Absent: true}})
				l.hold(t.Context(), s, policy.Verdict{
					Action: policy.Hold, Changes: []policy.Change{{Ref: app, Type: policy.Deleted}}, Reason: "configmap/app deleted",
				})
			}
			assert.Len(t, recorder.Events, tc.told, tc.why)
		})
	}
}

// A stamp that was not stored is told once, however often the workload is looked at, and again where the next is lost too.
func TestLostStampIsToldOnceForEach(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(10)
	l := &loop{memory: newMemory(), now: time.Now, recorder: recorder, backoff: newBackoff()}
	l.metrics = newMetrics(prometheus.NewRegistry(), l.memory, l.now)
	at := func(generation int64) subject {
		kind := workload.Builtin()[1]
		raw := map[string]any{"metadata": map[string]any{"generation": generation}}
		return subject{key: Key{Namespace: "shop", Name: "web"}, object: workload.Object{Kind: kind, Raw: raw}, view: viewOf(t)}
	}
	for n, generation := range []int64{2, 3} {
		l.done(t.Context(), at(generation-1), policy.Verdict{}, record.LastReload{}, generation)
		for range 3 {
			l.missStamp(at(generation))
			l.inOrder(at(generation))
		}
		assert.Len(t, recorder.Events, n+1)
	}
	l.missStamp(at(4))
	assert.Len(t, recorder.Events, 2, "somebody else has written since")
}
