package oracle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// snapshot returns what brings the present state back, as the restore of etcd does.
func (s *harness) snapshot() (restore func()) {
	objects, back := maps.Clone(s.objects), s.version
	return func() {
		s.version++
		changed := map[world.Key]bool{}
		for _, state := range []map[world.Key]world.Object{objects, s.objects} {
			for key := range state {
				changed[key] = !world.Same(objects[key], s.objects[key])
			}
		}
		for _, key := range slices.SortedFunc(maps.Keys(changed), func(a, b world.Key) int { return strings.Compare(b.String(), a.String()) }) {
			if changed[key] {
				c := world.Commit{At: s.now, Version: s.version, Key: key, Old: s.objects[key], New: objects[key], Restored: back}
				s.oracle.Commit(c)
			}
		}
		s.objects = objects
		s.oracle.Restored(s.now, back)
		s.fault("restored", "", 3*time.Second)
	}
}

// beginWithLostReload begins with a change whose reload is lost. The pods from before it are back.
func (s *harness) beginWithLostReload() {
	s.beginWithChange()
	pods := s.pods
	restore := s.snapshot()
	s.reload(cart, "b", "configmap/app modified")
	s.rollout(cart)
	s.wait(10 * time.Second)
	restore()
	s.pods = pods
}

func TestPromptAfterARestore(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"the reload is lost": {want: "prompt/modified/after-fault", because: "the change is still there", happens: func(s *harness) {
			s.beginWithLostReload()
			s.later(3 * time.Minute)
		}},
		"the reload is lost and made again": {because: "it is done", happens: func(s *harness) {
			s.beginWithLostReload()
			s.wait(30 * time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.later(3 * time.Minute)
			s.quiet()
		}},
		"the change and the reload are lost": {because: "all is as it was", happens: func(s *harness) {
			s.begin()
			pods, restore := s.pods, s.snapshot()
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.wait(10 * time.Second)
			restore()
			s.pods = pods
			s.later(3 * time.Minute)
			s.quiet()
		}},
		"another change follows": {want: "prompt/modified/after-fault", because: "it is one like any other", happens: func(s *harness) {
			s.begin()
			restore := s.snapshot()
			s.set(configMap("app"), "2")
			s.wait(10 * time.Second)
			restore()
			s.set(configMap("app"), "3")
			s.later(3 * time.Minute)
		}},
		"the workload was deleted and is back": {
			want: "prompt/modified/after-fault", because: "it is looked after again", happens: func(s *harness) {
				s.beginWithChange()
				restore := s.snapshot()
				s.remove(user, cart)
				s.wait(10 * time.Second)
				restore()
				s.later(3 * time.Minute)
			},
		},
	})
}

func TestKeptAfterARestore(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"the restore deletes pods": {because: "no controller has decided that", happens: func(s *harness) { s.beginWithLostReload() }},
		"pods that are back are replaced by the lost reload": {because: "it is still due", happens: func(s *harness) {
			s.beginWithLostReload()
			s.wait(30 * time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"pods are replaced although the change is lost": {
			want: "kept/program/touched", because: "they have the content", happens: func(s *harness) {
				s.begin()
				restore := s.snapshot()
				s.set(configMap("app"), "2")
				s.wait(10 * time.Second)
				restore()
				s.wait(3 * time.Minute)
				s.reload(cart, "c", "")
				s.rollout(cart)
			},
		},
	})
}

func TestScopeAfterARestoreOfANamespace(t *testing.T) {
	t.Parallel()
	selects := Options{InScope: func(_ string, labels, _ map[string]string) bool { return labels["team"] == "x" }}
	labelled := func(team string) world.Object { return world.Object{"team": team} }
	lost := func(s *harness) {
		s.namespace("shop", labelled("x"))
		s.beginWithChange()
		restore := s.snapshot()
		s.namespace("shop", labelled("y"))
		s.wait(10 * time.Second)
		restore()
	}
	runLaw(t, "prompt", map[string]lawCase{
		"labels are back": {options: selects, because: "the program may not know it, which is a documented limit", happens: func(s *harness) {
			lost(s)
			s.later(10 * time.Minute)
		}},
		"labels are written later": {options: selects, want: "prompt/modified", because: "that is seen", happens: func(s *harness) {
			lost(s)
			s.wait(2 * time.Minute)
			s.namespace("shop", world.Object{"team": "x", "more": "z"})
			s.later(10 * time.Minute)
		}},
	})
}
