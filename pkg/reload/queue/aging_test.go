package queue

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestLongWaitRaisesPriority(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, web, pay := newAging(), workload.Key{Name: "web"}, workload.Key{Name: "pay"}
	a.add(now.Add(time.Minute), workload.Key{Name: "retried in a minute"})
	a.add(now, web, pay)
	a.add(now.Add(time.Second), web)
	assert.Empty(t, a.raise(now.Add(4*time.Second)), "a reload that is due comes first")
	assert.Empty(t, a.raise(now.Add(agesAfter-1)))
	a.taken(pay)
	a.taken(workload.Key{Name: "never queued"})
	assert.Equal(t, []workload.Key{web}, a.raise(now.Add(agesAfter)), "queued again, it has waited all the same")
	assert.Empty(t, a.raise(now.Add(agesAfter)), "it is raised once")
	a.add(now, pay)
	assert.Equal(t, []workload.Key{pay}, a.raise(now.Add(agesAfter)), "it waits again")
}

func TestEarlierTimeCounts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, web, pay := newAging(), workload.Key{Name: "web"}, workload.Key{Name: "pay"}
	a.add(now.Add(5*time.Minute), web)
	a.add(now.Add(time.Second), pay)
	a.add(now, web)
	assert.Equal(t, []workload.Key{web}, a.raise(now.Add(agesAfter)), "an event came while it waited for a retry")
	assert.Equal(t, []workload.Key{pay}, a.raise(now.Add(agesAfter+time.Second)))
	assert.Equal(t, newAging(), a, "nothing is kept")
}

func TestFewAreRaisedAtOnce(t *testing.T) {
	t.Parallel()
	now, a := time.Now(), newAging()
	for i := range 3 * raisedAtOnce {
		a.add(now.Add(-time.Duration(i)), workload.Key{Name: strconv.Itoa(i)})
	}
	first := a.raise(now.Add(agesAfter))
	require.Len(t, first, raisedAtOnce)
	assert.Equal(t, workload.Key{Name: strconv.Itoa(3*raisedAtOnce - 1)}, first[0], "the oldest ones, whenever they were queued")
	assert.Len(t, a.raise(now.Add(agesAfter)), raisedAtOnce)
}

// start lets the queue feed a controller, as a source does, and waits until it is open.
func start(t *testing.T, q *Queue, to workqueue.TypedRateLimitingInterface[workload.Key]) {
	t.Helper()
	require.NoError(t, q.Source(func(context.Context) {}).Start(t.Context(), to))
	require.NoError(t, q.WaitUntilOpen(t.Context()))
}

func TestOnlyTheLeaderQueues(t *testing.T) {
	t.Parallel()
	leads := &Leadership{}
	q := New(leads, time.Now)
	web := workload.Key{Name: "web"}
	q.Add(Config, web) // no controller has started
	leads.Begin(time.Now())
	q.Add(Config, web)

	leads = &Leadership{}
	q = New(leads, time.Now)
	pq := priorityqueue.New[workload.Key]("test")
	defer pq.ShutDown()
	start(t, q, pq)
	q.Add(Config, web)
	assert.Zero(t, pq.Len(), "a standby")
	leads.Begin(time.Now())
	q.Add(Config, web)
	assert.Equal(t, 1, pq.Len(), "the leader")
}

func TestWhatIsUrgentIsTakenFirst(t *testing.T) {
	t.Parallel()
	leads := &Leadership{}
	leads.Begin(time.Now())
	q := New(leads, time.Now)
	pq := priorityqueue.New[workload.Key]("test")
	defer pq.ShutDown()
	start(t, q, pq)
	q.Add(Retry, workload.Key{Name: "has failed"})
	q.Add(Workload, workload.Key{Name: "was edited"})
	q.Add(Config, workload.Key{Name: "its configuration has changed"})
	q.Add(Slot, workload.Key{Name: "has a slot for its write"})
	for _, want := range []string{"has a slot for its write", "its configuration has changed", "was edited", "has failed"} {
		key, _ := pq.Get()
		assert.Equal(t, want, key.Name)
		pq.Done(key)
	}
}

// One worker treats config changes without end.
func TestConstantChangeStarvesNoLowPriority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leads := &Leadership{}
		q := New(leads, time.Now)
		pq := priorityqueue.New[workload.Key]("test")
		defer pq.ShutDown()
		start(t, q, pq)
		now := time.Now()
		leads.Begin(now)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go q.Raise(ctx)
		adopted, busy := workload.Key{Name: "adopted"}, workload.Key{Name: "busy"}
		q.Add(Workload, adopted)
		q.Add(Config, busy)
		for {
			key, _ := pq.Get()
			q.Taken(key)
			if key == adopted {
				break
			}
			require.Less(t, time.Since(now), time.Minute, "it starves")
			q.Add(Config, workload.Key{Name: "another " + key.Name[len(key.Name)-1:]}, busy)
			<-time.After(100 * time.Millisecond)
			pq.Done(key)
		}
		assert.GreaterOrEqual(t, time.Since(now), agesAfter, "what is urgent comes first")
	})
}

// What a reconciliation returns for later waits as well, from the time at which it is due.
func TestResultIsRaisedWhereItWaits(t *testing.T) {
	t.Parallel()
	now, web, low := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), workload.Key{Name: "web"}, Workload
	tests := map[string]struct {
		result reconcile.Result
		want   []workload.Key
	}{
		"later":                            {After(time.Minute, low), []workload.Key{web}},
		"later, as a change of a config":   {After(time.Minute, Config), nil},
		"not again":                        {reconcile.Result{}, nil},
		"not again, whatever the priority": {reconcile.Result{Priority: &low}, nil},
		"later, without a priority":        {reconcile.Result{RequeueAfter: time.Minute}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := New(&Leadership{}, func() time.Time { return now })
			assert.Equal(t, tc.result, q.Requeued(web, tc.result))
			assert.Empty(t, q.aging.raise(now.Add(time.Minute+agesAfter-1)))
			assert.Equal(t, tc.want, q.aging.raise(now.Add(time.Minute+agesAfter)))
		})
	}
}

func TestTakenWorkloadIsNotRaised(t *testing.T) {
	t.Parallel()
	now, web := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), workload.Key{Name: "web"}
	q := New(&Leadership{}, func() time.Time { return now })
	q.Requeued(web, After(time.Minute, Workload))
	q.Taken(web)
	assert.Empty(t, q.aging.raise(now.Add(time.Hour)))
}

func TestQueueWithoutPrioritiesIsFed(t *testing.T) {
	t.Parallel()
	leads, web := &Leadership{}, workload.Key{Name: "web"}
	leads.Begin(time.Now())
	q := New(leads, time.Now)
	to := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[workload.Key]())
	defer to.ShutDown()
	start(t, q, to)
	q.Add(Config, web)
	assert.Equal(t, 1, to.Len())
}
