package promise_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const reloader = "reloader.stakater.com/"

// asks are the annotations of a workload that reads ConfigMaps without listing them.
func asks(key, value string) map[string]string {
	return map[string]string{fixture.ConfigMaps: "", key: value}
}

// Workloads of different settings depend on one ConfigMap; each reloads by its own.
func TestP1AndP2TargetedReload(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	reads := []string{"app"}
	restarting := map[string]observe.Workload{
		"auto":    s.Deployment("auto", fixture.Uses{ConfigMaps: reads, Annotations: asks(reloader+"auto", "true")}),
		"typed":   s.Deployment("typed", fixture.Uses{ConfigMaps: reads, Annotations: asks("configmap."+reloader+"auto", "true")}),
		"named":   s.Deployment("named", fixture.Uses{Annotations: asks("configmap."+reloader+"reload", "app")}),
		"pattern": s.Deployment("pattern", fixture.Uses{Annotations: asks("configmap."+reloader+"reload", "a.*")}),
	}
	search := s.Deployment("search", fixture.Uses{ConfigMaps: reads, Annotations: asks(reloader+"search", "true")})
	no := asks("configmap."+reloader+"reload", "app")
	no[reloader+"auto"] = "false"
	exclude := asks(reloader+"auto", "true")
	exclude["configmaps.exclude."+reloader+"reload"] = "app"
	bystanders := map[string]observe.Workload{
		"no annotation": s.Deployment("plain", fixture.Uses{ConfigMaps: reads, Annotations: asks("example.org/none", "")}),
		"auto: false":   s.Deployment("no", fixture.Uses{ConfigMaps: reads, Annotations: no}),
		"excluded":      s.Deployment("exclude", fixture.Uses{ConfigMaps: reads, Annotations: exclude}),
		"other kind":    s.Deployment("secrets", fixture.Uses{ConfigMaps: reads, Annotations: asks("secret."+reloader+"auto", "true")}),
	}
	for _, w := range restarting {
		s.AwaitAdopted(w, "configmap/app")
	}

	s.SetConfigMap("app", "key", "2")
	for name, w := range restarting {
		s.AwaitChanges(w, 1, name)
	}
	s.Merge(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"`+reloader+`match":"true"}}}`)
	s.AwaitAdopted(search, "configmap/app")
	s.AwaitExactly(0, "match alone restarts nothing", search)

	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(search, 1, "it has match now")
	for name, w := range restarting {
		s.AwaitChanges(w, 2, name)
	}
	s.Merge(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"`+reloader+`ignore":"true"}}}`)
	s.Settled()
	s.SetConfigMap("app", "key", "4")
	s.Settled()
	for name, w := range restarting {
		s.AssertChanges(w, 2, name+": an ignored object triggers nothing")
	}
	s.AssertChanges(search, 1, "ignore wins over match")
	for name, w := range bystanders {
		s.AssertChanges(w, 0, name)
	}

	pattern := restarting["pattern"]
	s.ConfigMap("appendix", fixture.Data{"key": "1"})
	s.AwaitAdopted(pattern, "configmap/appendix")
	s.AwaitExactly(2, "an object that appears later is tracked and restarts nothing", pattern)
	s.SetConfigMap("appendix", "key", "2")
	s.AwaitChanges(pattern, 3, "its change counts")
}

// selections are the annotations of workloads that select what they read: all of it, by expressions, or by marks.
func selections(objects string) map[string]map[string]string {
	expressions := asks("configmap."+reloader+"reload", objects+".*")
	expressions["secret."+reloader+"reload"] = objects + ".*"
	all := map[string]map[string]string{"auto": asks(reloader+"auto", "true"), "expressions": expressions, "search": asks(reloader+"search", "true")}
	for _, annotations := range all {
		annotations[fixture.Secrets] = ""
	}
	return all
}

// marked creates a ConfigMap and a Secret that a search finds.
func marked(s *fixture.Fixture, name string) {
	s.Helper()
	s.ConfigMap(name, fixture.Data{"key": "1"})
	s.Secret(name, fixture.Data{"key": "1"})
	const mark = `{"metadata":{"annotations":{"` + reloader + `match":"true"}}}`
	s.Merge(&corev1.ConfigMap{}, name, mark)
	s.Merge(&corev1.Secret{}, name, mark)
}

// Reloader rolls each release out twice: it restarts the workload after the release, too.
func TestP3TargetedReleaseRollsOutOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	var released []observe.Workload
	for selection := range selections("") {
		for _, kind := range fixture.Kinds {
			tries := 0
			enough(t, 1, func() int {
				name := strings.ToLower(kind) + "-" + selection + "-" + strconv.Itoa(tries)
				tries++
				w, inTime := targetedRelease(s, kind, name, selections(name)[selection])
				if !inTime {
					return 0
				}
				released = append(released, w)
				return 1
			})
		}
	}
	s.Settled()
	assertOneRollout(s, released)
}

// targetedRelease changes configuration and image of a workload, and reports whether that was in time.
func targetedRelease(s *fixture.Fixture, kind, name string, annotations map[string]string) (w observe.Workload, inTime bool) {
	s.Helper()
	marked(s, name)
	w = s.Workload(kind, name, fixture.Uses{ConfigMaps: []string{name}, Secrets: []string{name}, Annotations: annotations})
	s.AwaitAdopted(w, "configmap/"+name)
	s.AwaitAdopted(w, "secret/"+name)
	stamped := true
	inTime = within(settle, func() {
		s.SetConfigMap(name, "key", "2")
		s.SetSecret(name, "key", "2")
		stamped = fixture.Promptly(func() { setImage(s, w, "example.com/app:2") })
	})
	return w, inTime && stamped
}

// Reloader restarts a workload once for each of the objects, whichever annotation selects them.
func TestP4TargetedObjectsChangedInOneGoRestartOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	var names []string
	for n := range 5 {
		names = append(names, "c"+strconv.Itoa(n))
		marked(s, names[n])
	}
	var workloads []observe.Workload
	for selection, annotations := range selections("c") {
		workloads = append(workloads, s.EveryKind(selection, fixture.Uses{ConfigMaps: names, Secrets: names, Annotations: annotations})...)
	}
	for _, w := range workloads {
		for _, name := range names {
			s.AwaitAdopted(w, "configmap/"+name)
			s.AwaitAdopted(w, "secret/"+name)
		}
	}
	restartOnce(t, s, 1, workloads, names, func(observe.Workload) {})
}
