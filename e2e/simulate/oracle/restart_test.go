package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// asksRestart is the manifest of a Rollout that asks for restarts without a new template.
func asksRestart(image string) world.Object {
	return edited(manifest(pay, image), func(o world.Object) { setAnnotation(o, rolloutStrategy, "restart") })
}

// beginRestartable creates the Rollout and what it lists.
func (s *harness) beginRestartable() {
	s.set(configMap("app"), "1")
	s.set(configMap("extra"), "1")
	s.sends("create", pay, asksRestart("one"), "a")
	s.wait(100 * time.Millisecond)
	s.rollout(pay)
	s.wait(time.Minute)
}

// changesApp gives app a content, which has settled then.
func (s *harness) changesApp(value string) {
	s.set(configMap("app"), value)
	s.wait(time.Second)
}

// nextSecond is the time of a restart that is asked for now.
func (s *harness) nextSecond() time.Time { return s.now.Truncate(time.Second).Add(time.Second) }

// restartSilently is a restart by the program without an Event.
func (s *harness) restartSilently(at time.Time, lastReload string) {
	call := s.call(replica, "patch", pay, []byte(`{"spec":{"restartAt":"x"}}`))
	s.oracle.Request(call)
	s.change(call, pay, s.objects[pay], edited(s.objects[pay], func(o world.Object) {
		setRestartAt(o, at)
		setAnnotation(o, prefix+reloadAnnotation, lastReload)
	}))
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

// restartPay is a restart by the program because of app, with its Event, which replaces the pods some seconds later.
func (s *harness) restartPay() {
	s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
	s.reportReload(pay)
	s.wait(3 * time.Second)
	s.rollout(pay)
}

// endsRestart is a restart of pods which have not been replaced when a user sets another time.
func (s *harness) endsRestart(at string) {
	s.beginRestartable()
	s.changesApp("2")
	s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
	s.reportReload(pay)
	s.edit(pay, func(o world.Object) { world.Section(o, "spec")["restartAt"] = at })
}

func setRestartAt(o world.Object, at time.Time) {
	world.Section(o, "spec")["restartAt"] = at.Format(time.RFC3339)
}

func TestKeptWithoutATemplate(t *testing.T) {
	t.Parallel()
	byTemplate := func(s *harness) {
		s.beginRestartable()
		s.changesApp("2")
		s.reload(pay, "b", "configmap/app modified")
		s.rollout(pay)
	}
	// halfRead are two installations of which the second one, with a replica, reads no annotations of Reloader.
	halfRead := func(second string) Options {
		return Options{CustomKind: true, HalfRead: true, Second: func(client string) bool { return client == second }}
	}
	runLaw(t, "kept", map[string]lawCase{
		"after a change": {options: customByFlags, because: "it was due", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			s.wait(time.Minute)
			s.changesApp("1")
			s.restartPay()
		}},
		"without a change": {options: customByFlags, want: "kept/program", because: "it was not due", happens: func(s *harness) {
			s.beginRestartable()
			s.restartSilently(s.nextSecond(), `{"time":"`+s.now.Format(time.RFC3339Nano)+`"}`)
			s.wait(3 * time.Second)
			s.rollout(pay)
		}},
		"twice for one change": {options: customByFlags, want: "kept/program", because: "the pods have it all", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			s.wait(time.Minute)
			s.restartSilently(s.nextSecond(), `{"time":"`+s.now.Format(time.RFC3339Nano)+`"}`)
			s.wait(3 * time.Second)
			s.rollout(pay)
		}},
		"changed back before the pods were replaced": {options: customByFlags, because: "nothing shows that they were not", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
			s.reportReload(pay)
			s.wait(10 * time.Second)
			s.changesApp("1")
			s.restartPay()
		}},
		"by a user": {options: customByFlags, because: "the program has no part in it", happens: func(s *harness) {
			s.beginRestartable()
			s.edit(pay, func(o world.Object) { setRestartAt(o, s.now) })
			s.rollout(pay)
		}},
		"by a template, since a user has ended it": {options: customByFlags, because: "pods may be left", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			ended := edited(s.objects[pay], func(o world.Object) { delete(world.Section(o, "spec"), "restartAt") })
			s.sends("update", pay, ended, "b")
			s.rollout(pay)
		}},
		"by a template, since a user has put it off": {options: customByFlags, because: "pods are left until then", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			s.sends("update", pay, edited(s.objects[pay], func(o world.Object) { setRestartAt(o, s.now.Add(time.Hour)) }), "b")
			s.rollout(pay)
		}},
		"of a pod that is younger than the request": {options: customByFlags, because: "creation times have no fractions", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
			s.reportReload(pay)
			s.rollout(pay)
			s.wait(time.Second)
			s.rollout(pay)
		}},
		"with a template": {options: customByFlags, want: "kept/restart-with-template", because: "the template stays", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.objects[pay] = stamped(s.objects[pay], "b")
			s.restartPay()
		}},
		"by a template": {options: customByFlags, want: "kept/template-of-restart", because: "it asks for a restart", happens: byTemplate},
		"by a template, of an installation that does not read the annotation": {options: halfRead(replica), because: "it knows of no restart", happens: byTemplate},
		"by a template, of the installation that reads the annotation": {
			options: halfRead(second), want: "kept/template-of-restart", because: "the other one alone does not read it", happens: byTemplate,
		},
		"by a template, just asked": {options: customByFlags, because: "the program may not know of it", happens: func(s *harness) {
			s.beginRestartable()
			s.edit(pay, func(o world.Object) { setAnnotation(o, rolloutStrategy, "") })
			s.wait(time.Minute)
			s.changesApp("2")
			s.edit(pay, func(o world.Object) { setAnnotation(o, rolloutStrategy, "restart") })
			s.reload(pay, "b", "configmap/app modified")
			s.rollout(pay)
		}},
	})
}

func TestCurrentWithoutATemplate(t *testing.T) {
	t.Parallel()
	// asked makes a restart whose time is some time from now, and that replaces no pods.
	asked := func(in time.Duration) func(s *harness) {
		return func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartSilently(s.now.Add(in), s.lastReloadOfApp())
			s.reportReload(pay)
			s.quiet()
		}
	}
	// withClock does it while the clock of the leader is wrong.
	withClock := func(happens func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "clock", Scope: "replica-0", Begin: true})
			happens(s)
		}
	}
	runLaw(t, "current", map[string]lawCase{
		"restarted": {options: customByFlags, because: "all is done", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			s.quiet()
		}},
		"not replaced": {options: customByFlags, want: "current/rollout", because: "nothing keeps the pods", happens: asked(time.Second)},
		"not replaced, by a clock that is behind": {
			options: customByFlags, because: "it is a documented limit", happens: withClock(asked(-10 * time.Minute)),
		},
		"not replaced, by a clock that is ahead": {options: customByFlags, because: "it will be", happens: withClock(asked(time.Hour))},
		"not replaced, although a clock is wrong": {
			options: customByFlags, want: "current/rollout", because: "the pods are older than the restart", happens: withClock(asked(time.Second)),
		},
		"ended by a user, unseen": {options: customByFlags, because: "nothing shows that pods are left", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.endsRestart("")
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
			s.quiet()
		}},
		"ended by a user": {options: customByFlags, want: "current/rollout", because: "a template can replace the pods", happens: func(s *harness) {
			s.endsRestart("")
			s.quiet()
		}},
		"put off by a user": {options: customByFlags, want: "current/rollout", because: "a template can replace the pods", happens: func(s *harness) {
			s.endsRestart(s.now.Add(time.Hour).Format(time.RFC3339))
			s.quiet()
		}},
		"put off by a user, unseen": {options: customByFlags, because: "nothing shows that pods are left", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.endsRestart(s.now.Add(time.Hour).Format(time.RFC3339))
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
			s.quiet()
		}},
		"changed since": {options: customByFlags, want: "current/modified", because: "the restart was before", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			s.wait(time.Minute)
			s.oracle.workloads[idOf(pay)].due.reported = true // another law judges that
			s.changesApp("3")
			s.oracle.workloads[idOf(pay)].due.reported = true
			s.quiet()
		}},
	})
}

func TestPromptWithoutATemplate(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"restarted": {options: customByFlags, because: "it is what was asked for", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartPay()
			s.later(time.Minute)
		}},
		"not restarted": {options: customByFlags, want: "prompt/modified", because: "it is due", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.later(time.Minute)
		}},
		"restarted by a user": {options: customByFlags, want: "prompt/modified", because: "the program does not know of it", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.edit(pay, func(o world.Object) { setRestartAt(o, s.now) })
			s.later(time.Minute)
		}},
	})
}

func TestExplainedWithoutATemplate(t *testing.T) {
	t.Parallel()
	runLaw(t, "explained", map[string]lawCase{
		"no annotation": {options: customByFlags, want: "explained/annotation-missing", because: "nothing says why", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartSilently(s.nextSecond(), "")
		}},
		"wrong cause": {options: customByFlags, want: "explained/cause-missing", because: "extra has changed, too", happens: func(s *harness) {
			s.beginRestartable()
			s.set(configMap("extra"), "2")
			s.changesApp("2")
			s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
		}},
		"two within a second": {
			options: Options{CustomKind: true, Settle: time.Nanosecond, Refractory: time.Nanosecond},
			because: "each names what has changed since the one before", happens: func(s *harness) {
				s.beginRestartable()
				s.set(configMap("app"), "2")
				s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
				s.reportReload(pay)
				s.wait(10 * time.Millisecond)
				s.set(configMap("extra"), "2")
				s.restartSilently(s.nextSecond(), strings.Replace(s.lastReloadOfApp(), "app", "extra", 1))
				s.reportReload(pay)
				s.wait(3 * time.Second)
				s.rollout(pay)
				s.wait(time.Minute)
				s.set(configMap("app"), "3")
				s.restartPay()
				s.quiet()
			},
		},
		"no Event": {options: customByFlags, want: "explained/event-missing", because: "nothing reports it", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
			s.wait(3 * time.Second)
			s.rollout(pay)
			s.quiet()
		}},
		"wrong time": {options: customByFlags, want: "explained/restart-time", because: "pods are left", happens: func(s *harness) {
			s.beginRestartable()
			s.changesApp("2")
			s.restartSilently(s.now.Add(-time.Minute), s.lastReloadOfApp())
		}},
	})
}

func TestOtherLawsWithoutATemplate(t *testing.T) {
	t.Parallel()
	again := func(s *harness) {
		s.beginRestartable()
		s.changesApp("2")
		s.restartSilently(s.nextSecond(), s.lastReloadOfApp())
		s.reportReload(pay)
		s.changesApp("3")
		s.restartPay()
	}
	runLaw(t, "gates", map[string]lawCase{
		"at once": {options: customByFlags, want: "gates/refractory", because: "two restarts in a second", happens: again},
		"unsettled": {options: customByFlags, want: "gates/settle", because: "it changed just now", happens: func(s *harness) {
			s.beginRestartable()
			s.set(configMap("app"), "2")
			s.wait(10 * time.Millisecond)
			s.restartPay()
		}},
	})
	runLaw(t, "unharmed", map[string]lawCase{
		"not asked for": {options: customByFlags, want: "unharmed/program", because: "the spec is the user's", happens: func(s *harness) {
			s.beginRestartable()
			s.edit(pay, func(o world.Object) { setAnnotation(o, rolloutStrategy, "") })
			s.wait(time.Minute)
			s.changesApp("2")
			s.restartPay()
		}},
	})
	runLaw(t, "leader", map[string]lawCase{
		"by a standby": {options: customByFlags, want: "leader/patch", because: "only the leader restarts", happens: func(s *harness) {
			s.beginRestartable()
			s.oracle.Leader("replica-1.1", s.now)
			s.wait(5 * time.Minute)
			s.changesApp("2")
			s.restartPay()
		}},
	})
}
