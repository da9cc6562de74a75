package oracle

import (
	"testing"
	"time"
)

// waitFor lets time pass, and the oracle look meanwhile.
func (s *harness) waitFor(d time.Duration) {
	const step = 10 * time.Second
	for range d / step {
		s.wait(step)
		s.oracle.advance(s.now)
	}
}

func TestRunsAfterAContentIsBack(t *testing.T) {
	t.Parallel()
	// back runs a CronJob for a change whose stamp is missing, and undoes the change.
	back := func(to string, then func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.oracle.Leader(replica, s.now)
			s.set(configMap("app"), "1")
			s.wait(2 * time.Minute)
			s.createCronJob()
			s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: "cronjobs", Begin: true})
			s.wait(time.Minute)
			s.set(configMap("app"), "2")
			s.wait(4 * time.Second)
			s.runs("n1")
			s.waitFor(20 * time.Second)
			s.set(configMap("app"), to)
			s.wait(10 * time.Second)
			then(s)
			s.waitFor(5 * time.Minute)
		}
	}
	nothing := func(*harness) {}
	runLaw(t, "jobs", map[string]lawCase{
		"run":       {because: "the last run has what is there", happens: back("1", func(s *harness) { s.runs("n2") })},
		"not run":   {want: "jobs/run/missing-after-return", because: "the last run has what is gone", happens: back("1", nothing)},
		"run twice": {want: "jobs/run/twice", because: "it has come back once", happens: back("1", func(s *harness) { s.runs("n2"); s.runs("n3") })},
		"another content": {because: "its reload is due, and runs it", happens: back("3", func(s *harness) {
			s.runs("n2")
			s.reloadCronJob()
		})},
		"another leader": {because: "it does not know of the run", happens: back("1", func(s *harness) {
			s.oracle.Leader("replica-1.1", s.now)
		})},
		"a write of the user": {because: "it may be stamped by that", happens: back("1", func(s *harness) {
			s.releaseCronJob("two", "")
		})},
		"the change is back": {because: "the run has it", happens: back("1", func(s *harness) {
			s.set(configMap("app"), "2")
			s.reloadCronJob()
		})},
	})
}
