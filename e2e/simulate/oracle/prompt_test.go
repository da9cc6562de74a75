package oracle

import (
	"strconv"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestPromptWhereObjectsComeAndGo(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"creation of an optional object": {want: "prompt/created", because: "extra is listed and not required", happens: func(s *harness) {
			s.set(configMap("app"), "1")
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.set(configMap("extra"), "1")
			s.later(time.Minute)
		}},
		"deletion of an optional object": {want: "prompt/deleted", because: "extra is listed and not required", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("extra"))
			s.later(time.Minute)
		}},
		"creation of a required object": {because: "the waiting pods start with it", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.set(configMap("app"), "1")
			s.later(time.Hour)
		}},
		"deletion of a required object": {because: "it is held", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.later(time.Hour)
		}},
		"deletion of a required object, to be reloaded": {
			options: Options{ReloadMissingRequired: true}, want: "prompt/deleted",
			because: "the flag says so", happens: func(s *harness) {
				s.begin()
				s.remove(user, configMap("app"))
				s.later(time.Hour)
			},
		},
		"held object returns with another content": {want: "prompt/modified", because: "the hold is over", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.later(time.Minute)
		}},
		"held object returns with the same content": {because: "nothing is due", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Hour)
			s.set(configMap("app"), "1")
			s.later(time.Hour)
		}},
	})
}

func TestPromptOnlyWhereTheProgramLooks(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"excluded": {because: "a label takes it out", happens: func(s *harness) {
			s.begin()
			s.edit(cart, excludedBy("ignored"))
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
		"included again": {want: "prompt/modified", because: "the change of the meantime counts", happens: func(s *harness) {
			s.begin()
			s.edit(cart, excludedBy("ignored"))
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.edit(cart, func(o world.Object) { world.Section(o, "metadata")["labels"] = nil })
			s.later(time.Hour)
		}},
		"a record of a newer version": {because: "it is neither evaluated nor replaced", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v9:00:0011:configmap/app=01@1") })
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
		"a record of a newer version by the program": {want: "prompt/newer-record", because: "nothing restarts the pods any more", happens: func(s *harness) {
			s.begin()
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) {
				setAnnotation(o, prefix+"config-record", "v2:00:0011:configmap/app=01@1")
			}))
		}},
		"a record of a newer version by the webhook": {want: "prompt/newer-record", because: "no user sent it", happens: func(s *harness) {
			s.begin()
			call := s.call(user, "update", cart, nil)
			s.oracle.Request(call)
			sent := manifest(cart, "two")
			s.change(call, cart, sent, edited(sent, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v2:00:0011:configmap/app=01@1") }))
		}},
		"a record of this version by hand": {want: "prompt/modified", because: "it is replaced", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1:00:0011:configmap/app=01@1") })
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
		"release stamps": {because: "the webhook read the new content", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(500 * time.Millisecond)
			s.sends("update", cart, manifest(cart, "two"), "b")
			s.later(time.Hour)
		}},
		"out of scope": {
			options: Options{InScope: func(string, map[string]string, map[string]string) bool { return false }},
			because: "the flags leave it out", happens: func(s *harness) {
				s.set(configMap("app"), "1")
				s.sends("create", cart, manifest(cart, "one"), "")
				s.wait(time.Hour)
				s.set(configMap("app"), "2")
				s.later(time.Hour)
			},
		},
		"adopted in direct mode": {options: Options{Direct: true}, want: "prompt/modified", because: "it has been seen for an hour", happens: func(s *harness) {
			s.begin()
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
		"changed back after a stamp, in direct mode": {options: Options{Direct: true}, want: "prompt/modified", because: "the pods have the other content", happens: func(s *harness) {
			s.begin()
			s.changesAndBackDirectly(time.Minute)
			s.later(time.Minute)
		}},
		"changed back right after a stamp, in direct mode": {options: Options{Direct: true}, because: "the program may have read the earlier content", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(1100 * time.Millisecond)
			s.set(configMap("app"), "3")
			s.wait(100 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
			s.set(configMap("app"), "2")
			s.later(time.Minute)
		}},
		"changed before it was adopted": {options: Options{Direct: true}, because: "the program may have taken the new content", happens: func(s *harness) {
			s.sends("create", cart, manifest(cart, "one"), "")
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
	})
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"in time": {because: "settle has passed, and the reload came", happens: func(s *harness) {
			s.beginWithReload()
			s.quiet()
		}},
		"after a release that no webhook sees": {options: Options{Direct: true}, want: "prompt/modified", because: "what was known before the release still is", happens: func(s *harness) {
			s.recorded()
			s.releaseUnseen()
			s.wait(5 * time.Second)
			s.set(configMap("app"), "3")
			s.later(time.Minute)
		}},
		"before a release that no webhook sees": {options: Options{Direct: true}, want: "prompt/modified", because: "the release does not stamp it", happens: func(s *harness) {
			s.recorded()
			s.set(configMap("app"), "3")
			s.releaseUnseen()
			s.later(time.Minute)
		}},
		"after a release without the record that no webhook sees": {options: Options{Direct: true}, because: "what is found then is adopted", happens: func(s *harness) {
			s.recorded()
			s.sends("update", cart, manifest(cart, "two"), "")
			s.wait(time.Second)
			s.set(configMap("app"), "3")
			s.later(time.Minute)
		}},
		"never": {want: "prompt/modified", because: "nothing was reloaded", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.later(30 * time.Second)
		}},
		"late": {want: "prompt/modified", because: "15 s are the most", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(20 * time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"back to the old content within the time": {because: "nothing is due any more", happens: func(s *harness) {
			s.beginWithChange()
			s.set(configMap("app"), "1")
			s.later(time.Hour)
		}},
		"only labelled": {because: "the content is the same", happens: func(s *harness) {
			s.begin()
			labelled := edited(s.objects[configMap("app")], func(o world.Object) { world.Section(o, "metadata")["labels"] = world.Object{"a": "b"} })
			s.write(user, "update", configMap("app"), labelled)
			s.later(time.Hour)
		}},
		"written all the time by a user": {want: "prompt/modified/after-fault", because: "conflicts delay it, but not for minutes", happens: func(s *harness) {
			s.beginWithChange()
			for i := range 150 {
				s.edit(cart, func(o world.Object) { setAnnotation(o, "example.com/note", strconv.Itoa(i)) })
				s.wait(400 * time.Millisecond)
			}
			s.tick()
		}},
		"constant change, reloads": {because: "one in ten seconds is enough", happens: func(s *harness) {
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
