package promise_test

import (
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
func TestTargetedReload(t *testing.T) {
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
	s.Settled()
	s.RequireChanges(search, 0, "match alone restarts nothing")

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
	s.Settled()
	s.RequireChanges(pattern, 2, "an object that appears later is tracked and restarts nothing")
	s.SetConfigMap("appendix", "key", "2")
	s.AwaitChanges(pattern, 3, "its change counts")
}
