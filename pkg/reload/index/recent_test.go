package index

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestRecentForgets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	app := Object{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}}
	db := Object{Namespace: "shop", Ref: reference.Ref{Kind: reference.Secret, Name: "db"}}
	r := NewRecent(time.Second)
	r.Put(app, Change{At: now})
	_, ok := r.Get(app, now.Add(time.Second))
	assert.True(t, ok, "the change is still recent")
	_, ok = r.Get(app, now.Add(time.Hour))
	assert.False(t, ok, "it has settled, also where nothing else has changed since")
	r.Put(db, Change{At: now.Add(time.Second)})
	_, ok = r.Get(app, now.Add(time.Second))
	assert.True(t, ok, "it is kept until it has settled")
	r.Put(db, Change{At: now.Add(5 * time.Second / 2)})
	assert.NotContains(t, r.at, app, "what has settled is not kept")

	issuer := reference.Ref{Kind: "clusterissuers.cert-manager.io", Name: "ca"}
	r.Put(Object{Ref: issuer}, Change{At: now})
	_, ok = r.Get(Object{Namespace: "shop", Ref: issuer}, now)
	assert.True(t, ok, "a custom resource can be in no namespace")

	inShop := Object{Namespace: "shop", Ref: reference.Ref{Kind: "proxies.example.com", Name: "edge"}}
	r.Put(inShop, Change{At: now})
	_, ok = r.Get(inShop, now)
	assert.True(t, ok, "or in one")
	r.Put(Object{Ref: app.Ref}, Change{At: now})
	_, ok = r.Get(Object{Namespace: "other", Ref: app.Ref}, now)
	assert.False(t, ok, "a ConfigMap is in one")

	off := NewRecent(0)
	off.Put(app, Change{At: now})
	assert.Empty(t, off.at, "nothing has to settle")
}
