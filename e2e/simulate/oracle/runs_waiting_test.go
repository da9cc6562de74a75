package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// schedules is a Job of the CronJob that its controller creates from a pod template.
func (s *harness) schedules(name string, cronJob world.Object) {
	key := importJob
	key.Name = name
	template := world.Section(cronJob, world.TemplatePath(nightly.Resource.Plural)...)
	s.change(nil, key, nil, jobNamed("uid-"+name, ownedByNightly, func(o world.Object) { world.Section(o, "spec")["template"] = template }))
}

// ends ends a Job.
func (s *harness) ends(name string) {
	key := importJob
	key.Name = name
	s.change(nil, key, nil, edited(s.objects[key], isDone))
}

// stampsBesideAnActiveJob stamps a change while another Job of the CronJob is active, and returns the CronJob from before the stamp.
func (s *harness) stampsBesideAnActiveJob(policy string) (before world.Object) {
	s.createCronJob(withPolicy(policy))
	s.runsByHand()
	s.wait(time.Minute)
	s.set(configMap("app"), "2")
	s.wait(time.Second)
	before = s.objects[nightly]
	s.reloadCronJob()
	s.waitFor(20 * time.Second)
	return before
}

func TestRunsThatWait(t *testing.T) {
	t.Parallel()
	// waits stamps a change while another Job of the CronJob is active.
	waits := func(policy string, then ...func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.stampsBesideAnActiveJob(policy)
			for _, next := range then {
				next(s)
			}
			s.waitFor(5 * time.Minute)
		}
	}
	ended := func(s *harness) { s.remove(user, byHand); s.waitFor(10 * time.Second) }
	run := func(name string) func(s *harness) { return func(s *harness) { s.runs(name) } }
	runLaw(t, "jobs", map[string]lawCase{
		"active":        {because: "it goes on waiting", happens: waits(forbid)},
		"run":           {because: "once, when no other Job is active", happens: waits(forbid, ended, run("n1"))},
		"not run":       {want: "jobs/run/missing-after-reload", because: "no other Job is active", happens: waits(forbid, ended)},
		"run too early": {want: "jobs/run/concurrent", because: "the other Job is active", happens: waits(forbid, run("n1"))},
		"run twice": {want: "jobs/run/twice", because: "there is one change", happens: waits(forbid, ended, run("n1"), func(s *harness) {
			s.waitFor(20 * time.Second)
			s.ends("n1")
			s.waitFor(20 * time.Second)
		}, run("n2"))},
		"changed again": {because: "one run is for both changes", happens: waits(forbid, func(s *harness) {
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.reloadCronJobWith("c")
			s.waitFor(20 * time.Second)
		}, ended, run("n1"))},
		"not waited": {want: "jobs/run/missing", because: "both may be active", happens: waits("Allow")},
	})
}

func TestScheduledJobThatCountsAsTheRun(t *testing.T) {
	t.Parallel()
	// scheduled has the schedule start a Job while the run of a change waits for another one.
	scheduled := func(policy string, earlier bool, then ...func(s *harness)) func(s *harness) {
		return func(s *harness) {
			template := s.stampsBesideAnActiveJob(policy)
			if !earlier {
				template = s.objects[nightly]
			}
			s.schedules("s1", template)
			s.waitFor(20 * time.Second)
			s.ends("s1")
			s.remove(user, byHand)
			for _, next := range then {
				next(s)
			}
			s.waitFor(5 * time.Minute)
		}
	}
	runLaw(t, "jobs", map[string]lawCase{
		"from the stamped template": {because: "it is the run", happens: scheduled(forbid, false)},
		"from the template before":  {want: "jobs/run/missing-after-reload", because: "it has the content from before", happens: scheduled(forbid, true)},
		"deleted since":             {because: "it was the run", happens: scheduled(forbid, false, func(s *harness) { s.remove(user, world.Key{Resource: world.Jobs, Namespace: "shop", Name: "s1"}) })},
		"and another change": {want: "jobs/run/missing", because: "that has a run of its own", happens: scheduled(forbid, false, func(s *harness) {
			s.waitFor(time.Minute)
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.reloadCronJobWith("c")
		})},
		"where both may be active": {want: "jobs/run/missing", because: "the schedule has nothing to do with the run", happens: scheduled("Allow", false)},
	})
}
