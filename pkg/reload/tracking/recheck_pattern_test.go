package tracking

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// counted counts how often a workload is read.
type counted struct {
	workload workload.Summary
	reads    int
}

func (c *counted) Run(ctx context.Context) { <-ctx.Done() }

func (c *counted) Get(_, name string) (workload.Summary, bool) {
	c.reads++
	return c.workload, name == c.workload.Name()
}

// matching leads with a workload of the namespace shop that has patterns for both kinds. The metadata cache has app-1, app-3 and tls-1; the
// Record of the workload has app-1, app-2 and tls-2.
func matching(t *testing.T, watches failing) (*fixture, *recheckStore, *counted) {
	t.Helper()
	exist := annotation.Listed{
		{Kind: reference.ConfigMap, Name: "app-1"}: {}, {Kind: reference.ConfigMap, Name: "app-3"}: {},
		{Kind: reference.ConfigMap, Name: "other"}: {}, {Kind: reference.Secret, Name: "tls-1"}: {},
	}
	reader, store := stakaterReader(), &recheckStore{}
	reader.Objects = func(namespace string) (annotation.Objects, error) {
		require.Equal(t, "shop", namespace, "the others have no workloads")
		return exist, nil
	}
	patterns := pattern.NewIndex[workload.Key](func(_ string, kind reference.Kind) []string {
		var names []string
		for ref := range exist {
			if ref.Kind == kind {
				names = append(names, ref.Name)
			}
		}
		return names
	})
	kind := workload.Deployment()
	l := standby(Options{Reader: reader, Store: store, Watches: watches, Patterns: patterns, Mapper: mapperOf(kind)})
	store.queue = reloadtest.Open(t, l.queue)
	l.leads.Begin(time.Now())
	newest, ok := digesttest.Ring(t, "k").Newest()
	require.True(t, ok, "the ring has a key")
	id := string(newest.ID)
	web := summaryOf(kind, map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": map[string]any{
		"configmap.reloader.stakater.com/reload": "app-.*", "secret.reloader.stakater.com/reload": "tls-.*",
		reader.Keys.ConfigRecord: "v1:-:" + id + ":configmap/app-1=0123456789abcdef,configmap/app-2=0123456789abcdef,secret/tls-2=0123456789abcdef",
	}}})
	of := &counted{workload: web}
	w := &watched{kind: kind, workloads: of}
	l.tracking.watches.add(w)
	l.tracking.changes.changed(w, workload.Summary{}, web, "")
	store.queued()
	of.reads = 0
	return l, store, of
}

// No list names what patterns match: the metadata cache has it, or the Record.
func TestRecheckLooksAtWhatPatternsMatch(t *testing.T) {
	t.Parallel()
	at := func(kind reference.Kind, names ...string) []index.Object {
		var objects []index.Object
		for _, name := range names {
			objects = append(objects, index.Object{Namespace: "shop", Ref: reference.Ref{Kind: kind, Name: name}})
		}
		return objects
	}
	for name, c := range map[string]struct {
		watches failing
		want    []index.Object
		reads   int
	}{
		"all work":                  {watches: failing{}},
		"ConfigMaps":                {watches: failing{"configmaps": true}, want: at(reference.ConfigMap, "app-1", "app-2", "app-3"), reads: 1},
		"Secrets":                   {watches: failing{"secrets": true}, want: at(reference.Secret, "tls-1", "tls-2"), reads: 1},
		"of this namespace":         {watches: failing{"secrets shop": true}, want: at(reference.Secret, "tls-1", "tls-2"), reads: 1},
		"of another namespace":      {watches: failing{"secrets bank": true}},
		"workloads of another kind": {watches: failing{"statefulsets.apps": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, store, of := matching(t, c.watches)
			recheckOnce(t.Context(), l.tracking.rechecks)
			assert.ElementsMatch(t, c.want, store.seen)
			assert.Equal(t, c.reads, of.reads, "workloads are read only where a watch of config objects fails")
		})
	}
}

// A workload may name an object that a pattern of its matches, too.
func TestRecheckLooksOnceAtWhatIsNamedAndMatched(t *testing.T) {
	t.Parallel()
	l, store, of := matching(t, failing{"configmaps": true})
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app-1"}
	l.tracking.index.SetRefs(of.workload.Key(), []reference.Ref{app})
	recheckOnce(t.Context(), l.tracking.rechecks)
	assert.ElementsMatch(t, []string{"app-1", "app-2", "app-3"}, namesOf(store.seen))
}

func namesOf(objects []index.Object) []string {
	var names []string
	for _, at := range objects {
		names = append(names, at.Ref.Name)
	}
	return names
}

// The watch may have failed since before this process: then only a read has seen the object.
func TestDeletionOfAnObjectThatWasOnlyReadReachesItsPatterns(t *testing.T) {
	t.Parallel()
	l, store, of := matching(t, failing{"configmaps": true})
	gone := configstate.Event{
		Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app-2"}, Type: configstate.Deleted, Received: time.Now(),
	}
	l.tracking.ConfigChanged(gone)
	assert.Equal(t, []workload.Key{of.workload.Key()}, store.queued())
}
