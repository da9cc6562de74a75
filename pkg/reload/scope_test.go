package reload

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestWorkloadOutOfScopeIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	j.opts.Scope.Ignored = []string{"shop"}
	assert.Zero(t, j.reconcile(t, j.leader(t)), "nor is it looked at again")
	assert.Empty(t, j.Writes())
	assert.Empty(t, j.Notes())

	j.opts.Scope.Ignored = nil
	j.reconcile(t, j.leader(t))
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes(), "its reload was due")
}

// The watch may be behind: the Job has left the scope since it was looked at.
func TestWorkloadThatHasLeftTheScopeIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, nil, nil)
	var err error
	j.opts.Scope.ObjectSelector, err = labels.Parse("tier!=other")
	require.NoError(t, err)
	j.looked = func() { j.Metadata("labels", map[string]any{"tier": "other"}) }
	assert.Zero(t, j.reconcile(t, j.leader(t)), "the watch brings it back")
	assert.Empty(t, j.Writes())

	j.Metadata("labels", map[string]any{})
	j.reconcile(t, j.leader(t))
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes(), "its reload was due")
}

// unlisted is a cache that has not listed the namespaces.
type unlisted struct{ cache.Cache }

func (unlisted) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewTimeoutError("failed waiting for the informer to sync", 0)
}

// What is due stays due, for the alert, until it is known that the workload is out of scope.
func TestReloadStaysDueWhileTheScopeIsUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scope scope.Scope
		due   int
		again time.Duration
	}{
		"unknown": {scope.Scope{NamespaceSelector: labels.SelectorFromSet(labels.Set{"team": "a"})}, 1, 10 * time.Second},
		"outside": {scope.Scope{Ignored: []string{"shop"}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &refusing{}
				s := serving(t, c, Options{Scope: tc.scope}, lastReload())
				s.state.Due.Add(s.key, time.Now())
				result, err := s.Reconcile(t.Context(), s.key)
				require.NoError(t, err)
				assert.Equal(t, tc.again, result.RequeueAfter, "no event need follow")
				_, due := s.state.Due.Oldest()
				assert.Equal(t, tc.due, due)
				assert.Zero(t, c.writes)
			})
		})
	}
}

// Its controller starts no pods any more: a reload would report a restart that does not happen.
func TestWorkloadThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, deleting := range map[string]bool{"the workload stays": false, "the workload waits for a finalizer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &refusing{}
			l, s := dueLoop(t, loopDependencies{client: c}, Options{})
			metadata := map[string]any{"name": "web", "namespace": "shop"}
			if deleting {
				metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			}
			s.Object = reloadtest.Summary(workload.Kind{}, map[string]any{"metadata": metadata})
			l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s))
			assert.Equal(t, deleting, c.writes == 0)
		})
	}
}
