package gather

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Subject is one workload under reconciliation.
type Subject struct {
	Key      workload.Key
	Object   workload.Summary
	View     stamp.View
	Problems []annotation.Problem
	// Events are the arrivals of the config events that the reconciliation takes into account.
	Events state.Arrivals
	// Unrecorded says that the Record of the View is kept in memory only.
	Unrecorded bool
	// Effects are not gathered: the actions set them.
	Effects Effects
}

// Effects are what the reload of a reconciliation has done so far besides the stamp.
type Effects struct {
	// PausedFor is the period for which it has paused the workload; 0 if it has not.
	PausedFor time.Duration
	// Run is the Job that was made for it; empty if none.
	Run cronrun.Run
	// NeedsRun says that a run must follow: it has to wait for other Jobs, or its Job may have started with an older content than the one that
	// is stamped.
	NeedsRun bool
	// Unwritten says that its last-reload is not stored: it does not fit into the annotations, or another webhook removes it.
	Unwritten bool
}

// CronJob returns the workload as the state of runs names it.
func (s Subject) CronJob() state.CronJob { return state.CronJob{Key: s.Key, UID: s.Object.UID()} }

// Reported returns the workload as Events are about it.
func (s Subject) Reported() report.Subject {
	did := s.Effects
	return report.Subject{
		Key: s.Key, Object: s.Object, Managed: s.View.Managed, InPlace: s.View.InPlace,
		PausedFor: did.PausedFor, Ran: did.Run.Job, Unwritten: did.Unwritten,
	}
}

// Store gives the state of config objects; chain.Store is one.
type Store interface {
	// Cached returns what is known without a request; it may lack Entries, and Refs of which nothing is known.
	Cached(namespace string, refs []reference.Ref) map[reference.Ref]digest.State
	// ReadIfChanged returns as current states as Cached, with Entries: one request for each object whose version it has not read yet.
	ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
	// ReadLive returns the states that the API server has now: one or two requests for each object, or a list for many.
	ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
	// Learn reads the labels and annotations of objects that are Unseen: one request for each.
	Learn(ctx context.Context, namespace string, refs []reference.Ref) error
	// RecheckBelow takes in what the watches have not delivered of an object: of a config object its metadata, by one request; a custom
	// resource is read with all that it refers to.
	RecheckBelow(ctx context.Context, namespace string, ref reference.Ref) error
	// Created returns the resourceVersion of the creation of an object that was seen, and has the labels and annotations of then.
	Created(namespace string, ref reference.Ref) string
}

// Keys gives the digest keys; keyring.Keyring is one.
type Keys interface {
	Ring() digest.Ring
	// Refresh reads the keys anew, and returns when the read of those in the ring began.
	Refresh(ctx context.Context) (began time.Time, err error)
}

// Gatherer reads what decisions depend on. It is safe for concurrent use.
type Gatherer struct {
	// Reader reads the annotations of workloads.
	Reader stamp.Reader
	Store  Store
	Keys   Keys
	// APIReader reads from the API server itself.
	APIReader client.Reader
	// Past returns the state that a ConfigMap or a Secret had at a resourceVersion; nil where old versions cannot be read.
	Past func(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error)
	// Creations has the versions at which workloads were created.
	Creations *state.Creations
	// Versions has the versions since which workloads are as they are.
	Versions *state.Versions
	// Records has the Records that could not be written; nil keeps none.
	Records *state.Records
	// Settings are those that the webhook decides by.
	stamp.Settings
	// WithoutRuns leaves a CronJob to its next run, whatever its annotations ask for.
	WithoutRuns bool

	Now func() time.Time
}

// Subject reads the annotations of a workload.
func (g Gatherer) Subject(key workload.Key, o workload.Summary, events state.Arrivals) Subject {
	read, recordKey := o, g.Reader.Keys.ConfigRecord
	record, unrecorded := g.Records.InPlaceOf(key, o.UID(), o.Annotations()[recordKey])
	if unrecorded {
		read = o.WithAnnotation(recordKey, record)
	}
	view, problems := g.Reader.ReadSummary(read)
	switch {
	case o.Kind.CreateOnly:
		view.Intent = view.Intent.AtOnce()
	case o.Kind.Schedules() && g.WithoutRuns:
		view.Intent = view.Intent.NotAtOnce()
	}
	return Subject{Key: key, Object: o, View: view, Problems: problems, Events: events, Unrecorded: unrecorded}
}

// Input returns what is known without a read.
func (g Gatherer) Input(s Subject) policy.Input {
	refs := s.View.Intent.Refs()
	known := s.View.Known()
	current, ring := known.Keep(g.Store.Cached(s.Key.Namespace, refs), g.Keys.Ring())
	return policy.Input{
		Namespace:             s.Key.Namespace,
		Intent:                s.View.Intent,
		Refs:                  refs,
		Required:              s.View.Required,
		Known:                 known,
		Current:               current,
		Ring:                  ring,
		ReloadMissingRequired: g.ReloadMissingRequired,
	}
}

// Read adds the contents of some config objects to the current state.
func (g Gatherer) Read(ctx context.Context, s Subject, in policy.Input, refs []reference.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	states, err := g.Store.ReadIfChanged(ctx, s.Key.Namespace, refs)
	if err != nil {
		return err
	}
	states, _ = in.Known.Keep(states, in.Ring)
	maps.Copy(in.Current, states)
	return nil
}

// Learn reads the labels and annotations of those objects that are tracked only because nothing is known of them, and that exist. It
// reports whether there are any: then the workload must be read again before the decision can count.
func (g Gatherer) Learn(ctx context.Context, s Subject, in policy.Input) (learned bool, err error) {
	unseen := policy.Unseen(in.Intent, in.Current)
	if len(unseen) == 0 {
		return false, nil
	}
	return true, g.Store.Learn(ctx, s.Key.Namespace, unseen)
}

// Stored reads a workload as a whole, live.
func (g Gatherer) Stored(ctx context.Context, s Subject) (workload.Object, error) {
	u := s.Object.Kind.NewObject()
	err := g.APIReader.Get(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: s.Key.Name}, u)
	return workload.Object{Kind: s.Object.Kind, Raw: u.Object}, err
}

// List lists objects of a kind, live and as a whole, and calls use with each of them. No more than limit of them are in memory at a time,
// and fewer where they are large: a response with several objects is never large, and one with a single object waits for its turn. After as
// many objects as were too large together, the pages have the first limit again. Where it fails, some may have been used.
func (g Gatherer) List(
	ctx context.Context, kind schema.GroupVersionKind, limit int64, use func(unstructured.Unstructured), opts ...client.ListOption,
) error {
	kind.Kind += "List"
	first, left := limit, 0 // left is how many objects are to be listed in smaller pages
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind)
		limited := largeread.Admit(ctx)
		if limit > 1 {
			limited = largeread.Refuse(ctx)
		}
		err := g.APIReader.List(watchhealth.Unwatched(limited), page, append(slices.Clone(opts), client.Limit(limit), client.Continue(next))...)
		switch {
		case limit > 1 && errors.Is(err, largeread.ErrLarge):
			limit, left = max(limit/5, 1), int(limit)
			continue
		case err != nil:
			return err
		}
		for _, object := range page.Items {
			use(object)
		}
		if left -= len(page.Items); left <= 0 {
			limit = first
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// WebhookInput is what the webhook would have read.
func (g Gatherer) WebhookInput(s Subject, ring digest.Ring, states map[reference.Ref]digest.State) stamp.Inputs {
	return stamp.Inputs{
		Settings: g.Settings, States: states, Ring: ring, Namespace: s.Key.Namespace, Now: g.Now(),
	}
}
