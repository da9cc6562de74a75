package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestKeptWhileExcluded(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"label set and removed": {want: "kept/program", because: "nothing had changed", happens: func(s *harness) {
			s.begin()
			s.edit(cart, excludedBy("disabled"))
			s.wait(time.Minute)
			s.edit(cart, func(o world.Object) { world.Section(o, "metadata")["labels"] = nil })
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"release while excluded, label removed": {want: "kept/program/excluded", because: "the pods of the release had it all", happens: func(s *harness) {
			s.begin()
			s.edit(cart, excludedBy("disabled"))
			s.set(configMap("app"), "2")
			s.wait(time.Minute)
			s.edit(cart, func(o world.Object) {
				world.Section(o, "spec", "template", "spec")["containers"] = []any{world.Object{"image": "two"}}
			})
			s.rollout(cart)
			s.wait(time.Minute)
			s.edit(cart, func(o world.Object) { world.Section(o, "metadata")["labels"] = nil })
			s.wait(time.Minute)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"hash set by hand while excluded": {because: "the program does not look after it", happens: func(s *harness) {
			s.begin()
			s.edit(cart, excludedBy("disabled"))
			s.wait(time.Minute)
			s.edit(cart, func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "x") })
			s.rollout(cart)
		}},
		"PUT that forgot the managed annotations while excluded": {want: "kept/update/excluded", because: "the webhook must restore them", happens: func(s *harness) {
			s.begin()
			labelled := edited(manifest(cart, "one"), excludedBy("disabled"))
			s.sends("update", cart, labelled, "")
			s.rollout(cart)
		}},
		"release with configuration, undone while excluded": {because: "the hash stays that of the release", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.undoesWhileExcluded("b", "b")
		}},
		"release with configuration, undone while excluded by a PUT that removes the hash": {
			want: "kept/update/excluded", because: "the webhook must restore it", happens: func(s *harness) {
				s.begin()
				s.set(configMap("app"), "2")
				s.undoesWhileExcluded("b", "")
			},
		},
		"release without configuration, undone while excluded": {
			want: "kept/update/excluded", because: "the hash of the release had no cause", happens: func(s *harness) {
				s.begin()
				s.undoesWhileExcluded("b", "b")
			},
		},
		"release undone while excluded by a PUT that removes the hash": {
			want: "kept/update/excluded", because: "the webhook must restore it", happens: func(s *harness) {
				s.begin()
				s.undoesWhileExcluded("a", "")
			},
		},
	})
}
