package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

func TestAwaitServed(t *testing.T) {
	t.Parallel()
	group := cp.Namespace(t) + ".example.com" // of this run alone
	kind := controlplane.CustomResource{Group: group, Kind: "Plate", Plural: "plates", Versions: []string{"v1alpha1", "v1"}}
	brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, cp.AwaitServed(brief, "plates."+group), "plates."+group+" to be served")

	require.NoError(t, cp.Apply(t.Context(), kind.Definition()))
	require.NoError(t, cp.AwaitServed(t.Context(), "plates."+group))
	for _, version := range kind.Versions {
		plate := &unstructured.Unstructured{}
		plate.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "Plate"})
		plate.SetNamespace("default")
		plate.SetName(version)
		require.NoError(t, cp.Client().Create(t.Context(), plate), "at once, in each version")
	}
	require.NoError(t, cp.AwaitServed(t.Context()), "all that there are")
}
