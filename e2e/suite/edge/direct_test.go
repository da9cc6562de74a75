package edge_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// Direct mode: no webhook is registered, the loop writes the managed annotations itself.
func directMode(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{WithoutWebhook: true})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}}
	workloads := s.EveryKind("web", uses)
	for _, w := range workloads {
		s.AwaitKnown(w)
	}
	s.AwaitExactly(0, "first seen, it is adopted and not restarted", workloads...)
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "one change is one restart", workloads...)
	s.SetSecret("db", "key", "2")
	s.AwaitExactly(2, "one change more is one restart more", workloads...)

	for _, w := range workloads {
		require.NoError(t, s.Update(t.Context(), s.Manifest(w.Kind, w.Name, uses)), "a PUT without our annotations")
	}
	s.AwaitExactly(3, "dropping our annotations is itself a change of the template, and costs no second restart", workloads...)
	for _, w := range workloads {
		s.AwaitKnown(w)
	}
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(4, "it is reloaded as before", workloads...)
	for _, w := range workloads {
		s.AwaitEvent(w, "Reloaded", "configmap/app modified")
		assert.NotContains(t, s.Get(w).GetAnnotations(), fixture.ConfigHash, "%s: there is no webhook to ask", w)
	}
	stripped(t, in)
	fixture.AssertNothingDenied(t, in)
}

// A user has removed UPDATE from the rules of the webhook: `check` says that it does not check that, and reloads go on in direct mode.
func webhookForCreationsOnly(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.AwaitKnown(w)
	configuration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: in.WebhookConfiguration()}}
	patch := func(object client.Object, kind types.PatchType, body string, options ...client.PatchOption) {
		t.Helper()
		require.NoError(t, s.Patch(s.Patiently(), object, client.RawPatch(kind, []byte(body)), options...))
	}
	patch(configuration, types.JSONPatchType, `[{"op":"replace","path":"/webhooks/0/rules/0/operations","value":["CREATE"]}]`)
	s.Await("an update that the webhook does not restore", func() error {
		object := s.Get(w)
		patch(object, types.MergePatchType, `{"metadata":{"annotations":{"`+fixture.ConfigRecord+`":null}}}`, client.DryRunAll)
		if _, restored := object.GetAnnotations()[fixture.ConfigRecord]; restored {
			return errors.New("the webhook restores it")
		}
		return nil
	})
	output, err := in.Check(t.Context(), "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, output, "updates are not checked")

	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "one change is one restart", w)
	leader, err := in.Leader(t.Context())
	require.NoError(t, err)
	assert.NoError(t, leader.Logged("no webhook handled the write; stamping directly", "web"))
}

// writesSpec reports whether the body of a patch changes the spec.
func writesSpec(t *testing.T, r controlplane.Request) bool {
	t.Helper()
	require.NotEmpty(t, r.Body, "the audit log has the body of %s %s", r.What(), r.Name)
	body := r.Body
	// The audit log has a JSON patch as JSON; other encodings would come as a string.
	var text string
	if json.Unmarshal(body, &text) == nil {
		body = json.RawMessage(text)
	}
	var merge map[string]any
	if json.Unmarshal(body, &merge) == nil {
		return merge["spec"] != nil
	}
	var operations []struct{ Op, Path string }
	require.NoError(t, json.Unmarshal(body, &operations), string(body))
	for _, operation := range operations {
		if operation.Op != "test" && (operation.Path == "" || strings.HasPrefix(operation.Path, "/spec")) {
			return true
		}
	}
	return false
}
