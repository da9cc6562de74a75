package kind_test

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/operator"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// rolloutKind is that of Rollouts.
var rolloutKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}

// newRollout returns a Rollout without content.
func newRollout() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(rolloutKind)
	return object
}

// defineArgo applies the definitions that come with the pinned Argo Rollouts. A controller that does not find its kinds waits for long
// until it asks again: they are served a little later than they are established.
func defineArgo(ctx context.Context, cp *controlplane.ControlPlane) error {
	source := operator.Source{Pin: "tools/argo-rollouts", Module: "github.com/argoproj/argo-rollouts"}
	for _, kind := range []string{"rollout", "experiment", "analysis-run", "analysis-template", "cluster-analysis-template"} {
		source.Paths = append(source.Paths, "manifests/crds/"+kind+"-crd.yaml")
	}
	if err := source.Apply(ctx, cp); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return poll.Until(ctx, "the kinds of Argo Rollouts", 100*time.Millisecond, func(ctx context.Context) error {
		_, err := cp.Kubectl(ctx, "get", "rollouts,experiments,analysisruns,analysistemplates,clusteranalysistemplates", "--all-namespaces")
		return err
	})
}

// runArgo defines the kinds of Argo Rollouts and runs its controller until the control plane stops.
func runArgo(ctx context.Context, cp *controlplane.ControlPlane) (*controlplane.Process, error) {
	if err := defineArgo(ctx, cp); err != nil {
		return nil, err
	}
	dir, err := toolchain.Builder{}.Build(ctx, "argo-rollouts")
	if err != nil {
		return nil, err
	}
	ports := [2]int{}
	for n := range ports {
		if ports[n], err = cp.FreePort(); err != nil {
			return nil, err
		}
	}
	return cp.StartProcess(ctx, controlplane.Program{
		Name: "argo-rollouts", Path: filepath.Join(dir, "rollouts-controller"),
		Args: []string{
			"--kubeconfig=" + cp.AdminKubeconfig(), "--leader-elect=false",
			"--metricsPort=" + strconv.Itoa(ports[0]), "--healthzPort=" + strconv.Itoa(ports[1]),
		},
		Env:   []string{controlplane.WithoutMutationDetector},
		Ready: controlplane.URLReady("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1])) + "/healthz"),
	})
}
