package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/cluster"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// kit is a cluster with a store, as a user sees it.
type kit struct {
	t     *testing.T
	store *memory
	c     *cluster.Cluster
	// choose picks the next piece of work; the first by default.
	choose func(pending []string) string
	passes int
}

// inBubble runs a sequence in fake time.
func inBubble(t *testing.T, sequence func(k *kit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, newMemory())
		sequence(k)
	})
}

func newKit(t *testing.T, store *memory) *kit {
	t.Helper()
	k := &kit{t: t, store: store, choose: func(pending []string) string { return pending[0] }}
	k.c = cluster.New(store, cluster.Options{})
	store.changed = k.c.Dirty
	return k
}

func shuffled(seed uint64) func([]string) string {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(pending []string) string { return pending[random.IntN(len(pending))] }
}

// settle works until nothing is pending.
func (k *kit) settle() {
	k.t.Helper()
	for range 2000 {
		pending := k.c.Pending()
		if len(pending) == 0 {
			return
		}
		k.passes++
		k.c.Work(k.choose(pending))
	}
	require.Fail(k.t, "work never ends", "%v", k.c.Pending())
}

func (k *kit) sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // fake time
}

var resources = map[string]world.Resource{
	"Deployment": world.Deployments, "StatefulSet": world.StatefulSets, "DaemonSet": world.DaemonSets, "CronJob": world.CronJobs,
	"Job": world.Jobs, "ConfigMap": world.ConfigMaps, "Secret": world.Secrets, "Pod": world.Pods, "Namespace": world.Namespaces,
	"ReplicaSet": world.ReplicaSets, "ControllerRevision": world.ControllerRevisions, "Rollout": world.Rollouts,
}

// apply creates or replaces an object of the namespace shop, keeping the status and the annotations of controllers.
func (k *kit) apply(manifest string) world.Key {
	k.t.Helper()
	var object world.Object
	require.NoError(k.t, yaml.Unmarshal([]byte(manifest), &object))
	meta := world.Meta(object)
	key := world.Key{Resource: resources[meta.GetKind()], Namespace: "shop", Name: meta.GetName()}
	if key.Resource == world.Namespaces {
		key.Namespace = ""
	}
	if old, ok := k.store.Get(key); ok {
		if status, ok := old["status"]; ok {
			object["status"] = status
		}
		if revision := world.Meta(old).GetAnnotations()["deployment.kubernetes.io/revision"]; revision != "" {
			annotations := meta.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["deployment.kubernetes.io/revision"] = revision
			meta.SetAnnotations(annotations)
		}
	}
	_, err := k.store.write(key, object, &world.Call{Verb: "update"})
	require.NoError(k.t, err)
	return key
}

// edit changes a copy of a stored object.
func (k *kit) edit(key world.Key, change func(*unstructured.Unstructured)) {
	k.t.Helper()
	object := world.Meta(decoded(k.get(key)))
	change(object)
	_, err := k.store.write(key, object.Object, &world.Call{Verb: "update"})
	require.NoError(k.t, err)
}

func (k *kit) set(key world.Key, value any, path ...string) {
	k.t.Helper()
	k.edit(key, func(u *unstructured.Unstructured) {
		require.NoError(k.t, unstructured.SetNestedField(u.Object, value, path...))
	})
}

func (k *kit) image(key world.Key, image string) {
	k.t.Helper()
	k.set(key, []any{map[string]any{"name": "main", "image": image}}, "spec", "template", "spec", "containers")
}

func (k *kit) delete(key world.Key) {
	k.store.erase(key, &world.Call{Verb: "delete", Key: key})
}

// deleteWith marks an object as one that is being deleted and waits for finalizers.
func (k *kit) deleteWith(key world.Key, finalizers ...any) {
	k.t.Helper()
	k.edit(key, func(u *unstructured.Unstructured) {
		require.NoError(k.t, unstructured.SetNestedField(u.Object, "2000-01-01T00:00:00Z", "metadata", "deletionTimestamp"))
		require.NoError(k.t, unstructured.SetNestedSlice(u.Object, finalizers, "metadata", "finalizers"))
	})
}

func (k *kit) get(key world.Key) world.Object {
	k.t.Helper()
	object, ok := k.store.Get(key)
	require.True(k.t, ok, "%s exists", key)
	return object
}

func (k *kit) list(resource world.Resource) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range k.store.List(resource, "shop") {
		all = append(all, world.Meta(object))
	}
	return all
}

// pods returns the uids of all pods, sorted.
func (k *kit) pods() []string {
	return k.podsWhere(func(*unstructured.Unstructured) bool { return true })
}

func (k *kit) ready() []string {
	return k.podsWhere(func(pod *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		return phase == "Running"
	})
}

// running returns the uids of the ready pods with an image.
func (k *kit) running(image string) []string {
	return k.podsWhere(func(pod *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		return phase == "Running" && imageOf(pod) == image
	})
}

func (k *kit) podsWhere(match func(*unstructured.Unstructured) bool) []string {
	uids := []string{}
	for _, pod := range k.list(world.Pods) {
		if match(pod) {
			uids = append(uids, string(pod.GetUID()))
		}
	}
	slices.Sort(uids)
	return uids
}

func imageOf(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	image, _ := containers[0].(map[string]any)["image"].(string)
	return image
}

// waiting returns the reason why a pod waits.
func waiting(pod *unstructured.Unstructured) string {
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, status := range statuses {
		reason, _, _ := unstructured.NestedString(status.(map[string]any), "state", "waiting", "reason")
		return reason
	}
	return ""
}

func (k *kit) status(key world.Key, path ...string) any {
	k.t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(k.get(key), append([]string{"status"}, path...)...)
	require.NoError(k.t, err)
	if value == nil {
		return int64(0)
	}
	return value
}

func pod(name string) world.Key {
	return world.Key{Resource: world.Pods, Namespace: "shop", Name: name}
}

// workload returns a manifest of four pods; more is YAML for the spec, indented by two.
func workload(kind, image string, more ...string) string {
	replicas := "\n  replicas: 4"
	if kind == "DaemonSet" {
		replicas = ""
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata: {name: cart}
spec:%s
  selector: {matchLabels: {app: cart}}
  %s
  template:
    metadata: {labels: {app: cart}}
    spec:
      containers: [{name: main, image: %s}]
`, kind, replicas, strings.Join(more, "\n  "), image)
}
