package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestKeptByVerifiedReloads(t *testing.T) {
	t.Parallel()
	rewritten := func(s *harness) {
		s.begin()
		s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app,extra,app,app") })
		s.wait(time.Minute)
		clientAsks(s)
		s.rollout(cart)
	}
	runLaw(t, "kept", map[string]lawCase{
		"asked for with a revision digest, after a release while it was excluded": {
			options: Options{Revision: true}, because: "the client waits for pods with that digest", happens: afterExcludedRelease("2", clientAsks),
		},
		"asked for with a revision digest that the pods have": {
			options: Options{Revision: true}, want: "kept/verified-reload/excluded", because: "no version has changed", happens: afterExcludedRelease("", clientAsks),
		},
		"reloaded by the program after a release while it was excluded, with revision digests": {
			options: Options{Revision: true}, want: "kept/program/excluded", because: "no client asks", happens: afterExcludedRelease("2", func(s *harness) { s.reload(cart, "b", "configmap/app modified") }),
		},
		"asked for with a content digest, after a release while it was excluded": {
			want: "kept/verified-reload/excluded", because: "the pods have that content", happens: afterExcludedRelease("2", clientAsks),
		},
		"asked for with a revision digest, after the lists were written differently": {
			options: Options{Revision: true}, because: "the digest is over the names as they are written", happens: rewritten,
		},
		"asked for with a content digest, after the lists were written differently": {
			want: "kept/verified-reload", because: "the same objects are tracked", happens: rewritten,
		},
	})
}

func TestKeptByUndo(t *testing.T) {
	t.Parallel()
	// undo goes back over a reload, to a template from before it, and the webhook gives that the hash of the present content.
	undo := func(hash string) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.keys("one")
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b7", "configmap/app modified")
			s.rollout(cart)
			s.wait(time.Minute)
			if hash != "b7" {
				s.keys("one", "two")
				s.wait(time.Minute)
			}
			s.undoes(s.objects[cart], hash)
		}
	}
	// undoStuck goes back over a release that cannot start, to the template from before it. What that one tracks is on the workload.
	undoStuck := func(release world.Object) func(s *harness) {
		return func(s *harness) {
			s.set(secret("db"), "1")
			s.begin()
			s.sends("update", cart, edited(release, func(o world.Object) {
				world.Section(o, "spec", "template")["spec"] = world.Section(manifest(cart, "broken"), "spec", "template", "spec")
			}), "b7")
			s.wait(time.Minute)
			s.undoes(release, "c8")
		}
	}
	runLaw(t, "kept", map[string]lawCase{
		"over a release that tracks more": {because: "the earlier hash is over other objects", happens: undoStuck(tracksMore())},
		"over a release": {
			want: "kept/patch-merge", because: "the earlier hash is that of the present content", happens: undoStuck(manifest(cart, "one")),
		},
		"over a reload":                      {because: "the hash is that of the pods", happens: undo("b7")},
		"over a reload, and the key changed": {because: "the hash is another one under that key", happens: undo("c8")},
	})
}

func TestKeptNamesTheRequest(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]*world.Call{
		"update":           {Verb: "update", ContentType: "application/json"},
		"patch-apply":      {Verb: "patch", ContentType: "application/apply-patch+yaml"},
		"patch-json-patch": {Verb: "patch", ContentType: "application/json-patch+json"},
		"patch-strategic":  {Verb: "patch", ContentType: "application/strategic-merge-patch+json"},
		"patch-merge":      {Verb: "patch", ContentType: "application/merge-patch+json"},
		"verified-reload": {
			Verb: "patch", ContentType: "application/merge-patch+json", Body: []byte(`{"metadata":{"annotations":{"` + prefix + `config-hash":"00"}}}`),
		},
		"controller": nil,
	} {
		if got := New(Options{}).by(&stamp{call: call}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
