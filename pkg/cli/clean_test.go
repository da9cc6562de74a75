package cli

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestCleanCountsInWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "3 workloads; changes the pod templates of 2, with 4 pods", summary(3, 2, 4))
	assert.Equal(t, "1 workload; changes the pod templates of 1, with 1 pod", summary(1, 1, 1))
	assert.Equal(t, "1 workload; changes no pod template", summary(1, 0, 0))
	for status, want := range map[int64]string{0: "it has no pods to restart", 1: "restarts 1 pod", 2: "restarts 2 pods"} {
		object := workload.Object{Raw: map[string]any{"status": map[string]any{"replicas": status}}}
		assert.Equal(t, want, leftover{object: object}.effect())
	}
}

func TestCleanSaysWhichPodsRestart(t *testing.T) {
	t.Parallel()
	rolling := func(partition int64) map[string]any {
		return map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": partition}}}
	}
	for want, object := range map[string]workload.Object{
		"restarts 9 of 10 pods: partition 1":        sized(10, rolling(1)),
		"its pods do not restart now: partition 10": sized(10, rolling(10)),
		"its pods do not restart now: partition 11": sized(10, rolling(11)),
		"restarts 10 pods":                          sized(10, rolling(0)),
		"it has no pods to restart":                 sized(0, rolling(0)),
		"its pods do not restart now: paused":       sized(10, map[string]any{"paused": true}),
		"its pods do not restart now: OnDelete":     sized(10, map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}),
	} {
		assert.Equal(t, want, leftover{object: object}.effect())
	}
}

// sized is a workload with a number of pods.
func sized(pods int64, spec map[string]any) workload.Object {
	return workload.Object{Raw: map[string]any{"spec": spec, "status": map[string]any{"replicas": pods}}}
}

// patcher refuses to patch workloads, by name.
type patcher struct {
	client.Client
	refused map[string]error
}

func (p patcher) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return p.refused[object.GetName()]
}

func TestCleanTakesAWorkloadThatWasDeletedForClean(t *testing.T) {
	t.Parallel()
	workloads := schema.GroupResource{Group: "apps", Resource: "deployments"}
	c := &cleaner{client: patcher{refused: map[string]error{
		"deleted":  apierrors.NewNotFound(workloads, "deleted"),
		"no-route": apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", workloads, "no-route", "default backend", 0, true),
	}}}
	var out bytes.Buffer
	f := &cleanFlags{out: &out}
	of := func(name string) leftover {
		return leftover{object: workload.Object{Kind: workload.Builtin()[1], Raw: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": name},
		}}}
	}
	require.NoError(t, f.clean(t.Context(), c, []leftover{of("deleted")}))
	assert.Equal(t, "deleted meanwhile: deployment/deleted -n shop\n", out.String())
	require.ErrorContains(t, f.clean(t.Context(), c, []leftover{of("no-route")}), "clean deployment/no-route -n shop", "a load balancer's 404 says nothing")
}
