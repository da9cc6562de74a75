package kind_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// pausing creates a Deployment that depends on configmap/app and asks for a pause.
func pausing(s *fixture.Fixture, name, period string) observe.Workload {
	s.Helper()
	w := s.Deployment(name, fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1, Annotations: map[string]string{
		fixture.ConfigMaps: "", auto: "true", pausePeriod: period,
	}})
	s.AwaitAdopted(w, "configmap/app")
	return w
}

func paused(o *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return paused
}

// awaitResumed waits until a Deployment is neither paused nor has the annotation of a pause.
func awaitResumed(s *fixture.Fixture, w observe.Workload) {
	s.Helper()
	s.AwaitWorkload(w, "the end of the pause", func(o *unstructured.Unstructured) bool {
		_, since := o.GetAnnotations()[pausedAt]
		return !paused(o) && !since
	})
}

// periods are those of the attempts of a test whose writes must be made within one: ever longer ones, for a slow machine.
var periods = []time.Duration{6 * time.Second, 15 * time.Second, 40 * time.Second, 80 * time.Second}

// inTime makes attempts, each in a namespace of its own, until one reports that it was over within the period of its pauses.
func inTime(t *testing.T, attempt func(s *fixture.Fixture, period time.Duration) (inTime bool)) {
	t.Helper()
	require.True(t, poll.Repeat(t, len(periods), "the pause may have ended meanwhile", func(n int) bool {
		s := fixture.New(t, shared)
		s.ConfigMap("app", fixture.Data{"key": "1"})
		return attempt(s, periods[n])
	}), "an attempt was conclusive")
}

// Two changes within the period are stamped twice and rolled out once, when it ends.
func TestPauseCollectsReloads(t *testing.T) {
	t.Parallel()
	inTime(t, collectsReloads)
}

func collectsReloads(s *fixture.Fixture, period time.Duration) (inTime bool) {
	s.Helper()
	w := pausing(s, "web", period.String())
	s.Await("the first ReplicaSet", func() error { return replicaSets(s, w, 1) })

	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "the template changes at once")
	first := s.Get(w)
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 2, "within the period")
	second, rolledOut := s.Get(w), replicaSets(s, w, 1)
	since, err := time.Parse(time.RFC3339, first.GetAnnotations()[pausedAt])
	if err != nil || time.Since(since) >= period {
		return false
	}
	require.True(s, paused(first), "the reload pauses it in the same write")
	assert.Equal(s, first.GetAnnotations()[pausedAt], second.GetAnnotations()[pausedAt], "the period counts from the first reload")
	require.NoError(s, rolledOut, "nothing rolls out yet")
	s.AwaitEvent(w, "Reloaded", "configmap/app modified", "rollout pending (paused for "+period.String()+")")

	awaitResumed(s, w)
	assert.GreaterOrEqual(s, time.Since(since), period, "not before the end of the period")
	s.AwaitEvent(w, "Resumed", "roll out")
	s.Await("the second ReplicaSet", func() error { return replicaSets(s, w, 2) })
	s.AwaitExactly(2, "the end of a pause stamps nothing", w)
	require.NoError(s, replicaSets(s, w, 2), "both changes are one rollout")
	return true
}

// replicaSets returns an error unless a Deployment has a number of ReplicaSets.
func replicaSets(s *fixture.Fixture, w observe.Workload, want int) error {
	if has := s.Watcher.ReplicaSets(w); has != want {
		return fmt.Errorf("there are %d ReplicaSets, not %d", has, want)
	}
	return nil
}

// A Deployment that a user has paused is stamped, and stays paused, also beyond the period.
func TestPauseOfUserStays(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	users, other := pausing(s, "users", "1s"), pausing(s, "other", "2s")
	s.Merge(&appsv1.Deployment{}, "users", `{"spec":{"paused":true}}`)
	s.Settled()

	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(users, 1, "a paused Deployment is stamped all the same")
	s.AwaitEvent(users, "Reloaded", "rollout pending (paused)")
	s.AwaitChanges(other, 1, "it has no pause yet")
	awaitResumed(s, other)
	s.Settled()
	stored := s.Get(users)
	assert.True(t, paused(stored), "only its user resumes it")
	assert.NotContains(t, stored.GetAnnotations(), pausedAt)
}

// A user may resume a Deployment early; a pause of the user that follows is the user's.
func TestPauseThatUserEnds(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := pausing(s, "web", "1h")
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "its configuration has changed")
	s.Merge(&appsv1.Deployment{}, "web", `{"spec":{"paused":false}}`)
	awaitResumed(s, w)
	s.Merge(&appsv1.Deployment{}, "web", `{"spec":{"paused":true}}`)
	s.Merge(&appsv1.Deployment{}, "web", `{"metadata":{"annotations":{"`+pausePeriod+`":null}}}`)
	s.Settled()
	assert.True(t, paused(s.Get(w)), "the annotation is gone with the pause that it belonged to")

	s.Merge(&appsv1.Deployment{}, "web", `{"spec":{"paused":false},"metadata":{"annotations":{"`+pausePeriod+`":"1h"}}}`)
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 2, "its configuration has changed")
	require.True(t, paused(s.Get(w)), "the reload has begun a pause of an hour")
	s.Merge(&appsv1.Deployment{}, "web", `{"metadata":{"annotations":{"`+pausePeriod+`":null}}}`)
	awaitResumed(s, w)
}

// A period that is none is a Problem of that Deployment: it reloads without a pause, and so do the others.
func TestPausePeriodThatIsNone(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	wrong, right := pausing(s, "wrong", "five minutes"), pausing(s, "right", "1s")
	s.AwaitEvent(wrong, "InvalidAnnotation", pausePeriod, "five minutes")
	set := s.Workload("StatefulSet", "set", fixture.Uses{ConfigMaps: []string{"app"}, Annotations: map[string]string{
		fixture.ConfigMaps: "", auto: "true", pausePeriod: "1s",
	}})
	s.AwaitEvent(set, "InvalidAnnotation", "only Deployments are paused")

	s.SetConfigMap("app", "key", "2")
	for _, w := range []observe.Workload{wrong, right, set} {
		s.AwaitChanges(w, 1, "its configuration has changed")
	}
	assert.False(t, paused(s.Get(wrong)), "a period that cannot be read pauses nothing")
	awaitResumed(s, right)
}

// The pause is on the Deployment: replicas that were not running when it began end it. No other test runs while they are killed.
func TestPauseSurvivesRestarts(t *testing.T) {
	inTime(t, func(s *fixture.Fixture, period time.Duration) bool {
		w := pausing(s, "web", period.String())
		s.SetConfigMap("app", "key", "2")
		s.AwaitChanges(w, 1, "its configuration has changed")
		for _, replica := range shared.Replicas() {
			replica.Kill()
		}
		inTime := paused(s.Get(w))
		awaitResumed(s, w)
		s.AwaitExactly(1, "the end of a pause stamps nothing", w)
		return inTime
	})
}
