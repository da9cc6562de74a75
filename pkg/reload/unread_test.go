package reload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// observed is a Store that knows all states without a read.
type observed struct{ reloadtest.Store }

func (o *observed) Cached(string, []reference.Ref) map[reference.Ref]digest.State { return o.States }

func (o *observed) ReadLive(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return o.States, nil
}

// A ConfigMap has changed while a custom resource is held. The resource may have changed, too: that is one reload.
func TestReloadWaitsForUnreadCustomResources(t *testing.T) {
	t.Parallel()
	app, edge := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: "proxies.example.com", Name: "edge"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const known = ",proxies.example.com/edge=0123456789abcdef"
	for name, tc := range map[string]struct {
		hold    *digest.Hold
		record  string
		waits   bool
		retries int
	}{
		"not read yet":               {hold: &digest.Hold{Reason: "unread", NotReadYet: true}, record: known, waits: true},
		"not valid":                  {hold: &digest.Hold{Reason: "not-ready"}, record: known},
		"refused before":             {hold: &digest.Hold{Reason: "forbidden", Refused: began.Add(-time.Second)}, record: known, waits: true, retries: 20},
		"refused since":              {hold: &digest.Hold{Reason: "forbidden", Refused: began}, record: known},
		"refused, and not recorded":  {hold: &digest.Hold{Reason: "forbidden", Refused: began.Add(-time.Second)}},
		"not read, and not recorded": {hold: &digest.Hold{Reason: "unread", NotReadYet: true}},
		"read":                       {record: known},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, retries := began, 0
			w := &refusing{}
			store := &observed{}
			store.States = map[reference.Ref]digest.State{
				app: digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring), edge: {Hold: tc.hold},
			}
			if tc.hold == nil {
				store.States[edge] = digest.StateOf(digest.Content{Ref: edge, Namespace: "shop"}, "uid", "1", ring)
			}
			l := newLoop(loopDependencies{
				client: w, Dependencies: Dependencies{
					Events: &reloadtest.Outbox{},
					Store:  store, Keys: &reloadtest.Keys{Present: ring}, Retry: func(namespace string, refs []reference.Ref) {
						assert.Equal(t, "shop", namespace)
						assert.Equal(t, []reference.Ref{edge}, refs)
						retries++
					},
				},
			}, Options{Webhook: true, Now: func() time.Time { return now }})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
			s.View.Intent.Tracked[edge] = s.View.Intent.Tracked[app]
			s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=0123456789abcdef" + tc.record}
			attempt := func() time.Duration { return l.actions.Close(t.Context(), l.decide(t.Context(), s)).RequeueAfter }

			after := attempt()
			if !tc.waits {
				assert.Equal(t, 1, w.writes)
				return
			}
			assert.Zero(t, w.writes)
			assert.Equal(t, time.Second, after, "it is looked at again soon")
			for range 19 {
				now = now.Add(time.Second)
				attempt()
			}
			assert.Zero(t, w.writes)
			now = now.Add(time.Second)
			attempt()
			assert.Equal(t, 1, w.writes, "what stays unread does not hold up the rest")
			assert.Equal(t, tc.retries, retries)
		})
	}
}

// The permission on a custom resource is still missing: the reload does not wait for longer than the answer.
func TestReloadDoesNotWaitForWhatIsRefusedAgain(t *testing.T) {
	t.Parallel()
	edge := reference.Ref{Kind: "proxies.example.com", Name: "edge"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hold := &digest.Hold{Reason: "forbidden", Refused: now.Add(-time.Minute)}
	asked := 0
	p := pacing{state: &state.State{}, now: func() time.Time { return now }, retry: func(string, []reference.Ref) { asked++ }}
	s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}}
	in := policy.Input{Refs: []reference.Ref{edge}, Current: map[reference.Ref]digest.State{
		edge: {Hold: hold, Entries: map[digest.KeyID]digest.Entry{"1c9e04ab": {}}},
	}}
	assert.Equal(t, time.Second, p.awaitUnread(t.Context(), s, in))
	assert.Equal(t, 1, asked)
	hold.Refused, now = now.Add(100*time.Millisecond), now.Add(time.Second)
	assert.Zero(t, p.awaitUnread(t.Context(), s, in))
	assert.Equal(t, 1, asked, "nothing is asked for twice")
}

// The Record has as many custom resources that were refused as it has others that are not read yet.
func TestReloadWaitsForWhatIsNotReadAndForWhatIsRefused(t *testing.T) {
	t.Parallel()
	edge, core := reference.Ref{Kind: "proxies.example.com", Name: "edge"}, reference.Ref{Kind: "proxies.example.com", Name: "core"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var asked []reference.Ref
	p := pacing{state: &state.State{}, now: func() time.Time { return now }, retry: func(_ string, refs []reference.Ref) { asked = refs }}
	known := map[digest.KeyID]digest.Entry{"1c9e04ab": {}}
	in := policy.Input{Refs: []reference.Ref{core, edge}, Current: map[reference.Ref]digest.State{
		core: {Hold: &digest.Hold{Reason: "unread", NotReadYet: true}, Entries: known},
		edge: {Hold: &digest.Hold{Reason: "forbidden", Refused: now.Add(-time.Minute)}, Entries: known},
	}}
	s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}}
	assert.Equal(t, time.Second, p.awaitUnread(t.Context(), s, in))
	assert.Equal(t, []reference.Ref{edge}, asked)
}
