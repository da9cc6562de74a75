package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestUnharmedByWarnings(t *testing.T) {
	t.Parallel()
	const restored = "pod-reloader manages these annotations and has restored them: config-record"
	warned := func(options Options, want, warning string, change func(o world.Object), because string) lawCase {
		return lawCase{options: options, want: want, because: because, happens: func(s *harness) {
			s.begin()
			sent := edited(s.objects[cart], change)
			call := s.call(user, "patch", cart, nil)
			s.oracle.Request(call)
			s.change(call, cart, sent, stamped(edited(sent, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "") }), "a"))
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Warnings: []string{"another one", warning}})
		}}
	}
	note := func(o world.Object) { setAnnotation(o, "example.com/note", "x") }
	strip := func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "") }
	runLaw(t, "unharmed", map[string]lawCase{
		"restored, and not written": warned(Options{}, "unharmed/warned", restored, note, "the user has done nothing to it"),
		"restored, and left out":    warned(Options{}, "unharmed/warned", restored, strip, "a manifest that knows nothing of it"),
		"restored, and written":     warned(Options{}, "", restored, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "x") }, "that is what it is for"),
		"written on the template": warned(Options{}, "", restored, func(o world.Object) {
			setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "x")
		}, "that is what it is for"),
		"another warning": warned(Options{}, "", "pod-reloader did not update the config-hash", note, "it is about the state"),
		"a strategy":      warned(Options{Strategy: "env-vars"}, "", restored, note, "it may be about the environment"),
	})
}

func TestUnharmedByCalls(t *testing.T) {
	t.Parallel()
	written := func(took time.Duration, warning string, called ...string) func(*harness) {
		return func(s *harness) {
			s.begin()
			s.oracle.Jitter(2 * time.Second)
			call := s.call(user, "patch", cart, nil)
			s.oracle.Request(call)
			s.wait(took)
			s.change(call, cart, s.objects[cart], s.objects[cart])
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Warnings: []string{warning}, Called: called})
		}
	}
	const ours, failed = "mutate.pod-reloader.cs.sap.com", "pod-reloader failed and passed this write unchanged; it retries by itself"
	runLaw(t, "unharmed", map[string]lawCase{
		"passed unchecked": {
			want: "unharmed/unchecked", because: "nothing disturbed it",
			happens: written(0, "pod-reloader could not check this write: too many requests at the same time; it retries by itself", ours),
		},
		"failed":              {want: "unharmed/unchecked", because: "nothing disturbed it", happens: written(0, failed, ours)},
		"webhook not called":  {because: "it is not ours", happens: written(0, failed)},
		"held for long":       {want: "unharmed/late", because: "nothing disturbed it", happens: written(3100*time.Millisecond, "", ours)},
		"within the jitter":   {because: "the request was under way", happens: written(2900*time.Millisecond, "", ours)},
		"held by another one": {because: "it is not ours", happens: written(time.Minute, "")},
		"failed after a fault": {because: "it may be why", happens: func(s *harness) {
			s.begin()
			s.fault("api-errors", "", time.Second)
			call := s.call(user, "patch", cart, nil)
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Warnings: []string{failed}, Called: []string{ours}})
		}},
	})
}
