package oracle

import (
	"testing"
	"time"
)

func TestKeptWhileARequiredObjectIsMissing(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"released while a required one was missing, with a change of an object adopted before": {
			because: "the release keeps what is known", happens: releasedWhileHeld("1", "secret/db modified"),
		},
		"released while a required one was missing, with an object adopted before": {
			want: "kept/program/touched", because: "what is known is current", happens: releasedWhileHeld("2"),
		},
		"required one created that the pods waited for": {want: "kept/program/touched", because: "they started with it", happens: func(s *harness) {
			s.set(configMap("extra"), "1")
			s.set(configMap("app"), "1")
			s.remove(user, configMap("app"))
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.set(configMap("app"), "1")
			s.rollout(cart)
			s.wait(time.Minute)
			s.reload(cart, "b", "configmap/app created")
			s.rollout(cart)
		}},
		"required one deleted": {want: "kept/missing-required", because: "the pods could not start", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app deleted")
		}},
		"required one just deleted": {
			options: Options{Settle: 50 * time.Millisecond, SettleMax: 50 * time.Millisecond},
			want:    "kept/missing-required/just-deleted", because: "the pods could not start", happens: func(s *harness) {
				s.begin()
				s.remove(user, configMap("app"))
				s.wait(100 * time.Millisecond)
				s.reload(cart, "b", "configmap/app deleted")
			},
		},
		"required one missing from the beginning": {because: "the pods wait for it anyway", happens: func(s *harness) {
			s.set(configMap("extra"), "1")
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.set(configMap("extra"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/extra modified")
		}},
		"required one back at the time": {because: "it came back", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Second)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"required one deleted, to be reloaded": {
			options: Options{ReloadMissingRequired: true}, because: "the flag says so",
			happens: func(s *harness) {
				s.begin()
				s.remove(user, configMap("app"))
				s.wait(time.Second)
				s.reload(cart, "b", "configmap/app deleted")
				s.rollout(cart)
			},
		},
	})
}
