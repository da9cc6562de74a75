package oracle

import (
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestUnharmedJobs(t *testing.T) {
	t.Parallel()
	template := func(o world.Object) world.Object { return world.Section(o, world.PodPath(jobsResource)...) }
	created := func(change func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			sent := jobNamed("one")
			call := s.call(user, "create", importJob, nil)
			s.oracle.Request(call)
			s.change(call, importJob, sent, edited(sent, change))
		}
	}
	patched := func(client string, change func(o world.Object), warnings ...string) func(s *harness) {
		return func(s *harness) {
			s.write(user, "create", importJob, jobNamed("one"))
			call := s.call(client, "patch", importJob, []byte(`{}`))
			s.oracle.Request(call)
			next := edited(s.objects[importJob], change)
			s.change(call, importJob, next, next)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Warnings: warnings})
		}
	}
	note := func(o world.Object) { setAnnotation(o, "example.com/note", "x") }
	record := func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "v1:x") }
	const restored = "pod-reloader manages these annotations and has restored them: config-record"
	runLaw(t, "unharmed", map[string]lawCase{
		"stamped": {because: "the annotations are ours", happens: created(func(o world.Object) {
			setAnnotation(template(o), prefix+requestAnnotation, "b")
			record(o)
		})},
		"pod spec changed": {want: "unharmed/stored", because: "it is the user's", happens: created(func(o world.Object) {
			world.Section(template(o), "spec")["hostNetwork"] = true
		})},
		"annotation of the template changed": {want: "unharmed/stored", because: "it is not ours", happens: created(func(o world.Object) {
			setAnnotation(template(o), "example.com/note", "x")
		})},
		"suspended by the program":  {want: "unharmed/program", because: "the spec is the user's", happens: patched(replica, isSuspended)},
		"annotated by the program":  {because: "the annotation is ours", happens: patched(replica, record)},
		"restored, and not written": {want: "unharmed/warned", because: "the user has done nothing to it", happens: patched(user, note, restored)},
		"restored, and written":     {because: "that is what it is for", happens: patched(user, record, restored)},
	})
}
