package reloader_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// Odd values, both dialects against each other, and annotations in both places: each workload reloads once for each change or never, and
// what has no effect is reported.
func TestOddAnnotationsOfReloaderReloadOnceOrNever(t *testing.T) {
	t.Parallel()
	const (
		search, typed = "reloader.stakater.com/search", "configmap.reloader.stakater.com/auto"
		exclude       = "configmaps.exclude.reloader.stakater.com/reload"
	)
	one := func(key, value string) map[string]string { return map[string]string{key: value} }
	two := func(key, value, second, other string) map[string]string {
		return map[string]string{key: value, second: other}
	}
	tests := map[string]struct {
		on, onPods, labels map[string]string
		reloads            bool
		// problem is a part of the Event about it; empty for none.
		problem string
	}{
		"upper-case":       {on: one(fixture.ReloaderAuto, "TRUE"), reloads: true},
		"one":              {on: one(fixture.ReloaderAuto, "1"), reloads: true},
		"spaces":           {on: one(fixture.ReloaderAuto, " true "), problem: "is neither true nor false"},
		"yes":              {on: one(fixture.ReloaderAuto, "yes"), problem: "is neither true nor false"},
		"empty-hides-pods": {on: one(fixture.ReloaderAuto, ""), onPods: one(fixture.ReloaderAuto, "true"), problem: "is empty"},
		"search-spaces":    {on: one(search, " true"), problem: "enables nothing"},
		"list-spaces":      {on: one(fixture.ReloaderConfigMaps, "\tapp , ,app,\n"), reloads: true},
		"list-upper-case":  {on: one(fixture.ReloaderConfigMaps, "APP"), problem: `the name "APP"`},
		"list-line-break":  {on: one(fixture.ReloaderConfigMaps, "x\napp"), problem: "item 1"},
		"list-semicolon":   {on: one(fixture.ReloaderConfigMaps, "app;x"), problem: "item 1"},
		"any-case":         {on: one(fixture.ReloaderConfigMaps, "(?i)APP"), reloads: true},
		"anchored":         {on: one(fixture.ReloaderConfigMaps, "^app$"), reloads: true},
		"alternatives":     {on: one(fixture.ReloaderConfigMaps, "x|app|y"), reloads: true},
		"a-part":           {on: one(fixture.ReloaderConfigMaps, "ap|pp.*")},
		"half-wrong":       {on: one(fixture.ReloaderConfigMaps, "a(,app,*"), reloads: true, problem: "missing closing )"},
		"off-and-listed":   {on: two(fixture.ReloaderAuto, "false", fixture.ReloaderConfigMaps, "app")},
		"off-but-sap":      {on: two(fixture.ReloaderAuto, "false", fixture.ConfigMaps, "app"), reloads: true},
		"excluded-but-sap": {on: two(exclude, "app", fixture.ConfigMaps, "app"), reloads: true},
		"excluded-spaces":  {on: two(exclude, " app ", fixture.ReloaderAuto, "true")},
		"label":            {on: one(fixture.ReloaderAuto, "true"), labels: one("pod-reloader.cs.sap.com/ignored", "true")},
		"typed-over-pods":  {on: one(typed, "true"), onPods: one(fixture.ReloaderAuto, "false"), reloads: true},
		"pods-over-other":  {on: one("secret.reloader.stakater.com/auto", "false"), onPods: one(typed, "true"), reloads: true},
		"excluded-by-pods": {on: one(fixture.ReloaderAuto, "true"), onPods: one(exclude, "app"), reloads: true, problem: "on the pod template has no effect"},
	}
	t.Cleanup(func() { fixture.AssertNothingDenied(t, shared) })
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	workloads := map[string]observe.Workload{}
	for n, name := range slices.Sorted(maps.Keys(tests)) {
		tc, kind := tests[name], []string{"Deployment", "StatefulSet", "DaemonSet"}[n%3]
		manifest := s.Manifest(kind, name, fixture.Uses{ConfigMaps: []string{"app"}, Labels: tc.labels})
		manifest.SetAnnotations(tc.on)
		annotatePods(s, manifest, tc.onPods)
		workloads[name] = create(s, manifest)
	}
	for name, tc := range tests {
		if tc.reloads {
			s.AwaitAdopted(workloads[name], "configmap/app")
		}
	}
	for n := 1; n <= 2; n++ {
		s.SetConfigMap("app", "key", fmt.Sprintf("changed %d times", n))
		for name, tc := range tests {
			if tc.reloads {
				s.AwaitChanges(workloads[name], n, name)
			}
		}
		s.Settled()
		for name, tc := range tests {
			want := 0
			if tc.reloads {
				want = n
			}
			s.AssertChanges(workloads[name], want, name)
		}
	}
	for name, tc := range tests {
		if tc.problem != "" {
			s.AwaitEvent(workloads[name], "InvalidAnnotation", tc.problem)
		}
	}
}

func annotatePods(s *fixture.Fixture, workload *unstructured.Unstructured, annotations map[string]string) {
	s.Helper()
	if annotations == nil {
		return
	}
	if err := unstructured.SetNestedStringMap(workload.Object, annotations, "spec", "template", "metadata", "annotations"); err != nil {
		s.Fatal(err)
	}
}
