package oracle

import (
	"fmt"
	"testing"
	"time"
)

func TestCountedReloads(t *testing.T) {
	t.Parallel()
	runLaw(t, "explained", map[string]lawCase{
		"not counted": {want: "explained/not-counted", because: "the counter is 0", happens: func(s *harness) {
			s.beginWithReload()
			s.wait(5 * time.Minute)
			s.scrape(replica, 0, nil)
			s.quiet()
		}},
		"not counted, another workload was deleted": {
			want: "explained/metric-missing/after-fault", because: "this one is still there", happens: countedBesides(0),
		},
		"counted, the reload of a deleted workload is not":    {because: "that needs no Event", happens: countedBesides(1)},
		"not counted by a replica that was killed":            {because: "its count is lost", happens: uncounted("down", replica, time.Second)},
		"not counted by a replica that was killed much later": {want: "explained/metric-missing/after-fault", because: "it had the time to count", happens: uncounted("down", replica, 2*time.Minute)},
		"not counted by a replica, another one was killed":    {want: "explained/metric-missing/after-fault", because: "it wrote no Event", happens: uncounted("down", "replica-1.1", time.Second)},
		"not counted by a replica that was frozen":            {want: "explained/metric-missing/after-fault", because: "it goes on", happens: uncounted("frozen", "replica-0", time.Second)},
		"not counted by a replica that was frozen and killed": {because: "the answer did not reach it", happens: func(s *harness) {
			s.beginWithReload()
			s.fault("frozen", "replica-0", 2*time.Minute)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-0.2"})
			s.wait(5 * time.Minute)
			s.scrape(replica, 0, nil)
			s.scrape("replica-0.2", 0, nil)
			s.quiet()
		}},
		"counted twice": {want: "explained/metric-doubled", because: "the counter is 2", happens: func(s *harness) {
			s.beginWithReload()
			s.wait(5 * time.Minute)
			s.scrape(replica, 2, nil)
			s.quiet()
		}},
		"counted twice where no annotation reports it": {want: "explained/metric-doubled", because: "two reloads count three", happens: func(s *harness) {
			reloadUnannotated(s)
			s.scrape(replica, 3, nil)
			s.quiet()
		}},
		"counted twice across leaders": {
			want: "explained/metric-doubled/after-fault", because: "all clocks are right", happens: countedAcrossLeaders("", 0, 2),
		},
		"counted twice, the clock of the old leader is wrong": {
			want: "explained/metric-doubled/clock", because: "it can measure how long it waits", happens: countedAcrossLeaders("replica-0", 0, 2),
		},
		"counted twice, the clock of the new leader is wrong": {
			because: "to it, the reload is not old enough", happens: countedAcrossLeaders("replica-1", 0, 2),
		},
		"not counted across leaders": {
			want: "explained/metric-missing/after-fault", because: "the old leader had the time to count", happens: countedAcrossLeaders("", 0, 0),
		},
		"not counted, the old leader was killed too early": {
			because: "the reload is too old for the new one", happens: uncountedByALateLeader,
		},
		"not counted, the clock of the new leader is wrong": {
			because: "to it, the reload is old", happens: countedAcrossLeaders("replica-1", 0, 0),
		},
		"counted three times, the clock of the new leader is wrong": {
			want: "explained/metric-doubled/clock", because: "there is one new leader", happens: countedAcrossLeaders("replica-1", 0, 3),
		},
		"counted twice, a wrong clock has dated the reload": {
			because: "the new leader does not know how old it is", happens: countedAcrossLeaders("replica-0", 10*time.Minute, 2),
		},
		"counted again by a leader that is refused now and then": {
			because: "it may lack the permission to write Events", happens: countedByARefusedLeader(time.Minute, 2),
		},
		"counted twice by a leader that is refused now and then": {
			want: "explained/metric-doubled/after-fault", because: "one reload counts three", happens: countedByARefusedLeader(time.Minute, 3),
		},
		"counted again by a leader that is refused later": {
			want: "explained/metric-doubled/after-fault", because: "the reload is too old", happens: countedByARefusedLeader(6*time.Minute, 2),
		},
		"not counted, a leader is refused now and then": {
			want: "explained/metric-missing/after-fault", because: "it counts too much at most", happens: countedByARefusedLeader(time.Minute, 0),
		},
		"counted by two replicas in turn": {because: "the sum counts", happens: func(s *harness) {
			s.beginWithReload()
			s.set(configMap("app"), "3")
			s.wait(10 * time.Second)
			s.reload(cart, "c", "configmap/app modified")
			s.rollout(cart)
			s.wait(5 * time.Minute)
			s.scrape(replica, 1, nil)
			s.scrape("replica-1.1", 1, nil)
			s.quiet()
		}},
	})
}

// countedBesides is a reload that has its Event, and one of another workload that is deleted before its own can be written.
func countedBesides(counts float64) func(s *harness) {
	return func(s *harness) {
		web := cart
		web.Name = "web"
		s.begin()
		s.sends("create", web, manifest(web, "one"), "a")
		s.wait(time.Minute)
		s.set(configMap("app"), "2")
		s.wait(time.Second)
		s.reload(cart, "b", "configmap/app modified")
		s.rollout(cart)
		s.reloadSilently(web, "b", "configmap/app modified")
		s.remove(user, web)
		s.wait(2 * time.Minute)
		s.fault("api-errors", "", time.Second)
		s.wait(5 * time.Minute)
		s.scrape(replica, counts, nil)
		s.quiet()
	}
}

// countedAcrossLeaders is a reload that has no Event until another replica leads, while the clock of a machine is wrong. What dates the
// reload is ahead of time.
func countedAcrossLeaders(wrong string, ahead time.Duration, counts float64) func(s *harness) {
	return func(s *harness) {
		s.oracle.Leader(replica, s.now)
		s.beginWithChange()
		s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: eventsResource, Begin: true})
		clock := func(begin bool) {
			if wrong != "" {
				s.oracle.Fault(Fault{At: s.now, Kind: "clock", Scope: wrong, Begin: begin})
			}
		}
		if ahead > 0 {
			clock(true)
		}
		s.stamp(cart, "b", fmt.Sprintf(`{"time":%q,"hash":"b","changes":[{"ref":"configmap/app","type":"modified"}]}`,
			s.now.Add(ahead).Format(time.RFC3339Nano)))
		s.rollout(cart)
		s.wait(6 * time.Minute)
		if ahead == 0 {
			clock(true)
		}
		s.oracle.Leader("replica-1.1", s.now)
		s.wait(time.Minute)
		clock(false)
		s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: eventsResource})
		s.reportReload(cart)
		s.wait(20 * time.Minute)
		s.scrape(replica, counts/2, nil)
		s.scrape("replica-1.1", counts/2, nil)
		s.quiet()
	}
}

// countedByARefusedLeader is a reload with an Event, and another leader that is refused at random some time later.
func countedByARefusedLeader(later time.Duration, counts float64) func(s *harness) {
	return func(s *harness) {
		s.oracle.Leader(replica, s.now)
		s.beginWithReload()
		s.wait(later)
		s.oracle.Fault(Fault{At: s.now, Kind: "denied", Begin: true})
		s.oracle.Leader("replica-1.1", s.now)
		s.wait(2 * time.Minute)
		s.oracle.Fault(Fault{At: s.now, Kind: "denied"})
		s.wait(20 * time.Minute)
		s.scrape(replica, min(counts, 1), nil)
		s.scrape("replica-1.1", max(counts-1, 0), nil)
		s.quiet()
	}
}

// uncountedByALateLeader is a reload whose Event may not be written until another replica leads, which begins more than five minutes later.
func uncountedByALateLeader(s *harness) {
	s.oracle.Leader(replica, s.now)
	s.beginWithChange()
	s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: eventsResource, Begin: true})
	s.reloadSilently(cart, "b", "configmap/app modified")
	s.rollout(cart)
	s.wait(4 * time.Minute)
	s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
	s.wait(2 * time.Minute)
	s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.1"})
	s.oracle.Leader("replica-1.1", s.now)
	s.wait(time.Minute)
	s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: eventsResource})
	s.reporter = "replica-1.1"
	s.reportReload(cart)
	s.wait(20 * time.Minute)
	s.scrape("replica-1.1", 0, nil)
	s.quiet()
}
