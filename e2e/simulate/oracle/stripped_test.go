package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// strips begins a fault by which another webhook removes annotations.
func (s *harness) strips(kind, scope string) {
	s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope, Begin: true})
	s.wait(20 * time.Second)
}

func TestStrippedAnnotations(t *testing.T) {
	t.Parallel()
	runLaw(t, "visible", map[string]lawCase{
		"a reload without last-reload":  {want: "visible/unrecorded-reload", because: "no Event says so", happens: strippedReload(stripsReload, "deployments", "Reloaded")},
		"a reload that is explained":    {because: "an Event says so", happens: strippedReload(stripsReload, "deployments", "Reloaded", "ReloadUnrecorded")},
		"what the webhook writes again": {because: "last-reload may be stored", happens: strippedReload("strips early last-reload", "deployments", "Reloaded")},
		"a record that is removed":      {want: "visible/removed-record", because: "no Event says so", happens: withoutRecord("namespaces/shop")},
		"a record that another keeps":   {because: "the webhook is about another namespace", happens: withoutRecord("namespaces/bank")},
		"a record and the request for a stamp": {because: "an Event says that the stamp is removed", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: stripsRequest, Scope: "deployments", Begin: true})
			withoutRecord("namespaces/shop", "StampLost")(s)
		}},
		"a record, and the request before": {want: "visible/removed-record", because: "the stamp is stored", happens: func(s *harness) {
			s.fault(stripsRequest, "deployments", time.Minute)
			withoutRecord("namespaces/shop", "StampLost")(s)
		}},
		"a removed record, and an Event": {because: "an Event says so", happens: withoutRecord("namespaces/shop", "AdoptionFailed")},
	})
	runLaw(t, "explained", map[string]lawCase{
		"no Event of a reload":     {want: "explained/stripped", because: "the leader has made it", happens: strippedReload(stripsReload, "deployments", "ReloadUnrecorded")},
		"an Event of a reload":     {because: "it is reported", happens: strippedReload(stripsReload, "deployments", "Reloaded", "ReloadUnrecorded")},
		"a webhook of other kinds": {want: "explained/annotation-missing", because: "nothing removes it", happens: strippedReload(stripsReload, "statefulsets", "Reloaded")},
	})
}

func TestProgramDoesNotFightWhatIsStripped(t *testing.T) {
	t.Parallel()
	runLaw(t, "hot-loop", map[string]lawCase{
		"writes without pauses":  {want: "hot-loop/stripped", because: "nothing is stored", happens: writes(mostStripped+1, time.Second)},
		"writes that grow rarer": {because: "the pauses grow", happens: writes(mostStripped+1, 10*time.Second)},
		"as many as may be":      {because: "each attempt has some", happens: writes(mostStripped, time.Second)},
		"changes between writes": {because: "each may be a reload", happens: writes(mostStripped/2, time.Second, "a change", "more")},
	})
	runLaw(t, "kept", map[string]lawCase{
		"restarts without an end": {want: "kept/stripped", because: "nothing else has changed", happens: restarts(restartsStripped + 1)},
		"the stamp is removed":    {because: "that restarts the pods once", happens: restarts(1)},
	})
}

// withoutRecord is a workload without a record, and a webhook that removes it, with some Events.
func withoutRecord(scope string, events ...string) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "") })
		s.wait(2 * time.Minute)
		s.strips(stripsRecord, scope)
		for _, reason := range events {
			s.event(cart, reason, "Warning", reason)
		}
		for range 5 {
			s.later(time.Minute)
		}
	}
}

// writes are ones of the program that store nothing, a pause between them; the same again after each change.
func writes(times int, pause time.Duration, changes ...string) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.wait(2 * time.Minute)
		s.strips(stripsAll, "namespaces/shop")
		s.event(cart, "removed", "Warning", "AdoptionFailed")
		for _, value := range append([]string{"first"}, changes...) {
			s.set(configMap("app"), value)
			for range times {
				s.request(replica, "patch", cart, nil)
				s.wait(pause)
			}
		}
	}
}

// restarts are ones of the program by which the template changes.
func restarts(times int) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.wait(2 * time.Minute)
		s.strips(stripsAll, "namespaces/shop")
		for n := range times {
			s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) {
				setAnnotation(world.Section(o, "spec", "template"), prefix+"config-restart", string(rune('a'+n)))
			}))
			s.wait(10 * time.Second)
		}
	}
}

// strippedReload is a reload whose last-reload is removed, with some Events.
func strippedReload(kind, scope string, events ...string) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.wait(2 * time.Minute)
		s.strips(kind, scope)
		s.set(configMap("app"), "2")
		s.wait(time.Second)
		s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) {
			setAnnotation(world.Section(o, "spec", "template"), prefix+"config-hash", "b")
		}))
		for _, reason := range events {
			kind := map[bool]string{true: "Normal", false: "Warning"}[reason == "Reloaded"]
			s.event(cart, reason, kind, reason)
		}
		s.later(3 * time.Minute)
	}
}
