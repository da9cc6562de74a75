package promise_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// podGroup is a workload with running pods of each kind that replaces its pods, in a namespace of its own. All read the
// ConfigMap "app".
type podGroup struct {
	*fixture.Fixture
	cp *controlplane.ControlPlane
	// chart is the Helm chart that the pod group is installed from; empty if kubectl applied it.
	chart string
	// helm is the program.
	helm string
	// life ends with the last test that uses the pod group.
	life context.Context //nolint:containedctx // a helm that waits must outlive the test that started it
	// ran are the pods of the first version.
	ran pods
}

// podGroupKinds are the kinds of a pod group.
var podGroupKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// podGroupSize is how many pods each workload of a pod group has, and how many nodes there are: a DaemonSet has a pod on
// each.
const podGroupSize = 2

// pods are the live pods of a pod group by the kind of their workload.
type pods map[string][]types.UID

// podGroupManifest is one workload of a pod group. The strategies keep an old pod until the new one is ready, where the
// kind can.
const podGroupManifest = `---
apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s, annotations: {%[4]s: app}}
spec:
  selector: {matchLabels: {app: %[2]s}}
%[3]s
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers:
      - name: main
        image: "example.com/app:{{ .Values.version }}"
        resources: {requests: {cpu: "{{ .Values.cpu }}"}}
        envFrom: [{configMapRef: {name: app}}]
`

// The values of a release: the nodes have 1000 CPUs, so pods of the second version are never scheduled.
var firstVersion, stuckVersion = []string{"version=1", "cpu=0"}, []string{"version=2", "cpu=2000"}

func podGroupTemplate() string {
	spec := map[string]string{
		"Deployment":  "  replicas: 2\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
		"StatefulSet": "  replicas: 2\n  serviceName: none\n  podManagementPolicy: Parallel",
		"DaemonSet":   "  updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
	}
	var all strings.Builder
	for _, kind := range podGroupKinds {
		fmt.Fprintf(&all, podGroupManifest, kind, strings.ToLower(kind), spec[kind], fixture.ConfigMaps)
	}
	return all.String()
}

// newPodGroup makes a namespace for a pod group, which is there until t ends.
func newPodGroup(t *testing.T, cp *controlplane.ControlPlane, byHelm bool) *podGroup {
	t.Helper()
	namespace := cp.Namespace(t)
	c := &podGroup{cp: cp, life: t.Context(), Fixture: &fixture.Fixture{
		TB: t, Client: cp.Client(), Namespace: namespace, Watcher: observe.New(t, cp.Admin(), namespace),
	}}
	c.ConfigMap("app", fixture.Data{"key": "A"})
	if byHelm {
		c.useHelm()
	}
	return c
}

// start creates the workloads with Helm or with kubectl.
func (c *podGroup) start() {
	c.Helper()
	if c.helm != "" {
		c.runHelm(append([]string{"install"}, c.release(firstVersion)...)...)
		return
	}
	c.kubectlInput(manifestOf(firstVersion), "apply", "-f", "-")
}

// manifestOf returns what a release of some values applies.
func manifestOf(values []string) string {
	text := podGroupTemplate()
	for _, value := range values {
		key, value, _ := strings.Cut(value, "=")
		text = strings.ReplaceAll(text, "{{ .Values."+key+" }}", value)
	}
	return text
}

// in returns the pod group for another test, on an installation.
func (c *podGroup) in(t *testing.T, in *installation.Installation) *podGroup {
	t.Helper()
	s, next := *c.Fixture, *c
	s.TB, s.Installation, next.Fixture = t, in, &s
	if in != nil {
		t.Cleanup(func() { in.Explain(t, c.Namespace) })
	}
	return &next
}

func (c *podGroup) useHelm() {
	c.Helper()
	dir, err := toolchain.Builder{}.Build(c.Context(), "helm")
	require.NoError(c, err)
	c.helm, c.chart = filepath.Join(dir, "helm"), filepath.Join(c.TempDir(), "pod-group")
	require.NoError(c, os.MkdirAll(filepath.Join(c.chart, "templates"), 0o700))
	for name, text := range map[string]string{
		"Chart.yaml":         "{apiVersion: v2, name: pod-group, version: 0.1.0}\n",
		"templates/all.yaml": podGroupTemplate(),
	} {
		require.NoError(c, os.WriteFile(filepath.Join(c.chart, name), []byte(text), 0o600))
	}
}

// release returns the arguments that install or upgrade the pod group to some values.
func (c *podGroup) release(values []string) []string {
	return []string{"pod-group", c.chart, "--set-string", strings.Join(values, ",")}
}

func (c *podGroup) helmCommand(args ...string) *exec.Cmd {
	c.Helper()
	command := exec.CommandContext(c.life, c.helm, append(args, "--namespace", c.Namespace)...)
	command.Env = toolchain.ShortLived(toolchain.Helm(c.chart+"-home", c.cp.AdminKubeconfig())...)
	return command
}

func (c *podGroup) runHelm(args ...string) string {
	c.Helper()
	out, err := c.helmCommand(args...).CombinedOutput()
	require.NoError(c, err, "helm %v: %s", args, out)
	return string(out)
}

func (c *podGroup) kubectl(args ...string) string {
	c.Helper()
	return c.kubectlInput("", args...)
}

func (c *podGroup) kubectlInput(input string, args ...string) string {
	c.Helper()
	out, err := c.cp.KubectlInput(c.Context(), input, append([]string{"-n", c.Namespace}, args...)...)
	require.NoError(c, err, "kubectl %v", args)
	return out
}

// workload names the pod group's workload of a kind.
func (c *podGroup) workload(kind string) observe.Workload {
	return observe.Workload{Kind: kind, Namespace: c.Namespace, Name: strings.ToLower(kind)}
}

// live returns the pods of a kind that are not being deleted.
func (c *podGroup) live(kind string) []corev1.Pod {
	c.Helper()
	list := &corev1.PodList{}
	require.NoError(c, c.List(c.Context(), list, client.InNamespace(c.Namespace), client.MatchingLabels{"app": strings.ToLower(kind)}))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// awaitReady waits until each workload has exactly the pods of the first version, all ready, and returns them.
func (c *podGroup) awaitReady(what string) pods {
	c.Helper()
	now := pods{}
	for _, kind := range podGroupKinds {
		c.Await("the pods of the "+kind+" after "+what, func() error {
			now[kind] = nil
			for _, p := range c.live(kind) {
				if p.Spec.Containers[0].Image != "example.com/app:1" || !ready(&p) {
					return fmt.Errorf("pod %s of %s is %s", p.Name, p.Spec.Containers[0].Image, p.Status.Phase)
				}
				now[kind] = append(now[kind], p.UID)
			}
			if len(now[kind]) != podGroupSize {
				return fmt.Errorf("%d of %d pods", len(now[kind]), podGroupSize)
			}
			return nil
		})
		slices.Sort(now[kind])
	}
	return now
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// awaitStuck waits until each workload has a pod of the second version, which cannot be scheduled.
func (c *podGroup) awaitStuck() {
	c.Helper()
	for _, kind := range podGroupKinds {
		c.Await("a pod of the "+kind+" that cannot be scheduled", func() error {
			if !slices.ContainsFunc(c.live(kind), func(p corev1.Pod) bool { return p.Spec.Containers[0].Image == "example.com/app:2" }) {
				return fmt.Errorf("all pods are of the first version")
			}
			return nil
		})
	}
}

// survivors returns the pods of the first version that the stuck release has left. It replaces one pod of a StatefulSet,
// which cannot have more pods than replicas, and none of the others.
func (c *podGroup) survivors() pods {
	c.Helper()
	left := pods{}
	for _, kind := range podGroupKinds {
		for _, p := range c.live(kind) {
			if p.Spec.Containers[0].Image == "example.com/app:1" {
				left[kind] = append(left[kind], p.UID)
			}
		}
		require.Subset(c, c.ran[kind], left[kind], "%s: the stuck release starts no pod of the first version", kind)
	}
	require.Len(c, left["Deployment"], podGroupSize)
	require.Len(c, left["StatefulSet"], podGroupSize-1)
	require.Len(c, left["DaemonSet"], podGroupSize)
	return left
}

// templates returns how many templates the controllers have on record: ReplicaSets and ControllerRevisions, by kind.
func (c *podGroup) templates() map[string]int {
	c.Helper()
	for _, kind := range podGroupKinds {
		c.AwaitRolledOut(c.workload(kind))
	}
	count := map[string]int{"Deployment": c.Watcher.ReplicaSets(c.workload("Deployment"))}
	list := &appsv1.ControllerRevisionList{}
	require.NoError(c, c.List(c.Context(), list, client.InNamespace(c.Namespace)))
	for _, revision := range list.Items {
		count[revision.OwnerReferences[0].Kind]++
	}
	return count
}

// puts replaces the workloads by their manifest, which knows nothing of our annotations, and by what is stored.
func (c *podGroup) puts() {
	c.Helper()
	c.kubectlInput(manifestOf(firstVersion), "replace", "-f", "-")
	for _, kind := range podGroupKinds {
		stored := c.kubectl("get", kind, strings.ToLower(kind), "-o", "json")
		c.kubectlInput(stored, "replace", "-f", "-")
	}
}

// assertSame asserts that all pods are those of the first version.
func (c *podGroup) assertSame(event string) {
	c.Helper()
	assert.Equal(c, c.ran, c.awaitReady(event), "%s replaces no pod", event)
	for kind, count := range c.templates() {
		assert.Equal(c, 1, count, "%s: %s makes no template", kind, event)
	}
}
