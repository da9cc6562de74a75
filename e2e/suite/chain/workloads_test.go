package chain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const (
	instance = "app.kubernetes.io/instance"
	finding  = `  workloads: {ownedBy: true, selector: "app.kubernetes.io/instance={name}"}` + "\n"
	location = "--config=configmap:pod-reloader/settings"
)

// TestOtherInstallations has the tests that need an installation of their own.
func TestOtherInstallations(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "MissingPermissionsAreNamedUntilTheyAreGiven", Run: missingPermissionsAreNamedUntilTheyAreGiven}, // and stay given
		{Name: "WorkloadsAreFoundByOwnerAndByLabel", Run: workloadsAreFoundByOwnerAndByLabel},
		{Name: "DirectModeFollowsTheGraph", Run: directModeFollowsTheGraph},
	})
}

// An operator creates its Deployments with an owner reference or with a label, and without annotations. They are found when the
// configuration says so, restart for each change of the graph, and are left alone again when it says so no longer.
func workloadsAreFoundByOwnerAndByLabel(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := ownInstallation(t, cp)
	f := &found{graphFixture: newGraphFixture(t, in), in: in}
	f.graph()
	owned, labelled := f.owned("owned"), f.Deployment("labelled", fixture.Uses{Labels: map[string]string{instance: "my-proxy"}})
	other := f.Deployment("other", fixture.Uses{Labels: map[string]string{instance: "another"}})
	f.Settled()
	assert.Empty(t, fixture.Ours(f.Get(owned)), "the configuration does not ask for owners yet")

	f.configure(configuration + finding)
	f.AwaitAdopted(owned, theProxy)
	f.AwaitAdopted(labelled, theProxy)
	f.Settled()
	f.changes("being found restarts nothing", 0, owned, labelled, other)
	assert.Empty(t, fixture.Ours(f.Get(other)), "no object has the name in its label")
	f.SetSecret("tls", "tls.crt", "2")
	f.AwaitChanges(owned, 1, "a TLS Secret below the owner")
	f.AwaitChanges(labelled, 1, "a TLS Secret below the object that the label names")
	f.AwaitEvent(owned, "Reloaded", theProxy+" modified (secret/tls)")
	f.tools(owned, labelled, other)

	// The object that a label names is created later.
	f.apply("KafkaProxy", "another", `{replicas: 1}`)
	f.AwaitAdopted(other, "kafkaproxies.kroxylicious.io/another")
	f.remove(f.custom("KafkaProxy", "another"), "another")
	f.AwaitEvent(other, "ReferentHeld", "kafkaproxies.kroxylicious.io/another: missing")

	// The operator writes its Deployment as it always does, without our annotations.
	f.restoresWhatAnOperatorRemoves(owned)
	f.stampsWhatIsCreated()

	f.configure(configuration)
	f.Settled()
	f.SetSecret("tls", "tls.crt", "3")
	f.Deployment("named", fixture.Uses{Annotations: map[string]string{referents: theProxy}})
	f.AwaitAdopted(observe.Workload{Kind: "Deployment", Namespace: f.Namespace, Name: "named"}, theProxy)
	f.Settled()
	f.changes("they are not looked for any more", 1, owned, labelled)
	f.changes("it was never restarted", 0, other)
}

// found is a graph with workloads that do not name it.
type found struct {
	*graphFixture

	in *installation.Installation
}

// ownInstallation is one whose configuration a test can change.
func ownInstallation(t *testing.T, cp *controlplane.ControlPlane) *installation.Installation {
	t.Helper()
	require.NoError(t, cp.Apply(t.Context(), definitions(), permissions))
	in := installation.NewInTurn(t, cp, installation.Options{
		KeepRunning: true, Patient: true, LongLease: true, Args: []string{"--refractory=0s", "--settle=" + settle.String(), location},
	})
	require.NoError(t, cp.Apply(t.Context(), configMap(configuration)))
	return in
}

// graph makes a small valid one.
func (f *found) graph() {
	f.Helper()
	f.Secret("tls", fixture.Data{"tls.crt": "1"})
	f.apply("KafkaService", "service", `{tls: {certificateRef: {name: tls}}}`)
	f.apply("KafkaProxy", "my-proxy", `{replicas: 1}`)
	f.apply("VirtualKafkaCluster", "cluster", `{proxyRef: {name: my-proxy}, targetKafkaServiceRef: {name: service}}`)
}

// ownedManifest is a Deployment as the operator of the proxy creates it.
func (f *found) ownedManifest(name string) *unstructured.Unstructured {
	f.Helper()
	proxy := f.read("KafkaProxy", "my-proxy")
	manifest := f.Manifest("Deployment", name, fixture.Uses{})
	require.NoError(f, unstructured.SetNestedSlice(manifest.Object, []any{map[string]any{
		"apiVersion": proxy.GetAPIVersion(), "kind": "KafkaProxy", "name": "my-proxy", "uid": string(proxy.GetUID()), "controller": true,
	}}, "metadata", "ownerReferences"))
	return manifest
}

func (f *found) owned(name string) observe.Workload {
	f.Helper()
	f.CreatePromptly(f.ownedManifest(name))
	return observe.Workload{Kind: "Deployment", Namespace: f.Namespace, Name: name}
}

// configure changes the configuration while the program runs.
func (f *found) configure(text string) {
	f.Helper()
	require.NoError(f, f.in.ControlPlane().Apply(f.Context(), configMap(text)))
}

// changes requires that each of some workloads has been restarted so often.
func (f *found) changes(why string, n int, workloads ...observe.Workload) {
	f.Helper()
	for _, w := range workloads {
		f.RequireChanges(w, n, why)
	}
}

// tools requires that the commands find the same as the program.
func (f *found) tools(owned, labelled, other observe.Workload) {
	f.Helper()
	for _, w := range []observe.Workload{owned, labelled} {
		why, err := f.in.Why(f.Context(), "deployment/"+w.Name, "-n", f.Namespace, location)
		require.NoError(f, err)
		assert.Contains(f, why, theProxy)
		graph, err := f.in.Graph(f.Context(), location, "-n", f.Namespace, "deployment/"+w.Name)
		require.NoError(f, err)
		assert.Contains(f, graph, "secret/tls")
	}
	why, err := f.in.Why(f.Context(), "deployment/"+other.Name, "-n", f.Namespace, location)
	require.NoError(f, err)
	assert.NotContains(f, why, "kafkaproxies")
	_, err = f.in.Graph(f.Context(), location, "-n", f.Namespace, "deployment/"+other.Name)
	require.ErrorContains(f, err, "runs with no custom resource")
}

// restoresWhatAnOperatorRemoves requires that a write without our annotations restarts nothing and loses nothing.
func (f *found) restoresWhatAnOperatorRemoves(owned observe.Workload) {
	f.Helper()
	var before *unstructured.Unstructured
	f.Await("a write without a conflict", func() error { // with the Deployment controller
		before = f.Get(owned)
		manifest := f.ownedManifest(owned.Name)
		manifest.SetResourceVersion(before.GetResourceVersion())
		err := f.Update(f.Context(), manifest)
		if !apierrors.IsConflict(err) {
			require.NoError(f, err)
		}
		return err
	})
	after := f.Get(owned)
	assert.Equal(f, fixture.Ours(before)[fixture.ConfigRecord], fixture.Ours(after)[fixture.ConfigRecord])
	assert.Equal(f, fixture.TemplateAnnotations(before), fixture.TemplateAnnotations(after))
}

// stampsWhatIsCreated widens the match condition as the chart does, and requires that the webhook stamps a new workload.
func (f *found) stampsWhatIsCreated() {
	f.Helper()
	webhook := &admissionv1.MutatingWebhookConfiguration{}
	require.NoError(f, f.Client.Get(f.Context(), types.NamespacedName{Name: f.in.WebhookConfiguration()}, webhook))
	condition := &webhook.Webhooks[0].MatchConditions[0].Expression
	*condition = strings.TrimSuffix(strings.TrimSpace(*condition), ")") + `
		|| o != null && has(o.metadata) && has(o.metadata.ownerReferences)
		&& o.metadata.ownerReferences.exists(r, r.apiVersion.startsWith("kroxylicious.io/"))
		|| o != null && has(o.metadata) && has(o.metadata.labels) && "app.kubernetes.io/instance" in o.metadata.labels)`
	require.NoError(f, f.Update(f.Context(), webhook))
	f.Await("a stamp at creation", func() error {
		for _, manifest := range []*unstructured.Unstructured{
			f.ownedManifest("created"), f.Manifest("Deployment", "selected", fixture.Uses{Labels: map[string]string{instance: "my-proxy"}}),
		} {
			if err := f.Create(f.Context(), manifest, client.DryRunAll); err != nil {
				return err
			}
			if fixture.TemplateAnnotations(manifest)["pod-reloader.cs.sap.com/config-hash"] == "" {
				return errNotStamped
			}
		}
		return nil
	})
	plain := f.Manifest("Deployment", "plain", fixture.Uses{Labels: map[string]string{instance: "unknown"}})
	require.NoError(f, f.Create(f.Context(), plain, client.DryRunAll))
	assert.Empty(f, fixture.Ours(plain), "the webhook is asked, and no object has this name")
}

var errNotStamped = errors.New("it has no hash")
