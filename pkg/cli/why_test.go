package cli

import (
	"context"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// In a pod of the installation, be it one of Reloader's chart, the digest key is where the manager has it.
func TestWhyLooksForTheDigestKeyInTheNamespaceOfTheManager(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"POD_NAMESPACE", "RELOADER_NAMESPACE"} {
		cmd := newWhy(Process{Getenv: func(name string) string { return map[string]string{variable: "tools"}[name] }})
		assert.Equal(t, "tools", cmd.Flag("installation-namespace").Value.String(), variable)
	}
}

// pausedDeployment answers each read with a Deployment that a reload has paused.
type pausedDeployment struct{ client.Reader }

func (pausedDeployment) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	const domain = "deployment.reloader.stakater.com/"
	object.(*unstructured.Unstructured).Object = map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{
			"pod-reloader.cs.sap.com/last-reload": "x", domain + "pause-period": "1h", domain + "paused-at": time.Now().UTC().Format(time.RFC3339),
		}},
		"spec": map[string]any{"paused": true, "template": map[string]any{}},
	}
	return nil
}

func TestWhyReportsTheEndOfAPauseAlsoWithoutAnnotationsOfReloader(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--stakater-annotations=false"}} {
		f := whyFlags{shared: newShared(Process{Getenv: unset})}
		set := pflag.NewFlagSet("why", pflag.ContinueOnError)
		f.manager.ShareStakater(set)
		require.NoError(t, set.Parse(args))
		var q question
		var err error
		q.selection, q.reload, err = f.manager.CompleteShared(f.environment)
		require.NoError(t, err)
		e, err := f.newExplainer(t.Context(), &rest.Config{}, q)
		require.NoError(t, err)
		object, err := readWorkload(t.Context(), pausedDeployment{}, workload.Deployment(), types.NamespacedName{Namespace: "shop", Name: "cart"})
		require.NoError(t, err)
		in, _ := e.input(object)
		assert.Contains(t, explain.Explain(in).Pending, "paused by a reload until ", args)
	}
}
