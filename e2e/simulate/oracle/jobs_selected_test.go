package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// selecting asks for the ConfigMaps that an expression matches.
func selecting(o world.Object) {
	world.Section(o, "metadata")["annotations"] = world.Object{otherKeysOf("configmaps").reload: "ap.*"}
}

func TestJobsWhoseSelectedObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	deleted := func(edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			s.set(configMap("app"), "1")
			s.write(user, "create", importJob, jobNamed("one", append(edits, selecting)...))
			s.wait(time.Minute)
			s.remove(user, configMap("app"))
			s.wait(5 * time.Minute)
			s.oracle.advance(s.now)
		}
	}
	counted := Options{ReloadOnDelete: true}
	runLaw(t, "prompt", map[string]lawCase{
		"deletions count":          {options: counted, want: "prompt/job", because: "its record has the object", happens: deleted()},
		"deletions do not count":   {because: "the pods keep what they have", happens: deleted()},
		"deletions count, it ends": {options: counted, because: "it is done", happens: deleted(isDone)},
	})
}

func TestJobsThatAreResumed(t *testing.T) {
	t.Parallel()
	resumed := func(after time.Duration, edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			beginJob(isSuspended)(s)
			s.write(replica, "patch", importJob, jobNamed("one", append(edits, isSuspended)...))
			s.wait(after)
			s.change(nil, importJob, nil, jobNamed("one", edits...))
			s.wait(time.Second)
			s.createdAgain()
		}
	}
	recorded := func(o world.Object) { setAnnotation(o, prefix+"config-record", "two") }
	runLaw(t, "jobs", map[string]lawCase{
		"long after the change":  {want: "jobs/deleted/resumed", because: "its pods start with it", happens: resumed(10*time.Minute, recorded)},
		"right after the change": {because: "it may not be recorded yet", happens: resumed(time.Second)},
	})
}
