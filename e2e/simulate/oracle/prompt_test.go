package oracle

import (
	"strconv"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestPromptWhereObjectsComeAndGo(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	runLaw(t, "prompt", map[string]lawCase{
		"creation of an optional object": {options: hooked, want: "prompt/created", because: "extra is listed and not required", happens: func(s *harness) {
			s.set(configMap("app"), "1")
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.set(configMap("extra"), "1")
			s.wait(time.Minute)
			s.tick()
		}},
		"deletion of an optional object": {options: hooked, want: "prompt/deleted", because: "extra is listed and not required", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("extra"))
			s.wait(time.Minute)
			s.tick()
		}},
		"creation of a required object": {options: hooked, because: "the waiting pods start with it", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.set(configMap("app"), "1")
			s.wait(time.Hour)
			s.tick()
		}},
		"deletion of a required object": {options: hooked, because: "it is held", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Hour)
			s.tick()
		}},
		"deletion of a required object, to be reloaded": {
			options: Options{Webhook: true, ReloadMissingRequired: true}, want: "prompt/deleted",
			because: "the flag says so", happens: func(s *harness) {
				s.begin()
				s.remove(user, configMap("app"))
				s.wait(time.Hour)
				s.tick()
			},
		},
		"held object returns with another content": {options: hooked, want: "prompt/modified", because: "the hold is over", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.wait(time.Minute)
			s.tick()
		}},
		"held object returns with the same content": {options: hooked, because: "nothing is due", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Hour)
			s.set(configMap("app"), "1")
			s.wait(time.Hour)
			s.tick()
		}},
	})
}

func TestPromptOnlyWhereTheProgramLooks(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	runLaw(t, "prompt", map[string]lawCase{
		"excluded": {options: hooked, because: "a label takes it out", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) {
				world.Section(o, "metadata")["labels"] = world.Object{prefix + "ignored": "true"}
			})
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
		"included again": {options: hooked, want: "prompt/modified", because: "the change of the meantime counts", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) {
				world.Section(o, "metadata")["labels"] = world.Object{prefix + "ignored": "true"}
			})
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.edit(cart, func(o world.Object) { world.Section(o, "metadata")["labels"] = nil })
			s.wait(time.Hour)
			s.tick()
		}},
		"a record of a newer version": {options: hooked, because: "it is neither evaluated nor replaced", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v9:00:0011:configmap/app=01@1") })
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
		"a record of a newer version by the program": {options: hooked, want: "prompt/newer-record", because: "nothing restarts the pods any more", happens: func(s *harness) {
			s.begin()
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) {
				setAnnotation(o, prefix+"config-record", "v2:00:0011:configmap/app=01@1")
			}))
		}},
		"a record of a newer version by the webhook": {options: hooked, want: "prompt/newer-record", because: "no user sent it", happens: func(s *harness) {
			s.begin()
			call := s.call(user, "update", cart, nil)
			s.oracle.Request(call)
			sent := manifest(cart, "two")
			s.change(call, cart, sent, edited(sent, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v2:00:0011:configmap/app=01@1") }))
		}},
		"a record of this version by hand": {options: hooked, want: "prompt/modified", because: "it is replaced", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1:00:0011:configmap/app=01@1") })
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
		"release stamps": {options: hooked, because: "the webhook read the new content", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(500 * time.Millisecond)
			s.sends("update", cart, manifest(cart, "two"), "b")
			s.wait(time.Hour)
			s.tick()
		}},
		"out of scope": {
			options: Options{Webhook: true, InScope: func(string, map[string]string, map[string]string) bool { return false }},
			because: "the flags leave it out", happens: func(s *harness) {
				s.set(configMap("app"), "1")
				s.sends("create", cart, manifest(cart, "one"), "")
				s.wait(time.Hour)
				s.set(configMap("app"), "2")
				s.wait(time.Hour)
				s.tick()
			},
		},
		"adopted in direct mode": {want: "prompt/modified", because: "it has been seen for an hour", happens: func(s *harness) {
			s.begin()
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
		"changed back after a stamp, in direct mode": {want: "prompt/modified", because: "the pods have the other content", happens: func(s *harness) {
			s.begin()
			s.changesAndBackDirectly(time.Minute)
			s.wait(time.Minute)
			s.tick()
		}},
		"changed back right after a stamp, in direct mode": {because: "the program may have read the earlier content", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(1100 * time.Millisecond)
			s.set(configMap("app"), "3")
			s.wait(100 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
			s.set(configMap("app"), "2")
			s.wait(time.Minute)
			s.tick()
		}},
		"changed before it was adopted": {because: "the program may have taken the new content", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "")
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
	})
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	runLaw(t, "prompt", map[string]lawCase{
		"in time": {options: hooked, because: "settle has passed, and the reload came", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.quiet()
		}},
		"after a release that no webhook sees": {want: "prompt/modified", because: "what was known before the release still is", happens: func(s *harness) {
			s.recorded()
			s.releaseUnseen()
			s.wait(5 * time.Second)
			s.set(configMap("app"), "3")
			s.wait(time.Minute)
			s.tick()
		}},
		"before a release that no webhook sees": {want: "prompt/modified", because: "the release does not stamp it", happens: func(s *harness) {
			s.recorded()
			s.set(configMap("app"), "3")
			s.releaseUnseen()
			s.wait(time.Minute)
			s.tick()
		}},
		"after a release without the record that no webhook sees": {because: "what is found then is adopted", happens: func(s *harness) {
			s.recorded()
			s.sends("update", cart, manifest(cart, "two"), "")
			s.wait(time.Second)
			s.set(configMap("app"), "3")
			s.wait(time.Minute)
			s.tick()
		}},
		"never": {options: hooked, want: "prompt/modified", because: "nothing was reloaded", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(30 * time.Second)
			s.tick()
		}},
		"late": {options: hooked, want: "prompt/modified", because: "15 s are the most", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(20 * time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"back to the old content within the time": {options: hooked, because: "nothing is due any more", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.set(configMap("app"), "1")
			s.wait(time.Hour)
			s.tick()
		}},
		"only labelled": {options: hooked, because: "the content is the same", happens: func(s *harness) {
			s.begin()
			labelled := edited(s.objects[configMap("app")], func(o world.Object) { world.Section(o, "metadata")["labels"] = world.Object{"a": "b"} })
			s.write(user, "update", configMap("app"), labelled)
			s.wait(time.Hour)
			s.tick()
		}},
		"constant change, no reload": {options: hooked, want: "prompt/modified/constant-change", because: "settle-max and refractory are the most", happens: func(s *harness) {
			s.begin()
			for i := range 60 {
				s.set(configMap("app"), string(rune('A'+i)))
				s.wait(400 * time.Millisecond)
			}
			s.tick()
		}},
		"written all the time by a user": {options: hooked, want: "prompt/modified/after-fault", because: "conflicts delay it, but not for minutes", happens: func(s *harness) {
			s.beginWithChange()
			for i := range 150 {
				s.edit(cart, func(o world.Object) { setAnnotation(o, "example.com/note", strconv.Itoa(i)) })
				s.wait(400 * time.Millisecond)
			}
			s.tick()
		}},
		"constant change, reloads": {options: hooked, because: "one in ten seconds is enough", happens: func(s *harness) {
			s.begin()
			for i := range 80 {
				s.set(configMap("app"), string(rune('A'+i)))
				s.wait(400 * time.Millisecond)
				if i%20 == 19 {
					s.reload(cart, string(rune('A'+i)), "configmap/app modified")
				}
			}
			s.tick()
		}},
	})
}
