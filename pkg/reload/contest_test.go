package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// desired is an API server with one workload, whose controller sets what it wants again shortly after each write of the loop.
type desired struct {
	client.Client
	mu      sync.Mutex
	kind    workload.Kind
	raw     []byte
	changed func(before, after workload.Summary, listed string)
	version int
	// wants is a merge patch; empty if the controller leaves alone what the loop writes.
	wants string
	// patches are those of the loop.
	patches []string
}

// shown is what the watch shows of it.
type shown struct{ *desired }

func (d shown) Run(ctx context.Context) { <-ctx.Done() }

func (d shown) Get(_, _ string) (workload.Summary, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.summary(), true
}

func (d *desired) summary() workload.Summary {
	var raw map[string]any
	if json.Unmarshal(d.raw, &raw) != nil {
		return workload.Summary{}
	}
	raw["metadata"].(map[string]any)["generation"] = int64(d.version)
	return reloadtest.Summary(d.kind, raw)
}

// write stores a merge patch, which the watch shows at once.
func (d *desired) write(patch string) error {
	d.mu.Lock()
	before := d.summary()
	d.version++
	next, err := jsonpatch.MergePatch(d.raw, []byte(patch))
	if err == nil {
		d.raw, err = jsonpatch.MergePatch(next, fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%[1]d","generation":%[1]d}}`, d.version))
	}
	after := d.summary()
	d.mu.Unlock()
	d.changed(before, after, "")
	return err
}

func (d *desired) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	merge := body
	if patch.Type() == types.JSONPatchType {
		if merge, err = d.merged(body); err != nil {
			return err
		}
	}
	if err := d.write(string(merge)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.patches = append(d.patches, string(body))
	obj.SetGeneration(int64(d.version))
	if d.wants != "" && len(d.patches) < 200 {
		time.AfterFunc(30*time.Millisecond, func() { _ = d.write(d.wants) })
	}
	return nil
}

// merged returns the merge patch with the effect of a JSON patch.
func (d *desired) merged(body []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next, err := operations.Apply(d.raw)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(d.raw, next)
}

// count returns how many patches the loop has made.
func (d *desired) count() int {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.patches)
}

// contesting has a loop handle a Deployment until the test ends, and returns the Events.
func contesting(t *testing.T, d *desired, opts Options) *reloadtest.Outbox {
	t.Helper()
	d.kind = workload.Deployment()
	d.raw = []byte(`{"metadata":{"namespace":"shop","name":"web","uid":"u1"},"spec":{"template":{"spec":{}}}}`)
	out := &reloadtest.Outbox{}
	opts.Reader = reloadtest.Reader()
	absent := map[reference.Ref]digest.State{app: {Absent: true}, {Kind: reference.ConfigMap, Name: "other"}: {Absent: true}}
	l := newLoop(loopDependencies{client: d, Dependencies: Dependencies{
		Events: out, Store: &reloadtest.Store{States: absent}, Keys: &reloadtest.Keys{Present: digesttest.Ring(t, "a")},
		Workloads: func(_ workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
			d.changed = changed
			return shown{d}
		},
	}}, opts)
	s := &served{loop: l, pq: priorityqueue.New[workload.Key]("test"), key: workload.Key{Kind: d.kind.ID(), Namespace: "shop", Name: "web"}}
	t.Cleanup(s.pq.ShutDown)
	var to workqueue.TypedRateLimitingInterface[workload.Key] = s.pq
	require.NoError(t, l.queue.Source(func(context.Context) {}).Start(t.Context(), to))
	l.leads.Begin(time.Now())
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(d.kind)))
	go l.queue.Raise(t.Context())
	s.work(t)
	return out
}

// A controller that keeps an annotation in what it wants sets it again each time that the loop has removed it.
func TestAnnotationThatIsSetAgainIsRemovedEverMoreRarely(t *testing.T) {
	t.Parallel()
	const (
		pausedAt = "deployment.reloader.stakater.com/paused-at"
		hash     = annotation.DefaultPrefix + "config-hash"
		lists    = annotation.DefaultPrefix + "configmaps"
	)
	for name, tc := range map[string]struct {
		opts Options
		// annotations are merged with the workload, wants is what the controller wants.
		annotations, wants string
		note               string
		// removals are those that are made.
		removals string
	}{
		"a request, on a workload that asks for nothing": {
			wants: `{"metadata":{"annotations":{"` + hash + `":"abc"}}}`, note: hash, removals: hash,
		},
		"a request, on a workload that is in order": {
			annotations: `{"metadata":{"annotations":{"` + lists + `":"app"}}}`,
			wants:       `{"metadata":{"annotations":{"` + hash + `":"abc"}}}`, note: hash, removals: hash,
		},
		"a pause of a Deployment that is not paused": {
			opts: Options{Webhook: true}, wants: `{"metadata":{"annotations":{"` + pausedAt + `":"2026-01-02T03:04:05Z"}}}`, note: pausedAt, removals: pausedAt,
		},
		"a pause that is over": {
			wants: `{"metadata":{"annotations":{"` + pausedAt + `":"2026-01-02T03:04:05Z"}},"spec":{"paused":true}}`, note: pausedAt, removals: pausedAt,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.opts.PausedAt = pausedAt
				d := &desired{wants: tc.wants}
				out := contesting(t, d, tc.opts)
				if tc.annotations != "" {
					require.NoError(t, d.write(tc.annotations))
				}
				require.NoError(t, d.write(tc.wants))
				<-time.After(10 * time.Minute)
				made := d.count()
				assert.Less(t, made, 30, "the loop gives way")
				assert.Greater(t, made, 10, "the loop does not give up")
				assert.Contains(t, strings.ReplaceAll(d.patches[made-1], "~1", "/"), tc.removals)
				var contested []string
				for _, m := range out.Messages {
					if m.Event.Type == "Warning" && m.Event.Reason != "ConfigMissing" {
						contested = append(contested, m.Event.Note)
					}
				}
				require.Len(t, contested, 1, "it is reported once")
				assert.Contains(t, contested[0], tc.note)
				assert.Contains(t, contested[0], "managedFields")
			})
		})
	}
}

// What is removed now and then is removed at once.
func TestAnnotationThatStaysAwayIsRemovedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desired{}
		out := contesting(t, d, Options{})
		for n := range 5 {
			require.NoError(t, d.write(`{"metadata":{"annotations":{"`+annotation.DefaultPrefix+`config-hash":"abc"}}}`))
			<-time.After(time.Second)
			assert.Equal(t, n+1, d.count())
			<-time.After(10 * time.Minute)
		}
		assert.Empty(t, out.Messages)
	})
}

// The Record keeps what a list had before, while that fits: two controllers that set different lists in turn make no further writes due.
func TestListsThatAreSetInTurnAreRecordedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desired{}
		contesting(t, d, Options{})
		for range 50 {
			for _, list := range []string{"app", "other"} {
				require.NoError(t, d.write(`{"metadata":{"annotations":{"`+annotation.DefaultPrefix+`configmaps":"`+list+`"}}}`))
				<-time.After(100 * time.Millisecond)
			}
		}
		assert.Equal(t, 2, d.count())
	})
}

func TestRefractoryTimeCountsFromAReloadWhoseLastReloadIsGone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(loopDependencies{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
	old := record.LastReload{Time: now.Add(-time.Hour), Hash: "abc", Cause: record.CauseConfigChange}
	for name, managed := range map[string]stamp.Managed{
		"removed": {}, "reverted": {stamp.Hash: "abc", stamp.LastReload: old.String()},
	} {
		s := gather.Subject{Key: workload.Key{Name: name}, View: stamp.View{Managed: managed}}
		wait, _ := l.pacing.gates.Wait(l.pacing.input(s))
		assert.Zero(t, wait, name)
		l.state.Writes.Stamped(s.Key, 3, now.Add(-time.Second))
		wait, _ = l.pacing.gates.Wait(l.pacing.input(s))
		assert.Equal(t, 4*time.Second, wait, name)
	}
}

func TestNothingIsKeptOfWorkloadsInOrder(t *testing.T) {
	t.Parallel()
	l := newLoop(loopDependencies{}, Options{})
	s := gather.Subject{Key: workload.Key{Name: "cart"}}
	l.state.Changes.BeginAttempt(s.Key)
	l.state.Changes.MarkActedOn(s.Key)
	l.state.Takeovers.Record(s.Key, "", "1")
	l.actions.Close(t.Context(), action.InOrder{Subject: s})
	assert.Equal(t, &state.State{}, l.state, "a cluster has many workloads that ask for nothing")
}
