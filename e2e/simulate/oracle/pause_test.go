package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// asksForPauses has cart ask for a pause of a minute with each reload.
func (s *harness) asksForPauses() {
	s.begin()
	s.edit(cart, func(o world.Object) { setAnnotation(o, pausePeriod, "1m") })
	s.wait(time.Minute)
	s.set(configMap("app"), "2")
	s.wait(time.Second)
}

// programEdits is a write of the program.
func (s *harness) programEdits(change func(o world.Object)) {
	call := s.call(replica, "patch", cart, []byte(`{}`))
	s.oracle.Request(call)
	s.change(call, cart, s.objects[cart], edited(s.objects[cart], change))
}

// pausesOnly is a pause of cart without a reload.
func (s *harness) pausesOnly() {
	s.programEdits(func(o world.Object) {
		setAnnotation(o, pausedAt, s.now.UTC().Format(time.RFC3339))
		world.Section(o, "spec")["paused"] = true
	})
}

// pauses is a reload of cart that pauses it as well, or not.
func (s *harness) pauses(paused bool) {
	if paused {
		s.pausesOnly()
	}
	s.reload(cart, "b", "configmap/app modified")
}

// resumes ends the pause of cart.
func (s *harness) resumes() {
	s.programEdits(func(o world.Object) {
		setAnnotation(o, pausedAt, "")
		delete(world.Section(o, "spec"), "paused")
	})
}

// drops is an operator's write that lacks the begin of the pause of cart; the webhook stores another one, or none where it is empty.
func (s *harness) drops(at string) {
	call := s.call(user, "update", cart, nil)
	s.oracle.Request(call)
	sent := edited(s.objects[cart], func(o world.Object) { setAnnotation(o, pausedAt, "") })
	s.change(call, cart, sent, edited(sent, func(o world.Object) { setAnnotation(o, pausedAt, at) }))
}

// dropsBeside drops the begin of a pause where a large annotation leaves some bytes, and those of the ReplicaSet.
func dropsBeside(left int) func(s *harness) {
	return func(s *harness) {
		s.asksForPauses()
		s.pauses(true)
		s.edit(cart, func(o world.Object) {
			setAnnotation(o, "b", strings.Repeat("x", annotationLimit-leftToController-left))
		})
		s.drops("")
	}
}

// pausedAtOf returns the begin of the pause of cart.
func (s *harness) pausedAtOf() string {
	return world.Text(world.Annotations(s.objects[cart]), pausedAt)
}

func TestPauses(t *testing.T) {
	t.Parallel()
	after := func(wait time.Duration) func(s *harness) {
		return func(s *harness) {
			s.asksForPauses()
			s.pauses(true)
			s.wait(wait)
			s.resumes()
		}
	}
	tick := func(s *harness, minutes int) {
		for range minutes {
			s.wait(time.Minute)
			s.oracle.advance(s.now)
		}
	}
	for law, cases := range map[string]map[string]lawCase{
		"gates": {
			"in time":    {because: "the period is over", happens: after(time.Minute)},
			"too early":  {want: "gates/resumed-early", because: "half of the period is left", happens: after(30 * time.Second)},
			"not paused": {want: "gates/not-paused", because: "the reload rolls out at once", happens: func(s *harness) { s.asksForPauses(); s.pauses(false) }},
			"taken back": {because: "no reload came with it", happens: func(s *harness) {
				s.asksForPauses()
				s.pausesOnly()
				s.wait(time.Second)
				s.resumes()
			}},
			"without a reload": {want: "gates/paused-without-reload", because: "the next release would not roll out", happens: func(s *harness) {
				s.asksForPauses()
				s.pausesOnly()
				s.set(configMap("app"), "1")
				tick(s, 10)
			}},
			"paused by a user": {because: "it stays as it is", happens: func(s *harness) {
				s.asksForPauses()
				s.edit(cart, func(o world.Object) { world.Section(o, "spec")["paused"] = true })
				s.reload(cart, "b", "configmap/app modified")
			}},
		},
		"prompt": {
			"ended":     {because: "nothing is left", happens: func(s *harness) { after(time.Minute)(s); tick(s, 10) }},
			"not ended": {want: "prompt/pause-not-ended", because: "it must not last", happens: func(s *harness) { s.asksForPauses(); s.pauses(true); tick(s, 10) }},
			"begin dropped": {want: "prompt/pause-dropped", because: "nothing would end it", happens: func(s *harness) {
				s.asksForPauses()
				s.pauses(true)
				s.drops("")
			}},
			"begin dropped without space":       {because: "what is left is the ReplicaSet's", happens: dropsBeside(100)},
			"begin dropped beside little space": {want: "prompt/pause-dropped", because: "it fits", happens: dropsBeside(500)},
			"begin dropped without a webhook": {options: Options{Direct: true}, because: "nothing can keep it", happens: func(s *harness) {
				s.asksForPauses()
				s.pauses(true)
				s.drops("")
			}},
			"begin kept": {because: "it ends in time", happens: func(s *harness) {
				s.asksForPauses()
				s.pauses(true)
				s.drops(s.pausedAtOf())
				s.wait(time.Minute)
				s.resumes()
				tick(s, 10)
			}},
			"left behind": {want: "prompt/pause-not-cleaned", because: "a user has resumed it", happens: func(s *harness) {
				s.asksForPauses()
				s.pauses(true)
				s.edit(cart, func(o world.Object) { delete(world.Section(o, "spec"), "paused") })
				tick(s, 10)
			}},
		},
		"unharmed": {
			"ours": {because: "that is what was asked for", happens: after(time.Minute)},
			"begin kept": {because: "without it, nothing would end the pause", happens: func(s *harness) {
				s.asksForPauses()
				s.pauses(true)
				s.drops(s.pausedAtOf())
			}},
			"another begin": {want: "unharmed/stored", because: "that of the pause is known", happens: func(s *harness) {
				s.asksForPauses()
				s.pauses(true)
				s.drops("2026-01-02T03:04:05Z")
			}},
			"a user's pause": {want: "unharmed/program", because: "the program has not paused it", happens: func(s *harness) {
				s.begin()
				s.edit(cart, func(o world.Object) { world.Section(o, "spec")["paused"] = true })
				s.wait(time.Minute)
				s.resumes()
			}},
			"not asked for": {want: "unharmed/program", because: "there is no period", happens: func(s *harness) {
				s.beginWithChange()
				s.pauses(true)
			}},
		},
	} {
		t.Run(law, func(t *testing.T) {
			t.Parallel()
			runLaw(t, law, cases)
		})
	}
}
