package reload

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// learning is a Store whose objects may not be listed, and what is known of them in one namespace.
type learning struct {
	reloadtest.Store

	// known are the traits of what was read, stored those of what there is.
	known, stored annotation.Listed
	failed        error
	// gone says that the objects are deleted before they are read.
	gone  bool
	reads int
}

func (l *learning) Traits(ref reference.Ref) (annotation.Traits, bool) {
	if traits, known := l.known[ref]; known {
		return traits, true
	}
	return annotation.Traits{Unseen: true}, false
}

func (l *learning) Matching(reference.Kind, []*pattern.Pattern) []string { return nil }

func (l *learning) Err() error { return nil }

func (l *learning) Learn(_ context.Context, _ string, refs []reference.Ref) error {
	l.reads += len(refs)
	for _, ref := range refs {
		switch {
		case l.gone:
			l.States[ref] = digest.State{Absent: true}
		case l.failed == nil:
			l.known[ref] = l.stored[ref]
		}
	}
	return l.failed
}

func TestReloadWaitsForAnnotationsThatMayNotBeListed(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	there := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	entry, _ := there.Entry(newest.ID)
	for name, tc := range map[string]struct {
		state                digest.State
		recorded             string
		traits               annotation.Traits
		err                  error
		gone                 bool
		reads, writes, again int
	}{
		"ignored object has changed":            {state: there, traits: annotation.Traits{Ignored: true}, reads: 1, again: 1},
		"object has changed":                    {state: there, reads: 1, writes: 1, again: 2},
		"its annotations cannot be read":        {state: there, err: errors.New("refused"), reads: 1, again: 1},
		"object is deleted meanwhile":           {state: there, gone: true, reads: 1, again: 1},
		"object is as it was":                   {state: there, recorded: entry.Short()},
		"object is gone: nothing hides a name":  {state: digest.State{Absent: true}},
		"object is absent, and was so recorded": {state: digest.State{Absent: true}, recorded: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &learning{
				Store: reloadtest.Store{States: map[reference.Ref]digest.State{app: tc.state}},
				known: annotation.Listed{}, stored: annotation.Listed{app: tc.traits}, failed: tc.err, gone: tc.gone,
			}
			reader := reloadtest.Reader()
			reader.Dialects = append(reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
			reader.Objects = func(string) (annotation.Objects, error) { return store, nil }
			w := &refusing{}
			l := newLoop(loopDependencies{
				client: w, Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: store, Keys: &reloadtest.Keys{Present: ring}},
			}, Options{Webhook: true, Reader: reader})
			recorded := tc.recorded
			if recorded == "" {
				recorded = "0123456789abcdef"
			}
			web := reloadtest.Summary(workload.Deployment(), map[string]any{
				"metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": map[string]any{
					"configmap.reloader.stakater.com/reload": "app",
					reader.Keys.ConfigRecord:                 "v1:-:" + string(newest.ID) + ":configmap/app=" + recorded,
				}},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
			})
			again := 0
			for range 2 {
				s := l.gather.Subject(web.Key(), web, state.Arrivals{})
				if result := l.actions.Close(t.Context(), l.reconcileInScope(t.Context(), s)); result.RequeueAfter > 0 {
					again++
				}
				l.state.Deferrals.Forget(s.Key)
				if tc.err != nil {
					break
				}
			}
			assert.Equal(t, tc.reads, store.reads, "each object is read once")
			assert.Equal(t, tc.writes, w.writes)
			assert.Equal(t, tc.again, again, "looked at again")
		})
	}
}
