package oracle

import (
	"testing"
	"time"
)

func TestKeptWithAnAdoptedCreation(t *testing.T) {
	t.Parallel()
	// missing is a stamp while a ConfigMap is missing, which is created before the pods of the stamp start.
	missing := func(s *harness) {
		s.set(configMap("extra"), "1")
		s.begin()
		s.remove(user, configMap("app"))
		s.wait(time.Second)
		s.reload(cart, "b", "configmap/app deleted")
		s.wait(time.Second)
		s.set(configMap("app"), "1")
		s.rollout(cart)
		s.changesAndBack()
	}
	runLaw(t, "kept", map[string]lawCase{
		"content returned during a pause, after a stamp while a required object was missing": {
			options: Options{ReloadMissingRequired: true}, because: "to its hash the object is missing", happens: missing,
		},
		"content returned during a pause, after another stamp": {want: "kept/program/returned", because: "its hash returns with it", happens: func(s *harness) {
			s.set(configMap("extra"), "1")
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.changesAndBack()
		}},
	})
}
