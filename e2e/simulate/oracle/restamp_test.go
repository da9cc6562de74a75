package oracle

import (
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestRestamp(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	runLaw(t, "restamp", map[string]lawCase{
		"changed": {options: hooked, because: "it is due", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
		}},
		"unchanged": {options: hooked, want: "restamp/unchanged", because: "nothing is due", happens: func(s *harness) {
			s.begin()
			s.reload(cart, "b", "configmap/app modified")
		}},
		"changed and changed back": {options: hooked, want: "restamp/unchanged", because: "the content is the same", happens: func(s *harness) {
			s.beginWithChange()
			s.set(configMap("app"), "1")
			s.reload(cart, "b", "configmap/app modified")
		}},
		"the lists were edited": {options: hooked, because: "what was not tracked may be recorded with another content", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+configMapList, "app,extra,late") })
			s.reload(cart, "b", "* modified")
		}},
	})
}
