package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// asked is the manifest of a Deployment that uses the second dialect and nothing else: it requires app, and mentions extra and the
// Secret db.
func asked(annotations world.Object) world.Object {
	return edited(manifest(cart, "one"), func(o world.Object) {
		world.Section(o, "metadata")["annotations"] = annotations
		spec := world.Section(o, "spec", "template", "spec")
		spec["volumes"] = []any{
			world.Object{"name": "a", "configMap": world.Object{"name": "extra", "optional": true}},
			world.Object{"name": "b", "secret": world.Object{"secretName": "db", "optional": true}},
		}
	})
}

// beginAsking creates app, extra, and a workload that asks for something.
func beginAsking(annotations world.Object) func(*harness) {
	return func(s *harness) {
		s.set(configMap("app"), "1")
		s.set(configMap("extra"), "1")
		s.sends("create", cart, asked(annotations), "a")
		s.wait(100 * time.Millisecond)
		s.rollout(cart)
		s.wait(time.Minute)
	}
}

// mark sets an annotation of the second dialect on a config object.
func (s *harness) mark(key world.Key, name, value string) {
	next := edited(s.objects[key], func(o world.Object) { setAnnotation(o, otherDomain+name, value) })
	s.write(user, "update", key, next)
	s.wait(time.Minute)
}

func auto() world.Object { return world.Object{otherAuto: "true"} }

func TestTrackedInTheSecondDialect(t *testing.T) {
	t.Parallel()
	app, extra, late, db := ref{"configmaps", "app"}, ref{"configmaps", "extra"}, ref{"configmaps", "late"}, ref{"secrets", "db"}
	for name, test := range map[string]struct {
		annotations, template world.Object
		want                  []ref
	}{
		"auto":                        {annotations: auto(), want: []ref{app, extra, db}},
		"auto in another spelling":    {annotations: world.Object{otherAuto: "T"}, want: []ref{app, extra, db}},
		"garbage":                     {annotations: world.Object{otherAuto: "yes"}},
		"auto of one kind":            {annotations: world.Object{"secret." + otherDomain + "auto": "true"}, want: []ref{db}},
		"auto off for one kind":       {annotations: world.Object{otherAuto: "true", "secret." + otherDomain + "auto": "false"}, want: []ref{app, extra, db}},
		"names":                       {annotations: world.Object{"configmap." + otherDomain + "reload": " late ,app,"}, want: []ref{app, late}},
		"expressions":                 {annotations: world.Object{"configmap." + otherDomain + "reload": "a.., xtr., (ex|in)tra"}, want: []ref{app, extra}},
		"search":                      {annotations: world.Object{otherSearch: "true"}, want: []ref{extra}},
		"search in another spelling":  {annotations: world.Object{otherSearch: "True"}},
		"auto beats search":           {annotations: world.Object{otherSearch: "true", otherAuto: "true"}, want: []ref{app, extra, db}},
		"off":                         {annotations: world.Object{otherAuto: "false", "configmap." + otherDomain + "reload": "app", otherSearch: "true"}},
		"excluded":                    {annotations: world.Object{otherAuto: "true", "configmaps.exclude." + otherDomain + "reload": "app, other"}, want: []ref{extra, db}},
		"listed and excluded":         {annotations: world.Object{"configmap." + otherDomain + "reload": "app,extra", "configmaps.exclude." + otherDomain + "reload": "app"}, want: []ref{extra}},
		"on the template":             {template: auto(), want: []ref{app, extra, db}},
		"the workload's come first":   {annotations: world.Object{otherAuto: "false"}, template: auto()},
		"kind by kind":                {annotations: world.Object{"configmap." + otherDomain + "auto": "false"}, template: auto(), want: []ref{db}},
		"exclusion from the workload": {annotations: world.Object{"secrets.exclude." + otherDomain + "reload": "db"}, template: auto(), want: []ref{app, extra}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{})
			s.set(configMap("app"), "1")
			s.set(configMap("extra"), "1")
			s.mark(configMap("extra"), "match", "true")
			s.set(configMap("ignored"), "1")
			sent := edited(asked(test.annotations), func(o world.Object) {
				world.Section(o, "spec", "template", "metadata")["annotations"] = test.template
			})
			s.sends("create", cart, sent, "")
			w := s.oracle.workloads[idOf(cart)]
			assert.Equal(t, test.want, w.refs)
			for r, by := range w.triggers {
				assert.Equal(t, triggers{}, by, "creation and deletion of %s", r)
			}
			s.mark(configMap("extra"), "ignore", "true")
			assert.NotContains(t, w.refs, extra, "it is ignored")
		})
	}
}

func TestWorkloadsWithoutAnnotationsAreAutomaticWhereTheFlagSaysSo(t *testing.T) {
	t.Parallel()
	app, extra, late, db := ref{"configmaps", "app"}, ref{"configmaps", "extra"}, ref{"configmaps", "late"}, ref{"secrets", "db"}
	for name, test := range map[string]struct {
		annotations world.Object
		want        []ref
	}{
		"no annotations":         {want: []ref{app, extra, db}},
		"off":                    {annotations: world.Object{otherAuto: "false"}},
		"off for one kind":       {annotations: world.Object{"secret." + otherDomain + "auto": "false"}, want: []ref{app, extra}},
		"empty":                  {annotations: world.Object{otherAuto: ""}, want: []ref{app, extra, db}},
		"names beside it":        {annotations: world.Object{"configmap." + otherDomain + "reload": "late"}, want: []ref{app, extra, late, db}},
		"excluded":               {annotations: world.Object{"configmaps.exclude." + otherDomain + "reload": "app"}, want: []ref{extra, db}},
		"lists of our own, too":  {annotations: world.Object{prefix + "configmaps": "late"}, want: []ref{app, extra, late, db}},
		"search is not narrower": {annotations: world.Object{otherSearch: "true"}, want: []ref{app, extra, db}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{AutoReloadAll: true})
			s.sends("create", cart, asked(test.annotations), "")
			assert.Equal(t, test.want, s.oracle.workloads[idOf(cart)].refs)
		})
	}
}

func TestBothDialectsAreAUnion(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{})
	s.begin()
	s.edit(cart, func(o world.Object) { setAnnotation(o, "secret."+otherDomain+"reload", "db") })
	w := s.oracle.workloads[idOf(cart)]
	assert.Equal(t, []ref{{"configmaps", "app"}, {"configmaps", "extra"}, {"secrets", "db"}}, w.refs)
	assert.Equal(t, triggers{created: true, deleted: true}, w.triggers[ref{"configmaps", "app"}])
	assert.Equal(t, triggers{}, w.triggers[ref{"secrets", "db"}])
	assert.False(t, w.unclear, "the oracle knows these annotations")
	s.edit(cart, func(o world.Object) { setAnnotation(o, rolloutStrategy, "restart") })
	assert.False(t, w.unclear, "the oracle knows this annotation")
	s.edit(cart, func(o world.Object) { setAnnotation(o, otherDomain+"other", "restart") })
	assert.True(t, w.unclear, "the oracle does not know this one")
}

// asksUnrecorded changes a listed ConfigMap, and at once has cart, without a record and with a large annotation, name it in the second
// dialect.
func asksUnrecorded(bulk int) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.edit(cart, func(o world.Object) { setAnnotation(o, "example.com/bulk", strings.Repeat("x", bulk)) })
		s.wait(time.Minute)
		s.set(configMap("app"), "2")
		s.edit(cart, func(o world.Object) { setAnnotation(o, "configmap."+otherDomain+"reload", "app") })
	}
}

func TestPromptInTheSecondDialect(t *testing.T) {
	t.Parallel()
	// recorded changes a ConfigMap after an annotation of a user has displaced the record, and perhaps made space for it again.
	recorded := func(s *harness, again bool) {
		beginAsking(auto())(s)
		record := func(text, bulk string) {
			s.edit(cart, func(o world.Object) {
				setAnnotation(o, prefix+recordAnnotation, text)
				setAnnotation(o, "example.com/bulk", bulk)
			})
			s.later(time.Minute)
		}
		record("v1", "")
		record("", strings.Repeat("x", annotationLimit-1000))
		if again {
			record("v1", "")
		}
		s.set(configMap("extra"), "2")
	}
	runLaw(t, "prompt", map[string]lawCase{
		"modified": {want: "prompt/modified", because: "auto tracks it", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(configMap("extra"), "2")
			s.later(time.Minute)
		}},
		"deleted": {because: "deletions do not count", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			s.later(time.Minute)
		}},
		"back with other content": {want: "prompt/modified", because: "the pods have the earlier content", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			s.wait(time.Minute)
			s.set(configMap("extra"), "2")
			s.later(time.Minute)
		}},
		"created": {because: "creations do not count", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(secret("db"), "1")
			s.later(time.Minute)
		}},
		"created, then modified": {want: "prompt/created", because: "the next change counts", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(secret("db"), "1")
			s.later(time.Minute)
			s.set(secret("db"), "2")
			s.later(time.Minute)
		}},
		"without the mark": {because: "search wants it", happens: func(s *harness) {
			beginAsking(world.Object{otherSearch: "true"})(s)
			s.set(configMap("extra"), "2")
			s.later(time.Minute)
		}},
		"with the mark": {want: "prompt/modified", because: "search finds it", happens: func(s *harness) {
			beginAsking(world.Object{otherSearch: "true"})(s)
			s.mark(configMap("extra"), "match", "true")
			s.write(user, "update", configMap("extra"), edited(s.objects[configMap("extra")], func(o world.Object) {
				o["data"] = world.Object{"key": "2"}
			}))
			s.later(time.Minute)
		}},
		"without space for the record": {because: "the hash alone proves nothing", happens: func(s *harness) {
			recorded(s, false)
			s.later(time.Minute)
		}},
		"with space for the record again": {want: "prompt/modified", because: "it is known what the pods run with", happens: func(s *harness) {
			recorded(s, true)
			s.later(time.Minute)
		}},
		"changed again after a reload without space for the record": {because: "the hash alone proves nothing", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.edit(cart, func(o world.Object) {
				setAnnotation(o, prefix+recordAnnotation, "v1")
				setAnnotation(o, "example.com/bulk", strings.Repeat("x", annotationLimit-5000))
			})
			s.set(configMap("extra"), "2")
			s.wait(2 * time.Second)
			s.programEdits(func(o world.Object) {
				setAnnotation(o, prefix+recordAnnotation, "")
				setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "b")
				setAnnotation(o, prefix+"last-reload", `{"time":"`+s.now.UTC().Format(time.RFC3339)+`","changes":[{"ref":"configmap/extra","type":"modified"}]}`)
			})
			s.rollout(cart)
			s.wait(time.Minute)
			s.set(configMap("extra"), "3")
			s.later(time.Minute)
		}},
		"asks without space for the record": {because: "the hash alone proves nothing from then on", happens: func(s *harness) {
			asksUnrecorded(annotationLimit - 1000)(s)
			s.later(time.Minute)
		}},
		"asks with space for the record": {want: "prompt/modified", because: "the change is due already", happens: func(s *harness) {
			asksUnrecorded(1000)(s)
			s.later(time.Minute)
		}},
		"marked just after the change": {because: "what is newly tracked is taken as it is found", happens: func(s *harness) {
			beginAsking(world.Object{otherSearch: "true"})(s)
			s.set(configMap("extra"), "2")
			s.mark(configMap("extra"), "match", "true")
			s.later(time.Minute)
		}},
		"ignored": {because: "the object says so", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.mark(configMap("extra"), "ignore", "true")
			s.write(user, "update", configMap("extra"), edited(s.objects[configMap("extra")], func(o world.Object) {
				o["data"] = world.Object{"key": "2"}
			}))
			s.later(time.Minute)
		}},
	})
}

func TestKeptInTheSecondDialect(t *testing.T) {
	t.Parallel()
	reload := func(s *harness, changes ...string) {
		s.wait(2 * time.Second)
		s.reload(cart, "b", changes...)
		s.rollout(cart)
	}
	runLaw(t, "kept", map[string]lawCase{
		"modified": {because: "that is what it is for", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(configMap("extra"), "2")
			reload(s, "configmap/extra modified")
		}},
		"deleted": {want: "kept/program/touched", because: "deletions do not count", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			reload(s)
		}},
		"created": {want: "kept/program/touched", because: "creations do not count", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(secret("db"), "1")
			reload(s)
		}},
		"back with other content": {because: "the pods have the earlier content", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			s.wait(time.Minute)
			s.set(configMap("extra"), "2")
			reload(s, "configmap/extra modified")
		}},
		"marked": {want: "kept/program/touched", because: "it is only tracked from now on", happens: func(s *harness) {
			beginAsking(world.Object{otherSearch: "true"})(s)
			s.mark(configMap("extra"), "match", "true")
			reload(s)
		}},
		"without the mark": {want: "kept/program", because: "it is not tracked", happens: func(s *harness) {
			beginAsking(world.Object{otherSearch: "true"})(s)
			s.set(configMap("extra"), "2")
			reload(s)
		}},
		"ignored long ago": {want: "kept/program", because: "it is not tracked any more", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.mark(configMap("extra"), "ignore", "true")
			s.write(user, "update", configMap("extra"), edited(s.objects[configMap("extra")], func(o world.Object) {
				o["data"] = world.Object{"key": "2"}
			}))
			reload(s)
		}},
		"ignored just after the change": {because: "the program may not have heard of it", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(configMap("extra"), "2")
			s.write(user, "update", configMap("extra"), edited(s.objects[configMap("extra")], func(o world.Object) {
				setAnnotation(o, otherDomain+"ignore", "true")
			}))
			reload(s)
		}},
		"off": {want: "kept/program", because: "nothing is tracked", happens: func(s *harness) {
			beginAsking(world.Object{otherAuto: "false", "configmap." + otherDomain + "reload": "extra"})(s)
			s.set(configMap("extra"), "2")
			reload(s)
		}},
	})
}
