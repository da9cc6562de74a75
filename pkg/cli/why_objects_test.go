package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// listing has the objects of one namespace.
func listing(ctx context.Context, c client.Reader) *listedObjects {
	e := explainer{objects: once(func(of objectsOf) (annotation.Listed, error) {
		return listObjects(ctx, c, of, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	})}
	return e.listing("shop")
}

// A user without the permission to list Secrets can ask about a workload that depends on no list of them.
func TestWhyListsOnlyTheKindsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	l := &lister{t: t, failed: "Secret"}
	custom := customObjects{
		Objects: listing(t.Context(), l),
		exists:  func(objectKey) (bool, error) { return true, nil },
	}
	_, exists := custom.Traits(reference.Ref{Kind: "filters.example.com", Name: "auth"})
	assert.True(t, exists, "it was found by its own read")
	require.NoError(t, custom.Err())
	assert.Empty(t, l.asked, "a custom resource is no config object")

	traits, exists := custom.Traits(reference.Ref{Kind: reference.ConfigMap, Name: "app"})
	assert.True(t, exists, "the list has the ConfigMap")
	assert.True(t, traits.Ignored, "the ConfigMap has the annotation that excludes it")
	expression, err := (&pattern.Cache{}).Compile("a.*")
	require.NoError(t, err)
	assert.Equal(t, []string{"app"}, custom.Matching(reference.ConfigMap, []*pattern.Pattern{expression}))
	assert.Equal(t, []string{"ConfigMap shop"}, l.asked, "once")

	_, exists = custom.Traits(reference.Ref{Kind: reference.Secret, Name: "app"})
	assert.False(t, exists, "Secrets may not be listed")
	require.EqualError(t, custom.Err(), "what the annotations select is not known: list secrets: forbidden")
}

// The reason is that of the workload that depends on the kind.
func TestKindThatCannotBeListedIsNoProblemOfOtherWorkloads(t *testing.T) {
	t.Parallel()
	l := &lister{t: t, failed: "Secret"}
	e := explainer{objects: once(func(of objectsOf) (annotation.Listed, error) {
		return listObjects(t.Context(), l, of, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	})}
	for range 2 {
		with, without := e.listing("shop"), e.listing("shop")
		with.Traits(reference.Ref{Kind: reference.Secret, Name: "app"})
		require.ErrorContains(t, with.Err(), "list secrets: forbidden")
		_, exists := without.Traits(reference.Ref{Kind: reference.ConfigMap, Name: "app"})
		assert.True(t, exists, "the ConfigMaps are listed")
		require.NoError(t, without.Err(), "the workload does not depend on Secrets")
	}
	assert.Equal(t, []string{"Secret shop", "ConfigMap shop"}, l.asked, "each kind is listed once")
}

// The driver may be installed later: the rest of a workload is known without it.
func TestWhyNeedsNoSecretProviderClassesWhereTheClusterHasNone(t *testing.T) {
	t.Parallel()
	l := &lister{t: t, missing: []string{"SecretProviderClass", "Secret"}}
	objects := listing(t.Context(), l)
	_, exists := objects.Traits(reference.Ref{Kind: reference.SecretProviderClass, Name: "app"})
	assert.False(t, exists, "the cluster does not have the kind")
	require.NoError(t, objects.Err())
	_, exists = objects.Traits(reference.Ref{Kind: reference.Secret, Name: "app"})
	assert.False(t, exists, "the cluster does not have the kind")
	require.ErrorContains(t, objects.Err(), "list secrets", "a cluster has Secrets")
}

// metadataPages has two pages of metadata.
type metadataPages struct {
	client.Reader
	limits []int64
}

func (p *metadataPages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	p.limits = append(p.limits, o.Limit)
	page := list.(*metav1.PartialObjectMetadataList)
	page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "app" + o.Continue}}}
	page.Continue = map[string]string{"": "2"}[o.Continue]
	return nil
}

// The command can run inside of a replica, and an object has up to 256 KiB of annotations.
func TestWhyListsMetadataInSmallPages(t *testing.T) {
	t.Parallel()
	p := &metadataPages{}
	objects := listing(t.Context(), p)
	for _, name := range []string{"app", "app2"} {
		_, exists := objects.Traits(reference.Ref{Kind: reference.ConfigMap, Name: name})
		assert.True(t, exists, name)
	}
	assert.Equal(t, []int64{50, 50}, p.limits)
}
