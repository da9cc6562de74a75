package oracle

import (
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestUnharmedByWarnings(t *testing.T) {
	t.Parallel()
	const restored = "pod-reloader manages these annotations and has restored them: config-record"
	hooked := Options{Webhook: true}
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
		"restored, and not written": warned(hooked, "unharmed/warned", restored, note, "the user has done nothing to it"),
		"restored, and left out":    warned(hooked, "unharmed/warned", restored, strip, "a manifest that knows nothing of it"),
		"restored, and written":     warned(hooked, "", restored, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "x") }, "that is what it is for"),
		"written on the template": warned(hooked, "", restored, func(o world.Object) {
			setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "x")
		}, "that is what it is for"),
		"another warning": warned(hooked, "", "pod-reloader did not update the config-hash", note, "it is about the state"),
		"a strategy":      warned(Options{Webhook: true, Strategy: "env-vars"}, "", restored, note, "it may be about the environment"),
	})
}
