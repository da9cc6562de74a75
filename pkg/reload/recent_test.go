package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The watch of workloads may be behind that of config objects: a change is then known before a workload depends on it.
func TestWorkloadThatComesAfterTheChange(t *testing.T) {
	t.Parallel()
	l := newLoop(cluster{}, Options{Reader: sapReader(t), Settle: time.Second})
	kind := workload.Builtin()[1]
	h := changesOf(l, kind)
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	first := time.Now()
	second := first.Add(time.Second / 2)
	l.tracking.configChanged(configstate.Event{Namespace: "shop", Ref: app, Received: first})
	l.tracking.configChanged(configstate.Event{Namespace: "shop", Ref: app, Received: second})

	web := deployment(kind, "web")
	var none workload.Summary
	h(none, web)
	key := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
	last := l.state.changes.Attempt(key).last
	assert.Equal(t, second, last, "its configuration settles from the last change on")
	l.state.changes.Settled(key)
	h(web, trackingApp(kind, "shop", "web", 2))
	last = l.state.changes.Attempt(key).last
	assert.Zero(t, last, "what it tracked before is no news")

	h(none, trackingApp(kind, "blog", "other", 1))
	last = l.state.changes.Attempt(workload.Key{Kind: kind.ID(), Namespace: "blog", Name: "other"}).last
	assert.Zero(t, last, "the object of another namespace has not changed")
}

func TestRecentForgets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	app := objectKey{"shop", reference.Ref{Kind: reference.ConfigMap, Name: "app"}}
	db := objectKey{"shop", reference.Ref{Kind: reference.Secret, Name: "db"}}
	r := newRecent(time.Second)
	r.Put(app, now)
	_, ok := r.At(app, now.Add(time.Second))
	assert.True(t, ok)
	_, ok = r.At(app, now.Add(time.Hour))
	assert.False(t, ok, "it has settled, also where nothing else has changed since")
	r.Put(db, now.Add(3*time.Second/2))
	assert.NotContains(t, r.at, app, "what has settled is not kept")

	off := newRecent(0)
	off.Put(app, now)
	assert.Empty(t, off.at, "nothing has to settle")
}
