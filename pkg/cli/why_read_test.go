package cli

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// keySecret answers each read with one Secret.
type keySecret struct {
	client.Reader
	data map[string][]byte
}

func (k keySecret) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*corev1.Secret).Data = k.data
	return nil
}

// One invalid key makes the Secret unusable, whatever else it has. That is one line, and no claim about the replicas that run.
func TestWhyNamesTheInvalidDigestKey(t *testing.T) {
	t.Parallel()
	f := whyFlags{shared: shared{own: "tools"}, key: "keys"}
	_, err := f.ring(t.Context(), keySecret{data: map[string][]byte{"0001": bytes.Repeat([]byte{7}, 32), "0002": []byte("short")}})
	require.EqualError(t, err, "the digest key in Secret tools/keys is unusable: the digest-key Secret's data key \"0002\" has 5 bytes: "+
		"at least 32 are needed; correct or remove the invalid key, and delete the Secret only if no key is valid")
	assert.Equal(t, "the Secret tools/keys is not usable; the replicas that run go on with the keys in their memory, and one that starts waits "+
		"until the Secret is corrected", f.noKey(err))
}

// nowhere has no workload.
type nowhere struct {
	client.Client
	answer error
}

func (n nowhere) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return n.answer
}

func TestMissingWorkloadIsNamedWithItsNamespace(t *testing.T) {
	t.Parallel()
	const want = "Deployment shop/cart does not exist; name another namespace with -n"
	ask := func(answer error) (why, clean error) {
		c := nowhere{answer: answer}
		_, why = readWorkload(t.Context(), c, workload.Deployment(), types.NamespacedName{Namespace: "shop", Name: "cart"})
		_, clean = (&cleaner{client: c, namespace: "shop"}).get(t.Context(), workload.NewKinds(workload.Deployment()), []target{{"deployment", "cart"}})
		return why, clean
	}
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	why, clean := ask(apierrors.NewNotFound(resource, "cart"))
	require.EqualError(t, why, "read the workload: "+want)
	require.EqualError(t, clean, "read deployment/cart: "+want)
	why, clean = ask(apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "cart", "default backend", 0, true))
	for _, err := range []error{why, clean} {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), want, "a load balancer's 404 says nothing")
	}
}

func TestKindThatTheClusterDoesNotServeIsNamed(t *testing.T) {
	t.Parallel()
	rollout := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}}
	c := nowhere{answer: &apiutil.ErrResourceDiscoveryFailed{
		rollout.GroupVersion(): &meta.NoResourceMatchError{PartialResource: rollout.GroupVersion().WithResource("")},
	}}
	const want = "the cluster does not serve Rollout.argoproj.io in version v1alpha1"
	_, err := readWorkload(t.Context(), c, rollout, types.NamespacedName{Namespace: "shop", Name: "cart"})
	require.EqualError(t, err, "read the workload: "+want)
	_, err = (&cleaner{client: c, namespace: "shop"}).get(t.Context(), workload.NewKinds(rollout), []target{{"rollout", "cart"}})
	require.EqualError(t, err, "read rollout/cart: "+want)
}
