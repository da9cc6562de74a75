package action

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
)

// A list takes two seconds.
func TestJobsOfANamespaceAreListedOnceAtATime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err error
		// kept says that the answer is used afterwards, too.
		kept bool
	}{
		"Jobs":                      {kept: true},
		"the permission is missing": {err: unlistable(), kept: true},
		"there is no answer":        {err: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l jobLists
				lists := 0
				get := func(namespace string) error {
					jobs, err := l.of(t.Context(), namespace, time.Now(), func() ([]cronrun.Job, error) {
						lists++
						<-time.After(2 * time.Second)
						return []cronrun.Job{cronrun.JobOf(unstructured.Unstructured{Object: map[string]any{}}, "")}, tc.err
					})
					assert.Len(t, jobs, 1)
					return err
				}
				answers := make(chan error)
				for range 3 {
					go func() { answers <- get("shop") }()
				}
				for range 3 {
					assert.Equal(t, tc.err, <-answers)
				}
				assert.Equal(t, 1, lists, "they come at the same time")
				<-time.After(40 * time.Second)
				assert.Equal(t, tc.err, get("shop"))
				want := 2
				if tc.kept {
					want = 1
				}
				assert.Equal(t, want, lists, "it is less than a minute old")
				assert.Equal(t, tc.err, get("other"))
				assert.Equal(t, want+1, lists, "of another namespace")
				<-time.After(time.Minute)
				synctest.Wait()
				l.mu.Lock()
				assert.Empty(t, l.lists, "no list is kept for long")
				l.mu.Unlock()
				assert.Equal(t, tc.err, get("shop"))
				assert.Equal(t, want+2, lists)
			})
		})
	}
}

// The caller that lists waits for the turn of the namespace for large objects, which another one of them may have.
func TestListWithoutATurnIsMadeByTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l jobLists
		turn := fmt.Errorf("list: %w", largeread.ErrWaiting)
		go func() {
			_, err := l.of(t.Context(), "shop", time.Now(), func() ([]cronrun.Job, error) {
				<-time.After(10 * time.Second)
				return nil, turn
			})
			assert.ErrorIs(t, err, turn, "it does not list twice")
		}()
		synctest.Wait()
		jobs, err := l.of(t.Context(), "shop", time.Now(), func() ([]cronrun.Job, error) { return make([]cronrun.Job, 3), nil })
		require.NoError(t, err)
		assert.Len(t, jobs, 3)
		<-time.After(time.Hour) // the list is dropped
	})
}

func TestSharedListThatPanicsIsNoList(t *testing.T) {
	t.Parallel()
	var l jobLists
	list := func() ([]cronrun.Job, error) { panic("no Jobs") }
	_, err := l.of(t.Context(), "shop", time.Now(), list)
	var panicked *recovering.Panic
	require.ErrorAs(t, err, &panicked)
}

func TestListThatIsUnderWayHoldsUpNoEndedCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l jobLists
		list := func() ([]cronrun.Job, error) {
			<-time.After(time.Hour)
			return nil, nil
		}
		go func() { _, _ = l.of(t.Context(), "shop", time.Now(), list) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.of(ctx, "shop", time.Now(), list)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-time.After(time.Hour) // the list ends
	})
}

// A new leader has many CronJobs of a namespace whose runs may wait.
func TestNextLeaderListsTheJobsOfANamespaceOnce(t *testing.T) {
	t.Parallel()
	for name, unlisted := range map[string]error{"the runs wait": nil, "the permission is missing": unlistable()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOccupied(t)
			o.change(t, "B")
			o.now, o.unlisted = o.now.Add(2*time.Minute), unlisted
			o.actions = newActions(Options{Client: o.batch, Gates: o.actions.gates, Gather: o.actions.gather}, o.out)
			o.lists = 0
			for minute := range 3 {
				for n := range 5 {
					s, _ := o.subject(t)
					s.Key.Name = fmt.Sprint("backup-", n)
					o.actions.RequireRun(s)
					o.now = o.now.Add(time.Second)
					assert.Positive(t, o.actions.Close(t.Context(), o.actions.UpToDate(t.Context(), s)).RequeueAfter)
					o.actions.ReleaseSlot(s.Key)
				}
				if unlisted == nil {
					assert.Equal(t, 1, o.lists, "all of them find the active Job in one list")
					return
				}
				assert.Equal(t, minute+1, o.lists)
				o.now = o.now.Add(55 * time.Second)
			}
		})
	}
}
