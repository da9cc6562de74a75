package oracle

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// withEnv returns a workload whose container has an environment.
func withEnv(o world.Object, env ...any) world.Object {
	return edited(o, func(o world.Object) {
		container, _ := items(world.Section(o, "spec", "template", "spec"), "containers")[0].(map[string]any)
		container["env"] = env
	})
}

func variable(name, value string) world.Object { return world.Object{"name": name, "value": value} }

func TestVariablesOfAStrategyAreManaged(t *testing.T) {
	t.Parallel()
	path := []string{"spec", "template"}
	plain := world.Section(withEnv(manifest(cart, "one"), variable("VERSION", "1")), path...)
	ours := world.Section(withEnv(manifest(cart, "one"), variable("VERSION", "1"), variable("STAKATER_APP_CONFIGMAP", "0a")), path...)
	other := world.Section(withEnv(manifest(cart, "one"), variable("VERSION", "1"), variable("STAKATER_TEAM", "0a")), path...)
	assert.True(t, sameTemplate(plain, ours, prefix), "the program has added its variable")
	assert.NotEqual(t, managedAnnotationsIn(plain, prefix), managedAnnotationsIn(ours, prefix))
	assert.False(t, sameTemplate(plain, other, prefix), "Reloader has no variable of that name")
	assert.Equal(t, "STAKATER_MY_APP_V2_SECRET", variableOf(ref{"secrets", "my-app.v2"}))
}

// restart is a reload by the program that writes what a strategy adds.
func (s *harness) restart(hash string, add func(o world.Object) world.Object, changed ...string) {
	call := s.call(replica, "patch", cart, []byte(`{}`))
	s.oracle.Request(call)
	next := edited(stamped(s.objects[cart], hash), func(o world.Object) {
		name, kind, _ := strings.Cut(append(changed, "app")[0], " ")
		text, err := json.Marshal(world.Object{"time": s.now.Format(time.RFC3339Nano), "hash": hash, "changes": []any{
			world.Object{"ref": "configmap/" + name, "type": cmp.Or(kind, modified)},
		}})
		require.NoError(s.t, err)
		setAnnotation(o, prefix+"last-reload", string(text))
	})
	s.change(call, cart, s.objects[cart], add(next))
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
	s.reportReload(cart)
	s.wait(100 * time.Millisecond)
	s.rollout(cart)
	s.wait(time.Minute)
}

func TestStrategyIsWrittenWithARestart(t *testing.T) {
	t.Parallel()
	variables := func(env ...any) func(world.Object) world.Object {
		return func(o world.Object) world.Object { return withEnv(o, env...) }
	}
	source := func(name string, late time.Duration) func(*harness) func(world.Object) world.Object {
		return func(s *harness) func(world.Object) world.Object {
			text := fmt.Sprintf(`{"type":"CONFIGMAP","name":%q,"namespace":"shop","hash":"0a","containerRefs":[""],"observedAt":%d}`, name, s.now.Add(late).Unix())
			return func(o world.Object) world.Object {
				return edited(o, func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), sourceAnnotation, text) })
			}
		}
	}
	app, extra := "STAKATER_APP_CONFIGMAP", "STAKATER_EXTRA_CONFIGMAP"
	moved := func(value string, first, second func(s *harness) func(world.Object) world.Object) func(*harness) {
		return func(s *harness) {
			s.begin()
			s.set(configMap("app"), value)
			s.wait(time.Second)
			s.restart("b", first(s))
			s.write(user, "update", configMap("app"), edited(s.objects[configMap("app")], func(o world.Object) {
				o["binaryData"], o["data"] = world.Object{"key": base64.StdEncoding.EncodeToString([]byte(value))}, nil
			}))
			s.wait(time.Second)
			s.restart("c", second(s))
		}
	}
	removed := func(second func(s *harness) func(world.Object) world.Object) func(*harness) {
		return func(s *harness) {
			s.begin()
			s.write(user, "update", configMap("app"), edited(s.objects[configMap("app")], func(o world.Object) { o["data"] = nil }))
			s.wait(time.Second)
			s.restart("b", source("app", 0)(s))
			s.write(user, "delete", configMap("app"), nil)
			s.wait(time.Second)
			s.restart("c", second(s), "app deleted")
		}
	}
	asBefore := func(s *harness) func(world.Object) world.Object {
		text := world.Text(world.Annotations(world.Section(s.objects[cart], "spec", "template")), sourceAnnotation)
		return func(o world.Object) world.Object {
			return edited(o, func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), sourceAnnotation, text) })
		}
	}
	two, three, other := sumOf("key=2"), sumOf("key=3"), sumOf("key=other")
	sameVariable := func(value string) func(*harness) func(world.Object) world.Object {
		return func(*harness) func(world.Object) world.Object { return variables(variable(app, sumOf("key="+value))) }
	}
	twice := func(first, second func(world.Object) world.Object) func(*harness) {
		return func(s *harness) {
			s.beginWithChange()
			s.restart("b", first)
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.restart("c", second)
		}
	}
	env, annotations := Options{Strategy: strategyEnvVars}, Options{Strategy: strategyAnnotations}
	missing := Options{Strategy: strategyAnnotations, ReloadMissingRequired: true}
	for law, cases := range map[string]map[string]lawCase{
		"explained": {
			"variable": {options: env, because: "it is the one of what changed", happens: twice(variables(variable(app, two)), variables(variable(app, three)))},
			"none":     {options: env, want: "explained/variable-stale", because: "it is missing", happens: twice(variables(variable(app, two)), variables())},
			"stale":    {options: env, want: "explained/variable-stale", because: "it is as before", happens: twice(variables(variable(app, two)), variables(variable(app, two)))},
			"left by Reloader": {options: env, because: "it is current already", happens: func(s *harness) {
				s.set(configMap("app"), "1")
				s.sends("create", cart, withEnv(manifest(cart, "one"), variable(app, two)), "a")
				s.rollout(cart)
				s.wait(time.Minute)
				s.set(configMap("app"), "2")
				s.wait(time.Second)
				s.restart("b", variables(variable(app, two)))
			}},
			"wrong value": {options: env, want: "explained/variable-wrong", because: "the value is that of another content", happens: func(s *harness) {
				twice(variables(variable(app, two)), variables(variable(app, three)))(s)
				s.set(configMap("app"), "2")
				s.wait(time.Second)
				s.restart("d", variables(variable(app, "0c")))
			}},
			"source":    {options: annotations, because: "it is what changed", happens: func(s *harness) { s.beginWithChange(); s.restart("b", source("app", 0)(s)) }},
			"no source": {options: annotations, want: "explained/source-stale", because: "it is missing", happens: func(s *harness) { s.beginWithChange(); s.restart("b", variables()) }},
			"other source": {options: annotations, want: "explained/source-wrong", because: "extra has not changed", happens: func(s *harness) {
				s.beginWithChange()
				s.restart("b", source("extra", 0)(s))
			}},
			"empty key moved": {options: annotations, because: "the SHA-1 is the same, the time is another", happens: moved("", source("app", 0), source("app", 0))},
			"empty key moved, old time": {
				options: annotations, want: "explained/source-time", because: "the restart is a minute later", happens: moved("", source("app", 0), asBefore),
			},
			"key moved":           {options: annotations, want: "explained/source-stale", because: "binaryData is in base64", happens: moved("2", source("app", 0), asBefore)},
			"emptied and deleted": {options: missing, because: "the SHA-1 is the same, the time is another", happens: removed(source("app", 0))},
			"emptied and deleted, old time": {
				options: missing, want: "explained/source-time", because: "the restart is a minute later", happens: removed(asBefore),
			},
			"variable of an empty key that moved": {options: env, because: "the SHA-1 is the same", happens: moved("", sameVariable(""), sameVariable(""))},
			"variable of a key that moved": {
				options: env, want: "explained/variable-stale", because: "binaryData is in base64", happens: moved("2", sameVariable("2"), sameVariable("2")),
			},
			"time of the source": {options: annotations, want: "explained/source-time", because: "it is a minute old", happens: func(s *harness) {
				s.beginWithChange()
				s.restart("b", source("app", -time.Minute)(s))
			}},
		},
		"kept": {
			"two": {options: env, because: "the other one stays", happens: func(s *harness) {
				s.beginWithChange()
				s.restart("b", variables(variable(app, two)))
				s.set(configMap("extra"), "other")
				s.wait(time.Second)
				s.restart("c", variables(variable(app, two), variable(extra, other)), "extra")
			}},
			"rewritten": {options: env, want: "kept/variable-rewritten", because: "app has not changed", happens: func(s *harness) {
				s.beginWithChange()
				s.restart("b", variables(variable(app, two)))
				s.set(configMap("extra"), "other")
				s.wait(time.Second)
				s.restart("c", variables(variable(app, "0e"), variable(extra, other)), "extra")
			}},
			"ignored for a while": {options: env, because: "the Record may still have what extra was before", happens: func(s *harness) {
				beginAsking(auto())(s)
				s.mark(configMap("extra"), "ignore", "true")
				s.write(user, "update", configMap("extra"), edited(s.objects[configMap("extra")], func(o world.Object) { world.Section(o, "data")["key"] = "2" }))
				s.mark(configMap("extra"), "ignore", "")
				s.restart("b", variables(variable(extra, "0d")), "extra")
			}},
			"ignored for a while, and unchanged": {options: env, want: "kept/variable-rewritten", because: "extra is what it was", happens: func(s *harness) {
				beginAsking(auto())(s)
				s.mark(configMap("extra"), "ignore", "true")
				s.mark(configMap("extra"), "ignore", "")
				s.set(configMap("app"), "2")
				s.wait(time.Second)
				s.restart("b", variables(variable(app, two), variable(extra, "0d")))
			}},
			"not returned": {options: env, want: "kept/strategy-not-returned", because: "the pods of the first template are not found again", happens: func(s *harness) {
				s.beginWithChange()
				s.restart("b", variables(variable(app, two)))
				s.set(configMap("app"), "1")
				s.wait(time.Second)
				s.restart("a", variables(variable(app, "0f")))
			}},
			"returned": {options: env, because: "the earlier template comes back as it was", happens: func(s *harness) {
				s.beginWithChange()
				s.restart("b", variables(variable(app, two)))
				s.set(configMap("app"), "1")
				s.wait(time.Second)
				s.restart("a", variables())
			}},
		},
	} {
		t.Run(law, func(t *testing.T) {
			t.Parallel()
			runLaw(t, law, cases)
		})
	}
}

func TestStrategyIsNotWrittenWithoutARestart(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{Strategy: strategyEnvVars})
	s.begin()
	s.restart("a", func(o world.Object) world.Object { return withEnv(o, variable("STAKATER_APP_CONFIGMAP", "0a")) })
	assert.Contains(t, s.signatures(), "kept/strategy-rewritten")
}
