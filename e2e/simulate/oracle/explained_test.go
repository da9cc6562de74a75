package oracle

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// uncounted is a reload with an Event that no replica counts, and an outage some time later.
func uncounted(kind, scope string, later time.Duration) func(s *harness) {
	return func(s *harness) {
		s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.1"})
		s.beginWithReload()
		s.wait(later)
		s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope, Begin: true})
		s.wait(time.Second)
		s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope})
		if kind == "down" {
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replicaOf(scope) + ".2"})
		}
		s.wait(5 * time.Minute)
		for client := range s.oracle.faults.up {
			s.scrape(client, 0, nil)
		}
		s.quiet()
	}
}

func TestExplainedByAnnotations(t *testing.T) {
	t.Parallel()
	runLaw(t, "explained", map[string]lawCase{
		"no annotation": {want: "explained/annotation-missing", because: "nothing says why", happens: func(s *harness) {
			s.beginWithChange()
			s.stamp(cart, "b", "")
		}},
		"broken annotation": {want: "explained/annotation-broken", because: "it is no JSON", happens: func(s *harness) {
			s.beginWithChange()
			s.stamp(cart, "b", "today")
		}},
		"wrong time": {want: "explained/time", because: "it was an hour later", happens: func(s *harness) {
			s.beginWithChange()
			s.stamp(cart, "b", strings.Replace(s.lastReloadOfApp(), s.now.Format("T15"), s.now.Add(-time.Hour).Format("T15"), 1))
		}},
		"wrong clock": {because: "the clock of the replica is wrong", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "clock", Scope: "replica-0", Begin: true})
			s.beginWithChange()
			s.stamp(cart, "b", fmt.Sprintf(`{"time":%q}`, s.now.Add(-time.Hour).Format(time.RFC3339)))
		}},
		"wrong cause": {want: "explained/cause", because: "extra has not changed", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified", "configmap/extra modified")
		}},
		"one of the causes": {because: "both have changed", happens: func(s *harness) {
			s.beginWithChangesOfBoth()
			s.reload(cart, "b", "configmap/app modified", "configmap/extra modified")
			s.rollout(cart)
		}},
		"none of the causes": {want: "explained/cause-missing", because: "app has changed", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b")
		}},
		"one of two causes": {want: "explained/cause-missing", because: "extra has changed, too", happens: func(s *harness) {
			s.beginWithChangesOfBoth()
			s.reload(cart, "b", "configmap/app modified")
		}},
		"one of two causes, while some replicas do not look at the other one": {
			because: "the replica that reloads cannot name it", happens: func(s *harness) {
				s.beginWithChangesOfBoth()
				s.oracle.Rescope(s.now, Scope{InScope: everything, Hidden: Hidden{Kinds: []string{configMapList}}})
				s.reload(cart, "b", "configmap/app modified")
			},
		},
		"one of two causes, while some replicas look at fewer kinds": {
			want: "explained/cause-missing", because: "ConfigMaps are not of them", happens: func(s *harness) {
				s.beginWithChangesOfBoth()
				s.oracle.Rescope(s.now, Scope{InScope: everything, Hidden: Hidden{Kinds: []string{secretList}}})
				s.reload(cart, "b", "configmap/app modified")
			},
		},
		"one of two causes, the other one is counted": {because: "there was no space for its name", happens: func(s *harness) {
			s.beginWithChangesOfBoth()
			s.stamp(cart, "b", strings.Replace(s.lastReloadOfApp(), "]", `],"more":1`, 1))
		}},
		"any object": {because: "only the hash was known", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "* modified")
		}},
		"none of the causes, changed during the request": {because: "it may have been read before", happens: func(s *harness) {
			s.beginWithChange()
			call := s.call(replica, "patch", cart, []byte(`{}`))
			s.oracle.Request(call)
			s.set(configMap("extra"), "2")
			s.change(call, cart, s.objects[cart], edited(stamped(s.objects[cart], "b"), func(o world.Object) {
				setAnnotation(o, prefix+reloadAnnotation, s.lastReloadOfApp())
			}))
		}},
		"wrong type": {want: "explained/cause-type", because: "app has been there all the time", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app created")
		}},
		"type of a deletion": {because: "extra is gone", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("extra"))
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/extra deleted")
		}},
		"type of a creation": {want: "explained/cause-type", because: "it was never there", happens: func(s *harness) {
			s.beginWithNew("new")
			s.reload(cart, "b", "configmap/new modified")
		}},
		"type of what comes back": {because: "the earlier content may be recorded", happens: func(s *harness) {
			s.set(configMap("new"), "1")
			s.remove(user, configMap("new"))
			s.beginWithNew("new")
			s.reload(cart, "b", "configmap/new modified")
		}},
		"reported though no annotation does, after one that does": {because: "two reloads have two Events", happens: func(s *harness) {
			reloadUnannotated(s)
			s.scrape(replica, 2, nil)
			s.quiet()
		}},
		"reported twice where no annotation does": {want: "explained/event-doubled", because: "two reloads have three Events", happens: func(s *harness) {
			reloadUnannotated(s)
			s.reportReload(cart)
			s.quiet()
		}},
	})
}

// beginWithNew is begin with a ConfigMap in the lists that is created a second before what follows.
func (s *harness) beginWithNew(name string) {
	s.set(configMap("app"), "1")
	s.sends("create", cart, edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app,"+name) }), "a")
	s.wait(100 * time.Millisecond)
	s.rollout(cart)
	s.wait(time.Minute)
	s.set(configMap(name), "2")
	s.wait(time.Second)
}

func TestExplainedByEvents(t *testing.T) {
	t.Parallel()
	runLaw(t, "explained", map[string]lawCase{
		"reported": {because: "one Event, one count", happens: func(s *harness) {
			s.beginWithReload()
			s.wait(5 * time.Minute)
			s.scrape(replica, 1, nil)
			s.quiet()
		}},
		"not reported": {want: "explained/event-missing", because: "there is no Event", happens: func(s *harness) {
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.quiet()
		}},
		"reported twice": {want: "explained/event-doubled", because: "there are two Events", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
			s.reportReload(cart)
			s.rollout(cart)
			s.quiet()
		}},
		"written again under the same name": {because: "it is one Event", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
			s.eventWith(cart, "reload-1", "Normal", "Reloaded", "pod template updated: configmap/app modified")
			s.rollout(cart)
			s.quiet()
		}},
		"series": {because: "one Event counts two", happens: func(s *harness) {
			s.beginWithReload()
			s.set(configMap("app"), "3")
			s.wait(10 * time.Second)
			s.reloadSilently(cart, "c", "configmap/app modified")
			s.rollout(cart)
			event := world.Key{Resource: world.Events, Namespace: "shop", Name: "reload-1"}
			s.write(replica, "patch", event, edited(s.objects[event], func(o world.Object) { o["series"] = world.Object{"count": 2} }))
			s.quiet()
		}},
		"name taken by another Event": {because: "names made of the time collide in fake time", happens: func(s *harness) {
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.event(cart, "now", "Warning", "ConfigMissing")
			body := `{"metadata":{"name":"now"},"reason":"Reloaded","note":"pod template updated: configmap/app modified",` +
				`"regarding":{"kind":"Deployment","namespace":"shop","name":"cart","uid":"uid-cart"}}`
			call := s.call(replica, "create", world.Key{Resource: world.Events, Namespace: "shop"}, []byte(body))
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: http.StatusConflict})
			s.quiet()
		}},
		"written again by another leader": {because: "the name is that of the reload", happens: func(s *harness) {
			s.beginWithReload()
			body := `{"metadata":{"name":"reload-1"},"reason":"Reloaded","note":"other words",` +
				`"regarding":{"kind":"Deployment","namespace":"shop","name":"cart","uid":"uid-cart","resourceVersion":"7"}}`
			call := s.call("replica-1.1", "create", world.Key{Resource: world.Events, Namespace: "shop"}, []byte(body))
			s.oracle.Request(call)
			s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: http.StatusConflict})
			s.quiet()
		}},
		"excluded soon after": {because: "the program lets it alone", happens: func(s *harness) {
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.edit(cart, excludedBy("ignored"))
			s.quiet()
		}},
		"excluded for a while soon after": {because: "the program let it alone", happens: func(s *harness) {
			s.excludedAfterReload()
			s.quiet()
		}},
		"excluded for a while, reported after another reload": {
			because: "the later one has its Event",
			happens: func(s *harness) {
				s.excludedAfterReload()
				s.set(configMap("app"), "3")
				s.wait(10 * time.Second)
				s.reload(cart, "c", "configmap/app modified")
				s.rollout(cart)
				s.quiet()
			},
		},
		"excluded for a while, not reported after another reload": {
			want: "explained/event-missing", because: "the program looked after it again",
			happens: func(s *harness) {
				s.excludedAfterReload()
				s.set(configMap("app"), "3")
				s.wait(10 * time.Second)
				s.reloadSilently(cart, "c", "configmap/app modified")
				s.rollout(cart)
				s.quiet()
			},
		},
		"edited by hand soon after": {because: "the annotation that reports it is gone", happens: func(s *harness) {
			s.editedByHandAfterReload()
			s.quiet()
		}},
		"edited by hand before another reload": {
			want: "explained/event-missing/after-fault", because: "the later one has its annotation",
			happens: func(s *harness) {
				s.editedByHandAfterReload()
				s.set(configMap("app"), "3")
				s.wait(10 * time.Second)
				s.reloadSilently(cart, "c", "configmap/app modified")
				s.rollout(cart)
				s.quiet()
			},
		},
		"deleted soon after": {because: "there is nothing to report on", happens: func(s *harness) {
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.remove(user, cart)
			s.quiet()
		}},
		"a new leader reports the last ones": {because: "the annotation names no more", happens: func(s *harness) {
			reloadUnreported(s, 8)
			s.oracle.Leader("replica-1.1", s.now)
			for range 5 {
				s.reportReload(cart)
			}
			s.quiet()
		}},
		"a new leader does not report the last ones": {want: "explained/event-missing/after-fault", because: "the annotation names five", happens: func(s *harness) {
			reloadUnreported(s, 8)
			s.oracle.Leader("replica-1.1", s.now)
			for range 4 {
				s.reportReload(cart)
			}
			s.quiet()
		}},
		"the leader reports the last ones": {want: "explained/event-missing/after-fault", because: "it has made all of them", happens: func(s *harness) {
			reloadUnreported(s, 8)
			for range 5 {
				s.reportReload(cart)
			}
			s.quiet()
		}},
		"more reloads than Events can wait": {because: "the oldest were dropped", happens: func(s *harness) {
			reloadUnreported(s, mostWaiting+8)
			for range mostWaiting {
				s.reportReload(cart)
			}
			s.quiet()
		}},
		"more reloads than Events can wait, and more are missing": {want: "explained/event-missing/after-fault", because: "only those beyond the bound are dropped", happens: func(s *harness) {
			reloadUnreported(s, mostWaiting+8)
			for range mostWaiting - 1 {
				s.reportReload(cart)
			}
			s.quiet()
		}},
	})
}

// excludedAfterReload is a reload without an Event, after which the workload is excluded for a minute.
func (s *harness) excludedAfterReload() {
	s.beginWithChange()
	s.reloadSilently(cart, "b", "configmap/app modified")
	s.rollout(cart)
	s.edit(cart, excludedBy("ignored"))
	s.wait(time.Minute)
	s.edit(cart, func(o world.Object) { delete(world.Section(o, "metadata"), "labels") })
	s.wait(time.Minute)
}

// editedByHandAfterReload is a reload without an Event whose annotation a user takes away while the webhook does not work.
func (s *harness) editedByHandAfterReload() {
	s.beginWithChange()
	s.reloadSilently(cart, "b", "configmap/app modified")
	s.rollout(cart)
	s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
	s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+reloadAnnotation, "") })
	s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
	s.wait(5 * time.Minute)
}

// reloadUnreported is a number of reloads while Events are refused.
func reloadUnreported(s *harness, n int) {
	s.begin()
	s.oracle.Leader(replica, s.now)
	s.oracle.Fault(Fault{At: s.now, Kind: "api-errors", Begin: true})
	for i := range n {
		s.set(configMap("app"), fmt.Sprint(i+2))
		s.wait(10 * time.Second)
		s.reloadSilently(cart, fmt.Sprint("b", i), "configmap/app modified")
		s.rollout(cart)
	}
	s.oracle.Fault(Fault{At: s.now, Kind: "api-errors"})
	s.wait(5 * time.Minute)
}

// reloadUnannotated is a release that brings a change, then a reload by the program for whose annotation a user has left no space: each has
// its Event.
func reloadUnannotated(s *harness) {
	s.beginWithChange()
	sent := edited(s.objects[cart], func(o world.Object) {
		world.Objects(o, "spec", "template", "spec", "containers")[0]["image"] = "two"
	})
	call := s.call(user, "update", cart, nil)
	s.oracle.Request(call)
	s.change(call, cart, sent, edited(stamped(sent, "b"), func(o world.Object) { setAnnotation(o, prefix+"last-reload", `{"cause":"release"}`) }))
	s.rollout(cart)
	s.reportReload(cart)
	s.edit(cart, func(o world.Object) {
		setAnnotation(o, prefix+"last-reload", "")
		setAnnotation(o, "example.com/bulk", strings.Repeat("x", annotationLimit-storyNeeds/2))
	})
	s.set(configMap("app"), "3")
	s.wait(10 * time.Second)
	s.stamp(cart, "c", "")
	s.reportReload(cart)
	s.rollout(cart)
	s.wait(5 * time.Minute)
}

func TestReloadsOfUsersMayBeReported(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{})
	s.begin()
	sent := edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app") })
	call := s.call(user, "update", cart, nil)
	s.oracle.Request(call)
	s.change(call, cart, sent, edited(stamped(sent, "b"), func(o world.Object) { setAnnotation(o, prefix+"last-reload", `{"cause":"list-edit"}`) }))
	s.rollout(cart)
	s.reportReload(cart)
	s.quiet()
	assert.Empty(t, s.oracle.Violations())
}
