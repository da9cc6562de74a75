package act

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const cart = "deployments/shop/cart"

// stamp puts managed annotations on a stored workload, as the webhook would.
func (f *recorder) stamp(on string) {
	live := f.get(on)
	meta := world.Section(templateOf(world.Deployments, live), "metadata")
	meta["annotations"] = with(world.Section(meta, "annotations"), Prefix+"config-hash", "0a1b")
	world.Section(live, "metadata", "annotations")[Prefix+"last-reload"] = "{}"
}

func TestApplyKeepsWhatOthersAddedAndRemovesWhatTheManifestLost(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("apply-workload", cart, "version", "2"))
	f.stamp(cart)
	require.Equal(t, "beta", world.Annotations(world.Section(f.get(cart), "spec", "template"))["example.com/channel"])

	require.NoError(t, f.do("apply-workload", cart, "version", "3"))
	template := world.Annotations(world.Section(f.get(cart), "spec", "template"))
	assert.Equal(t, world.Object{"example.com/scrape": "true", Prefix + "config-hash": "0a1b"}, template)
	assert.Contains(t, world.Annotations(f.get(cart)), Prefix+"last-reload")
	containers := world.Section(f.get(cart), "spec", "template", "spec")["containers"].([]any)
	container := containers[0].(world.Object)
	assert.Equal(t, "example.com/cart:3", container["image"])
	assert.Equal(t, []any{world.Object{"name": "VERSION", "value": "3"}}, container["env"])
}

func TestManifestWithoutAnnotationsOfTheTemplateRemovesThoseOfOthers(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"apply-workload", "helm-upgrade"} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			f := newRecorder(t)
			require.NoError(t, f.do(do, cart, "version", "2"))
			f.stamp(cart)
			require.NoError(t, f.do(do, cart, "version", strconv.Itoa(bareVersion)))
			assert.Empty(t, world.Annotations(world.Section(f.get(cart), "spec", "template")))
			assert.Contains(t, world.Annotations(f.get(cart)), Prefix+"last-reload")
		})
	}
}

func TestApplyOfTheSameManifestSendsNoPatch(t *testing.T) {
	t.Parallel()
	for _, key := range universe() {
		f := newRecorder(t)
		manifest, err := initial(key)
		require.NoError(t, err)
		require.NoError(t, client{f}.apply(t.Context(), key, manifest))
		assert.Equal(t, []string{"GET"}, f.methods(), key)
	}
}

func TestApplyCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("apply-config", LateConfig, "key", "greeting", "value", "x"))
	assert.Equal(t, []string{"GET", "POST"}, f.methods())
	assert.Equal(t, world.Object{"greeting": "x"}, f.get(LateConfig)["data"])
}

func TestAppliedSecretHasItsTextInTheAnnotation(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("apply-config", "secrets/shop/db", "key", "password", "value", "open sesame", "as", "stringData"))
	last, _ := world.Annotations(f.get("secrets/shop/db"))[corev1.LastAppliedConfigAnnotation].(string)
	assert.Contains(t, last, `"password":"open sesame"`)
	assert.NotContains(t, last, "last-applied-configuration")
	assert.True(t, strings.HasSuffix(last, "}\n"))
}

func TestReplaceHasNoManagedAnnotation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do, version string
		lists       bool
	}{
		"same":             {"replace-workload", "same", true},
		"another version":  {"replace-workload", "4", true},
		"opt-out":          {"opt-out-put", "same", false},
		"opt-out, version": {"opt-out-put", "2", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRecorder(t)
			f.stamp(cart)
			world.Section(f.get(cart), "metadata", "annotations")[revisionAnnotation] = "3"
			f.get(cart)["status"] = world.Object{"replicas": int64(4)}
			require.NoError(t, f.do(test.do, cart, "version", test.version))
			sent := f.decode(f.requests[1].Body)
			assert.Equal(t, "PUT", f.requests[1].Method)
			want := world.Object{"example.com/owner": "shop"}
			if test.lists {
				want[listOfConfigMaps], want[listOfSecrets] = "app, extra", "db"
			}
			assert.Equal(t, want, world.Annotations(sent))
			assert.NotContains(t, world.Annotations(world.Section(sent, "spec", "template")), Prefix+"config-hash")
			assert.NotContains(t, sent, "status")
			assert.NotContains(t, world.Section(sent, "metadata"), "resourceVersion")
		})
	}
}

func TestPinnedReplaceHasTheLiveResourceVersion(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("replace-workload", cart, "pinned", "true"))
	assert.NotEmpty(t, world.Section(f.decode(f.requests[1].Body), "metadata")["resourceVersion"])
}

func TestIgnorePutRepeatsTheSameManifest(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("ignore-put", cart, "version", "same", "times", "2", "every", "0s"))
	require.Equal(t, []string{"GET", "PUT", "GET", "PUT"}, f.methods())
	assert.JSONEq(t, string(f.requests[1].Body), string(f.requests[3].Body))
	assert.Equal(t, "true", world.Section(f.get(cart), "metadata", "labels")[Prefix+"ignored"])
}

func TestServerSideApplySendsTheWholeManifest(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("ssa-workload", cart, "version", "2", "secrets", "tls"))
	require.Len(t, f.requests, 1)
	assert.Equal(t, "/apis/apps/v1/namespaces/shop/deployments/cart?fieldManager=argocd&force=true", f.requests[0].Path)
	assert.Equal(t, "tls", world.Annotations(f.decode(f.requests[0].Body))[listOfSecrets])
}

func TestReleasePatchIsThatOfKubectl(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do("release", "cronjobs/shop/nightly", "version", "3"))
	assert.Equal(t, "/apis/batch/v1/namespaces/shop/cronjobs/nightly?fieldManager=kubectl-set", f.requests[0].Path)
	assert.Equal(t, strategicPatch, f.requests[0].ContentType)
	assert.JSONEq(t, `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{
		"$setElementOrder/containers":[{"name":"nightly"}],
		"containers":[{"image":"example.com/nightly:3","name":"nightly"}]}}}}}}`, string(f.requests[0].Body))
	spec := world.Section(templateOf(world.CronJobs, f.get("cronjobs/shop/nightly")), "spec")
	assert.Len(t, spec["containers"], 1)
}
