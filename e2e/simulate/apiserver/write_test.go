package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestCreateSetsIdentityAndDefaults(t *testing.T) {
	t.Parallel()
	s := server(t)
	u := post(t, s, deployments, cartBody).object()
	assert.Equal(t, "shop", u.GetNamespace())
	assert.NotEmpty(t, u.GetUID())
	assert.NotEmpty(t, u.GetResourceVersion())
	assert.NotEmpty(t, field(u, "metadata", "creationTimestamp"))
	assert.Empty(t, u.GetManagedFields(), "they are not tracked")
	for path, want := range map[string]any{
		"metadata.generation": int64(1), "spec.replicas": int64(1), "spec.revisionHistoryLimit": int64(10),
		"spec.progressDeadlineSeconds": int64(600), "spec.strategy.rollingUpdate.maxSurge": "25%",
		"spec.template.spec.restartPolicy": "Always", "spec.template.spec.dnsPolicy": "ClusterFirst",
		"spec.template.spec.terminationGracePeriodSeconds": int64(30), "spec.template.spec.schedulerName": "default-scheduler",
	} {
		assert.EqualValues(t, want, field(u, strings.Split(path, ".")...), path)
	}
	stored, ok := s.Get(worldKey("deployments", "cart"))
	require.True(t, ok, "the object is stored")
	containers, _ := field(world.Meta(stored), "spec", "template", "spec", "containers").([]any)
	container, _ := containers[0].(map[string]any)
	assert.Equal(t, "IfNotPresent", container["imagePullPolicy"])
	assert.Equal(t, "File", container["terminationMessagePolicy"])
	volumes, _ := field(world.Meta(stored), "spec", "template", "spec", "volumes").([]any)
	assert.Equal(t, map[string]any{"name": "v", "configMap": map[string]any{"name": "app", "defaultMode": int64(420)}}, volumes[0])
}

func TestDefaultsOfOtherKinds(t *testing.T) {
	t.Parallel()
	template := `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"OnFailure","containers":[{"name":"c","image":"x"}]}}`
	for name, tc := range map[string]struct {
		path, body string
		want       map[string]any
	}{
		"cronjobs": {"/apis/batch/v1/namespaces/shop/cronjobs", `{"metadata":{"name":"x"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{` + template + `}}}}`, map[string]any{
			"spec.concurrencyPolicy": "Allow", "spec.suspend": false, "spec.successfulJobsHistoryLimit": int64(3), "spec.failedJobsHistoryLimit": int64(1),
			"spec.jobTemplate.spec.backoffLimit": nil, "spec.jobTemplate.spec.template.spec.dnsPolicy": "ClusterFirst",
		}},
		"jobs": {"/apis/batch/v1/namespaces/shop/jobs", `{"metadata":{"name":"x"},"spec":{` + template + `}}`, map[string]any{
			"spec.backoffLimit": int64(6), "spec.completions": int64(1), "spec.parallelism": int64(1), "spec.completionMode": "NonIndexed",
			"spec.suspend": false, "spec.podReplacementPolicy": "TerminatingOrFailed", "spec.template.metadata.labels.job-name": "x",
		}},
		"daemonsets": {"/apis/apps/v1/namespaces/shop/daemonsets", `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + strings.Replace(template, "OnFailure", "Always", 1) + `}}`, map[string]any{
			"spec.replicas": nil, "spec.updateStrategy.rollingUpdate.maxUnavailable": int64(1), "metadata.annotations": map[string]any{"deprecated.daemonset.template.generation": "1"},
		}},
		"statefulsets": {"/apis/apps/v1/namespaces/shop/statefulsets", `{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},` + strings.Replace(template, "OnFailure", "Always", 1) + `}}`, map[string]any{
			"spec.podManagementPolicy": "OrderedReady", "spec.updateStrategy.rollingUpdate.partition": int64(0), "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := post(t, server(t), tc.path, tc.body).object()
			for path, want := range tc.want {
				assert.EqualValues(t, want, field(u, strings.Split(path, ".")...), path)
			}
		})
	}
}

func TestCreateFailures(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 262144)
	for name, tc := range map[string]struct {
		path, body string
		code       int
		reason     metav1.StatusReason
		message    string
	}{
		"exists":                {configMaps, `{"metadata":{"name":"app"}}`, 409, metav1.StatusReasonAlreadyExists, `configmaps "app" already exists`},
		"namespace missing":     {"/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"app"}}`, 404, metav1.StatusReasonNotFound, `namespaces "none" not found`},
		"other namespace":       {configMaps, `{"metadata":{"name":"b","namespace":"c"}}`, 400, metav1.StatusReasonBadRequest, "does not match the namespace sent on the request"},
		"with resourceVersion":  {configMaps, `{"metadata":{"name":"b","resourceVersion":"1"}}`, 500, "", "resourceVersion should not be set on objects to be created"},
		"no JSON":               {configMaps, `{`, 400, metav1.StatusReasonBadRequest, "couldn't get version/kind; json parse error"},
		"wrong type":            {configMaps, `{"metadata":{"name":"b"},"data":{"a":1}}`, 400, metav1.StatusReasonBadRequest, "cannot be handled as a ConfigMap"},
		"wrong version":         {configMaps, `{"apiVersion":"v2","metadata":{"name":"b"}}`, 400, metav1.StatusReasonBadRequest, "cannot be handled as a ConfigMap"},
		"no name":               {configMaps, `{}`, 422, metav1.StatusReasonInvalid, "name or generateName is required"},
		"selector differs":      {deployments, strings.Replace(cartBody, `"matchLabels":{"app":"cart"}`, `"matchLabels":{"app":"b"}`, 1), 422, metav1.StatusReasonInvalid, "`selector` does not match template `labels`"},
		"annotations too long":  {configMaps, `{"metadata":{"name":"b","annotations":{"a":"` + long + `"}}}`, 422, metav1.StatusReasonInvalid, "metadata.annotations: Too long"},
		"template too long":     {deployments, strings.Replace(cartBody, `"template":{"metadata":{`, `"template":{"metadata":{"annotations":{"a":"`+long+`"},`, 1), 422, metav1.StatusReasonInvalid, "spec.template.annotations: Too long"},
		"body too large":        {configMaps, strings.Repeat(" ", 3<<20+1), 413, metav1.StatusReasonRequestEntityTooLarge, "limit is 3145728"},
		"key in both data":      {configMaps, `{"metadata":{"name":"b"},"data":{"a":"x"},"binaryData":{"a":"eA=="}}`, 422, metav1.StatusReasonInvalid, "data[a]: Invalid value: \"a\": duplicate of key present in binaryData"},
		"data too large":        {configMaps, `{"metadata":{"name":"b"},"data":{"a":"` + strings.Repeat("x", 1<<20+1) + `"}}`, 422, metav1.StatusReasonInvalid, "Too long"},
		"cluster-wide":          {"/api/v1/configmaps", `{"metadata":{"name":"b"}}`, 405, metav1.StatusReasonMethodNotAllowed, ""},
		"unknown path":          {"/apis/apps/v1/namespaces/shop/y", `{}`, 404, metav1.StatusReasonNotFound, "the server could not find the requested resource"},
		"unknown subresource":   {deployments + "/cart/scale", `{}`, 404, metav1.StatusReasonNotFound, ""},
		"Event without a cause": {"/apis/events.k8s.io/v1/namespaces/shop/events", `{"metadata":{"name":"b"}}`, 422, metav1.StatusReasonInvalid, "eventTime: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			post(t, s, configMaps, `{"metadata":{"name":"app"}}`).object()
			before := s.Version()
			a := post(t, s, tc.path, tc.body)
			require.Equal(t, tc.code, a.Code, a.Body)
			assert.Equal(t, tc.reason, a.failure().Reason)
			assert.Contains(t, a.failure().Message, tc.message)
			assert.Equal(t, before, s.Version())
		})
	}
}

func TestGeneratedNamesAreTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	names := func() []string {
		s := server(t)
		var out []string
		for range 3 {
			out = append(out, post(t, s, configMaps, `{"metadata":{"generateName":"a-"}}`).object().GetName())
		}
		return out
	}
	first := names()
	assert.Equal(t, first, names())
	assert.NotEqual(t, first[0], first[1])
	assert.Regexp(t, `^a-[a-z0-9]{5}$`, first[0])
}

func TestSecretTakesStringData(t *testing.T) {
	t.Parallel()
	u := post(t, server(t), "/api/v1/namespaces/shop/secrets", `{"metadata":{"name":"db"},"stringData":{"a":"b"}}`).object()
	assert.Equal(t, map[string]any{"a": "Yg=="}, field(u, "data"))
	assert.Nil(t, field(u, "stringData"))
	assert.Equal(t, "Opaque", field(u, "type"))
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why       string
		path      string
		patch     string
		stored    bool
		increases bool
	}{
		"spec":                 {"Any change of the spec counts.", "", `{"spec":{"replicas":2}}`, true, true},
		"annotation":           {"Annotations are copied to ReplicaSets.", "", `{"metadata":{"annotations":{"a":"b"}}}`, true, true},
		"label":                {"Other metadata does not count.", "", `{"metadata":{"labels":{"a":"b"}}}`, true, false},
		"nothing":              {"A write without a change is not stored.", "", `{"spec":{"replicas":1}}`, false, false},
		"null":                 {"A default comes back.", "", `{"spec":{"replicas":null}}`, false, false},
		"unknown field":        {"It is dropped.", "", `{"spec":{"nothing":2}}`, false, false},
		"status through main":  {"Only the subresource changes it.", "", `{"status":{"replicas":2}}`, false, false},
		"status":               {"It never counts.", "/status", `{"status":{"replicas":2}}`, true, false},
		"spec through status":  {"It is ignored.", "/status", `{"spec":{"replicas":2}}`, false, false},
		"label through status": {"It is ignored for Deployments.", "/status", `{"metadata":{"labels":{"a":"b"}}}`, false, false},
		"annotation by status": {"It is stored but does not count.", "/status", `{"metadata":{"annotations":{"a":"b"}}}`, true, false},
		"identity":             {"The server's fields are the server's.", "", `{"metadata":{"generation":7,"creationTimestamp":null,"managedFields":null}}`, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var commits []world.Commit
			s := server(t, func(o *apiserver.Options) { o.OnCommit = func(c world.Commit) { commits = append(commits, c) } })
			before := post(t, s, deployments, cartBody).object()
			commits = nil
			after := merge(t, s, cart+tc.path, tc.patch).object()
			assert.Equal(t, tc.stored, len(commits) == 1, tc.why)
			assert.Equal(t, tc.stored, after.GetResourceVersion() != before.GetResourceVersion(), tc.why)
			assert.Equal(t, tc.increases, after.GetGeneration() == before.GetGeneration()+1, tc.why)
			if !tc.increases {
				assert.Equal(t, before.GetGeneration(), after.GetGeneration(), tc.why)
			}
		})
	}
}

func TestAnnotationsOfOtherKindsLeaveTheGeneration(t *testing.T) {
	t.Parallel()
	s := server(t)
	path := "/apis/apps/v1/namespaces/shop/statefulsets"
	post(t, s, path, strings.Replace(cartBody, `"Deployment"`, `"StatefulSet"`, 1)).object()
	assert.EqualValues(t, 1, merge(t, s, path+"/cart", `{"metadata":{"annotations":{"a":"b"}}}`).object().GetGeneration())
	assert.EqualValues(t, 2, merge(t, s, path+"/cart", `{"spec":{"replicas":3}}`).object().GetGeneration())
}

func TestDaemonSetCountsItsTemplates(t *testing.T) {
	t.Parallel()
	s := server(t)
	path := "/apis/apps/v1/namespaces/shop/daemonsets"
	post(t, s, path, strings.Replace(cartBody, `"Deployment"`, `"DaemonSet"`, 1)).object()
	u := merge(t, s, path+"/cart", `{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`).object()
	assert.Equal(t, "2", u.GetAnnotations()["deprecated.daemonset.template.generation"])
	assert.EqualValues(t, 2, u.GetGeneration())
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why  string
		send func(t *testing.T, s http.Handler, version, uid string) answer
		code int
	}{
		"PUT without": {"An unconditional update wins.", func(t *testing.T, s http.Handler, _, _ string) answer {
			t.Helper()
			return put(t, s, configMaps+"/app", `{"metadata":{"name":"app"},"data":{"a":"3"}}`)
		}, 200},
		"PUT stale": {"The version is not the stored one.", func(t *testing.T, s http.Handler, version, _ string) answer {
			t.Helper()
			return put(t, s, configMaps+"/app", `{"metadata":{"name":"app","resourceVersion":"`+version+`"},"data":{"a":"3"}}`)
		}, 409},
		"PATCH stale": {"The patch brings a version.", func(t *testing.T, s http.Handler, version, _ string) answer {
			t.Helper()
			return merge(t, s, configMaps+"/app", `{"metadata":{"resourceVersion":"`+version+`","annotations":{"a":"b"}}}`)
		}, 409},
		"PATCH stale, not only metadata": {"The long way, too.", func(t *testing.T, s http.Handler, version, _ string) answer {
			t.Helper()
			return merge(t, s, configMaps+"/app", `{"metadata":{"resourceVersion":"`+version+`"},"data":{"a":"3"}}`)
		}, 409},
		"PUT of another object": {"The UID is a precondition.", func(t *testing.T, s http.Handler, _, _ string) answer {
			t.Helper()
			return put(t, s, configMaps+"/app", `{"metadata":{"name":"app","uid":"another"}}`)
		}, 409},
		"DELETE stale": {"The version is not the stored one.", func(t *testing.T, s http.Handler, version, _ string) answer {
			t.Helper()
			return send(t, s, call{method: http.MethodDelete, path: configMaps + "/app", body: `{"preconditions":{"resourceVersion":"` + version + `"}}`})
		}, 409},
		"DELETE with UID": {"The UID is right.", func(t *testing.T, s http.Handler, _, uid string) answer {
			t.Helper()
			return send(t, s, call{method: http.MethodDelete, path: configMaps + "/app", body: `{"preconditions":{"uid":"` + uid + `"}}`})
		}, 200},
		"wrong name": {"Path and body disagree.", func(t *testing.T, s http.Handler, _, _ string) answer {
			t.Helper()
			return put(t, s, configMaps+"/app", `{"metadata":{"name":"b"}}`)
		}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			first := post(t, s, configMaps, `{"metadata":{"name":"app"},"data":{"a":"1"}}`).object()
			merge(t, s, configMaps+"/app", `{"data":{"a":"2"}}`).object()
			a := tc.send(t, s, first.GetResourceVersion(), string(first.GetUID()))
			require.Equal(t, tc.code, a.Code, a.Body)
			if tc.code == 409 {
				status := a.failure()
				assert.Equal(t, metav1.StatusReasonConflict, status.Reason, tc.why)
				if tc.why == "The version is not the stored one." && name == "PUT stale" {
					assert.Equal(t, `Operation cannot be fulfilled on configmaps "app": the object has been modified; please apply your changes to the latest version and try again`, status.Message)
				}
			}
		})
	}
}

func TestLeaseNeedsAVersion(t *testing.T) {
	t.Parallel()
	s := server(t)
	leases := "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
	created := put(t, s, leases+"/l", `{"metadata":{"name":"l"}}`)
	require.Equal(t, 201, created.Code, "PUT creates a Lease")
	a := put(t, s, leases+"/l", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"a"}}`)
	require.Equal(t, 422, a.Code)
	assert.Contains(t, a.failure().Message, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
	a = put(t, s, leases+"/l", `{"metadata":{"name":"l","resourceVersion":"`+created.object().GetResourceVersion()+`"},"spec":{"holderIdentity":"a"}}`)
	assert.Equal(t, 200, a.Code, a.Body)
}

func TestImmutableFields(t *testing.T) {
	t.Parallel()
	s := server(t)
	post(t, s, deployments, cartBody).object()
	a := merge(t, s, cart, `{"spec":{"selector":{"matchLabels":{"team":"x"}},"template":{"metadata":{"labels":{"team":"x"}}}}}`)
	require.Equal(t, 422, a.Code)
	assert.Contains(t, a.failure().Message, "spec.selector: Invalid value")
	assert.Contains(t, a.failure().Message, "field is immutable")

	jobs := "/apis/batch/v1/namespaces/shop/jobs"
	post(t, s, jobs, `{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"x"}]}}}}`).object()
	a = merge(t, s, jobs+"/j", `{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`)
	require.Equal(t, 422, a.Code)
	assert.Contains(t, a.failure().Message, "spec.template: Invalid value")
	assert.Equal(t, 200, merge(t, s, jobs+"/j", `{"metadata":{"annotations":{"a":"b"}}}`).Code)
}

func TestFinalizersHoldUpADeletion(t *testing.T) {
	t.Parallel()
	s := server(t)
	post(t, s, configMaps, `{"metadata":{"name":"app","finalizers":["a.b/c"]}}`).object()
	u := remove(t, s, configMaps+"/app").object()
	require.NotNil(t, u.GetDeletionTimestamp())
	again := remove(t, s, configMaps+"/app").object()
	assert.Equal(t, u.GetResourceVersion(), again.GetResourceVersion())
	assert.Equal(t, 409, post(t, s, configMaps, `{"metadata":{"name":"app"}}`).Code)
	merge(t, s, configMaps+"/app", `{"metadata":{"finalizers":null}}`).object()
	assert.Equal(t, 404, get(t, s, configMaps+"/app").Code)
	assert.Equal(t, 404, remove(t, s, configMaps+"/app").Code)
}

func TestNamespaceEndsInTwoSteps(t *testing.T) {
	t.Parallel()
	s := server(t)
	u := remove(t, s, "/api/v1/namespaces/shop").object()
	assert.Equal(t, "Terminating", field(u, "status", "phase"))
	a := post(t, s, configMaps, `{"metadata":{"name":"app"}}`)
	require.Equal(t, 403, a.Code)
	assert.Contains(t, a.failure().Message, "because it is being terminated")
	require.True(t, s.Remove(world.Key{Resource: world.Namespaces, Name: "shop"}), "the namespace was stored")
	assert.Equal(t, 404, get(t, s, "/api/v1/namespaces/shop").Code)
}

func TestDryRunStoresNothing(t *testing.T) {
	t.Parallel()
	s := server(t)
	before := s.Version()
	assert.Equal(t, 201, post(t, s, configMaps+"?dryRun=All", `{"metadata":{"name":"app"}}`).Code)
	assert.Equal(t, before, s.Version())
	post(t, s, configMaps, `{"metadata":{"name":"app"}}`).object()
	before = s.Version()
	u := merge(t, s, configMaps+"/app?dryRun=All", `{"data":{"a":"b"}}`).object()
	assert.Equal(t, map[string]any{"a": "b"}, field(u, "data"))
	assert.Equal(t, 200, remove(t, s, configMaps+"/app?dryRun=All").Code)
	assert.Equal(t, before, s.Version())
}
