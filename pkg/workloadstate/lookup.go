package workloadstate

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// steady is how long no lookup must have been needed for the next one to come soon.
	steady = time.Minute
	// versionsEvery is how many lookups that find nothing share one for the other versions of the kind, which costs more.
	versionsEvery = 10
)

// lookup finds the resource of a kind, and finds it again when the API server does not have it any more. Only Run's goroutines have it, one
// after the other.
type lookup struct {
	of *Watch
	// failed counts the lookups in a row that have found nothing. otherwise is an error if the kind is served in other versions alone.
	failed    int
	otherwise error
}

func pauses() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second, Jitter: 0.1}
}

// first waits until the cluster serves the kind. It is false when the context ends. That a cluster does not have a kind can stay so: it
// is logged once.
func (l *lookup) first(ctx context.Context) (target, bool) {
	w, pause := l.of, pauses()
	unserved := w.log
	// The name is a guess, and mostly right.
	guess, _ := meta.UnsafeGuessKindToResource(w.kind.GroupVersionKind)
	for {
		to, err := l.find()
		if err != nil && ctx.Err() != nil {
			return target{}, false
		}
		w.source.discovered(guess.GroupResource(), err)
		if err == nil {
			return to, true
		}
		if meta.IsNoMatchError(err) {
			unserved.Info("The cluster does not serve this workload kind; retrying")
			unserved = w.log.V(1)
		} else {
			w.log.Error(err, "Cannot watch this workload kind; retrying")
		}
		select {
		case <-ctx.Done():
			return target{}, false
		case <-time.After(pause.Step()):
		}
	}
}

// again finds the resource again each time the API server does not have it any more, until the context ends: its definition may be deleted
// and created again with another name.
func (l *lookup) again(ctx context.Context) {
	w := l.of
	pause := pauses().DelayWithReset(clock.RealClock{}, steady)
	for {
		select {
		case <-ctx.Done():
			return
		case lost := <-w.unserved:
			if lost != w.target.Load() {
				continue // it was asked before the new one was known
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause()):
		}
		select {
		case <-w.unserved: // it has waited for this lookup
		default:
		}
		l.relocate(ctx)
	}
}

// relocate follows another resource if the kind has one now. A kind that is not installed any more is no failure.
func (l *lookup) relocate(ctx context.Context) {
	w := l.of
	was := w.target.Load()
	to, err := l.find()
	if err == nil && to.resource == was.resource {
		w.source.options.Mapper.Reset() // it may know what was served before
		to, err = l.find()
	}
	if ctx.Err() != nil {
		return
	}
	w.source.discovered(was.resource, err)
	switch {
	case err != nil:
		w.log.V(1).Info("Cannot find the resource of this workload kind; retrying", "error", err.Error())
	case to.resource != was.resource:
		w.log.Info("The cluster serves this workload kind as another resource, which is watched from now on",
			"resource", to.resource.String(), "before", was.resource.String())
		w.target.Store(&to)
	}
}

// find asks for the resource. The error is a NoMatchError where the kind is not installed, and another one where it is served in other
// versions alone: then there are workloads that are not seen.
func (l *lookup) find() (target, error) {
	to, err := l.of.source.resolve(l.of.kind)
	if !meta.IsNoMatchError(err) {
		l.failed, l.otherwise = 0, nil
		return to, err
	}
	if l.failed%versionsEvery == 0 {
		l.otherwise = l.inAnotherVersion()
	}
	l.failed++
	if l.otherwise != nil {
		return target{}, l.otherwise
	}
	return target{}, err
}

func (l *lookup) inAnotherVersion() error {
	kind := l.of.kind
	mapping, err := l.of.source.options.Mapper.RESTMapping(kind.GroupKind())
	if err != nil || mapping.GroupVersionKind.Version == kind.Version {
		return nil //nolint:nilerr // it is not known to be served at all
	}
	return fmt.Errorf("the cluster serves %s in the version %s, and not in %s: name the served version in the workload kinds of the configuration",
		kind.GroupKind(), mapping.GroupVersionKind.Version, kind.Version)
}

// unservedBy notes that the API server does not have a resource. It always has the built-in ones.
func (w *Watch) unservedBy(err error, asked *target) {
	if !apierrors.IsNotFound(err) || !strings.Contains(w.kind.Group, ".") {
		return
	}
	select {
	case w.unserved <- asked:
	default: // it is going to be looked up
	}
}
