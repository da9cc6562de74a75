package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	head         = "apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\n"
	namesRollout = head + "workloadKinds:\n- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, template: spec.template}\n"
)

var (
	pay           = world.Key{Resource: world.Rollouts, Namespace: "shop", Name: "pay"}
	configuredBy  = world.Key{Resource: world.ConfigMaps, Namespace: "pod-reloader", Name: "configuration"}
	byConfigMap   = Options{Configuration: configuredBy}
	everything    = func(string, map[string]string, map[string]string) bool { return true }
	nothingAtAll  = func(string, map[string]string, map[string]string) bool { return false }
	leftOut       = Scope{InScope: nothingAtAll, Clear: true}
	notAgreed     = Scope{InScope: nothingAtAll}
	lookedAfter   = Scope{InScope: everything, Clear: true}
	customByFlags = Options{CustomKind: true}
)

// configure writes the structured configuration, or deletes it.
func (s *harness) configure(text string) {
	var next world.Object
	if text != "" {
		next = world.Object{"metadata": world.Object{"name": configuredBy.Name}, "data": world.Object{"config.yaml": text}}
	}
	s.change(s.call(user, "update", configuredBy, nil), configuredBy, next, next)
}

// patchesPay has the program write the Rollout long after everything.
func (s *harness) patchesPay() {
	s.wait(time.Minute)
	s.request(replica, "patch", pay, []byte("{}"))
}

func TestScopeChangesWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	created := func(s *harness) { s.sends("create", pay, manifest(pay, "one"), "") }
	runLaw(t, "scope", map[string]lawCase{
		"custom kind that nothing names": {options: byConfigMap, want: "scope/request", because: "it is none of its business", happens: func(s *harness) {
			created(s)
			s.patchesPay()
		}},
		"custom kind of the flags": {options: customByFlags, because: "the flags name it", happens: func(s *harness) {
			created(s)
			s.patchesPay()
		}},
		"custom kind of the configuration": {options: byConfigMap, because: "the configuration names it", happens: func(s *harness) {
			created(s)
			s.configure(namesRollout)
			s.patchesPay()
		}},
		"taken out of the configuration": {options: byConfigMap, want: "scope/request", because: "the program has had time to see it", happens: func(s *harness) {
			created(s)
			s.configure(namesRollout)
			s.wait(time.Minute)
			s.configure(head)
			s.patchesPay()
		}},
		"just taken out of the configuration": {options: byConfigMap, because: "the program may not know yet", happens: func(s *harness) {
			created(s)
			s.configure(namesRollout)
			s.wait(time.Minute)
			s.configure(head)
			s.wait(time.Second)
			s.request(replica, "patch", pay, []byte("{}"))
		}},
		"configuration broken": {options: byConfigMap, because: "the last valid one is in force, but not for a process that starts", happens: func(s *harness) {
			created(s)
			s.configure(namesRollout)
			s.configure(namesRollout + "  more: x\n")
			s.patchesPay()
		}},
		"configuration gone": {options: byConfigMap, because: "as if it were broken", happens: func(s *harness) {
			created(s)
			s.configure(namesRollout)
			s.configure("")
			s.patchesPay()
		}},
		"configuration broken that named nothing": {options: byConfigMap, want: "scope/request", because: "no process looks after it", happens: func(s *harness) {
			created(s)
			s.configure(head)
			s.configure("workloadKinds: [")
			s.patchesPay()
		}},
		"flags leave it out": {want: "scope/request", because: "every process has the new flags", happens: func(s *harness) {
			s.begin()
			s.oracle.Rescope(s.now, leftOut)
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte("{}"))
		}},
		"flags differ": {because: "one process still has the earlier flags", happens: func(s *harness) {
			s.begin()
			s.oracle.Rescope(s.now, notAgreed)
			s.wait(time.Minute)
			s.request(replica, "patch", cart, []byte("{}"))
		}},
	})
}

func TestReloadIsDueWhenTheScopeComesBack(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"out of scope": {because: "it is none of its business", happens: func(s *harness) {
			s.begin()
			s.oracle.Rescope(s.now, leftOut)
			s.set(configMap("app"), "2")
			s.quiet()
		}},
		"in scope again": {want: "prompt/modified", because: "the change was missed", happens: func(s *harness) {
			s.begin()
			s.oracle.Rescope(s.now, leftOut)
			s.set(configMap("app"), "2")
			s.wait(time.Minute)
			s.oracle.Rescope(s.now, lookedAfter)
			s.wait(time.Minute)
			s.set(configMap("other"), "1") // time has gone by
		}},
	})
}

func TestConfigurationIsReadAsTheProgramReadsIt(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{
		namesRollout: true, head: true, head + "workloadKinds: []": true,
		"": false, "kind: Configuration": false, head + "other: 1": false, head + "workloadKinds: [": false,
		head + "workloadKinds: [{apiVersion: a/v1, kind: A}]":                     false,
		head + "workloadKinds: [{apiVersion: a/v1, kind: A, template: status.x}]": false,
	} {
		_, got := readConfiguration(world.Object{"data": world.Object{"config.yaml": text}})
		assert.Equal(t, valid, got, text)
	}
}
