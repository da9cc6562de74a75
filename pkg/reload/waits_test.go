package reload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// served is a loop with one workload, which tracks configmap/app, and the queue of a controller. It runs in a bubble of synctest.
type served struct {
	*loop

	pq  priorityqueue.PriorityQueue[workload.Key]
	key workload.Key
	// edit delivers a write of the workload.
	edit func()
	mu   sync.Mutex
	// looks are when the workload was looked at.
	looks []time.Time
}

// looked returns when the workload was looked at, once no worker is busy.
func (s *served) looked() []time.Time {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.looks)
}

// app is what the workload of a served loop tracks.
var app = reference.Ref{Kind: reference.ConfigMap, Name: "app"}

// serving returns a loop that leads. Its workload has annotations besides the one that tracks configmap/app. Where it has a Record, a
// reload is due.
func serving(t *testing.T, c client.Client, opts Options, managed stamp.Managed) *served {
	t.Helper()
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	opts.Reader, opts.Webhook = reloadtest.Reader(), true
	keys := opts.Reader.Keys
	annotations := map[string]any{annotation.DefaultPrefix + "configmaps": app.Name}
	if managed != nil {
		annotations[keys.ConfigRecord] = "v1:abc:" + string(newest.ID) + ":configmap/app=0123456789abcdef"
		annotations[keys.LastReload] = managed[stamp.LastReload]
	}
	kind := workload.Deployment()
	web := reloadtest.Summary(kind, map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "web", "resourceVersion": "5", "annotations": annotations},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{keys.ConfigHash: managed[stamp.Hash]}}, "spec": map[string]any{},
		}},
	})
	content := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "2", ring)
	s := &served{pq: priorityqueue.New[workload.Key]("test"), key: web.Key()}
	l := newLoop(loopDependencies{client: c, cache: unlisted{}, Dependencies: Dependencies{
		Events: &reloadtest.Outbox{}, Store: &reloadtest.Store{States: map[reference.Ref]digest.State{app: content}},
		Keys: &reloadtest.Keys{Present: ring},
		Workloads: func(_ workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
			changed(workload.Summary{}, web, "")
			s.edit = func() { changed(web, web.WithAnnotation(annotation.DefaultPrefix+"secrets", "db"), "") }
			return single{web}
		},
	}}, opts)
	s.loop = l
	t.Cleanup(s.pq.ShutDown)
	var to workqueue.TypedRateLimitingInterface[workload.Key] = s.pq
	require.NoError(t, l.queue.Source(func(context.Context) {}).Start(t.Context(), to))
	l.leads.Begin(time.Now())
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(kind)))
	go l.queue.Raise(t.Context())
	return s
}

// take treats the next workload of the queue, as a controller does. Others than that of the loop take a while.
func (s *served) take(t *testing.T) workload.Key {
	t.Helper()
	key, _, ended := s.pq.GetWithPriority()
	if ended {
		return workload.Key{}
	}
	defer s.pq.Done(key)
	if key != s.key {
		s.queue.Taken(key)
		<-time.After(100 * time.Millisecond)
		return key
	}
	s.mu.Lock()
	s.looks = append(s.looks, time.Now())
	s.mu.Unlock()
	result, err := s.Reconcile(t.Context(), key)
	assert.NoError(t, err)
	if result.RequeueAfter > 0 {
		s.pq.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, key)
	}
	return key
}

// work treats workloads as they are queued.
func (s *served) work(t *testing.T) {
	t.Helper()
	go func() {
		for s.take(t) != (workload.Key{}) {
		}
	}()
}

// change reports a change of configmap/app.
func (s *served) change() {
	s.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: app, Type: configstate.Modified, Received: time.Now()})
}

// changeFor reports changes without a pause.
func (s *served) changeFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		s.change()
		<-time.After(10 * time.Millisecond)
	}
}

// One worker treats config changes without end.
func TestConstantChangeStarvesNoWorkloadThatWaits(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(s *served){
		"the attempt is deferred": func(s *served) {
			s.state.Deferrals.Defer(s.key, state.Deferral{Since: time.Now(), Until: time.Now().Add(time.Second), Stored: true})
		},
		"the cache is behind": func(s *served) { s.state.Writes.RecordWrite(s.key, 7, time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serving(t, &refusing{}, Options{}, nil)
				wait(s)
				require.Equal(t, s.key, s.take(t))
				begin, busy := time.Now(), []workload.Key{{Name: "busy 0"}, {Name: "busy 1"}}
				s.queue.Add(queue.Config, busy...)
				for {
					key := s.take(t)
					if key == s.key {
						break
					}
					require.Less(t, time.Since(begin), time.Minute, "it starves")
					s.queue.Add(queue.Config, busy...)
				}
				assert.GreaterOrEqual(t, time.Since(begin), 5*time.Second, "what is urgent comes first")
			})
		})
	}
}

// lastReload is the annotation about a reload that was made at this moment.
func lastReload() stamp.Managed {
	last := record.LastReload{Time: time.Now(), Hash: "abc", Cause: record.CauseConfigChange}
	return stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
}

// Each look costs as much as a comparison with all that is tracked, and an event concerns all that track an object.
func TestConstantChangeLooksRarelyAtAWorkloadThatWaits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refractory time.Duration
		// adopts says that nothing is recorded of the workload.
		adopts bool
		begin  func(t *testing.T, s *served)
		most   int
	}{
		"for the refractory time":                 {refractory: time.Minute, most: 20},
		"after attempts that fail":                {most: 60},
		"for a slot":                              {most: 20, begin: occupy},
		"for a slot, to record its configuration": {adopts: true, most: 40, begin: occupy},
		"because its Record is undone": {most: 40, begin: func(_ *testing.T, s *served) {
			web, _ := s.tracking.Get(context.Background(), s.key)
			for range 20 {
				s.state.Contests.Wrote(s.key, web.Annotations()[s.gather.Reader.Keys.ConfigRecord], time.Now())
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				managed, longest := lastReload(), 5*time.Second
				if tc.adopts {
					managed, longest = nil, time.Second // a reload that an event makes due would be more urgent
				}
				s := serving(t, &refusing{}, Options{Settle: time.Second, SettleMax: 5 * time.Second, Refractory: tc.refractory}, managed)
				if tc.begin != nil {
					tc.begin(t, s)
				}
				s.work(t)
				s.changeFor(30 * time.Second)
				looks := s.looked()
				assert.LessOrEqual(t, len(looks), tc.most, "3,000 events")
				for i := range looks[1:] {
					assert.LessOrEqual(t, looks[i+1].Sub(looks[i]), longest+20*time.Millisecond, "nothing is put off for longer than it may settle")
				}
			})
		})
	}
}

// other is a workload of the same namespace.
var other = workload.Key{Namespace: "shop", Name: "other"}

// occupy gives the only slot of a namespace to another workload: so many namespaces hang that none has spare slots.
func occupy(t *testing.T, s *served) {
	t.Helper()
	for i := range 32 {
		hangs := workload.Key{Namespace: fmt.Sprint("hangs-", i), Name: "web"}
		require.True(t, s.actions.MayWrite(gather.Subject{Key: hangs}, inflight.Urgent), "the slot of %s is free", hangs.Namespace)
	}
	<-time.After(time.Second)
	require.True(t, s.actions.MayWrite(gather.Subject{Key: other}, inflight.Urgent), "the only slot of the namespace is free")
}

func TestWaitEndsInTimeAlthoughEventsWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refractory time.Duration
		begin      func(t *testing.T, s *served)
		then       func(s *served)
		looked     time.Duration
		writes     int
	}{
		"an event is looked at before a long wait ends": {refractory: time.Minute, then: func(*served) {}, looked: 7 * time.Second},
		"the refractory time is over":                   {refractory: 4 * time.Second, then: func(*served) {}, looked: 4 * time.Second, writes: 1},
		"the workload is edited": {refractory: time.Minute, then: func(s *served) {
			s.queue.Add(queue.Workload, s.key)
		}, looked: 2500 * time.Millisecond},
		"the workload has got a slot": {begin: occupy, then: func(s *served) { s.actions.ReleaseSlot(other) }, looked: 2500 * time.Millisecond, writes: 1},
		"the workload has no slot":    {begin: occupy, then: func(*served) {}, looked: 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &refusing{}
				s := serving(t, c, Options{Settle: 200 * time.Millisecond, SettleMax: 5 * time.Second, Refractory: tc.refractory}, lastReload())
				if tc.begin != nil {
					tc.begin(t, s)
				}
				begin := time.Now()
				s.work(t)
				s.change()
				<-time.After(2 * time.Second)
				s.change()
				<-time.After(500 * time.Millisecond)
				before := len(s.looked())
				tc.then(s)
				for len(s.looked()) == before {
					<-time.After(time.Millisecond)
				}
				assert.InDelta(t, tc.looked, s.looked()[before].Sub(begin), float64(2*time.Millisecond))
				assert.Equal(t, tc.writes, c.writes)
			})
		})
	}
}

// policed is an API server whose admission policy refuses each write, unless it lets them pass.
type policed struct {
	client.Client
	// writes are when there was one.
	writes []time.Time
	passes bool
}

func (d *policed) Patch(_ context.Context, answer client.Object, patch client.Patch, _ ...client.PatchOption) error {
	d.writes = append(d.writes, time.Now())
	if !d.passes {
		return apierrors.NewInvalid(workload.Deployment().GroupKind(), "web", nil)
	}
	body, err := patch.Data(answer)
	if err != nil {
		return err
	}
	var sent metav1.PartialObjectMetadata
	err = json.Unmarshal(body, &sent)
	answer.SetAnnotations(sent.Annotations)
	return err
}

// A user must mend what refuses the write. Until then, each change of a busy object would be one more attempt.
func TestConstantChangeKeepsThePaceOfWhatIsRefused(t *testing.T) {
	t.Parallel()
	none := func(*served, *policed) {}
	for name, tc := range map[string]struct {
		managed func() stamp.Managed
		opts    Options
		// then happens at a time, and is followed by an attempt within a time.
		then   func(s *served, api *policed)
		within time.Duration
	}{
		"an adoption":                   {managed: func() stamp.Managed { return nil }, opts: Options{Settle: time.Second, SettleMax: 5 * time.Second}, then: none, within: 3 * time.Second},
		"a reload that need not settle": {managed: lastReload, then: none, within: 3 * time.Second},
		"an adoption, until the workload is written": {
			managed: func() stamp.Managed { return nil }, then: func(s *served, _ *policed) { s.edit() }, within: time.Millisecond,
		},
		"an adoption, until the policy lets it pass": {
			managed: func() stamp.Managed { return nil }, then: func(_ *served, api *policed) { api.passes = true }, within: 3 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &policed{}
				s := serving(t, api, tc.opts, tc.managed())
				s.work(t)
				s.changeFor(15*time.Second + 500*time.Millisecond)
				synctest.Wait()
				writes := len(api.writes)
				assert.LessOrEqual(t, writes, 8, "1,500 events")
				assert.GreaterOrEqual(t, writes, 6, "they bring the next attempt forward")
				then := time.Now()
				tc.then(s, api)
				s.changeFor(4 * time.Second)
				synctest.Wait()
				require.Greater(t, len(api.writes), writes)
				assert.LessOrEqual(t, api.writes[writes].Sub(then), tc.within+10*time.Millisecond)
			})
		})
	}
}
