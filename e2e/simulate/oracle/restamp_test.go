package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestRestamp(t *testing.T) {
	t.Parallel()
	runLaw(t, "restamp", map[string]lawCase{
		"changed": {because: "it is due", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
		}},
		"unchanged": {want: "restamp/unchanged", because: "nothing is due", happens: func(s *harness) {
			s.begin()
			s.reload(cart, "b", "configmap/app modified")
		}},
		"changed and changed back": {want: "restamp/unchanged", because: "the content is the same", happens: func(s *harness) {
			s.beginWithChange()
			s.set(configMap("app"), "1")
			s.reload(cart, "b", "configmap/app modified")
		}},
		"unchanged, with revision digests": {
			options: Options{Revision: true}, want: "restamp/unchanged", because: "contents decide what is due", happens: func(s *harness) {
				s.begin()
				s.set(configMap("app"), "1")
				s.wait(time.Second)
				s.reload(cart, "b", "configmap/app modified")
			},
		},
		"created and not changed, in direct mode": {options: Options{Direct: true}, want: "restamp/unchanged", because: "adopting restarts nothing", happens: func(s *harness) {
			s.createdLately()
			s.reload(cart, "b", "configmap/app modified")
		}},
		"created and changed, in direct mode": {options: Options{Direct: true}, because: "the old content may have been adopted", happens: func(s *harness) {
			s.createdLately()
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"created with a hash that may be of another workload, in direct mode": {options: Options{Direct: true}, because: "that is compared", happens: func(s *harness) {
			s.set(configMap("app"), "1")
			s.sends("create", cart, stamped(manifest(cart, "one"), "z"), "")
			s.wait(2 * time.Second)
			s.reload(cart, "b", "* modified")
		}},
		"an undo brings a record, in direct mode": {options: Options{Direct: true}, because: "it may be of other contents", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, edited(manifest(cart, "two"), func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1:-:00:other") }), "")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"stamped twice for a change, in direct mode": {options: Options{Direct: true}, want: "restamp/unchanged", because: "once is enough", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
			s.wait(7 * time.Second)
			s.reload(cart, "c", "configmap/app modified")
		}},
		"released right after it was created with a record of another workload, in direct mode": {options: Options{Direct: true}, because: "that is compared", happens: func(s *harness) {
			s.set(configMap("app"), "1")
			s.wait(time.Minute)
			copied := edited(stamped(manifest(cart, "one"), "a"), func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1:a:00:other") })
			s.sends("create", cart, copied, "")
			s.wait(2 * time.Second)
			s.releaseUnseen()
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"the lists were edited": {because: "what was not tracked may be recorded with another content", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+configMapList, "app,extra,late") })
			s.reload(cart, "b", "* modified")
		}},
	})
}
