package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestContestedRecord(t *testing.T) {
	t.Parallel()
	// contest is a user who removes the record after each of some writes, and the program, which waits each time.
	contestBy := func(s *harness, by string, times int, waits time.Duration) {
		if s.objects[cart] == nil {
			s.begin()
			s.wait(2 * time.Minute)
		}
		lease := world.Key{Resource: world.Leases, Namespace: "pod-reloader", Name: "lease"}
		s.write(by, "update", lease, world.Object{"spec": world.Object{"holderIdentity": by}})
		for range times {
			s.write(by, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "v1:a") }))
			s.wait(100 * time.Millisecond)
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "") })
			s.wait(waits)
		}
	}
	contest := func(s *harness, times int, waits time.Duration) { contestBy(s, replica, times, waits) }
	later := func(s *harness) {
		s.wait(2 * time.Minute)
		s.quiet()
	}
	runLaw(t, "hot-loop", map[string]lawCase{
		"written again at once": {options: Options{Direct: true}, want: "hot-loop/contested", because: "it waits for nothing", happens: func(s *harness) { contest(s, 30, time.Second) }},
		"written by one process after another": {options: Options{Direct: true}, because: "each begins anew", happens: func(s *harness) {
			contest(s, mostContested, 400*time.Millisecond)
			s.event(cart, "one", "Warning", "RecordContested")
			contestBy(s, "replica-1.1", mostContested, 400*time.Millisecond)
			contestBy(s, "replica-1.2", mostContested, 400*time.Millisecond)
		}},
		"written too often by the second one": {options: Options{Direct: true}, want: "hot-loop/contested", because: "it waits for nothing", happens: func(s *harness) {
			contest(s, mostContested, 400*time.Millisecond)
			s.event(cart, "one", "Warning", "RecordContested")
			contestBy(s, "replica-1.1", mostContested+1, 400*time.Millisecond)
		}},
		"written in between": {options: Options{Direct: true}, because: "the write lasted", happens: func(s *harness) {
			for range 5 {
				contest(s, 5, time.Second)
				s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "v1:a") }))
				s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "v1:b") }))
			}
		}},
		"written ever more rarely": {options: Options{Direct: true}, because: "the pauses grow", happens: func(s *harness) {
			contest(s, 8, 5*time.Second)
			s.event(cart, "one", "Warning", "RecordContested")
			later(s)
		}},
	})
	runLaw(t, "visible", map[string]lawCase{
		"no Event": {options: Options{Direct: true}, want: "visible/contested", because: "users must find the writer", happens: func(s *harness) {
			contest(s, 8, 5*time.Second)
			later(s)
		}},
		"an Event": {options: Options{Direct: true}, because: "it says so", happens: func(s *harness) {
			contest(s, 8, 5*time.Second)
			s.event(cart, "one", "Warning", "RecordContested")
			later(s)
		}},
		"two removals": {options: Options{Direct: true}, because: "a release removes it once", happens: func(s *harness) {
			contest(s, 2, 5*time.Second)
			later(s)
		}},
	})
}
