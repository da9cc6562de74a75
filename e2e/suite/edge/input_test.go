package edge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
)

func lower(s string) string { return strings.ToLower(s) }

// requireConflict requires that an error is the API's 409 with reason Conflict, and returns its message.
func requireConflict(t *testing.T, err error, what string) string {
	t.Helper()
	require.Error(t, err, what)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status, what)
	assert.EqualValues(t, http.StatusConflict, status.Status().Code, "%s: %v", what, err)
	assert.Equal(t, metav1.StatusReasonConflict, status.Status().Reason, "%s: %v", what, err)
	assert.True(t, apierrors.IsConflict(err), "%s: retry loops know it", what)
	assert.True(t, apierrors.HasStatusCause(err, "DigestMismatch"), "%s: no other conflict has that cause: %v", what, err)
	return status.Status().Message
}

// What is wrong in a list is reported to the writer and on the workload; the rest of the list works.
func TestWrongListsAreReportedAndTheRestWorks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		configMaps string
		reports    []string
	}{
		"EmptyItems":     {" ,app,, ,", nil},
		"Folded":         {"\n  app ,\n", nil}, // SAP watches for an object whose name begins with white space
		"UpperCase":      {"App,app", []string{"App", fixture.ConfigMaps}},
		"Path":           {"app,../etc/passwd", []string{"../etc/passwd"}},
		"Slash":          {"other-namespace/app,app", []string{"other-namespace/app"}},
		"TooLong":        {"app," + strings.Repeat("x", 300), []string{"item 2"}},
		"NoCommas":       {"app other,app", []string{"app other"}},
		"ControlSigns":   {"app,a\x01b\nc", []string{"item 2"}},
		"Semicolons":     {"app;db,app", []string{"app;db"}},
		"JSON":           {`["app"],app`, []string{"item 1"}},
		"ManyWrongItems": {"app," + strings.Repeat("A,B,C,D,E,F,G,H,", 50), []string{"more items are wrong"}},
	}
	s := stage(t)
	user, heard := s.Warned()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	workloads := map[string]observe.Workload{}
	for name, test := range tests {
		workloads[name] = user.Deployment(lower(name), fixture.Uses{Annotations: map[string]string{fixture.ConfigMaps: test.configMaps}})
		texts := strings.Join(heard.Take(), "\n")
		if test.reports == nil {
			assert.Empty(t, texts, "%s: nothing is wrong", name)
		}
		for _, report := range test.reports {
			assert.Contains(t, texts, report, "%s: the write is answered with a warning", name)
			s.AwaitEvent(workloads[name], "InvalidAnnotation", report)
		}
		assert.Contains(t, s.Get(workloads[name]).GetAnnotations()[fixture.ConfigRecord], "configmap/app=", "%s: the valid name is tracked", name)

		user.MergeWorkload(workloads[name], `{"metadata":{"labels":{"a":"b"}}}`)
		assert.Empty(t, heard.Take(), "%s: a write that did not bring the problem has no warning", name)
	}
	s.SetConfigMap("app", "key", "2")
	for name, w := range workloads {
		s.AwaitChanges(w, 1, name+": what is valid in the list works")
	}
	s.Settled()
	for name, w := range workloads {
		s.AssertChanges(w, 1, name)
	}
}

// Lists under almost the right name, or where they are not read, do nothing; but never silently.
func TestMisplacedAnnotationsAreReported(t *testing.T) {
	t.Parallel()
	s := stage(t)
	user, heard := s.Warned()
	user.Deployment("singular", fixture.Uses{Annotations: map[string]string{"pod-reloader.cs.sap.com/configmap": "app"}})
	assert.Contains(t, strings.Join(heard.Take(), "\n"), `use "pod-reloader.cs.sap.com/configmaps"`)
	manifest := s.Manifest("Deployment", "template", fixture.Uses{})
	template := manifest.Object["spec"].(map[string]any)["template"].(map[string]any)
	template["metadata"].(map[string]any)["annotations"] = map[string]any{fixture.Secrets: "db"}
	require.NoError(t, user.Create(t.Context(), manifest))
	assert.Contains(t, strings.Join(heard.Take(), "\n"), "put it into metadata.annotations of the workload")
}

// A missing object is reported on the write that lists it, and on the workload.
func TestMissingObjectIsReported(t *testing.T) {
	t.Parallel()
	s := stage(t)
	user, heard := s.Warned()
	w := user.Deployment("web", fixture.Uses{ConfigMaps: []string{"absent"}, Secrets: []string{"gone"}})
	texts := strings.Join(heard.Take(), "\n")
	assert.Contains(t, texts, "configmap/absent")
	assert.Contains(t, texts, "secret/gone")
	event := s.AwaitEvent(w, "ConfigMissing", "configmap/absent", "secret/gone")
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
}

// A new dummy that does not match: the one write that is rejected.
func TestWrongDigestIsRejectedWithBothDigests(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	for _, w := range s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}}) {
		before := s.Get(w)
		given := strings.Repeat("0", 63) + "1"
		asking := before.DeepCopy()
		asking.SetResourceVersion("") // its controller may write the status at any time
		annotations := asking.GetAnnotations()
		annotations[fixture.ConfigHash] = given
		asking.SetAnnotations(annotations)
		message := requireConflict(t, s.Update(t.Context(), asking), w.String())
		for _, part := range []string{given, fixture.TemplateAnnotations(before)[fixture.ConfigHash], "configmap/app", "secret/db"} {
			assert.Contains(t, message, part, "%s: the digest that was given, the one that is right, and what it is over", w)
		}
		after := s.Get(w)
		assert.Equal(t, before.Object["spec"], after.Object["spec"], "%s: nothing was stored", w)
		assert.Equal(t, fixture.Ours(before), fixture.Ours(after), "%s: nothing was stored", w)
		s.AssertChanges(w, 0, "a rejected request restarts nothing")
	}
}

// The client library, in the loop that its documentation shows: the first digest is out of date.
func TestRetryOnConflictAroundAPoke(t *testing.T) {
	t.Parallel()
	s := stage(t)
	outdated := s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	changes := 0
	retried := poll.Repeat(t, 5, "the loop was at the workload just then, so that the first try was stale", func(int) bool {
		changes++
		s.SetConfigMap("app", "key", fmt.Sprintf("changed %d times", changes))
		tries, result := pokeWithRetries(t, s, w, outdated)
		if tries == 1 && result.Outcome == poke.Stale {
			return false
		}
		assert.Equal(t, 2, tries, "the first try is a conflict that a retry loop knows, the second one proves what is there")
		assert.Contains(t, []poke.Outcome{poke.Reloaded, poke.Current, poke.Purged, poke.Stale}, result.Outcome, "the loop may have been faster")
		return true
	})
	require.True(t, retried, "in each of 5 attempts, the loop was at the workload before the first try")
	s.AwaitExactly(changes, "the client's reload and the loop's are one", w)
	assert.NotContains(t, s.Get(w).GetAnnotations(), fixture.ConfigHash, "no request stays")
}

// pokeWithRetries asks for a reload by the digest of an outdated ConfigMap, and where that is a conflict by the digest of what
// is there. It returns the number of its tries.
func pokeWithRetries(t *testing.T, s *fixture.Fixture, w observe.Workload, outdated *corev1.ConfigMap) (tries int, result poke.Result) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		seen := outdated
		if tries++; tries > 1 {
			seen = &corev1.ConfigMap{}
			if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: s.Namespace, Name: "app"}, seen); err != nil {
				return err
			}
		}
		var err error
		result, err = poke.Do(t.Context(), s.Client, poke.Request{
			GroupVersionKind: observe.KindNamed("Deployment").GroupVersionKind(), Namespace: s.Namespace, Name: w.Name,
			Digest: fixture.SAPDigest(seen), Generation: s.Get(w).GetGeneration(),
		})
		return err
	}))
	return tries, result
}

// A client asks for the same reload once more, because an answer was lost or it does not know better.
func TestPokeRepeated(t *testing.T) {
	t.Parallel()
	s := stage(t)
	app := s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	request := poke.Request{GroupVersionKind: observe.KindNamed("Deployment").GroupVersionKind(), Namespace: s.Namespace, Name: "web"}
	ask := func(generation int64) poke.Result {
		t.Helper()
		request.Generation = generation
		result, err := poke.Do(t.Context(), s.Client, request)
		require.NoError(t, err)
		return result
	}
	changes, before, first := 0, int64(0), poke.Result{}
	s.Await("a request that is faster than the loop", func() error {
		changes++
		before = s.Get(w).GetGeneration()
		s.Merge(app, "app", fmt.Sprintf(`{"data":{"key":"changed %d times"}}`, changes))
		request.Digest = fixture.SAPDigest(app)
		if first = ask(0); first.Outcome != poke.Reloaded {
			return fmt.Errorf("%s: another request has reloaded it", first.Outcome)
		}
		return nil
	})
	assert.Equal(t, first, ask(0), "without a generation the answer is the same again, with the time of the one reload")
	assert.Equal(t, first, ask(before), "bound to what was there before: by this digest it was reloaded since then")
	assert.Equal(t, poke.Current, ask(s.Get(w).GetGeneration()).Outcome, "bound to what is there now: nothing was to do")
	s.AwaitExactly(changes, "however often it is asked for, a change is one restart", w)
}

// Reload requests that cannot be intended are removed, and no write is rejected for them.
func TestUnintendedReloadRequestsArePurged(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	dummy := func(value string) string {
		return `{"metadata":{"annotations":{"` + fixture.ConfigHash + `":"` + value + `"}}}`
	}
	for _, kind := range fixture.Kinds {
		never := s.Workload(kind, "never-opted-in", fixture.Uses{})
		assert.NotContains(t, s.MergeWorkload(never, dummy("0123")).GetAnnotations(), fixture.ConfigHash, "%s never opted in", never)
		created := s.Workload(kind, "created-with", fixture.Uses{ConfigMaps: []string{"app"}, Annotations: map[string]string{fixture.ConfigHash: "0123"}})
		assert.NotContains(t, s.Get(created).GetAnnotations(), fixture.ConfigHash, "%s was created with it", created)

		w := s.Workload(kind, "web", fixture.Uses{ConfigMaps: []string{"app"}})
		s.MergeWorkload(w, map[bool]string{true: `{"spec":{"suspend":true}}`, false: `{"spec":{"minReadySeconds":1}}`}[kind == "CronJob"])
		stored := s.MergeWorkload(w, dummy("0123@1"))
		require.Greater(t, stored.GetGeneration(), int64(1))
		assert.NotContains(t, stored.GetAnnotations(), fixture.ConfigHash, "%s: made for an earlier generation", w)
	}
	s.Settled()
	for _, kind := range fixture.Kinds {
		for _, name := range []string{"never-opted-in", "created-with", "web"} {
			s.AssertChanges(observe.Workload{Kind: kind, Namespace: s.Namespace, Name: name}, 0, "a purge restarts nothing")
		}
	}
}

// Managed annotations that were edited or removed by hand are restored, and nothing restarts. Where an edit took so long that the
// webhook may have given up reading, and let it pass, that shows nothing: other workloads are edited then.
func TestManagedAnnotationsEditedByHandAreRestored(t *testing.T) {
	t.Parallel()
	require.True(t, poll.Repeat(t, 5, fixture.LeftOut, func(int) bool {
		s := stage(t)
		user, heard := s.Warned()
		s.ConfigMap("app", fixture.Data{"key": "1"})
		workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}})
		s.SetConfigMap("app", "key", "2")
		s.AwaitExactly(1, "so that all managed annotations are there", workloads...)
		for _, w := range workloads {
			if !editByHand(user, heard, w) {
				return false
			}
		}
		s.AwaitExactly(1, "hand edits of managed annotations restart nothing", workloads...)
		s.SetConfigMap("app", "key", "3")
		s.AwaitExactly(2, "and the next change is seen", workloads...)
		return true
	}), "an attempt was conclusive")
}

// editByHand edits and removes each managed annotation of a workload, and looks at the answers. It reports whether all edits were prompt.
func editByHand(user *fixture.Fixture, heard *controlplane.Warnings, w observe.Workload) (prompt bool) {
	user.Helper()
	workload := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value) }
	template := func(key, value string) string {
		patch := workload(key, value)
		for _, field := range slices.Backward(observe.KindNamed(w.Kind).TemplatePath()) {
			patch = fmt.Sprintf(`{%q:%s}`, field, patch)
		}
		return patch
	}
	before := user.Get(w)
	for _, edit := range []struct {
		patch  string
		silent bool
	}{
		{template(fixture.ConfigHash, `"0123456789abcdef"`), false},
		{template(fixture.ConfigHash, `"not a hash at all"`), false},
		{template(fixture.ConfigHash, `null`), true},
		{workload(fixture.ConfigRecord, `"v1:-:00000000:configmap/app=0123456789abcdef@1"`), false},
		{workload(fixture.ConfigRecord, `"garbage"`), false},
		{workload(fixture.ConfigRecord, `null`), true},
		{template(fixture.ConfigRestart, `"7"`), false},
		{workload(fixture.LastReload, `"{}"`), false},
		{workload(fixture.LastReload, `null`), true},
	} {
		heard.Take()
		var answer *unstructured.Unstructured
		if !fixture.Promptly(func() { answer = user.MergeWorkload(w, edit.patch) }) {
			return false
		}
		assert.Equal(user, fixture.Ours(before), fixture.Ours(answer), "%s after %s", w, edit.patch)
		assert.Equal(user, fixture.TemplateAnnotations(before), fixture.TemplateAnnotations(answer), "%s after %s", w, edit.patch)
		if texts := strings.Join(heard.Take(), "\n"); edit.silent {
			assert.Empty(user, texts, "%s: a removal, as by a manifest, needs no warning: %s", w, edit.patch)
		} else {
			assert.Contains(user, texts, "pod-reloader", "%s: an edit of a managed annotation is answered with a warning: %s", w, edit.patch)
		}
	}
	return true
}
