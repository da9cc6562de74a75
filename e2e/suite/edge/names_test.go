package edge_test

import (
	"crypto/tls"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// Names that an administrator may choose.
const (
	otherPrefix = "example.com/"
	otherAuto   = "reloads.example.org/auto"
	otherLease  = "another-lease"
)

// leaseRole is the permission for a lease with another name than that of the installation.
const leaseRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME, namespace: pod-reloader}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [NAME], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME, namespace: pod-reloader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}
subjects:
- {kind: ServiceAccount, name: pod-reloader, namespace: pod-reloader}
`

// otherNames is about a prefix of the annotations, an annotation of Reloader, and a lease, with other names than the default ones. The
// guard admits no annotation with the default prefix. Other flags without a test of their own are set as well.
func otherNames(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		Replicas: -1, LongLease: true, Prefix: otherPrefix, Components: []string{"every-workload", "recreate-jobs", "guard"},
		Args: []string{
			"--auto-annotation=" + otherAuto, "--leader-election-id=" + otherLease, "--rerun-finished-jobs",
			"--tls-min-version=1.2", "--enable-http2=false",
		},
	})
	require.NoError(t, cp.Apply(t.Context(), strings.ReplaceAll(leaseRole, "NAME", otherLease)))
	_, err := in.AddReplica(t.Context(), installation.ReplicaOptions{})
	require.NoError(t, err)
	require.NoError(t, in.StartAll(t.Context()), "the webhook is in effect")
	s := guarded(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	deployment := func(name, key, value string) observe.Workload {
		annotations := map[string]string{fixture.ConfigMaps: ""}
		maps.Copy(annotations, map[string]string{key: value})
		return s.Deployment(name, fixture.Uses{ConfigMaps: []string{"app"}, Annotations: annotations})
	}
	listed, renamed := deployment("listed", otherPrefix+"configmaps", "app"), deployment("renamed", otherAuto, "true")
	byDefault := []observe.Workload{deployment("prefix", fixture.ConfigMaps, "app"), deployment("auto", fixture.ReloaderAuto, "true")}
	job := failedJob(s, otherAuto)

	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "its annotation has the name of the flag", listed, renamed)
	for _, w := range byDefault {
		s.AssertChanges(w, 0, "its annotation has the default name, which means nothing")
	}
	for _, w := range []observe.Workload{listed, renamed} {
		s.AwaitEvent(w, "Reloaded", "configmap/app modified")
		stored := s.Get(w)
		assert.NotEmpty(t, fixture.TemplateAnnotations(stored)[otherPrefix+"config-hash"], "%s", w)
		assert.NotEmpty(t, stored.GetAnnotations()[otherPrefix+"last-reload"], "%s", w)
	}
	s.AssertUnmanaged(listed, "nothing is written with the default prefix")
	s.AwaitRecreated(observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: job.GetName()}, job.GetUID())
	lease := &coordinationv1.Lease{}
	require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Namespace: in.Namespace(), Name: otherLease}, lease))
	assert.NotEmpty(t, *lease.Spec.HolderIdentity)
	speaksOldProtocols(t, in.Replicas()[0])

	replace(t, s, installation.ReplicaOptions{
		Args: []string{"--stakater-annotations=false"}, Without: []string{"--auto-annotation", "--rerun-finished-jobs"},
	})
	s.Settled()
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(2, "its annotation is none of Reloader's", listed)
	s.AssertChanges(renamed, 1, "no annotation of Reloader is read")
	s.AssertChanges(byDefault[1], 0, "no annotation of Reloader is read")
	fixture.AssertNothingDenied(t, in)
}

// failedJob creates a Job that asks for reloads by an annotation, and waits until it has failed.
func failedJob(s *fixture.Fixture, auto string) *unstructured.Unstructured {
	s.Helper()
	job := s.Manifest("Job", "failed", fixture.Uses{
		ConfigMaps: []string{"app"}, Annotations: map[string]string{fixture.ConfigMaps: "", auto: "true"},
	})
	require.NoError(s, unstructured.SetNestedField(job.Object, int64(1), "spec", "activeDeadlineSeconds"))
	s.CreatePromptly(job)
	w := observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: job.GetName()}
	s.AwaitWorkload(w, "the failure", func(o *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			if condition["type"] == string(batchv1.JobFailed) && condition["status"] == string(corev1.ConditionTrue) {
				return o.GetAnnotations()[otherPrefix+"config-record"] != ""
			}
		}
		return false
	})
	return job
}

// speaksOldProtocols asserts that a replica serves the webhook by TLS 1.2, and by nothing newer than HTTP/1.1.
func speaksOldProtocols(t *testing.T, replica *installation.Replica) {
	t.Helper()
	for name, config := range map[string]*tls.Config{
		"TLS 1.2": {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
		"HTTP/2":  {InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}},
	} {
		connection, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", replica.WebhookAddress)
		require.NoError(t, err, name)
		state := connection.(*tls.Conn).ConnectionState()
		assert.NotEqual(t, "h2", state.NegotiatedProtocol, name)
		assert.NoError(t, connection.Close())
	}
}
