package action

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// The manifests of a namespace, left ones included, are limited in number: they are in the namespace of the installation.
func TestManifestsOfANamespaceAreLimited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespace string
		manifests int
		recreated bool
	}{
		"as many as a namespace may have": {"shop", manifestsOfNamespace, false},
		"one less":                        {"shop", manifestsOfNamespace - 1, true},
		"those of another namespace":      {"other", manifestsOfNamespace, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			actions, old := j.leader(), j.Stored().GetUID()
			left := leaveManifests(j, actions, tc.namespace, tc.manifests)
			again := j.reconcile(t, actions)
			if tc.recreated {
				assert.NotEqual(t, old, j.Stored().GetUID())
				return
			}
			assert.Positive(t, again.RequeueAfter)
			require.NotNil(t, j.Stored())
			assert.Equal(t, old, j.Stored().GetUID())
			assert.Empty(t, j.Writes(), "no Secret is created, and no Job deleted")
			require.Len(t, j.Notes(), 1)
			assert.Contains(t, j.Notes()[0], "RecreationPostponed: the Job keeps the configuration")

			for _, secret := range left { // by a user
				delete(j.API.Objects, secret)
			}
			j.Now = j.Now.Add(time.Minute)
			j.reconcile(t, actions)
			assert.NotEqual(t, old, j.Stored().GetUID(), "a left Secret that is gone does not count")
		})
	}
}

// leaveManifests has Secrets of other Jobs of a namespace that are left, and returns where the API server has them.
func leaveManifests(j *jobFixture, actions *Actions, namespace string, number int) (secrets []string) {
	for n := range number {
		name, key := fmt.Sprint("left-", n), reloadtest.JobKey
		key.Namespace, key.Name = namespace, fmt.Sprint("import-", n)
		j.API.Store(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": j.Manifests.Namespace},
		}})
		secrets = append(secrets, "Secret "+j.Manifests.Namespace+"/"+name)
		actions.state.Recreations.Add(key, name)
		actions.state.Recreations.Leave(key, name)
	}
	return secrets
}
