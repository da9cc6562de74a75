package workloadstate

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
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

// findFirst waits until the cluster serves the kind. It is false when the context ends. A failure can last, and that a cluster does not have
// a kind can stay so: both are logged once.
func (l *lookup) findFirst(ctx context.Context) (target, bool) {
	w, pause, failure := l.of, listwatch.SlowBackoff(), ""
	// The name is a guess, and mostly right.
	guess, _ := meta.UnsafeGuessKindToResource(w.kind.GroupVersionKind)
	for {
		to, err := l.findApart()
		if err != nil && ctx.Err() != nil {
			return target{}, false
		}
		w.source.discovered(target{resource: guess.GroupResource(), namespaces: w.source.options.Namespaces}, err)
		switch {
		case err == nil:
			if failure != "" {
				w.log.Info("found this workload kind; watching it")
			}
			return to, true
		case !listwatch.IsNewCause(&failure, err):
		case meta.IsNoMatchError(err):
			w.log.Info("the cluster does not serve this workload kind; retrying")
		default:
			w.log.Error(err, "cannot watch this workload kind; retrying")
		}
		if !listwatch.Sleep(ctx, pause.Step()) {
			return target{}, false
		}
	}
}

// findApart finds the resource. A kind that is not built in is looked up with a Finder of its own: the shared one answers nothing, about no
// kind, while it waits for an answer, and an aggregated API server may hang.
func (l *lookup) findApart() (target, error) {
	mapper := l.of.source.options.Mapper
	if l.of.builtIn() {
		return l.find(mapper)
	}
	fresh, _, err := mapper.Fresh()
	if err != nil {
		return target{}, err
	}
	return l.find(fresh)
}

// follow finds the resource again each time the API server does not have it any more, until the context ends: its definition may be deleted
// and created again with another name. A lookup that fails is repeated, since no other request for what is not served may follow.
func (l *lookup) follow(ctx context.Context) {
	w := l.of
	pause, looked := listwatch.SlowBackoff(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case lost := <-w.unserved:
			if lost != w.target.Load() {
				continue // it was asked before the new one was known
			}
			if time.Since(looked) > steady {
				pause = listwatch.SlowBackoff()
			}
		}
		for found := false; !found; {
			if !listwatch.Sleep(ctx, pause.Step()) {
				return
			}
			select {
			case <-w.unserved: // it has waited for this lookup
			default:
			}
			found, looked = l.relocate(ctx), time.Now()
		}
	}
}

// relocate follows another resource if the kind has one now. How the lookup has ended, each follower reports whose requests are answered
// with 404: that of another namespace may work. It is false after a lookup that has failed.
func (l *lookup) relocate(ctx context.Context) bool {
	w := l.of
	was := w.target.Load()
	to, err := l.renewed(was)
	if ctx.Err() != nil {
		return true
	}
	w.lookups.add(l.outcome(was, to, err), err)
	switch {
	case err != nil:
		w.log.V(1).Info("cannot find the resource of this workload kind; retrying", "error", err.Error())
	case to.resource != was.resource:
		w.log.Info("the cluster serves this workload kind as another resource, which is watched from now on",
			"resource", to.resource.String(), "before", was.resource.String())
		w.source.discovered(*was, nil) // it is asked for no more
		w.target.Store(&to)
	}
	return err == nil || meta.IsNoMatchError(err)
}

// outcome returns how a lookup has ended. Without an answer about the other versions, the kind may be installed.
func (l *lookup) outcome(was *target, to target, err error) outcome {
	switch {
	case meta.IsNoMatchError(err) && l.failed > 0:
		return uninstalled
	case err == nil && to.resource == was.resource:
		return contradicted
	default:
		return unknown
	}
}

// renewed finds the resource that the API server has now. Reads and writes go there from then on.
func (l *lookup) renewed(was *target) (target, error) {
	mapper, kind := l.of.source.options.Mapper, l.of.kind
	fresh, use, err := mapper.Fresh()
	if err != nil {
		return target{}, err
	}
	to, err := l.find(fresh)
	if err != nil {
		return target{}, err
	}
	if to.resource == was.resource {
		known, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && known.Resource.GroupResource() == to.resource {
			return to, nil
		}
	}
	return to, use()
}

// find asks for the resource. The error is a NoMatchError where the kind is not installed, and another one where it is served in other
// versions alone: then there are workloads that are not seen.
func (l *lookup) find(finder Finder) (target, error) {
	to, err := l.of.source.resolve(finder, l.of.kind)
	if !meta.IsNoMatchError(err) {
		l.failed, l.otherwise = 0, nil
		return to, err
	}
	if l.failed%versionsEvery != 0 || l.askVersions() {
		l.failed++
	}
	if l.otherwise != nil {
		return target{}, l.otherwise
	}
	return target{}, err
}

// askVersions asks the API server for the other versions of the kind: what the Mapper knows of them does not change. It is false without an
// answer.
func (l *lookup) askVersions() bool {
	kind := l.of.kind
	fresh, _, err := l.of.source.options.Mapper.Fresh()
	if err != nil {
		return false
	}
	mapping, err := fresh.RESTMapping(kind.GroupKind())
	switch {
	case err == nil && mapping.GroupVersionKind.Version == kind.Version:
		return false // it has been installed meanwhile
	case meta.IsNoMatchError(err):
		l.otherwise = nil
	case err == nil:
		l.otherwise = fmt.Errorf("the cluster serves %s in the version %s, and not in %s: name the served version in the workload kinds of the configuration",
			kind.GroupKind(), mapping.GroupVersionKind.Version, kind.Version)
	}
	return err == nil || meta.IsNoMatchError(err)
}

// builtIn reports whether each API server has the resource of the kind.
func (w *Watch) builtIn() bool { return !strings.Contains(w.kind.Group, ".") }

// unservedBy reports whether an error says that the API server does not have a resource, which is then looked up.
func (w *Watch) unservedBy(err error, asked *target) bool {
	if !apierrors.IsNotFound(err) || w.builtIn() {
		return false
	}
	select {
	case w.unserved <- asked:
	default: // it is going to be looked up
	}
	return true
}
