package cli

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func newReloaderSettings(variables map[string]string) reloaderSettings {
	return reloaderSettings{manager: options.NewFlags(), environment: options.Environment{Getenv: func(name string) string { return variables[name] }}}
}

func TestSettingsOfReloader(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		args   []string
		want   map[string]string
		check  func(*testing.T, plan.Reloader)
	}{
		"none": {
			reason: "The strategy is another one by default.", want: map[string]string{"--reload-strategy": "set env-vars if"},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.True(t, r.Variables, "env-vars is Reloader's default")
			},
		},
		"annotations": {
			reason: "The flag means the same.", args: []string{"--reload-strategy=annotations"}, want: map[string]string{},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.False(t, r.Variables, "the strategy is annotations")
			},
		},
		"variables": {reason: "A Secret's is keyed.", args: []string{"--reload-strategy", "env-vars"}, want: map[string]string{"--env-vars-hash": "keyed digest"}},
		"of the chart": {
			reason: "As Reloader's chart writes them.",
			args: []string{
				"--reload-strategy=annotations", `--namespace-selector="env=test"`, "--auto-annotation", "x.org/auto", "--is-Argo-Rollouts=true",
				"--ignored-workload-types=jobs", "--namespaces-to-ignore=dev", "--auto-reload-all=true",
			},
			want: map[string]string{
				"--auto-reload-all": "the webhook must be asked", "--is-Argo-Rollouts": "reloader.isArgoRollouts", "--namespace-selector": "the same selector",
			},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.Equal(t, "x.org/auto", r.Dialect.Keys.Auto)
				assert.Equal(t, []string{"dev"}, r.IgnoredNamespaces)
				assert.Equal(t, "env=test", r.NamespaceSelector.String())
				assert.Equal(t, []string{"deploymentconfig", "daemonset", "deployment", "statefulset", "rollout", "cronjob"}, names(r.Kinds))
				assert.True(t, r.Dialect.AutoReloadAll, "an argument of Reloader switches it on")
			},
		},
		"texts": {
			reason: "Reloader starts with any text, and so does this program.",
			args: []string{
				"--reload-strategy=annotations", "--reload-on-create", "maybe", "--reload-on-delete=True", "--is-Argo-Rollouts=", "--is-openshift=4.18",
			},
			want: map[string]string{
				"--reload-on-create": `"maybe" is neither true nor false`, "--reload-on-delete": "off there and on here", "--is-openshift": `"4.18" is neither`,
			},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.False(t, r.Dialect.ReloadOnCreate, "maybe is not true")
				assert.True(t, r.Dialect.ReloadOnDelete, "True is true here")
				assert.False(t, r.ReloadOnCreate || r.ReloadOnDelete, "only true is true there")
				assert.NotContains(t, names(r.Kinds), "deploymentconfig", "4.18 is off")
			},
		},
		"kinds": {
			reason: "Reloader does not know the flag.",
			args: []string{
				"--reload-strategy=annotations", "--is-openshift=false", "--workload-kinds=argoproj.io/v1alpha1/Rollout=spec.template",
				"--workload-kinds=apps.kruise.io/v1alpha1/CloneSet=spec.template",
			},
			want: map[string]string{"--is-Argo-Rollouts": "reloader.isArgoRollouts"},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.Equal(t, []string{"daemonset", "deployment", "statefulset", "cronjob", "job"}, names(r.Kinds))
			},
		},
		"items": {
			reason: "Reloader compares them as they are written, and takes none if one is unknown.",
			args:   []string{"--reload-strategy=annotations", "--ignored-workload-types=Jobs,cronjobs", "--resources-to-ignore=secrets", "--is-openshift=false"},
			want:   map[string]string{"--ignored-workload-types": "it ignores nothing"},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.Equal(t, []string{"daemonset", "deployment", "statefulset", "cronjob", "job"}, names(r.Kinds))
				assert.True(t, r.OneKind, "--resources-to-ignore leaves one kind out")
			},
		},
		"one kind": {
			reason: "With --sync-after-restart Reloader does not wait for the other one.",
			args:   []string{"--reload-strategy=annotations", "--ignored-workload-types=jobs", "--resources-to-ignore=secrets", "--sync-after-restart=true"},
			want:   map[string]string{},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.False(t, r.OneKind, "--sync-after-restart is on")
			},
		},
		"without secrets": {
			reason: "Reloader does not know the flag.", args: []string{"--reload-strategy=annotations", "--secrets=false"}, want: map[string]string{},
			check: func(t *testing.T, r plan.Reloader) { t.Helper(); assert.Empty(t, r.Dialect.Without) },
		},
		"labels of statuses": {
			reason: "Reloader selects the statuses.",
			args:   []string{"--reload-strategy=annotations", "--resource-label-selector=team=a", "--enable-csi-integration=true"},
			want:   map[string]string{"--resource-label-selector": "SecretProviderClassPodStatus", "--enable-csi-integration": "permissions of its own"},
		},
		"only namespaces": {
			reason: "Beside them Reloader ignores the flag; here no namespace is left.",
			args:   []string{"--reload-strategy=annotations", "--namespaces=shop,dev", "--namespaces-to-ignore=dev,shop"},
			want:   map[string]string{"--namespaces-to-ignore": "no namespace is left"},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.Equal(t, []string{"shop", "dev"}, r.Namespaces)
			},
		},
		"unsupported": {
			reason: "Each one is a difference, not wrong usage. The one that is supported needs more than a flag.",
			args:   []string{"--reload-strategy=annotations", "--is-openshift", "--enable-csi-integration=true", "--alert-sink", "slack"},
			want: map[string]string{
				"--enable-csi-integration": "permissions of its own", "--alert-sink": "ALERT_SINK",
			},
			check: func(t *testing.T, r plan.Reloader) {
				t.Helper()
				assert.True(t, r.Dialect.SecretProviderClasses, "it is an argument")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newReloaderSettings(nil)
			p.parse(tc.args)
			selection, reload, settings := p.complete()
			settings = slices.DeleteFunc(settings, func(s plan.Setting) bool { return s == recreated() })
			for _, s := range settings {
				assert.NotEmpty(t, tc.want[s.Name], "%s: %s", s.Name, s.Message)
				assert.Contains(t, s.Message, tc.want[s.Name], tc.reason)
				delete(tc.want, s.Name)
			}
			assert.Empty(t, tc.want, tc.reason)
			if tc.check != nil {
				tc.check(t, p.reloader(selection, reload))
			}
		})
	}
}

// The comparison looks at each event alone: what two of them do together is the same for all workloads.
func TestObjectThatIsCreatedAgainIsADifferenceWhereReloaderLooksAtNoneOfBothEvents(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]bool{
		"":                        true,
		"--reload-on-create=true": false,
		"--reload-on-delete=true": false,
		"--reload-on-create=True": true,
	} {
		p := newReloaderSettings(nil)
		p.parse(strings.Fields(flags))
		_, _, settings := p.complete()
		assert.Equal(t, want, slices.Contains(settings, recreated()), flags)
	}
}

// names returns the names of kinds.
func names(kinds workload.Kinds) []string {
	var all []string
	for _, kind := range kinds.All() {
		all = append(all, strings.ToLower(kind.Kind))
	}
	return all
}

func TestWebhookURLOfReloaderMeansNoReloads(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want bool
	}{
		"none": {nil, false}, "empty": {[]string{"--webhook-url="}, false}, "joined": {[]string{"--webhook-url=http://x"}, true},
		"of the chart": {[]string{"--webhook-url", "http://x"}, true}, "no value": {[]string{"--webhook-url"}, false},
		"a value": {[]string{"--alert-sink", "webhook-url=x"}, false},
	} {
		p := newReloaderSettings(nil)
		p.parse(tc.args)
		selection, reload, settings := p.complete()
		assert.Equal(t, tc.want, p.reloader(selection, reload).NotifyOnly, name)
		assert.Equal(t, tc.want, slices.ContainsFunc(settings, func(s plan.Setting) bool { return strings.HasPrefix(s.Message, "the request has other") }), name)
	}
}

// The Deployment is one as Reloader's chart renders it, with a sidecar before it.
func TestFlagsAreThoseOfReloadersDeployment(t *testing.T) {
	t.Parallel()
	namespace := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tools"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "proxy", Image: "example.com/proxy:1", Args: []string{"--auto-reload-all"}},
		{
			Name: "reloader-reloader", Image: "ghcr.io/stakater/reloader:v1.4.0",
			Command: []string{"/manager", "--reload-on-create=true"}, Args: []string{"--reload-on-delete=true"},
			Env: []corev1.EnvVar{
				{Name: "KUBERNETES_NAMESPACE", ValueFrom: namespace}, {Name: "RELOADER_DEPLOYMENT_NAME", Value: "reloader-reloader"},
			},
		},
	}
	p := newReloaderSettings(nil)
	p.take(deployment)
	selection, reload, _ := p.complete()
	r := p.reloader(selection, reload)
	assert.True(t, r.ReloadOnCreate, "an argument of the container switches it on")
	assert.True(t, r.ReloadOnDelete, "an argument of the container switches it on")
	assert.False(t, r.Dialect.AutoReloadAll, "that is an argument of the sidecar")
	assert.Equal(t, []string{"tools"}, r.Namespaces)
	_, handled := selection.Kinds.Get(workload.DeploymentConfig().GroupVersionKind)
	assert.False(t, handled, "an installation of its own handles DeploymentConfigs if a flag says so")
	p = newReloaderSettings(nil)
	p.take(&appsv1.Deployment{})
	assert.Empty(t, p.unsupported, "there is nothing to read")
}

func TestDeploymentThatIsNotReloadersIsReported(t *testing.T) {
	t.Parallel()
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cart", Image: "example.com/cart:1"}, {Name: "proxy", Args: []string{"--auto-reload-all"}}}
	p := newReloaderSettings(nil)
	p.take(deployment)
	selection, reload, settings := p.complete()
	assert.Contains(t, settings, plan.Setting{
		Name: "--reloader", Message: "no container of this Deployment has Reloader's name or image: check the name; the flags of its first container are compared",
	})
	assert.False(t, p.reloader(selection, reload).Dialect.AutoReloadAll, "that is an argument of the second container")

	deployment.Spec.Template.Spec.Containers[0].Image = "mirror.example.com/tools/Reloader:1"
	p = newReloaderSettings(nil)
	p.take(deployment)
	assert.Empty(t, p.unsupported, "the image is Reloader's")
}

// lister answers lists page by page, and records what was asked for.
type lister struct {
	client.Reader
	t      *testing.T
	asked  []string
	failed string
	// missing are kinds of config objects that the cluster does not have.
	missing []string
	// annotations are those of each workload.
	annotations map[string]any
}

func (l *lister) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	kind := list.GetObjectKind().GroupVersionKind().Kind
	l.asked = append(l.asked, strings.TrimSuffix(kind, "List")+" "+o.Namespace+o.Continue)
	if kind == l.failed {
		return errors.New("forbidden")
	}
	if slices.Contains(l.missing, kind) {
		return &meta.NoKindMatchError{}
	}
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		if kind == "DeploymentConfig" {
			return &meta.NoKindMatchError{}
		}
		list.Items = []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{
			"name": kind + o.Continue, "namespace": "shop", "annotations": l.annotations,
		}}}}
	case *metav1.PartialObjectMetadataList:
		list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Name: "app" + o.Continue, Namespace: "shop", Annotations: map[string]string{"reloader.stakater.com/ignore": "true"}, Labels: map[string]string{"a": "b"},
		}}}
	default:
		l.t.Errorf("%T has contents", list)
	}
	list.SetContinue("")
	if o.Continue == "" && (kind == "Deployment" || kind == "Secret") {
		list.SetContinue("2")
	}
	return nil
}

// Of ConfigMaps and Secrets only the metadata is read.
func TestPlanReadsPagesOfMetadata(t *testing.T) {
	t.Parallel()
	l := &lister{t: t}
	p := newReloaderSettings(nil)
	p.parse([]string{"--namespace-selector=a=b"})
	selection, reload, _ := p.complete()
	in := plan.Input{Here: plan.Here{Kinds: selection.Kinds, Scope: selection.Scope}, Reloader: p.reloader(selection, reload)}
	var stderr bytes.Buffer
	left := leaveOut(Process{Stderr: &stderr})
	require.NoError(t, planReader{l, left}.read(t.Context(), &in, nil))
	assert.Equal(t, []string{
		"DeploymentConfig ", "DaemonSet ", "Deployment ", "Deployment 2", "StatefulSet ", "CronJob ", "Job ",
		"ConfigMap ", "Secret ", "Secret 2", "Namespace ",
	}, l.asked)
	assert.Len(t, in.Workloads, 6, "a kind that the cluster does not have is left out")
	secret := reference.Ref{Kind: reference.Secret, Name: "app2"}
	assert.True(t, in.Objects["shop"][secret].Ignored, "the Secret has the annotation that excludes it")
	assert.Equal(t, map[string]string{"a": "b"}, in.NamespaceLabels["app"])

	l = &lister{t: t}
	in.Here.Scope.NamespaceSelector = nil
	require.NoError(t, planReader{l, left}.read(t.Context(), &in, []string{"shop", "dev"}))
	assert.Equal(t, "pod-reloader: warning: the cluster does not serve DeploymentConfig.apps.openshift.io in version v1: its workloads are left out\n",
		stderr.String(), "once, whatever the namespaces")
	assert.Contains(t, l.asked, "StatefulSet shop")
	assert.Contains(t, l.asked, "Secret dev2")
	assert.NotContains(t, l.asked, "Namespace ", "labels of namespaces do not matter")
	for kind, want := range map[string]string{
		"Deployment": "list apps/v1/Deployment: forbidden", "Secret": "list the metadata of secrets: forbidden",
	} {
		require.EqualError(t, planReader{&lister{t: t, failed: kind}, func(workload.Kind) {}}.read(t.Context(), &in, nil), want)
	}
}

// No permission is needed on objects that neither program looks at.
func TestPlanListsOnlyRelevantKinds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		// sap are the lists of SAP's annotations.
		sap  bool
		want bool
	}{
		"Reloader handles them":                 {nil, false, true},
		"Reloader ignores them":                 {[]string{"--resources-to-ignore=secrets"}, false, false},
		"Reloader ignores them, a list is ours": {[]string{"--resources-to-ignore=secrets"}, true, true},
		"Reloader handles them, we do not":      {[]string{"--secrets=false"}, false, true},
		"neither handles them":                  {[]string{"--secrets=false", "--resources-to-ignore=Secrets"}, true, false},
	} {
		l := &lister{t: t}
		if tc.sap {
			l.annotations = map[string]any{"pod-reloader.cs.sap.com/secrets": "app"}
		}
		p := newReloaderSettings(nil)
		p.parse(tc.args)
		selection, reload, _ := p.complete()
		in := plan.Input{
			Here:     plan.Here{Keys: selection.Keys, Kinds: selection.Kinds, Dialects: selection.Dialects(options.Referents{})},
			Reloader: p.reloader(selection, reload),
		}
		require.NoError(t, planReader{l, func(workload.Kind) {}}.read(t.Context(), &in, nil))
		assert.Contains(t, l.asked, "ConfigMap ", name)
		assert.Equal(t, tc.want, slices.Contains(l.asked, "Secret "), name)
	}
}

func TestPlanRefusesArgumentsThatLeaveNothingToCompare(t *testing.T) {
	t.Parallel()
	l := &lister{t: t}
	p := newReloaderSettings(nil)
	p.parse([]string{"--stakater-annotations=false"})
	_, err := (&planFlags{}).compare(t.Context(), planReader{l, func(workload.Kind) {}}, p)
	require.ErrorAs(t, err, &usageError{})
	assert.Empty(t, l.asked)
}

// The driver may be installed after the comparison.
func TestPlanReadsSecretProviderClassesWhereTheClusterHasThem(t *testing.T) {
	t.Parallel()
	class := reference.Ref{Kind: reference.SecretProviderClass, Name: "app"}
	for _, missing := range [][]string{nil, {"SecretProviderClass"}} {
		l := &lister{t: t, missing: missing}
		p := newReloaderSettings(nil)
		p.parse([]string{"--enable-csi-integration"})
		selection, reload, _ := p.complete()
		in := plan.Input{Reloader: p.reloader(selection, reload)}
		require.NoError(t, planReader{l, func(workload.Kind) {}}.read(t.Context(), &in, nil))
		assert.Contains(t, l.asked, "SecretProviderClass ")
		assert.Equal(t, missing == nil, in.Objects["shop"][class].Ignored)
	}
	l := &lister{t: t, missing: []string{"Secret"}}
	require.Error(t, planReader{l, func(workload.Kind) {}}.read(t.Context(), &plan.Input{}, nil), "a cluster has Secrets")
}
