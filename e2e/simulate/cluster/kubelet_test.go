package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/cluster"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// podWith is a manifest of a pod; the YAML is a part of the container and of the spec.
func podWith(container, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers:
  - name: main
    image: cart:1
    %s
  %s
`, container, spec)
}

func TestPodWaitsForWhatItRequires(t *testing.T) {
	t.Parallel()
	const configMap = "{kind: ConfigMap, metadata: {name: app}, data: {k: v}}"
	const secret = "{kind: Secret, metadata: {name: db}, data: {k: dg==}}"
	cases := map[string]struct {
		container, spec string
		reason          string // empty: starts at once
		missing         string
	}{
		"nothing":                   {"", "", "", ""},
		"env ConfigMap":             {"env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: k}}}]", "", "CreateContainerConfigError", configMap},
		"env Secret":                {"env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: k}}}]", "", "CreateContainerConfigError", secret},
		"optional env":              {"env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: k, optional: true}}}]", "", "", ""},
		"envFrom ConfigMap":         {"envFrom: [{configMapRef: {name: app}}]", "", "CreateContainerConfigError", configMap},
		"envFrom Secret":            {"envFrom: [{secretRef: {name: db}}]", "", "CreateContainerConfigError", secret},
		"optional envFrom":          {"envFrom: [{secretRef: {name: db, optional: true}}]", "", "", ""},
		"volume ConfigMap":          {"", "volumes: [{name: v, configMap: {name: app}}]", "ContainerCreating", configMap},
		"volume Secret":             {"", "volumes: [{name: v, secret: {secretName: db}}]", "ContainerCreating", secret},
		"volume with items":         {"", "volumes: [{name: v, configMap: {name: app, items: [{key: k, path: p}]}}]", "ContainerCreating", configMap},
		"optional volume":           {"", "volumes: [{name: v, secret: {secretName: db, optional: true}}]", "", ""},
		"projected ConfigMap":       {"", "volumes: [{name: v, projected: {sources: [{configMap: {name: app}}]}}]", "ContainerCreating", configMap},
		"projected Secret":          {"", "volumes: [{name: v, projected: {sources: [{secret: {name: db}}]}}]", "ContainerCreating", secret},
		"optional projected source": {"", "volumes: [{name: v, projected: {sources: [{secret: {name: db, optional: true}}]}}]", "", ""},
		"init container":            {"", "initContainers: [{name: i, envFrom: [{configMapRef: {name: app}}]}]", "CreateContainerConfigError", configMap},
		"pull secret":               {"", "imagePullSecrets: [{name: db}]", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				one := k.apply(podWith(tc.container, tc.spec))
				k.settle()
				if tc.reason != "" {
					assert.Equal(t, "Pending", k.status(one, "phase"))
					assert.Equal(t, tc.reason, waiting(world.Meta(k.get(one))))
					k.apply("{kind: ConfigMap, metadata: {name: other}}")
					assert.Empty(t, k.c.Pending())
					key := k.apply(strings.Replace(tc.missing, "k: ", "other: ", 1))
					k.settle()
					if strings.Contains(tc.container+tc.spec, "key: k") {
						assert.Equal(t, "Pending", k.status(one, "phase"), "the key is missing")
					}
					k.delete(key)
					k.apply(tc.missing)
					k.settle()
				}
				assert.Equal(t, "Running", k.status(one, "phase"))
				assert.Empty(t, waiting(world.Meta(k.get(one))))
			})
		})
	}
}

func TestPodWaitsForTheLastOfSeveral(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		one := k.apply(podWith("envFrom: [{configMapRef: {name: a}}, {configMapRef: {name: b}}]", ""))
		k.settle()
		k.apply("{kind: ConfigMap, metadata: {name: a}}")
		assert.Equal(t, []string{"start pods/shop/one"}, k.c.Pending())
		k.settle()
		assert.Equal(t, "Pending", k.status(one, "phase"))
		k.apply("{kind: ConfigMap, metadata: {name: b}}")
		k.settle()
		assert.Equal(t, "Running", k.status(one, "phase"))
		k.delete(world.Key{Resource: world.ConfigMaps, Namespace: "shop", Name: "a"})
		k.settle()
		assert.Equal(t, "Running", k.status(one, "phase"), "a running pod needs it no longer")
	})
}

func TestMissingObjectHoldsARolloutUntilItAppears(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1", careful))
		k.settle()
		before := k.ready()
		k.set(cart, []any{map[string]any{
			"name": "main", "image": "cart:2", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
		}}, "spec", "template", "spec", "containers")
		k.settle()
		assert.Equal(t, before, k.ready())
		k.apply("{kind: ConfigMap, metadata: {name: app}}")
		k.settle()
		assert.Len(t, k.running("cart:2"), 4)
		assert.Len(t, k.pods(), 4)
	})
}

func TestStartBlockedStartsPodsWithoutWhatTheyRequire(t *testing.T) {
	t.Parallel()
	store := newMemory()
	k := newKit(t, store)
	one := k.apply(podWith("envFrom: [{configMapRef: {name: a}}]", ""))
	k.c = cluster.New(store, cluster.Options{StartBlocked: true})
	store.changed = k.c.Dirty
	k.settle()
	assert.Equal(t, "Running", k.status(one, "phase"))
}

func TestNewTakesNoteOfWhatIsStored(t *testing.T) {
	t.Parallel()
	store := newMemory()
	k := newKit(t, store)
	k.apply(workload("Deployment", "cart:1"))
	k.settle()
	before := k.pods()
	k.c = cluster.New(store, cluster.Options{})
	store.changed = k.c.Dirty
	writes := store.writes
	k.settle()
	assert.Equal(t, writes, store.writes, "nothing is left to do")
	k.delete(pod(k.list(world.Pods)[0].GetName()))
	k.settle()
	assert.Len(t, common(before, k.pods()), 3)
	require.Len(t, k.ready(), 4)
}
