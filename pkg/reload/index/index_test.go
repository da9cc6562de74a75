package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestIndexFindsTrackersOfTheSameNamespace(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	cart := workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "cart"}
	pay := workload.Key{Kind: "apps/v1/StatefulSet", Namespace: "shop", Name: "pay"}
	other := workload.Key{Kind: "apps/v1/Deployment", Namespace: "blog", Name: "cart"}

	x := New(nil)
	x.SetRefs(cart, []reference.Ref{app, db})
	x.SetRefs(pay, []reference.Ref{app})
	x.SetRefs(other, []reference.Ref{app})
	assert.ElementsMatch(t, []workload.Key{cart, pay}, x.Trackers("shop", app), "both track it; the one in another namespace does not")
	assert.Equal(t, []workload.Key{cart}, x.Trackers("shop", db))
	assert.ElementsMatch(t, []workload.Key{cart, pay}, x.In("shop"))

	x.SetRefs(cart, []reference.Ref{db})
	assert.Equal(t, []workload.Key{pay}, x.Trackers("shop", app), "a Ref that is no longer tracked finds nothing")
	x.Delete(pay)
	x.Delete(cart)
	assert.Empty(t, x.Trackers("shop", app))
	assert.Equal(t, []workload.Key{other}, x.All(), "the other namespace is left")
	x.Delete(other)
	assert.Empty(t, x.byRef, "nothing is left behind")
	assert.Empty(t, x.byNamespace)
}

// A custom resource can be in no namespace. Those of no workload are not remembered.
func TestIndexFindsTrackersOfAnObjectWithoutNamespace(t *testing.T) {
	t.Parallel()
	issuer := reference.Ref{Kind: "clusterissuers.cert-manager.io", Name: "ca"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	cart := workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "cart"}
	pay := workload.Key{Kind: "apps/v1/StatefulSet", Namespace: "shop", Name: "pay"}
	other := workload.Key{Kind: "apps/v1/Deployment", Namespace: "blog", Name: "cart"}

	x := New(nil)
	for _, key := range []workload.Key{cart, pay, other} {
		x.SetRefs(key, []reference.Ref{app, issuer})
	}
	assert.ElementsMatch(t, []workload.Key{cart, pay, other}, x.Trackers("", issuer))
	assert.ElementsMatch(t, []workload.Key{cart, pay}, x.Trackers("shop", issuer))
	assert.Empty(t, x.Trackers("", app), "a ConfigMap is always in a namespace")
	x.SetRefs(pay, []reference.Ref{app})
	assert.ElementsMatch(t, []workload.Key{cart, other}, x.Trackers("", issuer))
	x.Delete(cart)
	assert.Equal(t, []workload.Key{other}, x.Trackers("", issuer))
	x.Delete(other)
	assert.Empty(t, x.Trackers("", issuer))
	assert.Empty(t, x.wide, "nothing is left behind")
}

// A list can have tens of thousands of names, and all that is looked up waits while it is taken in.
func TestIndexTakesALongListIn(t *testing.T) {
	t.Parallel()
	before, after := longLists()
	x := New(nil)
	key := workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "cart"}
	assert.Len(t, x.SetRefs(key, before), len(before), "all is new")
	assert.Equal(t, []reference.Ref{after[0], after[len(after)-1]}, x.SetRefs(key, after), "the first and the last are others")
	assert.Empty(t, x.Trackers("shop", before[0]))
	assert.Equal(t, []workload.Key{key}, x.Trackers("shop", before[1]))
}

func BenchmarkIndexLongList(b *testing.B) {
	before, after := longLists()
	x := New(nil)
	for b.Loop() {
		x.SetRefs(workload.Key{}, before)
		x.SetRefs(workload.Key{}, after)
	}
}

// longLists returns two sorted lists that differ at both ends.
func longLists() (before, after []reference.Ref) {
	for i := range 45_000 {
		before = append(before, reference.Ref{Kind: reference.ConfigMap, Name: fmt.Sprintf("x%05d", i)})
	}
	after = slices.Clone(before)
	after[0].Name, after[len(after)-1].Name = "a", "y"
	return before, after
}
