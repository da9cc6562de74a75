package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The watch of workloads may be behind that of config objects: a change is then known before anybody depends on it.
func TestWorkloadThatComesAfterTheChange(t *testing.T) {
	t.Parallel()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	l := &loop{
		now: time.Now, index: newIndex(), memory: newMemory(), watches: newWatches(), recent: newRecent(time.Second),
		opts: Options{Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}},
	}
	kind := workload.Builtin()[1]
	h := workloadHandler{l, &watched{kind: kind}}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	first := time.Now()
	second := first.Add(time.Second / 2)
	l.configChanged(configstate.Event{Namespace: "shop", Ref: app, Received: first})
	l.configChanged(configstate.Event{Namespace: "shop", Ref: app, Received: second})

	web := deployment(kind, "web")
	var none workload.Summary
	h.changed(none, web)
	key := Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
	last := l.memory.Attempt(key).last
	assert.Equal(t, second, last, "its configuration settles from the last change on")
	l.memory.Settled(key)
	h.changed(web, trackingApp(kind, "shop", "web", 2))
	last = l.memory.Attempt(key).last
	assert.Zero(t, last, "what it tracked before is no news")

	h.changed(none, trackingApp(kind, "blog", "other", 1))
	last = l.memory.Attempt(Key{Kind: kind.ID(), Namespace: "blog", Name: "other"}).last
	assert.Zero(t, last, "the object of another namespace has not changed")
}

func TestRecentForgets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	app := place{"shop", reference.Ref{Kind: reference.ConfigMap, Name: "app"}}
	db := place{"shop", reference.Ref{Kind: reference.Secret, Name: "db"}}
	r := newRecent(time.Second)
	r.Note(app, now)
	_, ok := r.At(app, now.Add(time.Second))
	assert.True(t, ok)
	_, ok = r.At(app, now.Add(time.Hour))
	assert.False(t, ok, "it has settled, also where nothing else has changed since")
	r.Note(db, now.Add(3*time.Second/2))
	assert.NotContains(t, r.at, app, "what has settled is not kept")

	off := newRecent(0)
	off.Note(app, now)
	assert.Empty(t, off.at, "nothing has to settle")
}
