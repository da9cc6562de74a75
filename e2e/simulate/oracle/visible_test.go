package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	secrets := world.Key{Resource: world.Secrets}
	blind := func(gauges map[string]float64, warned bool) func(s *harness) {
		return func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: "secrets", Begin: true})
			call := s.call(replica, "watch", secrets, nil)
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 403})
			s.wait(time.Minute)
			if warned {
				s.warn(cart, "changes are found late: secrets cannot be watched")
			}
			s.wait(5 * time.Minute)
			s.scrape(replica, 0, gauges)
		}
	}
	permissions := func(s *harness, scope string, withdrawn bool) {
		s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: scope, Begin: withdrawn})
		call := s.call(replica, "watch", secrets, nil)
		s.oracle.Request(call)
		s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 403})
	}
	// again is blind twice, with one Event about the first time.
	again := func(gap time.Duration) func(s *harness) {
		return func(s *harness) {
			permissions(s, "secrets", true)
			s.wait(time.Minute)
			s.warn(cart, "changes are found late: secrets cannot be watched")
			s.wait(time.Minute)
			if gap == 0 {
				permissions(s, "", true)
			}
			s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: "secrets"})
			s.wait(gap)
			if gap > 0 {
				permissions(s, "", true)
			}
			s.wait(6 * time.Minute)
			s.scrape(replica, 0, map[string]float64{"pod_reloader_watch_healthy": 0})
		}
	}
	recovered := func(value float64) func(s *harness) {
		return func(s *harness) {
			blind(map[string]float64{"pod_reloader_watch_healthy": 0}, true)(s)
			s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: "secrets"})
			s.request(replica, "watch", secrets, nil)
			s.wait(10 * time.Minute)
			s.scrape(replica, 0, map[string]float64{"pod_reloader_watch_healthy": value})
		}
	}
	soon := func(kind string) func(s *harness) {
		return func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: "secrets", Begin: true})
			s.oracle.Request(s.call(replica, "watch", secrets, nil))
			s.warn(cart, "changes are found late: secrets cannot be watched")
			s.wait(160 * time.Second)
			s.scrape(replica, 0, map[string]float64{"pod_reloader_cache_synced": 1})
		}
	}
	runLaw(t, "visible", map[string]lawCase{
		"not shown soon":  {want: "visible/metric", because: "it is refused at once", happens: soon("permissions")},
		"not heard of":    {because: "a list has 70 seconds for its answer", happens: soon("watch-refused")},
		"shown":           {because: "a gauge and an Event say it", happens: blind(map[string]float64{"pod_reloader_watch_healthy": 0}, true)},
		"shown by caches": {because: "a gauge and an Event say it", happens: blind(map[string]float64{"pod_reloader_cache_synced": 0}, true)},
		"not shown":       {want: "visible/metric", because: "the gauge is 1", happens: blind(map[string]float64{"pod_reloader_cache_synced": 1}, true)},
		"no Event":        {want: "visible/event", because: "there is no Event", happens: blind(map[string]float64{"pod_reloader_watch_healthy": 0}, false)},
		"shown once":      {because: "it is blind all the time", happens: again(0)},
		"shown one time":  {want: "visible/event", because: "it may have seen meanwhile", happens: again(time.Minute)},
		"shown again":     {because: "all is well", happens: recovered(1)},
		"not back":        {want: "visible/not-back", because: "all is well", happens: recovered(0)},
		"answered": {because: "it is not blind", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: "secrets", Begin: true})
			s.request(replica, "watch", secrets, nil)
			s.wait(10 * time.Minute)
			s.scrape(replica, 0, map[string]float64{"pod_reloader_cache_synced": 1})
		}},
		"not for long": {because: "a minute and a half is allowed, and another minute for the Event", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "secrets", Begin: true})
			s.oracle.Request(s.call(replica, "watch", secrets, nil))
			s.wait(time.Minute)
			s.scrape(replica, 0, map[string]float64{"pod_reloader_cache_synced": 1})
		}},
		"no leader": {because: "standbys do nothing", happens: func(s *harness) {
			s.oracle.Leader("replica-1.1", s.now)
			blind(map[string]float64{"pod_reloader_cache_synced": 1}, false)(s)
		}},
	})
}

func TestBlindnessOfWorkloadsIsVisible(t *testing.T) {
	t.Parallel()
	deployments := world.Key{Resource: world.Deployments}
	blind := func(kind, scope, of string, value float64, note string) func(s *harness) {
		return blindTo(deployments, kind, scope, of, value, note)
	}
	const named = "deployments.apps (no answer): changes are found late"
	runLaw(t, "visible", map[string]lawCase{
		"shown":                        {because: "both name it", happens: blind("watch-refused", "deployments", "deployments.apps", 0, named)},
		"another one is 0":             {want: "visible/metric", because: "the gauge of the workloads is missing", happens: blind("watch-refused", "deployments", "secrets", 0, named)},
		"the metric is 1":              {want: "visible/metric", because: "it does not work", happens: blind("watch-refused", "deployments", "deployments.apps", 1, named)},
		"another one is named":         {want: "visible/event", because: "the permission is not there", happens: blind("permissions", "deployments", "deployments.apps", 0, "secrets: changes are found late")},
		"another kind":                 {because: "they are watched", happens: blind("watch-refused", "statefulsets", "secrets", 1, "")},
		"permissions on configuration": {because: "a fault without a scope takes these only", happens: blind("permissions", "", "secrets", 1, "")},
	})
}

// blindTo has a watch fail while a fault lasts, and the program say something of it.
func blindTo(watched world.Key, kind, scope, of string, value float64, note string) func(s *harness) {
	return func(s *harness) {
		s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope, Begin: true})
		s.oracle.Request(s.call(replica, "watch", watched, nil))
		s.wait(time.Minute)
		s.warn(cart, note)
		s.request(replica, "list", watched, nil)
		s.wait(5 * time.Minute)
		s.scrapeWatch(replica, of, value)
	}
}

func TestBlindnessOfWhatSomeInstallationsWatchIsVisible(t *testing.T) {
	t.Parallel()
	namespaces, resources := world.Key{Resource: world.Namespaces}, world.Key{Resource: world.Filters}
	const ofResources = "filters.proxy.example.com"
	runLaw(t, "visible", map[string]lawCase{
		"namespaces shown":               {because: "both name them", happens: blindTo(namespaces, "permissions", "namespaces", "namespaces", 0, "namespaces (refused)")},
		"namespaces not shown":           {want: "visible/metric", because: "labels decide about scope", happens: blindTo(namespaces, "watch-refused", "namespaces", "namespaces", 1, "namespaces (refused)")},
		"namespaces not named":           {want: "visible/event", because: "labels decide about scope", happens: blindTo(namespaces, "watch-refused", "namespaces", "namespaces", 0, "secrets in namespace shop (refused)")},
		"custom resources shown":         {because: "both name them", happens: blindTo(resources, "watch-refused", "filters", ofResources, 0, ofResources+" (refused)")},
		"custom resources not shown":     {want: "visible/metric", because: "workloads depend on them", happens: blindTo(resources, "permissions", "filters", "deployments.apps", 0, ofResources+" (refused)")},
		"custom resources not named":     {want: "visible/event", because: "workloads depend on them", happens: blindTo(resources, "permissions", "filters", ofResources, 0, "secrets (refused)")},
		"all of the configuration":       {want: "visible/metric", because: "a fault without a scope takes the permissions on custom resources, too", happens: blindTo(resources, "permissions", "", ofResources, 1, ofResources)},
		"all of the configuration, else": {because: "it is about configuration only", happens: blindTo(namespaces, "permissions", "", "namespaces", 1, "")},
	})
}

// Without the Secrets of workloads, the one with the digest keys is watched still.
func TestBlindnessOfTheDigestKeyIsVisible(t *testing.T) {
	t.Parallel()
	own := world.Key{Resource: world.Secrets, Namespace: "pod-reloader"}
	without := Options{Hidden: Hidden{Kinds: []string{"secrets"}}}
	const key = "secrets/pod-reloader-digest-key"
	listed := func(s *harness) {
		s.oracle.Fault(Fault{At: s.now, Kind: "permissions", Scope: "secrets", Begin: true})
		s.oracle.Request(s.call(replica, "list", own, nil))
		s.wait(6 * time.Minute)
		s.scrapeWatch(replica, key, 1)
	}
	runLaw(t, "visible", map[string]lawCase{
		"shown":              {options: without, because: "both name it", happens: blindTo(own, "permissions", "secrets", key, 0, key+" in namespace pod-reloader (refused)")},
		"not shown":          {options: without, want: "visible/metric", because: "keys are not seen", happens: blindTo(own, "permissions", "secrets", key, 1, key+" (refused)")},
		"not named":          {options: without, want: "visible/event", because: "keys are not seen", happens: blindTo(own, "watch-refused", "secrets", key, 0, "configmaps (refused)")},
		"one of the watches": {want: "visible/metric", because: "other Secrets are watched, too", happens: blindTo(own, "permissions", "secrets", key, 0, "secrets (refused)")},
		"manifests of Jobs":  {options: without, because: "they are not watched", happens: listed},
	})
}

func TestWhyNamesWhatIsNotWatched(t *testing.T) {
	t.Parallel()
	asks := func(scope, printed string, ends bool) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: scope, Begin: true})
			s.oracle.Request(s.call(replica, "watch", world.Key{Resource: world.ConfigMaps}, nil))
			s.oracle.Request(s.call(replica, "watch", world.Key{Resource: world.Secrets}, nil))
			s.wait(6 * time.Minute)
			q, ok := s.oracle.AskWhy(s.now)
			require.Equal(s.t, scope == "configmaps", ok, "only what a workload depends on matters")
			if ends {
				s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: scope})
			}
			if ok {
				require.Equal(s.t, cart.Name, q.Workload.Name)
				s.oracle.Why(q, printed, s.now)
			}
		}
	}
	runLaw(t, "visible", map[string]lawCase{
		"named":             {because: "it says so", happens: asks("configmaps", "a reload is due\n\nA watch of pod-reloader fails: configmaps are refused\n", false)},
		"silent":            {want: "visible/why", because: "nothing says why the reload is late", happens: asks("configmaps", "nothing is due\n", false)},
		"another one named": {want: "visible/why", because: "it is another one", happens: asks("configmaps", "A watch of pod-reloader fails: secrets are refused\n", false)},
		"named elsewhere":   {want: "visible/why", because: "the list is no report", happens: asks("configmaps", "pod-reloader.cs.sap.com/configmaps is empty\n", false)},
		"over meanwhile":    {because: "it is watched again", happens: asks("configmaps", "nothing is due\n", true)},
		"of no workload":    {because: "nothing lists a Secret", happens: asks("secrets", "", false)},
	})
}
