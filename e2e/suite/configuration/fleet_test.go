package configuration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// fleet is a kind of workload that is not compiled in.
var fleet = fixture.Fleet{Group: "road.example.com", Template: "spec.template"}

const (
	fleetText = "road.example.com/v1/Fleet=spec.template"
	header    = "apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\n"
	withFleet = header + "workloadKinds:\n- apiVersion: road.example.com/v1\n  kind: Fleet\n  template: spec.template\n"
	// invalid has two faults; the old kind is in it, too.
	invalid  = header + "workloadKinds:\n- apiVersion: road.example.com/v1\n  kind: Fleet\n  template: status.template\n  path: spec.template\n"
	invalid0 = "workloadKinds[0].template"
	invalid1 = "workloadKinds[0].path"
)

// fleetFixture is a fixture with fleets on an installation of its own.
type fleetFixture struct {
	*fixture.Fixture
	pids map[string]int
}

// newFleetFixture installs pod-reloader where fleets are served, sent to the webhook, and may be reloaded.
func newFleetFixture(t *testing.T, args ...string) *fleetFixture {
	t.Helper()
	cp := controlplane.New(t, controlplane.Podless())
	in := installation.New(t, cp, installation.Options{Patient: true, LongLease: true, Args: append([]string{"--refractory=0s", "--settle=200ms"}, args...)})
	fleet.Define(t, in)
	r := &fleetFixture{pids: map[string]int{}, Fixture: fleet.Fixture(t, in)}
	fleet.Route(r.Fixture)
	for _, replica := range in.Replicas() {
		r.pids[replica.Name()] = replica.PID()
	}
	return r
}

// fleet creates one that reads the ConfigMap app.
func (r *fleetFixture) fleet(name string) observe.Workload {
	r.Helper()
	r.CreatePromptly(r.manifest(name))
	return observe.Workload{Kind: "Fleet", Namespace: r.Namespace, Name: name}
}

func (r *fleetFixture) manifest(name string) *unstructured.Unstructured {
	r.Helper()
	object := r.Manifest("Deployment", name, fixture.Uses{ConfigMaps: []string{"app"}})
	object.SetGroupVersionKind(fleet.Kind())
	return object
}

func (r *fleetFixture) get(name string) *unstructured.Unstructured {
	r.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fleet.Kind())
	require.NoError(r, r.Client.Get(r.Context(), types.NamespacedName{Namespace: r.Namespace, Name: name}, object))
	return object
}

// awaitStamps waits until the API server sends fleets to the webhook, and that stamps them. The probe is not stored.
func (r *fleetFixture) awaitStamps() {
	r.Helper()
	r.Await("a stamp at admission", func() error {
		probe := r.manifest("probe")
		if err := r.Create(r.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if fixture.TemplateAnnotations(probe)[fixture.ConfigHash] == "" {
			return errors.New("there is none")
		}
		return nil
	})
}

// serving awaits that every replica has applied a configuration for the n-th time, by its log.
func (r *fleetFixture) serving(n int, text string) {
	r.Helper()
	for _, replica := range r.Installation.Replicas() {
		r.Await(replica.Name()+" to apply the configuration", func() error {
			log, err := replica.Log()
			if err != nil {
				return err
			}
			count := 0
			for line := range strings.Lines(log) {
				if strings.Contains(line, `"configuration applied"`) && strings.Contains(line, text) {
					count++
				}
			}
			if count < n {
				return fmt.Errorf("it has logged %s %d times, not %d", text, count, n)
			}
			return nil
		})
	}
}

// valid awaits the metric of both replicas.
func (r *fleetFixture) valid(want float64) {
	r.Helper()
	for _, replica := range r.Installation.Replicas() {
		r.Await("the metric of "+replica.Name(), func() error {
			metrics, err := replica.Metrics(r.Context())
			if err != nil {
				return err
			}
			if got := metrics.Sum("pod_reloader_configuration_valid"); got != want {
				return fmt.Errorf("it is %v", got)
			}
			return nil
		})
	}
}

// change changes what the fleets read, and requires the n-th restart of each and no more.
func (r *fleetFixture) change(value string, n int, why string, of ...observe.Workload) {
	r.Helper()
	r.SetConfigMap("app", "key", value)
	r.AwaitExactly(n, why, of...)
}

// explained requires that why, run in the pod, reports the last reload.
func (r *fleetFixture) explained(name, config string) {
	r.Helper()
	in := r.Installation
	text, err := in.WhyAs(r.Context(), in.Identity(), "fleet/"+name, "-n", r.Namespace, "--config="+config)
	require.NoError(r, err)
	assert.Contains(r, text, "configmap/app modified")
	text, err = in.Why(r.Context(), "fleet/"+name, "-n", r.Namespace)
	require.NoError(r, err, "the flag of the Deployment counts")
	assert.Contains(r, text, "configmap/app modified")
	_, err = in.Why(r.Context(), "fleet/"+name, "-n", r.Namespace, "--installation-name=absent")
	require.ErrorContains(r, err, `unknown kind "fleet"`)
	assert.ErrorContains(r, err, "--config")
}

// undisturbed requires that the replicas are the processes that they were, and were denied nothing.
func (r *fleetFixture) undisturbed() {
	r.Helper()
	for _, replica := range r.Installation.Replicas() {
		assert.Equal(r, r.pids[replica.Name()], replica.PID(), "%s was not restarted", replica.Name())
	}
	for _, request := range r.denied() {
		assert.Fail(r, "a permission is missing", "%s in %q was denied: %s", request.What(), request.Namespace, request.Message)
	}
}

// denied are the requests of the installation that its permissions were not enough for, so far.
func (r *fleetFixture) denied() controlplane.Requests {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), fixture.Patience)
	defer cancel()
	requests, err := r.Installation.ControlPlane().Audit().All(ctx)
	require.NoError(r, err)
	return requests.By(r.Installation.Identity().User).Denied()
}

// rejections is how many Events reject the configuration. A process counts what it repeats on the first one.
func (r *fleetFixture) rejections() int {
	r.Helper()
	count := 0
	for _, event := range r.Events(settings) {
		if event.Reason == "ConfigurationRejected" {
			count++
		}
	}
	return count
}

func atLeast(got, want int) error {
	if got < want {
		return fmt.Errorf("there are %d, not %d", got, want)
	}
	return nil
}
