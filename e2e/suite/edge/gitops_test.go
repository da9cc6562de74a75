package edge_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// gitops is how a controller applies a manifest, and how it compares the manifest with what is stored.
type gitops struct {
	reason string
	flags  []string
}

// A GitOps controller compares and applies all the time. What pod-reloader writes is never a difference, so that there is
// nothing to heal, before and after a reload; and healing a real difference keeps it and restarts nothing.
//
// By their documentation, Argo CD compares with the manifest that it has applied last, as kubectl diff does; with
// ServerSideDiff=true, and Flux always, with the answer to a server-side apply that is a dry run.
func TestGitOpsControllersSeeNoDrift(t *testing.T) {
	t.Parallel()
	for name, controller := range map[string]gitops{
		"ArgoCD":           {"kubectl apply, and a three-way comparison with last-applied-configuration", nil},
		"ArgoCDServerSide": {"ServerSideApply=true and ServerSideDiff=true", controlplane.ServerSide("argocd-controller")},
		"FluxKustomize":    {"server-side apply, and a dry run of it", controlplane.ServerSide("kustomize-controller")},
		"FluxHelm":         {"driftDetection of a HelmRelease", controlplane.ServerSide("helm-controller")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, manifest, workloads := controller.install(t)
			assert.Empty(t, controller.diff(s, manifest, workloads), "after the first apply")

			s.SetConfigMap("app", "key", "2")
			s.AwaitExactly(1, "the content changed", workloads...)
			assert.Empty(t, controller.diff(s, manifest, workloads), "after a reload")
			controller.heal(s, manifest, workloads)
			s.SetSecret("db", "key", "2")
			s.AwaitExactly(2, "after healing, a change still counts, once", workloads...)
			assert.Empty(t, controller.diff(s, manifest, workloads), "after another reload")
			controller.dropLastAnnotation(s, manifest, workloads)
		})
	}
}

// install applies a manifest for the first time, and returns it with its workloads, all of which are stamped. Where that took so long
// that the webhook may have given up reading, it is done in another namespace.
func (g gitops) install(t *testing.T) (s *fixture.Fixture, manifest string, workloads []observe.Workload) {
	t.Helper()
	stamped := func(w observe.Workload) bool { return fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash] != "" }
	poll.Repeat(t, 5, fixture.LeftOut, func(int) bool {
		s = stage(t)
		s.ConfigMap("app", fixture.Data{"key": "1"})
		s.Secret("db", fixture.Data{"key": "1"})
		manifest, workloads = g.manifest(s, nil)
		return fixture.Promptly(func() { g.apply(s, manifest) }) || !slices.ContainsFunc(workloads, func(w observe.Workload) bool { return !stamped(w) })
	})
	for _, w := range workloads {
		require.True(t, stamped(w), "%s is not stamped", w)
	}
	return s, manifest, workloads
}

// manifest is a file with a workload of each kind, which knows nothing of the managed annotations. The pod templates have the given ones.
func (g gitops) manifest(s *fixture.Fixture, template map[string]string) (string, []observe.Workload) {
	s.Helper()
	var file strings.Builder
	var workloads []observe.Workload
	for _, kind := range fixture.Kinds {
		object := s.Manifest(kind, "web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}, Labels: map[string]string{"tier": "web"}})
		if len(template) > 0 {
			path := append(observe.KindNamed(kind).TemplatePath(), "metadata", "annotations")
			require.NoError(s, unstructured.SetNestedStringMap(object.Object, template, path...))
		}
		text, err := yaml.Marshal(object.Object)
		require.NoError(s, err)
		file.WriteString("---\n" + string(text))
		workloads = append(workloads, observe.Workload{Kind: kind, Namespace: s.Namespace, Name: "web"})
	}
	return file.String(), workloads
}

func (g gitops) apply(s *fixture.Fixture, manifest string) {
	s.Helper()
	_, err := s.Installation.ControlPlane().KubectlInput(s.Patiently(), manifest, slices.Concat([]string{"apply", "-f", "-"}, g.flags)...)
	require.NoError(s, err, g.reason)
}

// diff is what the controller would report as drift. kubectl diff ends with 1 where there is a difference. It reads and asks what would
// be stored one after the other: where a workload's own controller writes its status meanwhile, that is compared, too, and shows nothing.
func (g gitops) diff(s *fixture.Fixture, manifest string, workloads []observe.Workload) (found string) {
	s.Helper()
	versions := func() (all []string) {
		for _, w := range workloads {
			all = append(all, s.Get(w).GetResourceVersion())
		}
		return all
	}
	poll.Repeat(s, 5, "a workload changed while it was compared", func(int) bool {
		var err error
		before := versions()
		found, err = s.Installation.ControlPlane().KubectlInput(s.Patiently(), manifest, slices.Concat([]string{"diff", "-f", "-"}, g.flags)...)
		if found == "" {
			require.NoError(s, err, g.reason)
		}
		return slices.Equal(before, versions())
	})
	return found
}

// heal lets a user change a label by hand, and the controller put it back.
func (g gitops) heal(s *fixture.Fixture, manifest string, workloads []observe.Workload) {
	s.Helper()
	var before []map[string]string
	for _, w := range workloads {
		s.MergeWorkload(w, `{"metadata":{"labels":{"tier":"edited"}}}`)
		before = append(before, fixture.TemplateAnnotations(s.Get(w)))
	}
	drift := g.diff(s, manifest, workloads)
	assert.Contains(s, drift, "tier: edited", "a real difference is seen")
	assert.NotContains(s, changed(drift), "pod-reloader.cs.sap.com/", "and nothing else")
	g.apply(s, manifest)
	assert.Empty(s, g.diff(s, manifest, workloads), "healed")
	for n, w := range workloads {
		assert.Equal(s, "web", s.Get(w).GetLabels()["tier"], w)
		assert.Equal(s, before[n], fixture.TemplateAnnotations(s.Get(w)), "%s: the stamp survives", w)
	}
}

// dropLastAnnotation makes a release that adds an annotation to the pod templates, and one that removes it: all annotations of the template
// would go with it.
func (g gitops) dropLastAnnotation(s *fixture.Fixture, manifest string, workloads []observe.Workload) {
	s.Helper()
	const key = "example.com/scrape"
	annotated, _ := g.manifest(s, map[string]string{key: "true"})
	var stamps []string
	for _, w := range workloads {
		stamps = append(stamps, fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash])
	}
	asked(s, func() { g.apply(s, annotated) })
	for _, w := range workloads {
		require.Equal(s, "true", fixture.TemplateAnnotations(s.Get(w))[key], w)
	}
	unstamped := func(w observe.Workload) bool { return fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash] == "" }
	if !fixture.Promptly(func() { g.apply(s, manifest) }) && slices.ContainsFunc(workloads, unstamped) {
		// A stamp is lost for good then: applying again removes nothing.
		poll.Note(s, "the release that removes the last annotation shows nothing: "+fixture.LeftOut)
		return
	}
	for n, w := range workloads {
		want := map[string]string{fixture.ConfigHash: stamps[n]}
		assert.Equal(s, want, fixture.TemplateAnnotations(s.Get(w)), "%s: the release has lost its last annotation, and not the stamp", w)
	}
}

// changed are the lines of a diff that differ.
func changed(diff string) string {
	var lines []string
	for line := range strings.SplitSeq(diff, "\n") {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
