package conformance_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// definition is that of the custom resource of the model.
var definition = controlplane.CustomResource{
	Group: "argoproj.io", Kind: "Rollout", Plural: "rollouts", Versions: []string{"v1alpha1"},
}.Definition()

const rollouts = "/apis/argoproj.io/v1alpha1/namespaces/NS/rollouts"

// noDefaults is how the objects differ: the model sets the defaults of pods in the template, and keeps no managed fields.
const noDefaults = "the model has defaults and no managed fields"

func TestCustomResource(t *testing.T) {
	t.Parallel()
	sides, _ := servers(t)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(definition), &crd.Object))
	if err := cluster.Client().Create(t.Context(), crd); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		code, _ := sides[1].do(t, get(rollouts))
		return code == http.StatusOK
	}, patience, 100*time.Millisecond)
	w := rollouts + "/w"
	body := `{"apiVersion":"argoproj.io/v1alpha1",` + strings.TrimPrefix(workload("Rollout", `"replicas":1,`+selector), "{")
	unpinned := strings.Replace(body, `"replicas":1`, `"replicas":2`, 1)
	for n, s := range []step{
		differs(noDefaults, post(rollouts, body)), post(rollouts, body), put(w, unpinned),
		differs(noDefaults, put(w, strings.Replace(unpinned, `"name":"w"`, `"name":"w","resourceVersion":"$last.rv"`, 1))),
		put(w, strings.Replace(body, `"name":"w"`, `"name":"w","resourceVersion":"$last.rv"`, 1)),
		patch(w, strategic, `{}`), differs(noDefaults, patch(w, merge, `{"metadata":{"annotations":{"a":"2"}}}`)),
		differs(noDefaults, patch(w+"/status", merge, `{"status":{"replicas":2}}`)),
		patch(w, merge, `{"metadata":{"annotations":{"b":"`+strings.Repeat("x", 262144)+`"}}}`),
		differs(noDefaults, patch(w, operation, `[{"op":"replace","path":"/spec/replicas","value":3}]`)),
		differs(noDefaults, patch(w, merge, `{"spec":{"restartAt":"2030-01-01T00:00:00Z"}}`)),
		differs(noDefaults, patch(w+"/status", merge, `{"status":{"restartedAt":"2030-01-01T00:00:00Z"}}`)), get(rollouts + "/none"),
	} {
		compare(t, sides, n, s)
	}
}
