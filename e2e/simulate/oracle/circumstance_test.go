package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestLateReloadNamesTheCircumstances(t *testing.T) {
	t.Parallel()
	writes := func(n int, every time.Duration) func(*harness) {
		return func(s *harness) {
			s.begin()
			for i := range n {
				s.set(configMap("app"), string(rune('A'+i)))
				s.wait(every)
			}
			s.tick()
		}
	}
	runLaw(t, "prompt", map[string]lawCase{
		"written faster than requests are answered": {
			want: "prompt/modified/hammered", because: "settle-max bounds the wait", happens: writes(300, 100*time.Millisecond),
		},
		"written all the time": {
			want: "prompt/modified/constant-change", because: "settle-max bounds the wait", happens: writes(60, 400*time.Millisecond),
		},
		"written now and then": {want: "prompt/modified", because: "the settle time is over", happens: writes(8, 3*time.Second)},
		"after a denial": {want: "prompt/modified/blind", because: "the backoff is over", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("permissions", "configmaps", 30*time.Second)
			s.later(8 * time.Minute)
		}},
		"key lost": {want: "prompt/modified/key-lost", because: "the workload was there for long enough to be adopted", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("two")
			s.later(10 * time.Minute)
			s.set(configMap("app"), "2")
			s.later(time.Minute)
		}},
		"key lost while a reload under it is on its way": {because: "its stamp is adopted, too", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			reload := s.call(replica, "patch", cart, []byte(`{"metadata":{"annotations":{"`+prefix+`config-hash":"x"}}}`))
			s.oracle.Request(reload)
			s.wait(time.Second)
			s.keys("two")
			s.wait(time.Second)
			last := fmt.Sprintf(`{"time":%q,"hash":"b","changes":[{"ref":"configmap/app","type":"modified"}]}`, s.now.Format(time.RFC3339Nano))
			next := edited(stamped(s.objects[cart], "b"), func(o world.Object) { setAnnotation(o, prefix+"last-reload", last) })
			s.change(reload, cart, s.objects[cart], next)
			s.oracle.Reply(world.Reply{Call: reload, At: s.now, Status: 200})
			s.wait(time.Second)
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "c") }))
			s.later(time.Minute)
		}},
		"key lost, and the webhook does not accept what the program writes": {because: "it is not adopted yet", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("two")
			s.wait(time.Second)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { world.Section(o, "metadata")["managedFields"] = []any{"x"} }))
			s.wait(time.Second)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "x") }))
			s.later(time.Minute)
		}},
		"key lost, and the pause ends before the adoption": {because: "the end of a pause compares nothing", happens: func(s *harness) {
			s.loseKeyInPause()
			s.resumes()
			s.wait(time.Second)
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.record("v1:two")
			s.later(time.Minute)
		}},
		"key lost, and the pause ends after the adoption": {want: "prompt/modified/key-lost", because: "it is adopted", happens: func(s *harness) {
			s.loseKeyInPause()
			s.record("v1:two")
			s.resumes()
			s.wait(time.Second)
			s.set(configMap("app"), "3")
			s.later(time.Minute)
		}},
		"managed annotations of a lost key come back, and the program says so": {because: "two installations must not fight", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("two")
			s.wait(5 * time.Minute)
			s.sends("update", cart, manifest(cart, "two"), "b")
			s.sends("update", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.event(cart, "blind", "Warning", "ForeignDigestKey")
			s.wait(10 * time.Minute)
			s.set(configMap("app"), "2")
			s.later(time.Minute)
		}},
		"a record of a lost key comes back without a stamp, and the program says so": {options: Options{Direct: true}, because: "two installations must not fight", happens: func(s *harness) {
			s.recordLost()
			s.undoTo("v1:one")
			s.event(cart, "blind", "Warning", "ForeignDigestKey")
			s.changeLate()
		}},
		"the same, and the program says nothing": {options: Options{Direct: true}, want: "prompt/modified", because: "no one would know", happens: func(s *harness) {
			s.recordLost()
			s.undoTo("v1:one")
			s.changeLate()
		}},
		"the same, and the program records anew": {options: Options{Direct: true}, want: "prompt/modified", because: "it knows what the pods run with", happens: func(s *harness) {
			s.recordLost()
			s.undoTo("v1:one")
			s.event(cart, "blind", "Warning", "ForeignDigestKey")
			s.record("v1:two")
			s.changeLate()
		}},
		"a record under the newer key comes back": {options: Options{Direct: true}, want: "prompt/modified", because: "it can be read", happens: func(s *harness) {
			s.recordLost()
			s.record("v1:three")
			s.undoTo("v1:two")
			s.event(cart, "other", "Warning", "InvalidAnnotation")
			s.changeLate()
		}},
	})
}

// recordLost has the program record what the pods run with without a stamp, under a key that is lost, and again under the next one.
func (s *harness) recordLost() {
	s.begin()
	s.keys("one")
	s.record("v1:one")
	s.wait(time.Minute)
	s.keys("two")
	s.record("v1:two")
	s.wait(time.Minute)
}

// loseKeyInPause reloads cart with a pause of a minute, and loses the digest key a second before its end.
func (s *harness) loseKeyInPause() {
	s.keys("one")
	s.asksForPauses()
	s.pauses(true)
	s.wait(59 * time.Second)
	s.keys("two")
	s.wait(time.Second)
}

// record is the program's note of what the pods run with.
func (s *harness) record(value string) {
	next := edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, value) })
	s.write(replica, "patch", cart, next)
}

// undoTo is a release that brings a record back.
func (s *harness) undoTo(value string) {
	s.edit(cart, func(o world.Object) {
		setAnnotation(o, prefix+recordAnnotation, value)
		setAnnotation(world.Section(o, "spec", "template"), "example.com/version", "2")
	})
	s.wait(time.Second)
}

// changeLate is a change long after all that was to be found out.
func (s *harness) changeLate() {
	s.later(10 * time.Minute)
	s.set(configMap("app"), "2")
	s.later(time.Minute)
}

func TestMissingAndDoubledEventsNameTheCircumstances(t *testing.T) {
	t.Parallel()
	runLaw(t, "explained", map[string]lawCase{
		"not reported after a fault": {want: "explained/event-missing/after-fault", because: "there is no Event", happens: func(s *harness) {
			s.fault("api-errors", "", time.Second)
			s.wait(5 * time.Minute)
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.quiet()
		}},
		"reloaded again soon": {want: "explained/event-missing/overtaken", because: "there is one Event for two", happens: func(s *harness) {
			s.beginWithChange()
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.set(configMap("app"), "3")
			s.wait(6 * time.Second)
			s.reload(cart, "c", "configmap/app modified")
			s.rollout(cart)
			s.quiet()
		}},
		"reported twice after a clock was wrong": {want: "explained/event-doubled/clock", because: "it was reported before", happens: func(s *harness) {
			s.fault("clock", "replica-0", time.Second)
			s.wait(20 * time.Minute)
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
			s.reportReload(cart)
			s.rollout(cart)
			s.quiet()
		}},
		"copied from a workload that a clock that was ahead let be reloaded twice": {happens: func(s *harness) {
			s.fault("clock", "replica-0", time.Second)
			ahead := s.now.Add(time.Hour).UTC().Format(time.RFC3339)
			copied := edited(stamped(manifest(cart, "app:1"), "a"), func(o world.Object) {
				setAnnotation(o, prefix+reloadAnnotation, `{"time":"`+ahead+`","before":[{"time":"`+ahead+`"}]}`)
			})
			s.remove("user", cart)
			s.wait(time.Second)
			s.write("user", "create", cart, copied)
			s.reportReload(cart)
			s.reportReload(cart)
			s.quiet()
		}},
		"an old annotation came back": {want: "explained/event-doubled/annotations-back", because: "it was reported before", happens: func(s *harness) {
			s.beginWithChange()
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
			before := world.Text(world.Annotations(s.objects[cart]), prefix+reloadAnnotation)
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+reloadAnnotation, "") })
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+reloadAnnotation, before) })
			s.reportReload(cart)
			s.quiet()
		}},
	})
}

func TestLeader(t *testing.T) {
	t.Parallel()
	const other = "replica-1.1"
	write := func(s *harness) { s.request(other, "patch", cart, []byte(`{"metadata":{"labels":{}}}`)) }
	takeOver := func(s *harness) {
		s.write(other, "update", world.Key{Resource: world.Leases, Namespace: "pod-reloader", Name: "lease"},
			world.Object{"spec": world.Object{"holderIdentity": other}})
	}
	runLaw(t, "leader", map[string]lawCase{
		"the leader writes":      {because: "it holds the lease", happens: func(s *harness) { s.begin(); takeOver(s); s.wait(2 * time.Minute); write(s) }},
		"another replica writes": {want: "leader/patch", because: "it does not hold the lease", happens: func(s *harness) { s.begin(); write(s) }},
		"the former leader writes": {because: "the request was under way", happens: func(s *harness) {
			s.begin()
			takeOver(s)
			s.request(replica, "patch", cart, []byte(`{"metadata":{"labels":{}}}`))
		}},
		"another replica writes after a fault": {because: "the lease may have run out", happens: func(s *harness) {
			s.begin()
			s.fault("api-away", "replica-0", time.Second)
			write(s)
		}},
	})
}

func TestKeptByTheWebhook(t *testing.T) {
	t.Parallel()
	held := func(s *harness, do func()) {
		s.oracle.Fault(Fault{At: s.now, Kind: "watch-held", Scope: "configmaps", Begin: true})
		do()
		s.wait(time.Second)
		s.oracle.Fault(Fault{At: s.now, Kind: "watch-held", Scope: "configmaps"})
		s.wait(2 * time.Minute)
	}
	runLaw(t, "kept", map[string]lawCase{
		"PUT while a required object is missing": {
			want: "kept/missing-required/update", because: "the pods could not start", happens: func(s *harness) {
				s.begin()
				s.remove(user, configMap("app"))
				s.wait(time.Second)
				s.sends("update", cart, manifest(cart, "one"), "b")
			},
		},
		"release while a required object is missing": {because: "the user asked for it", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Second)
			s.sends("update", cart, manifest(cart, "two"), "b")
		}},
		"release while watches are held, restarted again": {
			want: "kept/program", because: "the webhook reads what is live", happens: func(s *harness) {
				s.begin()
				held(s, func() {
					s.set(configMap("app"), "2")
					s.sends("update", cart, manifest(cart, "two"), "b")
					s.rollout(cart)
				})
				s.reload(cart, "c")
				s.rollout(cart)
			},
		},
		"release while the API server is away, restarted again": {because: "the webhook could not read", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "api-away", Begin: true})
			s.set(configMap("app"), "2")
			s.sends("update", cart, manifest(cart, "two"), "a")
			s.rollout(cart)
			s.oracle.Fault(Fault{At: s.now, Kind: "api-away"})
			s.wait(time.Second)
			s.reload(cart, "c", "configmap/app modified")
			s.rollout(cart)
		}},
	})
}

func TestHotLoop(t *testing.T) {
	t.Parallel()
	attempts := func(n int, every time.Duration) func(*harness) {
		return func(s *harness) {
			s.begin()
			for range n {
				s.request(replica, "patch", cart, []byte(`{}`))
				s.wait(every)
			}
		}
	}
	aboutJob := func(s *harness) {
		for range 70 {
			s.request(replica, "patch", world.Key{Resource: world.Jobs, Namespace: "shop", Name: "import"}, []byte(`{}`))
			s.wait(10 * time.Millisecond)
		}
	}
	runLaw(t, "hot-loop", map[string]lawCase{
		"no pause": {want: "hot-loop/patch", because: "attempts are to be repeated ever more rarely", happens: attempts(70, 10*time.Millisecond)},
		"no pause after a clock was ahead": {because: "what it has noted lies in the future", happens: func(s *harness) {
			s.fault("clock", "replica-0", time.Second)
			attempts(70, 10*time.Millisecond)(s)
		}},
		"no pause long after a clock was ahead": {want: "hot-loop/patch", because: "all of that is past", happens: func(s *harness) {
			s.fault("clock", "replica-0", time.Second)
			s.wait(20 * time.Minute)
			attempts(70, 10*time.Millisecond)(s)
		}},
		"pauses":               {because: "it waits", happens: attempts(200, 200*time.Millisecond)},
		"no pause about a Job": {want: "hot-loop/patch", because: "attempts are to be repeated ever more rarely", happens: aboutJob},
		"no pause about a Job, no refractory time": {because: "each change may be a reload of a suspended Job", happens: func(s *harness) {
			s.oracle.Timing(replica, time.Second, 5*time.Second, 0)
			aboutJob(s)
		}},
		"open gates": {because: "each change is a reload", happens: func(s *harness) {
			s.begin()
			for i := range 70 {
				s.set(configMap("app"), string(rune('A'+i)))
				s.request(replica, "patch", cart, []byte(`{}`))
				s.wait(10 * time.Millisecond)
			}
		}},
		"a burst": {because: "the state moves on", happens: attempts(40, 10*time.Millisecond)},
	})
}
