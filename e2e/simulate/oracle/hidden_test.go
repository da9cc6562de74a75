package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// withRecord stores a record on the workload, long before anything else happens.
func withRecord(record string) func(*harness) {
	return func(s *harness) {
		s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, record) })
		s.later(time.Minute)
	}
}

// changes writes another content and keeps the annotations.
func (s *harness) changes(key world.Key, value string) {
	s.write(user, "update", key, edited(s.objects[key], func(o world.Object) { o["data"] = world.Object{"key": value} }))
	s.later(time.Minute)
}

const named = "v1:-:0a1b2c3d:configmap/app=1,configmap/extra=1"

func TestHiddenObjectsAreRemembered(t *testing.T) {
	t.Parallel()
	extra := configMap("extra")
	const exclude = "configmaps.exclude." + otherDomain + "reload"
	excludes := func(s *harness, names string) {
		s.edit(cart, func(o world.Object) { setAnnotation(o, exclude, names) })
		s.wait(time.Minute)
	}
	hidden := func(record string, meanwhile func(*harness)) func(*harness) {
		return func(s *harness) {
			beginAsking(auto())(s)
			withRecord(record)(s)
			s.mark(extra, "ignore", "true")
			meanwhile(s)
			s.mark(extra, "ignore", "")
			s.tick()
			s.later(time.Minute)
		}
	}
	changes := func(s *harness) { s.changes(extra, "2") }
	flags := func(hidden Hidden) func(*harness) {
		return func(s *harness) {
			for _, clearly := range []bool{false, true} {
				s.oracle.Rescope(s.now, Scope{InScope: everything, Hidden: hidden, Clear: clearly})
				s.wait(time.Minute)
			}
		}
	}
	runLaw(t, "prompt", map[string]lawCase{
		"ignored":                {want: "prompt/modified", because: "the pods have the earlier content", happens: hidden(named, changes)},
		"no names in the record": {because: "what is hidden may be forgotten", happens: hidden("v1:compact", changes)},
		"nothing has changed":    {because: "nothing is due", happens: hidden(named, func(*harness) {})},
		"released meanwhile": {because: "the pods of the release may have it", happens: hidden(named, func(s *harness) {
			changes(s)
			s.sends("patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), "note", "x") }), "a")
		})},
		"nothing asked for meanwhile": {because: "opting in starts from what is there", happens: hidden(named, func(s *harness) {
			s.edit(cart, func(o world.Object) { setAnnotation(o, otherAuto, "false") })
			changes(s)
			s.edit(cart, func(o world.Object) { setAnnotation(o, otherAuto, "true") })
		})},
		"no space meanwhile": {because: "what is hidden is left out first", happens: hidden(named, func(s *harness) {
			s.edit(cart, func(o world.Object) { setAnnotation(o, "note", strings.Repeat("x", annotationLimit-1000)) })
			changes(s)
			s.edit(cart, func(o world.Object) { setAnnotation(o, "note", "") })
		})},
		"key lost meanwhile": {because: "what is hidden is not adopted anew", happens: func(s *harness) {
			s.keys("a")
			hidden(named, func(s *harness) {
				s.keys("b")
				s.later(10 * time.Minute)
				changes(s)
			})(s)
		}},
		"excluded": {want: "prompt/modified", because: "as ignored", happens: func(s *harness) {
			beginAsking(auto())(s)
			withRecord(named)(s)
			excludes(s, "extra,app")
			changes(s)
			excludes(s, "")
			s.later(time.Minute)
		}},
		"excluded by an edit after which nothing is asked for": {because: "opting in starts from what is there", happens: func(s *harness) {
			beginAsking(auto())(s)
			withRecord(named)(s)
			edit := func(auto, names string) {
				s.edit(cart, func(o world.Object) { setAnnotation(o, otherAuto, auto); setAnnotation(o, exclude, names) })
				s.wait(time.Minute)
			}
			edit("", "extra,app")
			changes(s)
			edit("true", "")
			s.later(time.Minute)
		}},
		"flag for all": {want: "prompt/modified", because: "an upgrade hides it for a time", happens: func(s *harness) {
			s.begin()
			withRecord(named)(s)
			flags(Hidden{Kinds: []string{configMapList}})(s)
			changes(s)
			flags(Hidden{})(s)
			s.later(time.Minute)
		}},
		"flag for the second dialect": {because: "the lists are of the first", happens: func(s *harness) {
			s.begin()
			withRecord(named)(s)
			flags(Hidden{Others: []string{configMapList}})(s)
			s.set(extra, "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/extra modified")
			flags(Hidden{})(s)
			s.later(time.Minute)
		}},
	})
}

func TestHiddenObjectsAreNotTracked(t *testing.T) {
	t.Parallel()
	app, extra, db := ref{"configmaps", "app"}, ref{"configmaps", "extra"}, ref{"secrets", "db"}
	lists := world.Object{prefix + configMapList: "app", prefix + secretList: "db"}
	selects := func(labels map[string]string) bool { return labels["a"] != "b" }
	for name, test := range map[string]struct {
		hidden      Hidden
		annotations world.Object
		want        []ref
	}{
		"nothing hidden":          {annotations: auto(), want: []ref{app, extra, db}},
		"Secrets":                 {hidden: Hidden{Kinds: []string{secretList}}, annotations: auto(), want: []ref{app, extra}},
		"Secrets in lists":        {hidden: Hidden{Kinds: []string{secretList}}, annotations: lists, want: []ref{app}},
		"of the other dialect":    {hidden: Hidden{Others: []string{configMapList}}, annotations: auto(), want: []ref{db}},
		"not of the first":        {hidden: Hidden{Others: []string{configMapList}}, annotations: lists, want: []ref{app, db}},
		"labels":                  {hidden: Hidden{Labels: selects}, annotations: auto(), want: []ref{app, db}},
		"labels, not of listed":   {hidden: Hidden{Labels: selects}, annotations: world.Object{prefix + configMapList: "extra"}, want: []ref{extra}},
		"labels of absent object": {hidden: Hidden{Labels: selects}, annotations: world.Object{"secret." + otherDomain + "reload": "db"}, want: []ref{db}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{Hidden: test.hidden})
			s.set(configMap("app"), "1")
			s.set(configMap("extra"), "1")
			s.write(user, "update", configMap("extra"), edited(s.objects[configMap("extra")], func(o world.Object) {
				world.Section(o, "metadata")["labels"] = world.Object{"a": "b"}
			}))
			s.sends("create", cart, asked(test.annotations), "")
			assert.Equal(t, test.want, s.oracle.workloads[idOf(cart)].refs)
		})
	}
}

func TestPromptWhereDeletionsCount(t *testing.T) {
	t.Parallel()
	counted := Options{ReloadOnDelete: true}
	runLaw(t, "prompt", map[string]lawCase{
		"optional": {options: counted, want: "prompt/deleted", because: "the flag says so", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			s.later(time.Minute)
		}},
		"required": {options: counted, want: "prompt/deleted", because: "the flag does not hold it", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("app"))
			s.later(time.Minute)
		}},
		"required and listed": {options: counted, because: "it is held", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.later(time.Minute)
		}},
	})
	runLaw(t, "kept", map[string]lawCase{
		"ignored, and deleted": {options: counted, because: "an absent object has no annotations", happens: func(s *harness) {
			beginAsking(world.Object{"configmap." + otherDomain + "reload": "ex.*"})(s)
			withRecord(named)(s)
			s.mark(configMap("extra"), "ignore", "true")
			s.remove(user, configMap("extra"))
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"required": {options: counted, because: "the flag does not hold it", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("app"))
			s.wait(2 * time.Second)
			s.reload(cart, "b", "configmap/app deleted")
		}},
	})
}
