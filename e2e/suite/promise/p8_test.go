package promise_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// lastReload is the annotation as the documentation describes it.
type lastReload struct {
	Time    time.Time
	Hash    string
	Cause   string
	Changes []struct{ Ref, Type string }
	// Before are the reloads before it, the latest one first.
	Before []struct{ Time time.Time }
}

// explanation is what `why -o json` prints, as far as it matters here.
type explanation struct {
	Verdict, Reason string
	ConfigHash      string
	LastReload      *lastReload
	Configuration   []struct{ Ref, Started, Now, Differs string }
}

func why(s *fixture.Fixture, of observe.Workload) explanation {
	s.Helper()
	output, err := s.Installation.Why(s.Patiently(), of.Kind+"/"+of.Name, "-n", of.Namespace, "-o", "json")
	require.NoError(s, err)
	var e explanation
	require.NoError(s, json.Unmarshal([]byte(output), &e), output)
	return e
}

func TestP8RestartIsExplainedByEventMetricAnnotationAndWhy(t *testing.T) {
	t.Parallel()
	inTime(t, isExplained)
}

func isExplained(s *fixture.Fixture) bool {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.ConfigMap("same", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app", "same", "later"}, Secrets: []string{"db"}, Unread: true})
	before, err := shared.Metrics(s.Context())
	require.NoError(s, err)
	together := within(settle, func() {
		s.SetConfigMap("app", "key", "2")
		s.SetSecret("db", "key", "2")
		s.ConfigMap("later", fixture.Data{"key": "1"})
	})
	if !together {
		return false
	}
	for _, kind := range fixture.Kinds {
		assertExplained(s, observe.Workload{Kind: kind, Namespace: s.Namespace, Name: "web"},
			"configmap/app modified", "configmap/later created", "secret/db modified")
	}
	s.Await("the metric of a reload", func() error { return counted(s, before) })
	s.Settled()
	// The metrics by kind are those of the whole installation, which other tests use, too.
	total, err := countedReloads(s)
	require.NoError(s, err)
	assert.Equal(s, len(fixture.Kinds), total, "each reload is counted once")
	return true
}

func assertExplained(s *fixture.Fixture, w observe.Workload, causes ...string) {
	s.Helper()
	change := s.AwaitChanges(w, 1, "its configuration has changed")[0]
	event := s.AwaitEvent(w, "Reloaded", causes...)
	assert.NotContains(s, event.Note, "configmap/same", "%s: what did not change is no cause", w)
	assert.Equal(s, corev1.EventTypeNormal, event.Type)

	var last lastReload
	require.NoError(s, json.Unmarshal([]byte(s.Get(w).GetAnnotations()[fixture.LastReload]), &last))
	assert.Equal(s, change.AnnotationsAfter[fixture.ConfigHash], last.Hash, w)
	assert.WithinDuration(s, change.Time, last.Time, fixture.Patience, w)
	var named []string
	for _, c := range last.Changes {
		named = append(named, c.Ref+" "+c.Type)
	}
	assert.ElementsMatch(s, causes, named, w)

	explained := why(s, w)
	assert.Equal(s, "nothing", explained.Verdict, "%s: all is done", w)
	require.NotNil(s, explained.LastReload, w)
	assert.Equal(s, last.Changes, explained.LastReload.Changes, w)
	assert.Len(s, explained.Configuration, 4, w)
}

// counted returns an error unless the reloads of each kind, and of the namespace, are counted.
func counted(s *fixture.Fixture, before installation.Metrics) error {
	now, err := s.Installation.Metrics(s.Context())
	if err != nil {
		return err
	}
	if n := now.Sum("pod_reloader_namespace_reloads_total", "namespace", s.Namespace); n < float64(len(fixture.Kinds)) {
		return fmt.Errorf("reloads of the namespace: %v", n)
	}
	for _, kind := range fixture.Kinds {
		if n := now.Since(before).Sum("pod_reloader_reloads_total", "kind", kind, "cause", "several"); n < 1 {
			return fmt.Errorf("reloads of a %s by several kinds of objects: %v", kind, n)
		}
		if n := now.Since(before).Sum("pod_reloader_reload_duration_seconds_count", "kind", kind); n < 1 {
			return fmt.Errorf("durations of reloads of a %s: %v", kind, n)
		}
	}
	return nil
}

// A client that does not have the digest key asks for the reload itself, by the digest of the resourceVersions it saw.
func TestP8VerifiedReloadOfAClientIsExplained(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})

	changed := &corev1.ConfigMap{}
	s.Merge(changed, "app", `{"data":{"key":"2"}}`)
	s.MergeWorkload(w, `{"metadata":{"annotations":{"`+fixture.ConfigHash+`":"`+fixture.SAPDigest(changed)+`"}}}`)
	s.AwaitEvent(w, "Reloaded", "configmap/app modified")
	explained := why(s, w)
	require.NotNil(t, explained.LastReload)
	require.Len(t, explained.LastReload.Changes, 1)
	assert.Equal(t, "configmap/app", explained.LastReload.Changes[0].Ref)
	s.AwaitExactly(1, "the client's reload and the loop's are one", w)
	assert.NotContains(t, s.Get(w).GetAnnotations(), fixture.ConfigHash, "the request does not stay")
}

func TestP8WhyExplainsWhyNothingHappens(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	app := fixture.Uses{ConfigMaps: []string{"app"}}
	quiet := s.Deployment("quiet", app)
	never := s.Deployment("never", fixture.Uses{})
	ignored := s.Deployment("ignored", fixture.Uses{ConfigMaps: []string{"app"}, Labels: map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}})
	held := s.Deployment("held", fixture.Uses{Secrets: []string{"db"}})
	require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	s.AwaitEvent(held, "ReloadHeld", "secret/db")

	tests := map[string]struct {
		of      observe.Workload
		verdict string
		reason  string
	}{
		"InOrder":    {of: quiet, verdict: "nothing", reason: "current"},
		"NeverOpted": {of: never, verdict: "nothing", reason: "no annotation asks"},
		"Ignored":    {of: ignored, verdict: "nothing", reason: "label"},
		"Held":       {of: held, verdict: "hold", reason: "secret/db"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			explained := why(s, test.of)
			assert.Equal(t, test.verdict, explained.Verdict)
			assert.Contains(t, explained.Reason, test.reason)
			text, err := shared.Why(t.Context(), "deployment/"+test.of.Name, "-n", s.Namespace)
			require.NoError(t, err)
			assert.Contains(t, text, test.reason, "the text says the same")
		})
	}
	text, err := shared.Why(t.Context(), "deployment/quiet", "-n", s.Namespace, "--digest-key-secret=none")
	require.NoError(t, err)
	assert.Contains(t, text, "no digest key to compare with", "equal versions prove nothing where the installation may have no key")
	assert.NotContains(t, text, "nothing is due")
	s.Settled()
	for _, test := range tests {
		s.AssertChanges(test.of, 0, "nothing happens indeed")
	}
}
