package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// releaseCronJob is a release of the CronJob, which the webhook stamps for a change.
func (s *harness) releaseCronJob(image, hash string) {
	template := []string{"spec", "jobTemplate", "spec", "template"}
	sent := edited(s.objects[nightly], func(o world.Object) { world.Section(o, append(template, "spec")...)["image"] = image })
	call := s.call(user, "patch", nightly, []byte(`{}`))
	s.oracle.Request(call)
	s.change(call, nightly, sent, edited(sent, func(o world.Object) {
		if hash != "" {
			setAnnotation(world.Section(o, template...), prefix+requestAnnotation, hash)
			setAnnotation(o, prefix+reloadAnnotation, s.lastReloadOfApp())
		}
	}))
}

func TestRunsAfterReleases(t *testing.T) {
	t.Parallel()
	late := func(s *harness) {
		s.wait(5 * time.Minute)
		s.oracle.advance(s.now)
	}
	// released changes what the CronJob mentions together with the CronJob, which is then run.
	released := func(names []string, edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			s.createCronJob(edits...)
			s.set(configMap("app"), "2")
			s.wait(100 * time.Millisecond)
			s.releaseCronJob("two", "b")
			s.wait(time.Second)
			for _, name := range names {
				s.runs(name)
			}
			late(s)
		}
	}
	runLaw(t, "jobs", map[string]lawCase{
		"run":       {because: "once for one change", happens: released([]string{"n1"})},
		"not run":   {want: "jobs/run/missing-after-release", because: "the change is to be used at once", happens: released(nil)},
		"suspended": {because: "it is not run", happens: released(nil, isSuspended)},
		"run twice": {want: "jobs/run/twice", because: "there is one change", happens: func(s *harness) {
			released([]string{"n1"})(s)
			s.runs("n2")
		}},
		"run for an object that is hidden since": {because: "it was tracked when it changed", happens: func(s *harness) {
			s.set(secret("db"), "1")
			s.createCronJob()
			s.set(secret("db"), "2")
			s.releaseCronJob("two", "b")
			s.wait(time.Second)
			s.runs("n1")
			s.oracle.Rescope(s.now, Scope{InScope: everything, Hidden: Hidden{Kinds: []string{secretList}}, Clear: true})
			s.wait(time.Minute)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.runs("n2")
		}},
		"run for each release": {because: "each has brought a change", happens: func(s *harness) {
			released([]string{"n1"})(s)
			s.set(configMap("app"), "3")
			s.releaseCronJob("three", "c")
			s.wait(time.Minute)
			s.runs("n2")
			late(s)
		}},
		"released without a change": {because: "nothing is new", happens: func(s *harness) {
			released([]string{"n1"})(s)
			s.releaseCronJob("three", "")
			late(s)
		}},
		"released once more before the run": {
			want: "jobs/run/missing-after-release", because: "the first release owes it", happens: func(s *harness) {
				s.createCronJob()
				s.set(configMap("app"), "2")
				s.releaseCronJob("two", "b")
				s.wait(30 * time.Second)
				s.releaseCronJob("three", "")
				late(s)
			},
		},
		"run before with the same content": {because: "the Job has it", happens: func(s *harness) {
			s.beginCronJob()
			s.runs("n1")
			s.releaseCronJob("two", "b")
			late(s)
		}},
		"another leader": {because: "it does not know what the earlier one has done", happens: func(s *harness) {
			s.oracle.Leader(replica, s.now)
			s.createCronJob()
			s.set(configMap("app"), "2")
			s.releaseCronJob("two", "b")
			s.oracle.Leader("replica-1.1", s.now)
			late(s)
		}},
		"another Job is active": {because: "it forbids a second one", happens: func(s *harness) {
			s.createCronJob(withPolicy(forbid))
			s.runsByHand()
			s.wait(time.Minute)
			s.set(configMap("app"), "2")
			s.releaseCronJob("two", "b")
			late(s)
		}},
		"another Job was active": {
			want: "jobs/run/missing-after-release", because: "it has ended", happens: func(s *harness) {
				s.createCronJob(withPolicy(forbid))
				s.runsByHand()
				s.wait(time.Minute)
				s.set(configMap("app"), "2")
				s.releaseCronJob("two", "b")
				late(s)
				s.remove(user, byHand)
				late(s)
			},
		},
	})
}

func TestRunsWithOlderContent(t *testing.T) {
	t.Parallel()
	late := func(s *harness) {
		s.wait(5 * time.Minute)
		s.oracle.advance(s.now)
	}
	// changedSince runs a CronJob for a change, which changes again before a stamp; then it may be run again.
	changedSince := func(stamp func(s *harness), names ...string) func(s *harness) {
		return func(s *harness) {
			s.beginCronJob()
			s.runs("n1")
			s.wait(10 * time.Second)
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			stamp(s)
			for _, name := range names {
				s.runs(name)
			}
			late(s)
		}
	}
	release := func(s *harness) { s.releaseCronJob("two", "b") }
	reload := func(s *harness) { s.reloadCronJob() }
	// releasedBefore runs a CronJob with the template of a moment some time after a release.
	releasedBefore := func(stale bool, pause time.Duration) func(s *harness) {
		return func(s *harness) {
			s.createCronJob()
			made := s.objects[nightly]
			s.set(configMap("app"), "2")
			s.releaseCronJob("two", "b")
			if !stale {
				made = s.objects[nightly]
			}
			s.wait(pause)
			s.runsWith("n1", made)
		}
	}
	runLaw(t, "jobs", map[string]lawCase{
		"before a release":           {want: "jobs/run/missing-after-release", because: "the Job has started before the change", happens: changedSince(release)},
		"before and after a release": {because: "the second one has the change", happens: changedSince(release, "n2")},
		"before a reload":            {want: "jobs/run/missing-after-reload", because: "the Job has started before the last change", happens: changedSince(reload)},
		"before and after a reload":  {because: "the second one has the change", happens: changedSince(reload, "n2")},
		"with an older template":     {want: "jobs/run/other-template", because: "the release is to run", happens: releasedBefore(true, 20*time.Second)},
		"with the released template": {because: "it is the present one", happens: releasedBefore(false, 20*time.Second)},
		"with the template as read":  {because: "the release came after the program had read it", happens: releasedBefore(true, time.Second)},
	})
}
