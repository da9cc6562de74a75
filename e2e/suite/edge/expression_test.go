package edge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// Expressions come from all who may write a workload. The slowest ones that are accepted, as many as fit into a list, and names that take
// long to match with them, must delay nothing in another namespace.
func TestSlowExpressionsInOneNamespaceDelayNoOther(t *testing.T) {
	t.Parallel()
	crowd, other := fixture.New(t, shared), fixture.New(t, shared)
	for i := range 200 {
		crowd.ConfigMap(fmt.Sprintf("%s%03d", strings.Repeat("a", 240), i), fixture.Data{"key": "1"})
	}
	crowd.ConfigMap("aab", fixture.Data{"key": "1"})
	slow := crowd.Deployment("slow", fixture.Uses{})
	other.ConfigMap("app", fixture.Data{"key": "0"})
	asks := func(list ...string) {
		value, err := json.Marshal(strings.Join(list, ","))
		require.NoError(t, err)
		crowd.Merge(&appsv1.Deployment{}, "slow", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, fixture.ReloaderConfigMaps, value))
	}
	healthy := other.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	other.AwaitKnown(healthy)
	reload, limit := reloadsOf(other, healthy)
	for round := range 5 {
		list := []string{"aab"}
		for i := range 170 {
			list = append(list, fmt.Sprintf("%s%c%d%d", strings.Repeat("a*", 16), 'b'+i%20, i/20, round))
		}
		asks(list...)
		other.AwaitKnown(other.Deployment(fmt.Sprint("new-", round), fixture.Uses{ConfigMaps: []string{"app"}}))
		assert.NoError(t, fixture.Steadily(t, shared, func() error { return below(reload(), limit) }), "round %d", round)
	}
	crowd.AwaitEvent(slow, "InvalidAnnotation", "the list has reached its limit of expressions before")
	asks("aab", strings.Repeat("a*", 16)+"c")
	crowd.AwaitKnown(slow)
	crowd.SetConfigMap("aab", "key", "2")
	crowd.AwaitChanges(slow, 1, "the namespace itself is served, too")
}

// The expressions of a namespace may take more memory than it has. Those that come later are served as well.
func TestExpressionsBeyondMemoryOfTheirNamespaceAreServed(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, shared)
	f.ConfigMap("late-a", fixture.Data{"key": "1"})
	f.ConfigMap("other", fixture.Data{"key": "1"})
	for i := range 20 {
		var list []string
		for j := range 60 { // some 15 kB each
			list = append(list, fmt.Sprintf("a%d-%d-[a-z]{60}", i, j))
		}
		f.Deployment(fmt.Sprint("crowd-", i), fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: strings.Join(list, ",")}})
	}
	late := f.Deployment("late", fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "late-[a-z]"}})
	f.AwaitKnown(late)
	f.SetConfigMap("late-a", "key", "2")
	f.AwaitChanges(late, 1, "a change of what its expression matches")
	f.SetConfigMap("other", "key", "2")
	f.AwaitExactly(1, "a change of another object, which only checks it, restarts nothing", late)
	f.SetConfigMap("late-a", "key", "3")
	f.AwaitExactly(2, "the next change of what its expression matches", late)
}
