package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

var store = world.Key{Resource: world.StatefulSets, Namespace: "shop", Name: "store"}

// strategy sets the update strategy of store.
func (s *harness) strategy(strategy world.Object) {
	s.edit(store, func(o world.Object) { world.Section(o, "spec")["updateStrategy"] = strategy })
}

func partitioned(n int64) world.Object {
	return world.Object{"type": "RollingUpdate", "rollingUpdate": world.Object{"partition": n}}
}

// beginStore creates app, extra and store, with two pods.
func (s *harness) beginStore() {
	s.set(configMap("app"), "1")
	s.set(configMap("extra"), "1")
	s.sends("create", store, manifest(store, "one"), "a")
	s.member(0)
	s.member(1)
	s.wait(time.Minute)
}

// member makes a pod of store anew from its present template.
func (s *harness) member(ordinal int) { s.memberFrom(ordinal, s.objects[store]) }

// memberFrom makes a pod of store anew from the template of an earlier version.
func (s *harness) memberFrom(ordinal int, of world.Object) {
	pod := world.Key{Resource: world.Pods, Namespace: "shop", Name: fmt.Sprintf("store-%d", ordinal)}
	if s.objects[pod] != nil {
		s.change(nil, pod, nil, nil)
	}
	s.podOf(store, pod.Name, world.Section(of, "spec", "template"))
}

// reloadStore is a reload, with an Event of its time.
func (s *harness) reloadStore(hash, note string) {
	s.reloadSilently(store, hash, "configmap/app modified")
	s.reportStore(s.now, note)
}

// reportStore writes the Event of a reload.
func (s *harness) reportStore(happened time.Time, note string) {
	s.reloads++
	s.write(replica, "create", world.Key{Resource: world.Events, Namespace: "shop", Name: fmt.Sprintf("reload-%d", s.reloads)}, world.Object{
		"type": "Normal", "reason": "Reloaded", "note": note + ": configmap/app modified", "eventTime": happened.Format(time.RFC3339Nano),
		"regarding": world.Object{"kind": "StatefulSet", "namespace": "shop", "name": "store", "uid": "uid-store"},
	})
}

const (
	stampedOnly     = "pod template updated"
	pendingOnDelete = "pod template updated, rollout pending (OnDelete)"
	pendingTwo      = "pod template updated, rollout pending (partition 2)"
)

func TestExplainedByReasonsOfWaitingPods(t *testing.T) {
	t.Parallel()
	reloaded := func(strategy world.Object, note string) func(s *harness) {
		return func(s *harness) {
			s.beginStore()
			s.strategy(strategy)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reloadStore("b", note)
		}
	}
	runLaw(t, "explained", map[string]lawCase{
		"OnDelete":               {because: "it says so", happens: reloaded(world.Object{"type": "OnDelete"}, pendingOnDelete)},
		"OnDelete, not said":     {want: "explained/pending", because: "the pods wait", happens: reloaded(world.Object{"type": "OnDelete"}, stampedOnly)},
		"partition":              {because: "it says so", happens: reloaded(partitioned(2), pendingTwo)},
		"other partition":        {want: "explained/pending", because: "it is another one", happens: reloaded(partitioned(1), pendingTwo)},
		"partition 0":            {because: "no pod waits", happens: reloaded(partitioned(0), stampedOnly)},
		"partition 0, but said":  {want: "explained/pending", because: "no pod waits", happens: reloaded(partitioned(0), pendingTwo)},
		"OnDelete for partition": {want: "explained/pending", because: "it is the other reason", happens: reloaded(partitioned(2), pendingOnDelete)},
		"partition lowered before the Event": {because: "it may say what was", happens: func(s *harness) {
			s.beginStore()
			s.strategy(partitioned(2))
			s.beginStoreReload()
			happened := s.now
			s.wait(time.Second)
			s.strategy(partitioned(0))
			s.reportStore(happened, pendingTwo)
		}},
		"partition lowered before the reload": {want: "explained/pending", because: "the pods do not wait any more", happens: func(s *harness) {
			s.beginStore()
			s.strategy(partitioned(2))
			s.wait(time.Second)
			s.strategy(partitioned(0))
			s.wait(time.Second)
			s.beginStoreReload()
			s.reportStore(s.now, pendingTwo)
		}},
		"Event of an earlier reload": {because: "it says only what is known of that", happens: func(s *harness) {
			s.beginStore()
			s.strategy(partitioned(2))
			s.beginStoreReload()
			happened := s.now
			s.wait(time.Minute)
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.reloadSilently(store, "c", "configmap/app modified")
			s.reportStore(happened, stampedOnly)
			s.reportStore(s.now, pendingTwo)
		}},
	})
}

// beginStoreReload is a change and its reload, without an Event.
func (s *harness) beginStoreReload() {
	s.set(configMap("app"), "2")
	s.wait(time.Second)
	s.reloadSilently(store, "b", "configmap/app modified")
}

// TestPodsThatWaitForAUser is about pods below a partition.
func TestPodsThatWaitForAUser(t *testing.T) {
	t.Parallel()
	// behind leaves pod 0 with the first template, made anew after the reload.
	behind := func(s *harness) {
		s.beginStore()
		first := s.objects[store]
		s.strategy(partitioned(1))
		s.set(configMap("app"), "2")
		s.wait(time.Second)
		s.reloadStore("b", "pod template updated, rollout pending (partition 1)")
		s.member(1)
		s.memberFrom(0, first)
	}
	runLaw(t, "kept", map[string]lawCase{
		"lowered partition": {because: "the program knows only that the template has an old content", happens: func(s *harness) {
			behind(s)
			s.wait(time.Minute)
			s.strategy(partitioned(0))
			s.member(0)
		}},
		"new hash without a change": {want: "kept/program", because: "neither template nor content has changed", happens: func(s *harness) {
			s.beginStore()
			s.strategy(partitioned(1))
			s.stamp(store, "b", fmt.Sprintf(`{"time":%q}`, s.now.Format(time.RFC3339Nano)))
			s.member(1)
		}},
	})
	runLaw(t, "current", map[string]lawCase{
		"below the partition": {because: "the pod waits", happens: quietly(behind)},
		"above the partition": {want: "current/rollout", because: "nothing keeps it", happens: quietly(func(s *harness) {
			behind(s)
			s.strategy(partitioned(0))
		})},
		"OnDelete": {because: "the pod waits", happens: quietly(func(s *harness) {
			behind(s)
			s.strategy(world.Object{"type": "OnDelete"})
		})},
		"content back": {because: "the hash is that of the pod, made late, again", happens: quietly(func(s *harness) {
			behind(s)
			s.wait(time.Minute)
			s.set(configMap("app"), "1")
			s.wait(time.Second)
			s.reloadStore("a", "pod template updated, rollout pending (partition 1)")
			s.member(1)
			s.strategy(partitioned(0))
		})},
	})
}

func TestReasonInTheTextOfAnEvent(t *testing.T) {
	t.Parallel()
	for note, want := range map[string]string{
		"": "", "pod template updated: configmap/app modified": "", "pod template updated, rollout pending (paused): configmap/app modified": "paused",
		"pod template updated, rollout pending (partition 2): configmap/app modified (x)": "partition 2",
	} {
		assert.Equal(t, want, pendingIn(note), note)
	}
}
