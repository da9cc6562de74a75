package sequence_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// The webhook is away, a poke is stored, the configuration moves on, the webhook is back: what kubectl does then must
// not be rejected for an outdated dummy.
func dummyStoredWhileTheWebhookWasAway(d *downtime) error {
	d.Helper()
	s, in := d.Fixture, d.in
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	rolledOut(s, w, 1)
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "so that there is something to undo")

	idle := s.Deployment("idle", fixture.Uses{ConfigMaps: []string{"app2"}, Unread: true})
	bystander := s.Deployment("bystander", fixture.Uses{})

	require.NoError(s, in.StopAll(s.Context()))
	for _, name := range []string{"web", "idle", "bystander"} {
		d.kubectl("annotate", "deployment/"+name, fixture.ConfigHash+"=0123456789abcdef@2")
	}
	s.SetConfigMap("app", "key", "3")
	require.NoError(s, in.StartAll(s.Context()))
	s.AwaitChanges(w, 2, "the change during the downtime is picked up")

	for _, w := range []observe.Workload{idle, bystander} {
		s.AwaitWorkload(w, "the dummy is purged, though nothing is due", func(u *unstructured.Unstructured) bool {
			return u.GetAnnotations()[fixture.ConfigHash] == ""
		})
		s.AwaitExactly(0, "nothing was due", w)
	}

	d.kubectl("set", "image", "deployment/web", "main=example.com/app:2")
	d.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
	s.AwaitWorkload(w, "the image of the first revision", func(u *unstructured.Unstructured) bool {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)["image"] == "example.com/app:1"
	})
	stored := s.Get(w)
	assert.NotContains(s, stored.GetAnnotations(), fixture.ConfigHash, "the dummy is purged")
	s.Settled()
	before, after := fixture.TemplateAnnotations(stored)[fixture.ConfigHash], fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	if before != after {
		return fmt.Errorf("undone was the image, not the configuration: the hash was %s and then %s", before, after)
	}
	return nil
}

// ReplicaSets have the annotations of their revision, and ControllerRevisions those of its pod template: undo across a reload brings back only
// our annotations.
func TestUndoAcrossAReloadKeepsTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			steadily(t, func(s *fixture.Fixture) error {
				s.ConfigMap("app", fixture.Data{"key": "1"})
				w := s.Workload(kind, "web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
				awaitRevision(s, w)
				s.SetConfigMap("app", "key", "2")
				s.AwaitChanges(w, 1, "the content changed")
				awaitRevision(s, w)
				_, err := s.Installation.ControlPlane().Kubectl(t.Context(),
					"--warnings-as-errors", "-n", s.Namespace, "rollout", "undo", strings.ToLower(kind)+"/web")
				require.ErrorContains(t, err, "config-hash of the pod template")
				require.ErrorContains(t, err, "after rollout undo, change the ConfigMaps and Secrets instead: it does not roll them back")
				s.Settled()
				return changed(s, w, 1, "configuration is not rolled back by rollout undo")
			})
		})
	}
}

// awaitRevision waits until the controller has stored the revision of a workload, so that it can be undone.
func awaitRevision(s *fixture.Fixture, of observe.Workload) {
	s.Helper()
	s.AwaitWorkload(of, "the revision", func(u *unstructured.Unstructured) bool {
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		return observed == u.GetGeneration()
	})
}

// rolledOut waits until the Deployment controller has begun the rollout of a revision, so that it can be undone.
func rolledOut(s *fixture.Fixture, of observe.Workload, revision int) {
	s.Helper()
	s.AwaitWorkload(of, "the rollout", func(u *unstructured.Unstructured) bool {
		return u.GetAnnotations()["deployment.kubernetes.io/revision"] == strconv.Itoa(revision)
	})
}
