package sequence_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// downtime is a fixture with kubectl, on an installation that stops and starts.
type downtime struct {
	*fixture.Fixture
	in *installation.Installation
}

func newDowntime(t *testing.T, in *installation.Installation) *downtime {
	t.Helper()
	d := &downtime{Fixture: fixture.New(t, in), in: in}
	d.ConfigMap("app", fixture.Data{"key": "1"})
	d.ConfigMap("same", fixture.Data{"key": "1"})
	return d
}

// onSteadyMachine is [steadily] on an installation that stops and starts.
func onSteadyMachine(attempt func(*downtime) error) func(*testing.T, *installation.Installation) {
	return func(t *testing.T, in *installation.Installation) {
		t.Helper()
		require.NoError(t, fixture.Steadily(t, in, func() error { return attempt(newDowntime(t, in)) }))
	}
}

// TestDowntime runs, one after the other on one installation, the courses of events in which replicas stop or freeze.
func TestDowntime(t *testing.T) {
	t.Parallel()
	in := installation.New(t, controlplane.New(t, controlplane.Options{}), installation.Options{
		Patient: true, LongLease: true, Args: []string{"--refractory=0s", "--settle=100ms", "--shutdown-grace-period=200ms"},
	})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *installation.Installation)
	}{
		{"DummyStoredWhileTheWebhookWasAway", onSteadyMachine(dummyStoredWhileTheWebhookWasAway)},
		{"UnboundDummyThatUndoBringsBack", onSteadyMachine(unboundDummyThatUndoBringsBack)},
		{"RecordStrippedAndUndone", recordStrippedAndUndone},
		{"DigestKeyLostBeforeAnExclusion", digestKeyLostBeforeAnExclusion},
		{"FrozenLeaderComesBack", frozenLeaderComesBack}, // it ends for good: nothing may follow
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, in) }) {
			return // a replica may be missing still
		}
	}
}

func (d *downtime) kubectl(args ...string) {
	d.Helper()
	_, err := d.in.ControlPlane().Kubectl(d.Context(), append([]string{"-n", d.Namespace}, args...)...)
	require.NoError(d, err, "kubectl %v", args)
}

// start starts the program, and awaits that it has looked at everything.
func (d *downtime) start() {
	d.Helper()
	require.NoError(d, d.in.StartAll(d.Patiently()))
	d.Settled()
}

// A client's request for a reload is stored while the webhook is away. The Deployment controller copies it to the
// ReplicaSet, from where rollout undo brings it back: it must not be taken for a new one, which would be rejected.
func unboundDummyThatUndoBringsBack(d *downtime) error {
	d.Helper()
	w := d.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	rolledOut(d.Fixture, w, 1)
	require.NoError(d, d.in.StopAll(d.Context()))
	d.kubectl("annotate", "deployment/web", fixture.ConfigHash+"=0123456789abcdef")
	d.awaitCopied(fixture.ConfigHash)
	d.start()
	d.kubectl("set", "image", "deployment/web", "main=example.com/app:2")
	rolledOut(d.Fixture, w, 2)
	released := d.Get(w).GetAnnotations()[fixture.ConfigHash]
	d.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
	undone := d.Get(w).GetAnnotations()[fixture.ConfigHash]
	d.Settled()
	if released != "" || undone != "" {
		return fmt.Errorf("the next write purges the request, and it does not come back: it was %q and then %q", released, undone)
	}
	return changed(d.Fixture, w, 2, "the release and its rollback")
}

// awaitCopied waits until the Deployment controller has copied an annotation to a ReplicaSet.
func (d *downtime) awaitCopied(key string) {
	d.Helper()
	d.Await("the ReplicaSet to have the annotation "+key, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(observe.KindNamed("ReplicaSet").GroupVersionKind())
		require.NoError(d, d.List(d.Context(), list, client.InNamespace(d.Namespace)))
		for _, set := range list.Items {
			if set.GetAnnotations()[key] != "" {
				return nil
			}
		}
		return errors.New("none has it")
	})
}

// While the program is down, the Record is stripped from some workloads, and others are rolled back across a reload.
func recordStrippedAndUndone(t *testing.T, in *installation.Installation) {
	t.Helper()
	d := newDowntime(t, in)
	var workloads []observe.Workload
	for _, name := range []string{"stripped", "undone"} {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			workloads = append(workloads, d.Workload(kind, name, fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1}))
		}
	}
	calm := d.Deployment("calm", fixture.Uses{ConfigMaps: []string{"same"}, Replicas: 1})
	for _, w := range workloads {
		d.AwaitRolledOut(w)
	}
	d.SetConfigMap("app", "key", "2")
	for _, w := range workloads {
		d.AwaitChanges(w, 1, "so that there is something to undo")
	}
	d.awaitRevisions(workloads)
	require.NoError(t, d.in.StopAll(t.Context()))
	for _, w := range append(workloads[:2:2], calm) {
		d.MergeWorkload(w, `{"metadata":{"annotations":{"`+fixture.ConfigRecord+`":null}}}`)
	}
	for _, kind := range []string{"deployment", "statefulset"} {
		d.kubectl("rollout", "undo", kind+"/undone", "--to-revision=1")
	}
	for _, w := range workloads[2:] {
		d.AwaitChanges(w, 2, "the template of before the reload is back")
	}
	d.SetConfigMap("app", "key", "3")
	d.start()
	for n, w := range workloads {
		changes := map[bool]int{true: 2, false: 3}[n < 2]
		d.AwaitChanges(w, changes, "the hash of the template is not that of the present content")
		d.RequireChanges(w, changes, "once")
	}
	d.RequireChanges(calm, 0, "its hash is that of the present content")
	assert.Contains(t, d.Get(calm).GetAnnotations()[fixture.ConfigRecord], "configmap/same=", "so the Record is made anew from it")
}

// awaitRevisions waits until the controllers have two revisions of each workload.
func (d *downtime) awaitRevisions(workloads []observe.Workload) {
	d.Helper()
	for _, w := range workloads {
		if w.Kind == "Deployment" {
			rolledOut(d.Fixture, w, 2)
			continue
		}
		d.AwaitWorkload(w, "the second revision", func(o *unstructured.Unstructured) bool {
			current, _, _ := unstructured.NestedString(o.Object, "status", "currentRevision")
			update, _, _ := unstructured.NestedString(o.Object, "status", "updateRevision")
			replicas, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
			seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return seen == o.GetGeneration() && current == update && replicas == 1
		})
	}
}
