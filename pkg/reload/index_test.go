package reload

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestIndexFindsTrackersOfTheSameNamespace(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	cart := Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "cart"}
	pay := Key{Kind: "apps/v1/StatefulSet", Namespace: "shop", Name: "pay"}
	other := Key{Kind: "apps/v1/Deployment", Namespace: "blog", Name: "cart"}

	x := newIndex()
	x.Set(cart, []reference.Ref{app, db})
	x.Set(pay, []reference.Ref{app})
	x.Set(other, []reference.Ref{app})
	assert.ElementsMatch(t, []Key{cart, pay}, x.Trackers("shop", app), "both track it; the one in another namespace does not")
	assert.Equal(t, []Key{cart}, x.Trackers("shop", db))
	assert.ElementsMatch(t, []Key{cart, pay}, x.Inside("shop"))

	x.Set(cart, []reference.Ref{db})
	assert.Equal(t, []Key{pay}, x.Trackers("shop", app), "a Ref that is no longer tracked finds nothing")
	x.Delete(pay)
	x.Delete(cart)
	assert.Empty(t, x.Trackers("shop", app))
	assert.Equal(t, []Key{other}, x.All(), "the other namespace is left")
	x.Delete(other)
	assert.Empty(t, x.byRef, "nothing is left behind")
	assert.Empty(t, x.inside)
}
