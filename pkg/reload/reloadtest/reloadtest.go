// Package reloadtest has what the tests of package reload and of its parts share: a queue, one workload with its
// configuration, and what keeps the Events and alerts about it.
package reloadtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Keys is a keyring that Refresh gives a new ring.
type Keys struct {
	Present, Fresh digest.Ring
	Err            error
	// Began is when the read of Refresh began; the zero time is a moment that no test reaches.
	Began time.Time
}

// Ring returns the present ring.
func (k *Keys) Ring() digest.Ring { return k.Present }

// Refresh makes the fresh ring the present one.
func (k *Keys) Refresh(context.Context) (began time.Time, err error) {
	k.Present = k.Fresh
	if k.Began.IsZero() {
		return time.Unix(1<<40, 0), k.Err
	}
	return k.Began, k.Err
}

// OnChange registers nothing.
func (k *Keys) OnChange(func()) {}

// Store has config objects that may not be watched, but read.
type Store struct {
	States map[reference.Ref]digest.State
	Err    error
	// Reads counts the calls of ReadIfChanged.
	Reads int
}

// OnEvent registers nothing.
func (s *Store) OnEvent(func(configstate.Event)) {}

// WaitForSync returns the error of the Store.
func (s *Store) WaitForSync(context.Context) error { return s.Err }

// Recheck does nothing.
func (s *Store) Recheck(context.Context, string, reference.Ref) error { return nil }

// RecheckBelow finds nothing.
func (s *Store) RecheckBelow(context.Context, string, reference.Ref) error { return nil }

// Cached has seen nothing.
func (s *Store) Cached(string, []reference.Ref) map[reference.Ref]digest.State {
	return map[reference.Ref]digest.State{}
}

// ReadIfChanged returns the states.
func (s *Store) ReadIfChanged(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	s.Reads++
	return s.States, s.Err
}

// ReadLive returns the states.
func (s *Store) ReadLive(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return s.States, s.Err
}

// Learn does nothing.
func (s *Store) Learn(context.Context, string, []reference.Ref) error { return nil }

// Created has seen nothing.
func (s *Store) Created(string, reference.Ref) string { return "" }

// Outbox keeps the messages that are put into it.
type Outbox struct{ Messages []outbox.Message }

// Put adds a message.
func (o *Outbox) Put(m outbox.Message) { o.Messages = append(o.Messages, m) }

// Notes returns the texts of the Events.
func (o *Outbox) Notes() []string {
	var notes []string
	for _, m := range o.Messages {
		notes = append(notes, m.Event.Note)
	}
	return notes
}

// Alerts keeps alerts.
type Alerts struct {
	Offered []alert.Reload
	// Full says that no further one is accepted.
	Full bool
}

// Accepts reports whether it is not full.
func (a *Alerts) Accepts(string) bool { return !a.Full }

// Offer adds an alert.
func (a *Alerts) Offer(r alert.Reload) { a.Offered = append(a.Offered, r) }

// Reader reads the annotations of SAP's pod-reloader.
func Reader() stamp.Reader {
	keys := annotation.DefaultKeys()
	return stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}
}

// View returns the view of a Deployment that tracks configmap/app.
func View(t testing.TB) stamp.View {
	t.Helper()
	view, problems := Reader().Read(workload.Object{Kind: workload.Deployment(), Raw: map[string]any{
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "generation": int64(3),
			"annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	}})
	require.Empty(t, problems)
	return view
}

// StampedView is View of a Deployment that is known to have configmap/app with another content.
func StampedView(t testing.TB, ring digest.Ring) stamp.View {
	t.Helper()
	view := View(t)
	newest, _ := ring.Newest()
	view.Managed[stamp.Record] = "v1:-:" + string(newest.ID) + ":configmap/app=0123456789abcdef"
	return view
}

// Open lets a Queue add to a queue of a controller, which it returns.
func Open(t testing.TB, from *queue.Queue) workqueue.TypedRateLimitingInterface[workload.Key] {
	t.Helper()
	to := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[workload.Key]())
	t.Cleanup(to.ShutDown)
	require.NoError(t, from.Source(func(context.Context) {}).Start(t.Context(), to))
	return to
}

// Web returns a Deployment with an identity, which tracks configmap/app.
func Web(t testing.TB) gather.Subject {
	t.Helper()
	return gather.Subject{
		Key: workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "web"},
		Object: Summary(workload.Deployment(), map[string]any{
			"metadata": map[string]any{"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
		}),
		View: View(t),
	}
}

// Reloaded returns a workload whose last-reload annotation is this one.
func Reloaded(s gather.Subject, last record.LastReload) gather.Subject {
	s.View.Managed = stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
	return s
}

// ReloadAt returns a reload by a change of configmap/app.
func ReloadAt(at time.Time, hash string) record.LastReload {
	return record.LastReload{
		Time: at, Hash: hash, Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}
}

// Summary keeps all labels and annotations.
func Summary(kind workload.Kind, raw map[string]any) workload.Summary {
	return workload.Object{Kind: kind, Raw: raw}.Summary()
}
