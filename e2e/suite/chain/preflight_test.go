package chain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// lacking is the name of the missing rule and its remedy, as the log, the Event and the sub-command check have it.
var lacking = []string{
	"permissions on custom resources are missing: list, watch on kafkaservices.kroxylicious.io; ",
	"pod-reloader roles --config configmap:pod-reloader/settings",
}

// One configured resource may be read, but neither listed nor watched. What is missing is named with its remedy, and what needs
// the resource is held until the permissions are given.
func missingPermissionsAreNamedUntilTheyAreGiven(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	require.NoError(t, cp.Apply(t.Context(), definitions(), permissions))
	role := &rbacv1.ClusterRole{}
	require.NoError(t, cp.Client().Get(t.Context(), client.ObjectKey{Name: "pod-reloader-referents"}, role))
	withoutServices(role)
	require.NoError(t, cp.Client().Update(t.Context(), role))
	in := installation.NewInTurn(t, cp, installation.Options{
		KeepRunning: true, Patient: true, LongLease: true, Args: []string{"--refractory=0s", "--settle=" + settle.String(), location},
	})
	require.NoError(t, cp.Apply(t.Context(), configMap(configuration)))

	f := &found{graphFixture: newGraphFixture(t, in), in: in}
	f.graph()
	own := observe.Deployment(in.Namespace(), "pod-reloader")
	held := f.Deployment("held", fixture.Uses{Annotations: map[string]string{referents: theProxy}})
	f.AwaitEvent(held, "ReferentHeld", theProxy, "kafkaservices.kroxylicious.io/service is forbidden")
	f.AwaitEvent(own, "PermissionsMissing", lacking...)
	for _, replica := range in.Replicas() {
		f.Await(replica.Name()+" to report it, as each replica does", func() error { return replica.Logged(lacking...) })
	}
	_, err := f.check()
	for _, text := range lacking {
		require.ErrorContains(t, err, text)
	}
	f.SetSecret("tls", "tls.crt", "2")
	f.Settled()
	f.changes("it is held", 0, held)

	require.NoError(t, cp.Apply(t.Context(), permissions))
	f.AwaitEvent(own, "PermissionsGranted", "all permissions on custom resources are granted")
	output, err := f.check()
	require.NoError(t, err)
	assert.Contains(t, output, "all permissions on 6 custom resources are granted")
	f.AwaitAdopted(held, theProxy)
	f.Settled()
	f.changes("it was never started with another state that is known", 0, held)
	f.SetSecret("tls", "tls.crt", "3")
	f.AwaitChanges(held, 1, "it is held no longer")
	f.AwaitEvent(held, "Reloaded", theProxy+" modified (secret/tls)")

	require.NoError(t, cp.Client().Get(t.Context(), client.ObjectKey{Name: "pod-reloader-referents"}, role))
	withoutServices(role)
	role.Rules[len(role.Rules)-1].Verbs = []string{"list", "watch", "patch"}
	require.NoError(t, cp.Client().Update(t.Context(), role))
	const withdrawn = "permissions on custom resources are missing: get on kafkaservices.kroxylicious.io; "
	f.Await("the API server to refuse reads", func() error {
		if _, err := f.check(); err == nil || !strings.Contains(err.Error(), withdrawn) {
			return errors.Join(errors.New("check does not miss the permission"), err)
		}
		return nil
	})
	f.SetSecret("tls", "tls.crt", "4")
	f.AwaitChanges(held, 2, "the watches answer")
	f.Await("the replica whose webhook was refused to report it", func() error {
		var errs []error
		for _, replica := range in.Replicas() {
			err := replica.Logged(withdrawn)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	require.NoError(t, cp.Apply(t.Context(), permissions))
}

// withoutServices takes the permissions to list and watch KafkaServices from a role that has all permissions on the group.
func withoutServices(role *rbacv1.ClusterRole) {
	role.Rules[0].Resources = []string{
		"kafkaproxies", "virtualkafkaclusters", "kafkaprotocolfilters", "kafkaproxyingresses", "schemaregistryclients",
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{"kafkaservices"}, Verbs: []string{"get", "patch"},
	})
}

// check asks for the permissions of the installation.
func (f *found) check() (string, error) {
	f.Helper()
	return f.in.Check(f.Context(), location, "-n", f.Namespace, "--service-account=pod-reloader/pod-reloader")
}
