package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// unpopulated is a cluster without workloads, which answers each Get the same.
type unpopulated struct {
	client.Client
	answer error
	// got are the names that were asked for.
	got *[]string
}

func (unpopulated) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (u unpopulated) Get(_ context.Context, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	*u.got = append(*u.got, object.GetObjectKind().GroupVersionKind().Kind+" "+name.String())
	return u.answer
}

// A misspelled namespace must not pass for one without workloads.
func TestCommandsThatFindNoWorkloadRequireTheNamespace(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "namespaces"}
	for name, test := range map[string]struct {
		answer error
		want   string
	}{
		"Exists":    {},
		"Missing":   {apierrors.NewNotFound(resource, "shop"), "namespace shop does not exist; name another one with -n"},
		"Forbidden": {apierrors.NewForbidden(resource, "shop", errors.New("no")), ""},
		"Failed":    {errors.New("connection refused"), "read namespace shop: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			c := unpopulated{answer: test.answer, got: &got}
			f := planFlags{}
			f.cluster.namespace = "shop"
			_, plan := f.compare(t.Context(), planReader{c, func(workload.Kind) {}}, newReloaderSettings(nil))
			_, clean := (&cleaner{client: c, namespace: "shop"}).list(t.Context(), workload.NewKinds(workload.Deployment()), cleaning{labels: labels.Everything()})
			for _, err := range []error{plan, clean} {
				if test.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, test.want)
				}
			}
			assert.Equal(t, []string{"Namespace /shop", "Namespace /shop"}, got)
		})
	}
	var got []string
	c := unpopulated{got: &got}
	_, err := (&planFlags{}).compare(t.Context(), planReader{c, func(workload.Kind) {}}, newReloaderSettings(nil))
	require.NoError(t, err)
	_, err = (&cleaner{client: c}).list(t.Context(), workload.NewKinds(workload.Deployment()), cleaning{labels: labels.Everything()})
	require.NoError(t, err)
	assert.Empty(t, got, "in all namespaces, there is no name to check")
}
