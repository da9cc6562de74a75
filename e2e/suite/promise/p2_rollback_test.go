package promise_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// rollback is a way to roll back a release whose pods cannot start.
type rollback struct {
	byHelm bool
	// release begins the release, and returns the function that goes back.
	release func(c *podGroup) (back func(c *podGroup))
}

// rollbacks are the ways back.
func rollbacks() map[string]rollback {
	return map[string]rollback{
		"Undo": {release: func(c *podGroup) func(*podGroup) {
			c.kubectl("patch", "deployment/deployment", "statefulset/statefulset", "daemonset/daemonset", "-p", `{"spec":{"template":{"spec":`+
				`{"containers":[{"name":"main","image":"example.com/app:2","resources":{"requests":{"cpu":"2000"}}}]}}}}`)
			return func(c *podGroup) {
				c.kubectl("rollout", "undo", "deployment/deployment", "statefulset/statefulset", "daemonset/daemonset", "--to-revision=1")
			}
		}},
		"HelmRollback": {byHelm: true, release: func(c *podGroup) func(*podGroup) {
			c.runHelm(append([]string{"upgrade"}, c.release(stuckVersion)...)...)
			return func(c *podGroup) { c.runHelm("rollback", "pod-group", "1") }
		}},
		"HelmAtomic": {byHelm: true, release: releaseAtomically},
	}
}

// releaseAtomically begins a `helm upgrade --atomic`. It goes back by itself when it fails: here, when it is interrupted,
// which is no other way than that of a timeout.
func releaseAtomically(c *podGroup) func(*podGroup) {
	command := c.helmCommand(append([]string{"upgrade", "--atomic", "--timeout=10m"}, c.release(stuckVersion)...)...)
	require.NoError(c, command.Start())
	return func(c *podGroup) {
		require.NoError(c, command.Process.Signal(os.Interrupt))
		require.Error(c, command.Wait(), "an upgrade that failed")
		assert.Contains(c, c.runHelm("history", "pod-group"), "Rollback to 1", "helm has rolled it back")
	}
}

// between are what happens between a stuck release and the way back. None of it leaves another configuration behind.
func between() map[string]func(c *podGroup) {
	return map[string]func(c *podGroup){
		"Nothing": func(*podGroup) {},
		"Label":   func(c *podGroup) { c.Merge(&corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"a":"b"}}}`) },
		"Recreated": func(c *podGroup) {
			recreate(c.Fixture, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Data: fixture.Data{"key": "A"}})
		},
		thereAndBackAgain: goThereAndBack,
		listEdited:        editList,
		keyRotated:        func(*podGroup) {}, // it is done for all at once
	}
}

const thereAndBackAgain, listEdited, keyRotated = "ThereAndBack", "ListEdited", "KeyRotated"

// editList lists another object on the Deployment, which stamps at once.
func editList(c *podGroup) {
	w := c.workload("Deployment")
	c.ConfigMap("other", fixture.Data{"key": "A"})
	c.MergeWorkload(w, fmt.Sprintf(`{"metadata":{"annotations":{%q:"app,other"}}}`, fixture.ConfigMaps))
	c.AwaitChanges(w, 2, "a list is edited while the release is stuck")
	c.AwaitRolledOut(w)
}

// goThereAndBack changes the content, awaits the reload, and takes the change back, which is one reload more.
func goThereAndBack(c *podGroup) {
	for round, content := range []string{"B", "A"} {
		c.SetConfigMap("app", "key", content)
		for _, kind := range podGroupKinds {
			c.AwaitChanges(c.workload(kind), round+2, "the content changes while the release is stuck")
			c.AwaitRolledOut(c.workload(kind))
		}
	}
}

// rollbackCase is a row of the table: a way back, what happens before it, and the pod group that it happens to.
type rollbackCase struct {
	way, event string
	// installed says that the workloads were there before pod-reloader: their first version has no stamp.
	installed bool
	*podGroup
	back func(*podGroup)
	left pods
	// templates is how many there are before the way back.
	templates map[string]int
}

func (r *rollbackCase) name() string {
	if r.installed {
		return r.way + r.event + "NeverStamped"
	}
	return r.way + r.event
}

// rollbackCases returns the table. Without a stamp, a configuration that changes there and back, and is acted upon, is left
// out: the way back to a template from before the first stamp is a known limit.
func rollbackCases() []*rollbackCase {
	var cases []*rollbackCase
	for way := range rollbacks() {
		for event := range between() {
			if way == "Undo" || event != listEdited { // which is about what the Deployment controller brings back
				cases = append(cases, &rollbackCase{way: way, event: event})
			}
		}
		for _, event := range []string{"Label", keyRotated} {
			cases = append(cases, &rollbackCase{way: way, event: event, installed: true})
		}
	}
	return cases
}

// TestP2RollbacksKeepTheirPods goes back from a release that cannot start, whatever has happened in between that leaves
// the configuration as it was: the pods of the first version are found again. What all await, they await together.
func TestP2RollbacksKeepTheirPods(t *testing.T) {
	t.Parallel()
	cp := controlplane.New(t, controlplane.Options{Nodes: podGroupSize})
	all := rollbackCases()
	for _, r := range all {
		r.podGroup = newPodGroup(t, cp, rollbacks()[r.way].byHelm)
	}
	only := func(which func(*rollbackCase) bool) (some []*rollbackCase) {
		for _, r := range all {
			if which(r) {
				some = append(some, r)
			}
		}
		return some
	}
	var in *installation.Installation
	each := func(what string, some []*rollbackCase, do func(*rollbackCase)) {
		t.Run(what, func(t *testing.T) {
			for _, r := range some {
				t.Run(r.name(), func(t *testing.T) {
					t.Parallel()
					here := *r
					here.podGroup = r.in(t, in)
					do(&here)
					r.back, r.left, r.templates, r.ran = here.back, here.left, here.templates, here.ran
				})
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	each("Found", only(func(r *rollbackCase) bool { return r.installed }), func(r *rollbackCase) { r.start() })
	in = installation.New(t, cp, installation.Options{
		KeepRunning: true, Patient: true, LongLease: true, Args: []string{"--settle=100ms", "--refractory=0s"},
	})
	each("Created", only(func(r *rollbackCase) bool { return !r.installed }), func(r *rollbackCase) { r.start() })
	each("Released", all, (*rollbackCase).releaseStuck)
	require.NoError(t, in.Quiet(t.Context()))
	each("Back", only(func(r *rollbackCase) bool { return r.event != keyRotated }), (*rollbackCase).goBack)
	signing := fixture.In(t, in, in.Namespace()).RotateKey("0002")
	require.NoError(t, in.Quiet(t.Context()))
	each("BackAfterRotation", only(func(r *rollbackCase) bool { return r.event == keyRotated }), (*rollbackCase).goBack)
	require.NoError(t, in.Quiet(t.Context()))
	each("Same", all, (*rollbackCase).requireSurvivors)
	each("Awake", all, func(r *rollbackCase) { r.requireAwake(signing) })
}

// releaseStuck releases what cannot start, and lets something happen.
func (r *rollbackCase) releaseStuck() {
	r.Helper()
	r.ran = r.awaitReady("the first version")
	for _, kind := range podGroupKinds {
		r.AwaitKnown(r.workload(kind))
	}
	r.back = rollbacks()[r.way].release(r.podGroup)
	r.awaitStuck()
	between()[r.event](r.podGroup)
}

func (r *rollbackCase) goBack() {
	r.Helper()
	r.left, r.templates = r.survivors(), r.podGroup.templates()
	r.back(r.podGroup)
	r.requireSurvivors()
	lists := r.Get(r.workload("Deployment")).GetAnnotations()[fixture.ConfigMaps]
	require.Equal(r, "app", lists, "an undo of a Deployment brings its annotations back, the lists too")
}

// requireSurvivors requires that the pods that the stuck release has left live on, under a template that was there.
func (r *rollbackCase) requireSurvivors() {
	r.Helper()
	now := r.awaitReady("the rollback")
	for _, kind := range podGroupKinds {
		require.Subset(r, now[kind], r.left[kind], "%s: the pods of the first version live on", kind)
	}
	require.Equal(r, r.templates, r.podGroup.templates(), "the first template is found again")
}

// requireAwake shows that a change of the content restarts them, and that the key with an id signs.
func (r *rollbackCase) requireAwake(signing string) {
	r.Helper()
	before := map[string]int{}
	for _, kind := range podGroupKinds {
		before[kind] = len(r.Watcher.Changes(r.workload(kind)))
	}
	r.SetConfigMap("app", "key", "C")
	for _, kind := range podGroupKinds {
		w := r.workload(kind)
		r.AwaitChanges(w, before[kind]+1, "the content has changed at last")
		require.Regexp(r, "^"+signing, fixture.TemplateAnnotations(r.Get(w))[fixture.ConfigHash], "%s: the newest key signs", w)
	}
}
