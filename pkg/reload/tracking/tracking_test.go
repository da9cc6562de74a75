package tracking

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A standby keeps which workloads there are, and queues them when it becomes the leader, not before: what comes and goes
// meanwhile would never be taken out.
func TestStandbyQueuesNothing(t *testing.T) {
	t.Parallel()
	l := standby(Options{Reader: reloadtest.Reader()})
	q := reloadtest.Open(t, l.queue)
	kind := workload.Deployment()
	h := changesOf(l, kind)
	stays, goes := deployment(kind, "stays"), deployment(kind, "goes")
	var none workload.Summary
	h(none, stays)
	h(none, goes)
	h(goes, none)
	l.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Received: time.Now()})
	assert.Zero(t, q.Len(), "a standby")

	l.leads.Begin(time.Now())
	l.tracking.QueueAll()
	require.Equal(t, 1, q.Len(), "the leader treats what there is")
	key, _ := q.Get()
	assert.Equal(t, workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "stays"}, key)
	q.Done(key)

	h(none, goes)
	assert.Equal(t, 1, q.Len(), "and what comes")

	l.tracking.QueueAll()
	assert.Equal(t, 2, q.Len(), "all, when the digest keys have changed")
}

// A configuration finds other workloads than the one before: all are read again.
func TestRereadEntersWhatIsFoundNow(t *testing.T) {
	t.Parallel()
	reader := reloadtest.Reader()
	sap, ok := reader.Dialects[0].(annotation.SAP)
	require.True(t, ok, "the first dialect is that of SAP")
	proxy := reference.Ref{Kind: "proxies.example.io", Name: "p"}
	var found []reference.Ref
	sap.Workloads = func(map[string]string, []reference.Owner) (owned, labelled []reference.Ref, known bool) {
		return found, nil, true
	}
	reader.Dialects = []annotation.Dialect{sap}
	l := standby(Options{Reader: reader})
	q := reloadtest.Open(t, l.queue)
	l.leads.Begin(time.Now())
	kind := workload.Deployment()
	one := summaryOf(kind, map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "one"}})
	w := &watched{kind: kind, workloads: workloadsOf{one}}
	l.tracking.watches.add(w)
	l.tracking.changes.changed(w, workload.Summary{}, one, "")
	key, _ := q.Get()
	q.Done(key)
	assert.Empty(t, l.tracking.index.Trackers("shop", proxy))

	found = []reference.Ref{proxy}
	l.tracking.Reindex()
	assert.Equal(t, []workload.Key{key}, l.tracking.index.Trackers("shop", proxy))
	assert.Equal(t, 1, q.Len(), "it is to be adopted")
	found = nil
	l.tracking.Reindex()
	assert.Empty(t, l.tracking.index.Trackers("shop", proxy))
}

// A workload can come while the configuration changes: it is read by the one, and entered after all have been read by the other.
func TestWorkloadThatComesDuringARereadIsReadAgain(t *testing.T) {
	t.Parallel()
	reader := reloadtest.Reader()
	sap, ok := reader.Dialects[0].(annotation.SAP)
	require.True(t, ok, "the first dialect is that of SAP")
	proxy := reference.Ref{Kind: "proxies.example.io", Name: "p"}
	var found []reference.Ref
	var l *fixture
	sap.Workloads = func(map[string]string, []reference.Owner) (owned, labelled []reference.Ref, known bool) {
		before := found
		if found == nil {
			found = []reference.Ref{proxy}
			l.tracking.Reindex()
		}
		return before, nil, true
	}
	reader.Dialects = []annotation.Dialect{sap}
	l = standby(Options{Reader: reader})
	kind := workload.Deployment()
	one := summaryOf(kind, map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "one"}})
	changesOf(l, kind)(workload.Summary{}, one)
	assert.Equal(t, []workload.Key{one.Key()}, l.tracking.index.Trackers("shop", proxy))
}

// The watches of a Job and of its configuration do not wait for each other: a change can be recorded while the end of the Job is handled.
func TestChangeThatComesWhileAJobFinishesIsNotForgotten(t *testing.T) {
	t.Parallel()
	kind := workload.Job()
	job := func(status map[string]any) workload.Summary {
		return summaryOf(kind, map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "import", "uid": "u", "annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app"},
			},
			"status": status,
		})
	}
	running, finished := job(nil), job(map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}})
	for name, tc := range map[string]struct {
		comes   bool
		pending bool
	}{
		"a change": {comes: true, pending: true}, "nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l *fixture
			l = standby(Options{Reader: stakaterReader(), FollowJobs: true, Ignores: func(s workload.Summary, pending bool) bool {
				leaves := s.Finished() && !pending
				if leaves && tc.comes {
					l.state.Changes.EventArrived(s.Key(), time.Now()) // by the watch of ConfigMaps, which has seen the Job running
				}
				return leaves
			}})
			h := changesOf(l, kind)
			h(workload.Summary{Kind: kind}, running)
			require.False(t, l.state.Changes.HasPending(running.Key()), "no change has arrived before the Job finishes")
			h(running, finished)
			assert.Equal(t, tc.pending, l.state.Changes.HasPending(running.Key()))
			assert.Equal(t, tc.pending, len(l.tracking.index.All()) == 1, "the workload is created again")
		})
	}
}

// A Job that finishes while a change is pending is in the index. It has its own name, which is used once.
func TestJobThatWasEnteredWithAPendingChangeIsForgottenWithItsEnd(t *testing.T) {
	t.Parallel()
	kind := workload.Job()
	job := func(uid string, status map[string]any) workload.Summary {
		return summaryOf(kind, map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "import", "uid": uid, "annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app"},
			},
			"status": status,
		})
	}
	completed := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	running, finished := job("u", nil), job("u", completed)
	for name, next := range map[string]workload.Summary{
		"deleted": {Kind: kind}, "another one of its name has finished, by a listing": job("v", completed),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := standby(Options{Reader: stakaterReader(), FollowJobs: true, Ignores: func(s workload.Summary, pending bool) bool {
				return s.Finished() && !pending
			}})
			h := changesOf(l, kind)
			h(workload.Summary{Kind: kind}, running)
			l.state.Changes.EventArrived(running.Key(), time.Now())
			l.state.Creations.Created(running.Key(), "7")
			h(running, finished)
			require.True(t, l.tracking.index.Has(running.Key()), "a finished Job with a pending change is still tracked")
			l.state.Changes.BeginAttempt(running.Key())
			l.state.Changes.ForgetHandled(running.Key()) // the content is as before
			require.False(t, l.state.Changes.HasPending(running.Key()), "the change is handled")

			h(finished, next)
			assert.False(t, l.tracking.index.Has(running.Key()), "the finished Job is no longer tracked")
			assert.Empty(t, l.state.Creations.Version(running.Key()), "nor is anything else kept of it")
		})
	}
}

// The pods of a Job start with what its configuration is when it is created. Only Reloader's annotations have a Job created again.
func TestChangeBeforeTheCreationOfAJobIsNotPending(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind         workload.Kind
		changed, job string
		pending      bool
	}{
		"before the Job":              {kind: workload.Job(), changed: "9", job: "10"},
		"after the Job":               {kind: workload.Job(), changed: "11", job: "10", pending: true},
		"unknown version":             {kind: workload.Job(), job: "10", pending: true},
		"before another kind, settle": {kind: workload.Deployment(), changed: "9", job: "10", pending: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := standby(Options{Reader: stakaterReader(), FollowJobs: true, Settle: time.Minute})
			created := summaryOf(tc.kind, map[string]any{"metadata": map[string]any{
				"namespace": "shop", "name": "import", "uid": "u", "resourceVersion": tc.job,
				"annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app"},
			}})
			l.tracking.ConfigChanged(configstate.Event{
				Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Type: configstate.Modified,
				ResourceVersion: tc.changed, Received: time.Now(),
			})
			changesOf(l, tc.kind)(workload.Summary{Kind: tc.kind}, created)
			assert.Equal(t, tc.pending, l.state.Changes.HasPending(created.Key()))
		})
	}
}

// workloadsOf are workloads that are not followed.
type workloadsOf []workload.Summary

func (w workloadsOf) Run(context.Context) {}

func (w workloadsOf) Get(namespace, name string) (workload.Summary, bool) {
	for _, s := range w {
		if s.Namespace() == namespace && s.Name() == name {
			return s, true
		}
	}
	return workload.Summary{}, false
}

// fixture is a Tracking and what it works with.
type fixture struct {
	tracking *Tracking
	state    *state.State
	backoff  state.Backoff
	leads    *queue.Leadership
	queue    *queue.Queue
}

func standby(o Options) *fixture {
	f := &fixture{state: &state.State{}, backoff: state.NewBackoff(), leads: &queue.Leadership{}}
	f.queue = queue.New(f.leads, time.Now)
	o.State, o.Backoff, o.Queue, o.Now = f.state, f.backoff, f.queue, time.Now
	if o.Ignores == nil {
		o.Ignores = func(workload.Summary, bool) bool { return false }
	}
	f.tracking = New(o)
	return f
}

// stakaterReader reads the annotations of the second dialect.
func stakaterReader() stamp.Reader {
	reader := reloadtest.Reader()
	reader.Dialects = []annotation.Dialect{annotation.Stakater{Keys: annotation.NewStakaterKeys()}}
	return reader
}

// changesOf is what the watch of a kind calls.
func changesOf(l *fixture, kind workload.Kind) changed {
	w := &watched{kind: kind}
	return func(before, after workload.Summary) { l.tracking.changes.changed(w, before, after, "") }
}

// deployment is a workload that tracks configmap/app.
func deployment(kind workload.Kind, name string) workload.Summary {
	return trackingApp(kind, "shop", name, 1)
}

func trackingApp(kind workload.Kind, namespace, name string, generation int64) workload.Summary {
	return summaryOf(kind, map[string]any{"metadata": map[string]any{
		"namespace": namespace, "name": name, "generation": generation,
		"annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
	}})
}

// summaryOf keeps all labels and annotations.
func summaryOf(kind workload.Kind, raw map[string]any) workload.Summary {
	return workload.Object{Kind: kind, Raw: raw}.Summary()
}

// An update that cannot change what is due queues nothing; one of another object of the same name forgets the earlier one.
func TestChangesOfWorkloads(t *testing.T) {
	t.Parallel()
	kind := workload.Deployment()
	version := func(uid, status string, generation int64) workload.Summary {
		return summaryOf(kind, map[string]any{"status": status, "metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": uid, "generation": generation,
		}})
	}
	for name, tc := range map[string]struct {
		after             workload.Summary
		queued, remembers bool
	}{
		"the status changes":            {version("u", "b", 1), false, true},
		"the spec changes":              {version("u", "a", 2), true, true},
		"the workload is created again": {version("v", "a", 1), true, false},
		"the workload is deleted":       {workload.Summary{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, q := leading(t, Options{})
			h := changesOf(l, kind)
			key := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
			l.state.Due.Add(key, time.Now())
			h(version("u", "a", 1), tc.after)
			_, due := l.state.Due.Oldest()
			assert.Equal(t, tc.remembers, due == 1)
			assert.Equal(t, tc.queued, q.Len() == 1)
		})
	}
}

func TestConstantChangeQueuesAWorkloadThatSettlesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, q := leading(t, Options{})
		app, key := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, workload.Key{Namespace: "shop", Name: "web"}
		other := workload.Key{Namespace: "shop", Name: "other"}
		l.tracking.index.SetRefs(key, []reference.Ref{app})
		l.tracking.index.SetRefs(other, []reference.Ref{app})
		now := time.Now()
		changed := configstate.Event{Namespace: "shop", Ref: app, Received: now}
		l.tracking.ConfigChanged(changed)
		require.Equal(t, 2, q.Len())
		for range 2 {
			taken, _ := q.Get()
			q.Done(taken)
		}
		l.state.Changes.WaitToSettle(key, now.Add(time.Second))
		l.tracking.ConfigChanged(changed)
		require.Equal(t, 1, q.Len(), "it is queued for the end of the settle time")
		taken, _ := q.Get()
		assert.Equal(t, other, taken)
		assert.Equal(t, now, l.state.Changes.BeginAttempt(key).Last, "the event counts")
	})
}

// The watch of workloads may be behind that of config objects: a change is then known before a workload depends on it.
func TestWorkloadThatComesAfterTheChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := standby(Options{Reader: reloadtest.Reader(), Settle: time.Second})
		kind := workload.Deployment()
		h := changesOf(l, kind)
		app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
		first := time.Now()
		second := first.Add(time.Second / 2)
		l.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: app, Received: first})
		l.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: app, Received: second})

		web := deployment(kind, "web")
		var none workload.Summary
		h(none, web)
		key := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
		last := l.state.Changes.BeginAttempt(key).Last
		assert.Equal(t, second, last, "its configuration settles from the last change on")
		l.state.Changes.ForgetHandled(key)
		h(web, trackingApp(kind, "shop", "web", 2))
		last = l.state.Changes.BeginAttempt(key).Last
		assert.Zero(t, last, "what it tracked before is no news")

		h(none, trackingApp(kind, "blog", "other", 1))
		last = l.state.Changes.BeginAttempt(workload.Key{Kind: kind.ID(), Namespace: "blog", Name: "other"}).Last
		assert.Zero(t, last, "the object of another namespace has not changed")
	})
}

func TestWorkloadsThatAreLeftAloneAreNotIndexed(t *testing.T) {
	t.Parallel()
	kind := workload.DaemonSet()
	c := newWatching()
	l, q := leading(t, Options{Workloads: c.follow, Ignores: func(s workload.Summary, _ bool) bool { return s.Controlled() }})
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(kind)))
	report := <-c.attached
	none, running := workload.Summary{Kind: kind}, deployment(kind, "web")
	left := summaryOf(kind, map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "web", "annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
		"ownerReferences": []any{map[string]any{"controller": true}},
	}})

	report(none, left)
	assert.Empty(t, l.tracking.index.All(), "it is left alone")
	report(left, none)
	assert.Zero(t, q.Len(), "so is its end")
	report(none, running)
	assert.Len(t, l.tracking.index.All(), 1)
	report(running, left)
	assert.Empty(t, l.tracking.index.All(), "it is left alone since")
}
