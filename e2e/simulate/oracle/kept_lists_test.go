package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestKeptAfterEditsOfLists(t *testing.T) {
	t.Parallel()
	toApp := func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app") }
	toSecret := func(o world.Object) { setAnnotation(o, prefix+"secrets", "db") }
	label := func(value string) func(o world.Object) {
		return func(o world.Object) { world.Section(o, "metadata")["labels"] = world.Object{prefix + "ignored": value} }
	}
	unseen := func(s *harness) {
		s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
		s.edit(cart, toApp)
		s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
	}
	restart := func(s *harness) {
		s.wait(5 * time.Minute)
		s.reload(cart, "b")
		s.rollout(cart)
	}
	runLaw(t, "kept", map[string]lawCase{
		"stamped, and again before the pods are replaced": {because: "the pods have the earlier template", happens: func(s *harness) {
			s.begin()
			s.record("v1:a")
			s.sends("update", cart, edited(s.objects[cart], toApp), "b")
			s.wait(time.Minute)
			s.reload(cart, "c")
			s.rollout(cart)
		}},
		"not seen by the webhook": {want: "kept/program", because: "what is listed is adopted", happens: func(s *harness) {
			s.begin()
			s.record("v1:a")
			unseen(s)
			restart(s)
		}},
		"not seen by the webhook, and restarted at once": {want: "kept/program", because: "what is listed is adopted", happens: func(s *harness) {
			s.set(secret("db"), "1")
			s.begin()
			s.record("v1:a")
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.edit(cart, toSecret)
			s.wait(time.Second)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"not seen by the webhook, with a content that changes": {because: "the earlier one may be adopted", happens: func(s *harness) {
			s.set(secret("db"), "1")
			s.begin()
			s.record("v1:a")
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.edit(cart, toSecret)
			s.set(secret("db"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "secret/db modified")
			s.rollout(cart)
		}},
		"not seen by the webhook, without a record": {because: "the hash is over the earlier lists", happens: func(s *harness) {
			s.begin()
			unseen(s)
			restart(s)
		}},
		"not seen by the webhook, with revision digests": {
			options: Options{Revision: true}, because: "the digest is that of the lists", happens: func(s *harness) {
				s.begin()
				s.record("v1:a")
				unseen(s)
				restart(s)
			},
		},
		"while it is excluded": {want: "kept/program", because: "what is listed is adopted", happens: func(s *harness) {
			s.begin()
			s.record("v1:a")
			s.edit(cart, label("true"))
			s.edit(cart, toApp)
			s.edit(cart, label("false"))
			restart(s)
		}},
	})
}
