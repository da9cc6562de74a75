package action

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// lagging is a Store whose watches are behind: a list was answered by an API server with an old cache.
type lagging struct {
	reloadtest.Store
	cached    map[reference.Ref]digest.State
	rechecked []reference.Ref
	reads     int
	err       error
}

func (l *lagging) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	l.reads++
	return l.Store.ReadLive(ctx, namespace, refs)
}

func (l *lagging) Cached(string, []reference.Ref) map[reference.Ref]digest.State { return l.cached }

func (l *lagging) RecheckBelow(_ context.Context, _ string, ref reference.Ref) error {
	l.rechecked = append(l.rechecked, ref)
	return l.err
}

// What a webhook stores is not lost where by a live read nothing is due: an Event would send a user to search for what does not exist.
func TestLoopCatchesUpWithWhatIsStored(t *testing.T) {
	t.Parallel()
	app, other := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "other"}
	ring := digesttest.Ring(t, "a")
	present := digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": "b"}}), "uid", "7", ring)
	old := digest.State{Absent: true}
	for name, tc := range map[string]struct {
		failed    int
		live      digest.State
		read, put error
		want      []reference.Ref
		events    int
		pace      state.Pace
	}{
		"the caches show it soon":          {live: present, pace: state.Soon},
		"a list is old":                    {failed: state.Persistent, live: present, want: []reference.Ref{app}, pace: state.Refused},
		"the read of the metadata fails":   {failed: state.Persistent, live: present, put: errors.New("away"), want: []reference.Ref{app}, pace: state.Refused},
		"the stamp is lost":                {failed: state.Persistent, live: old, events: 1, pace: state.NeedsUser},
		"the configuration cannot be read": {failed: state.Persistent, read: errors.New("away"), events: 1, pace: state.Soon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := reloadtest.Web(t), &reloadtest.Outbox{}
			recorded, err := policy.NewRecord(policy.Input{
				Intent: s.View.Intent, Refs: s.View.Intent.Refs(), Current: map[reference.Ref]digest.State{app: present}, Ring: ring,
			}, "", true)
			require.NoError(t, err)
			s.View.Managed[stamp.Record], _ = recorded.Text(1000)
			store := &lagging{
				Store: reloadtest.Store{States: map[reference.Ref]digest.State{app: tc.live, other: present}, Err: tc.read}, err: tc.put,
				cached: map[reference.Ref]digest.State{app: old, other: present},
			}
			actions := newActions(Options{Gather: gather.Gatherer{Store: store}}, out)
			for range tc.failed {
				actions.backoff.When(s.Key, state.Soon)
			}
			in := policy.Input{
				Namespace: "shop", Intent: s.View.Intent, Refs: s.View.Intent.Refs(), Known: s.View.Known(),
				Current: map[reference.Ref]digest.State{app: old}, Ring: ring,
			}
			require.Equal(t, policy.Reload, policy.Assess(in).Verdict.Action, "by the caches")
			got := actions.requests.explainNoReload(t.Context(), s, in, poke.Current, nil)
			assert.Equal(t, tc.pace, got.pace())
			assert.Equal(t, tc.want, store.rechecked)
			for range max(tc.failed, 1) {
				assert.Positive(t, failed{s, got}.close(t.Context(), actions.base).RequeueAfter)
			}
			assert.Len(t, out.Messages, tc.events)
		})
	}
}

// Without a webhook, nothing verifies a Record: what is older than the workload must not become one, and what is later must not, either.
func TestAdoptionWithoutAWebhookCatchesUpFirst(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	at := func(version string) digest.State {
		return digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": version}}), "uid", version, ring)
	}
	for name, tc := range map[string]struct {
		webhook      bool
		cached, live digest.State
		since        string
		want         []reference.Ref
	}{
		"a list is old":                {cached: digest.State{Absent: true}, live: at("7"), since: "8", want: []reference.Ref{app}},
		"a list has an older version":  {cached: at("6"), live: at("7"), since: "7", want: []reference.Ref{app}},
		"the object has changed since": {cached: at("6"), live: at("9"), since: "8"},
		"the object was deleted":       {cached: at("6"), live: digest.State{Absent: true}, since: "8"},
		"the watch has delivered it":   {cached: at("7"), live: at("7"), since: "8"},
		"nothing is known of the time": {cached: at("6"), live: at("7")},
		"the webhook verifies it":      {webhook: true, cached: at("6"), live: at("7"), since: "8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, api := reloadtest.Web(t), &stored{uid: "u1"}
			store := &lagging{
				Store:  reloadtest.Store{States: map[reference.Ref]digest.State{app: tc.live}},
				cached: map[reference.Ref]digest.State{app: tc.cached},
			}
			keys := &reloadtest.Keys{Present: ring}
			actions := newActions(Options{
				Client: api, Webhook: tc.webhook, Gather: gather.Gatherer{Store: store, Keys: keys, APIReader: api},
			}, &reloadtest.Outbox{})
			if tc.since != "" {
				actions.state.Versions.Changed(s.Key, tc.since)
			}
			in := policy.Input{
				Namespace: "shop", Intent: s.View.Intent, Refs: s.View.Intent.Refs(), Known: s.View.Known(),
				Current: map[reference.Ref]digest.State{app: tc.cached}, Ring: ring,
			}
			ended := actions.Adopt(t.Context(), s, in, policy.Assess(in))
			assert.Equal(t, tc.want, store.rechecked)
			_, waits := ended.(Waiting)
			assert.Equal(t, tc.want != nil, waits, "%T", ended)
		})
	}
}

// refusing is a client whose patches are refused as long as there is an error.
type refusing struct {
	accepting
	err error
}

func (c *refusing) Patch(ctx context.Context, answer client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if c.err != nil {
		return c.err
	}
	return c.accepting.Patch(ctx, answer, patch, opts...)
}

// Where the permission to write workloads is missing, the adoption is tried again and again.
func TestAdoptionThatIsRefusedReadsTheConfigurationOnce(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	at := func(version string) digest.State {
		return digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": version}}), "uid", version, ring)
	}
	s, store := reloadtest.Web(t), &lagging{}
	api := &refusing{err: apierrors.NewForbidden(schema.GroupResource{}, "web", nil)}
	actions := newActions(Options{
		Client: api, Gather: gather.Gatherer{Store: store, Keys: &reloadtest.Keys{Present: ring}},
	}, &reloadtest.Outbox{})
	adopt := func(current digest.State) {
		store.States = map[reference.Ref]digest.State{app: current}
		store.cached = store.States
		in := policy.Input{
			Namespace: "shop", Intent: s.View.Intent, Refs: s.View.Intent.Refs(), Known: s.View.Known(),
			Current: map[reference.Ref]digest.State{app: current}, Ring: ring,
		}
		_, isFailed := actions.Adopt(t.Context(), s, in, policy.Assess(in)).(failed)
		require.Equal(t, api.err != nil, isFailed)
	}
	actions.state.Versions.Changed(s.Key, "8")
	for range 5 {
		adopt(at("7"))
	}
	assert.Equal(t, 1, store.reads)
	for range 5 {
		adopt(at("6"))
	}
	assert.Equal(t, 2, store.reads, "the watch has delivered something else: a list is older than the one before")
	actions.state.Versions.Changed(s.Key, "9")
	for range 5 {
		adopt(at("6"))
	}
	assert.Equal(t, 3, store.reads, "the workload is another one")
	api.err = nil
	adopt(at("6"))
	api.err = apierrors.NewForbidden(schema.GroupResource{}, "web", nil)
	adopt(at("6"))
	assert.Equal(t, 4, store.reads, "nothing is kept of what is recorded")
}

// Custom resources have no version.
func TestContentOfCustomResourcesIsComparedWithWhatIsStored(t *testing.T) {
	t.Parallel()
	proxy := reference.Ref{Kind: "proxies.example.com", Name: "p"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	of := func(content, version string) digest.State {
		return digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": content}}), version, version, ring)
	}
	unread := of("a", "7")
	unread.Entries = nil
	for name, tc := range map[string]struct {
		ref        reference.Ref
		seen, live digest.State
		behind     bool
	}{
		"another content":          {ref: proxy, seen: of("a", ""), live: of("b", ""), behind: true},
		"the same content":         {ref: proxy, seen: of("a", ""), live: of("a", "")},
		"one is missing below it":  {ref: proxy, seen: of("a", ""), live: digest.State{Hold: &digest.Hold{}}, behind: true},
		"a content that is unread": {ref: app, seen: unread, live: of("a", "7")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &lagging{cached: map[reference.Ref]digest.State{tc.ref: tc.seen}}
			actions := newActions(Options{Gather: gather.Gatherer{Store: store}}, &reloadtest.Outbox{})
			assert.Equal(t, tc.behind, actions.requests.recheck(t.Context(), reloadtest.Web(t), map[reference.Ref]digest.State{tc.ref: tc.live}))
			assert.Equal(t, tc.behind, len(store.rechecked) == 1)
		})
	}
}

// hanging is a Store whose watches are behind, and whose API server does not answer.
type hanging struct{ lagging }

func (h *hanging) RecheckBelow(ctx context.Context, _ string, _ reference.Ref) error {
	<-ctx.Done()
	return ctx.Err()
}

// A namespace has few slots for writes.
func TestLoopCatchesUpNoLongerThanAWriteTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.ConfigMap, Name: "db"}
		old, live := digest.State{Absent: true}, digest.State{UID: "uid", ResourceVersion: "7"}
		store := &hanging{lagging{cached: map[reference.Ref]digest.State{app: old, db: old}}}
		actions := newActions(Options{Gather: gather.Gatherer{Store: store}}, &reloadtest.Outbox{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		assert.True(t, actions.recheck(ctx, reloadtest.Web(t), map[reference.Ref]digest.State{app: live, db: live}))
		assert.LessOrEqual(t, time.Since(began), writeLimit)
	})
}
