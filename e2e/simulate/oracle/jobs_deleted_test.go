package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestDeletionsThatRunNothingAtOnce(t *testing.T) {
	t.Parallel()
	// run runs a CronJob after something was deleted that it mentions.
	run := func(before ...string) func(s *harness) {
		return func(s *harness) {
			s.set(configMap("extra"), "1")
			s.createCronJob()
			for _, value := range before {
				s.set(configMap("extra"), value)
			}
			s.remove(user, configMap("extra"))
			s.wait(time.Second)
			s.runs("n1")
		}
	}
	recreated := func(annotations world.Object) func(s *harness) {
		return func(s *harness) {
			s.set(configMap("app"), "1")
			s.set(configMap("extra"), "1")
			s.write(user, "create", importJob, jobNamed("one", func(o world.Object) { world.Section(o, "metadata")["annotations"] = annotations }))
			s.wait(time.Minute)
			s.remove(user, configMap("extra"))
			s.wait(time.Second)
			s.keeps("one")
			s.remove(replica, importJob)
		}
	}
	counted := Options{ReloadOnDelete: true}
	none := world.Object{otherKeysOf(configMapList).reload: "app"}
	runLaw(t, "jobs", map[string]lawCase{
		"run":                     {want: "jobs/run/twice", because: "the deletion is no change", happens: run()},
		"run, deletions count":    {options: counted, because: "a flag says so", happens: run()},
		"run for another content": {because: "the program may have read that", happens: run("2")},
		"run after the flag was on": {because: "a replica may have seen the deletion with it", happens: func(s *harness) {
			s.upgrades(Policy{ReloadOnDelete: true}, idle)
			s.upgrades(Policy{}, idle)
			run()(s)
		}},
		"created again":                  {want: "jobs/deleted/no-cause", because: "the deletion is no change", happens: recreated(auto())},
		"created again, deletions count": {options: counted, because: "a flag says so", happens: recreated(auto())},
		"created again, not tracked":     {because: "it may have been before", happens: recreated(none)},
	})
}
