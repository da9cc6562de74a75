package reload

import (
	"errors"
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

var errRefused = errors.New("refused")

// takes counts down what is taken before the next one is refused.
type takes struct{ left int }

func (t *takes) take() error {
	if t.left == 0 {
		return errRefused
	}
	t.left--
	return nil
}

// registering is a manager that takes some parts.
type registering struct {
	manager.Manager
	takes

	workers int64 // those of the controller
	// everywhere is how many parts run on a standby, too, besides the controller.
	everywhere int
}

func (r *registering) GetLogger() logr.Logger { return logr.Discard() }
func (r *registering) GetCache() cache.Cache  { return nil }

func (r *registering) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

func (r *registering) Add(part manager.Runnable) error {
	if part := reflect.Indirect(reflect.ValueOf(part)); part.Kind() == reflect.Struct {
		r.workers = part.FieldByName("MaxConcurrentReconciles").Int()
	} else if elected, ok := part.Interface().(manager.LeaderElectionRunnable); ok && !elected.NeedLeaderElection() {
		r.everywhere++
	}
	return r.take()
}

// watching is a controller that takes some sources.
type watching struct {
	controller.TypedController[workload.Key]
	takes
}

func (w *watching) Watch(source.TypedSource[workload.Key]) error { return w.take() }

// listening counts the handlers that are registered with it.
type listening struct {
	reloadtest.Store
	reloadtest.Keys

	handlers int
}

func (l *listening) OnEvent(func(configstate.Event)) { l.handlers++ }
func (l *listening) OnChange(func())                 { l.handlers++ }

func TestSetupRegistersAllOrFails(t *testing.T) {
	t.Parallel()
	const all = 4 // the controller and what runs beside it
	for n := range all + 1 {
		to, from := &registering{takes: takes{n}}, &listening{}
		rereads := 0
		err := SetupWithManager(to, Dependencies{
			Events: &reloadtest.Outbox{}, Store: from, Keys: from,
			Reread: func(reread func()) {
				reread()
				rereads++
			},
		}, Options{Workers: 3})
		assert.Zero(t, to.left)
		assert.Equal(t, 1, rereads)
		assert.EqualValues(t, 3+action.MaxWrites, to.workers)
		if n < all {
			require.ErrorIs(t, err, errRefused, "%d", n)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, 2, from.handlers, "of the Store and of the keys")
		assert.Equal(t, 1, to.everywhere, "the webhook of a standby answers from what the re-checks read")
	}
}

func TestLoopWatchesAllSourcesOrFails(t *testing.T) {
	t.Parallel()
	const all = 2 // workloads and namespaces
	for n := range all + 1 {
		to := &watching{takes: takes{n}}
		l := newLoop(loopDependencies{Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: &reloadtest.Store{}, Keys: &reloadtest.Keys{}}},
			Options{Scope: scope.Scope{NamespaceSelector: labels.SelectorFromSet(labels.Set{"team": "shop"})}})
		err := l.watch(to)
		assert.Zero(t, to.left)
		if n < all {
			require.ErrorIs(t, err, errRefused, "%d", n)
			continue
		}
		require.NoError(t, err)
	}
}
