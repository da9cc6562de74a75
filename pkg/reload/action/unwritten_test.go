package action

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// full is an API server with a Deployment whose annotations are full: the webhook stamps it and leaves last-reload out.
type full struct {
	stored
	// generation is that of the Deployment after the stamp; 0 for a kind without generations.
	generation int64
	// later is how many writes of others have raised it between the answer to the stamp and the read.
	later      int64
	unreadable error
	reads      int
}

func (c *full) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	c.reads++
	if c.unreadable != nil {
		return c.unreadable
	}
	object.SetGeneration(c.generation + c.later)
	return c.stored.Get(ctx, key, object, opts...)
}

func (c *full) Patch(_ context.Context, answer client.Object, _ client.Patch, _ ...client.PatchOption) error {
	answer.SetUID(c.uid)
	answer.SetGeneration(c.generation)
	answer.(*metav1.PartialObjectMetadata).Annotations = c.annotations
	return nil
}

func TestReloadIsReportedWhereItsExplanationExceedsTheBudget(t *testing.T) {
	t.Parallel()
	ring, app := digesttest.Ring(t, "a"), reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	newest, _ := ring.Newest()
	states := map[reference.Ref]digest.State{app: {Absent: true}}
	due, err := digest.Hash(newest.ID, states)
	require.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		hash       string
		uid        types.UID
		unreadable error
		// live says that the request is one for the live state.
		live  bool
		reads int
		note  string
	}{
		"the template shows the reload":   {hash: due, reads: 1, note: "pod template updated: configmap/app deleted"},
		"nothing was reloaded":            {hash: "present", reads: 1},
		"nothing was, by the live state":  {hash: "present", live: true, reads: 1},
		"the webhook reads another state": {hash: "other", live: true, reads: 1, note: "pod template updated: configmap/app deleted"},
		"a release came first":            {hash: "other", reads: 1},
		"another workload by now":         {hash: due, uid: "new", reads: 1},
		"the template cannot be read":     {hash: due, unreadable: errors.New("the API server is down"), reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web, out := reloadtest.Web(t), &reloadtest.Outbox{}
			web.Object = reloadtest.Summary(web.Object.Kind, map[string]any{"metadata": map[string]any{"uid": web.Object.UID(), "generation": int64(3)}})
			web.View.WorkloadBudget = 0
			web.View.Managed[stamp.Hash] = "present"
			web.View.Managed[stamp.Record] = "v1:present:" + string(newest.ID) + ":configmap/app=0123456789abcdef"
			c := &full{generation: 4, unreadable: tc.unreadable, stored: stored{hash: tc.hash, uid: types.UID(web.Object.UID()), annotations: map[string]string{
				annotation.DefaultPrefix + "configmaps": "app",
			}}}
			if tc.uid != "" {
				c.uid = tc.uid
			}
			gates := state.Gates{Settle: time.Second, Refractory: 5 * time.Second}
			actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c, Webhook: true, Gates: gates}, out)
			if tc.live {
				web.Events.Last = now
			}
			in := policy.Input{
				Namespace: "shop", Intent: web.View.Intent, Refs: web.View.Intent.Refs(), Known: web.View.Known(), Current: states, Ring: ring,
			}
			result := actions.requests.send(t.Context(), web, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
			assert.Equal(t, tc.reads, c.reads)
			assert.Equal(t, tc.note == "", result.RequeueAfter > 0, "tried again")
			if tc.note == "" {
				assert.Empty(t, out.Messages)
				return
			}
			assert.Equal(t, []string{tc.note}, out.Notes())
			assert.Equal(t, now, actions.state.Writes.StampedAt(web.Key), "the refractory time begins")
			assert.True(t, actions.state.Writes.IsStamped(web.Key, web.Object.Generation()+1), "the generation of the stamp is known")
		})
	}
}

// While the watch does not show the reload, the loop finds it a second time: nothing that is stored says when it was made.
func TestReloadIsReportedOnceWhereItsExplanationExceedsTheBudget(t *testing.T) {
	t.Parallel()
	ring, app, out := digesttest.Ring(t, "a"), reference.Ref{Kind: reference.ConfigMap, Name: "app"}, &reloadtest.Outbox{}
	newest, _ := ring.Newest()
	states := map[reference.Ref]digest.State{app: {Absent: true}}
	due, err := digest.Hash(newest.ID, states)
	require.NoError(t, err)
	web, now := reloadtest.Web(t), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web.View.WorkloadBudget = 0
	web.View.Managed[stamp.Hash] = "present"
	web.View.Managed[stamp.Record] = recordOf(ring, "present")
	c := &full{generation: 4, stored: stored{hash: due, uid: types.UID(web.Object.UID()), annotations: map[string]string{annotation.DefaultPrefix + "configmaps": "app"}}}
	gathered := absentApp(t, c, ring, now)
	gathered.Now = func() time.Time { return now }
	actions := newActions(Options{Gather: gathered, Client: c, Webhook: true}, out)
	in := policy.Input{
		Namespace: "shop", Intent: web.View.Intent, Refs: web.View.Intent.Refs(), Known: web.View.Known(), Current: states, Ring: ring,
	}
	for range 2 {
		actions.requests.send(t.Context(), web, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
		now = now.Add(time.Minute)
	}
	assert.Equal(t, []string{"pod template updated: configmap/app deleted"}, out.Notes())

	web.View.Generation++
	actions.requests.send(t.Context(), web, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
	assert.Len(t, out.Notes(), 2, "the next reload has an Event of its own")
}

// Where the stored template cannot be read, the answer to a direct stamp that is as decided shows the reload.
func TestDirectStampIsReportedWhereItCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web, out := reloadtest.Web(t), &reloadtest.Outbox{}
	web.View.Managed[stamp.Hash] = "before"
	c := &full{unreadable: errors.New("the API server is busy")}
	actions := newActions(Options{Gather: absentApp(t, c, digesttest.Ring(t, "a"), now)}, out)
	decided := stamp.Result{
		Stamped: true, Managed: stamp.Managed{stamp.Hash: "due"}, Unwritten: reloadtest.ReloadAt(now, "due").String(),
	}
	direct := directStamp{before: web.View.Managed, decided: decided, answer: &metav1.PartialObjectMetadata{}}
	actions.stamps.stamped(t.Context(), web, policy.Verdict{}, direct).close(t.Context(), actions.base)
	assert.Equal(t, []string{"pod template updated: configmap/app modified"}, out.Notes())
	assert.Equal(t, now, actions.state.Writes.StampedAt(web.Key), "the refractory time begins")
}
