package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestAccessReviewsAgreeWithWithdrawnPermissions(t *testing.T) {
	t.Parallel()
	s := &simulation{}
	review := func(client, verb string, resource world.Resource) *world.Call {
		return &world.Call{Client: client, Verb: verb, Key: world.Key{Resource: resource, Namespace: "shop"}}
	}
	end := withdraw(s, step(withdrawWrites, "deployments", "verbs", "patch"))
	denied := s.faults.withdrawn(review("replica-0.1", "patch", world.Deployments))
	require.NotNil(t, denied)
	assert.Equal(t, `deployments.apps is forbidden: User "replica-0.1" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`, denied.Message)
	assert.EqualValues(t, 403, denied.Code)
	assert.Nil(t, s.faults.withdrawn(review("replica-0.1", "get", world.Deployments)), "another verb")
	assert.Nil(t, s.faults.withdrawn(review("replica-0.1", "patch", world.StatefulSets)), "another resource")
	assert.Nil(t, s.faults.withdrawn(review("user", "patch", world.Deployments)), "a user")
	end()
	assert.Nil(t, s.faults.withdrawn(review("replica-0.1", "patch", world.Deployments)), "it is given back")
}

// While a permission to write is missing, what is due is reported; when it is given back, all is made up for.
func TestDeniedWritesAreReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setup  history.Setup
		denied history.Step
		judged int
	}{
		"Deployments":    {history.Setup{Replicas: 1}, step(withdrawWrites, "deployments", "for", longBlind, "verbs", "patch"), 1},
		"in direct mode": {history.Setup{Replicas: 2, Flags: []string{directFlag}}, step(withdrawWrites, "deployments", "for", longBlind, "verbs", "patch"), 1},
		"StatefulSets":   {history.Setup{Replicas: 2}, step(withdrawWrites, "statefulsets", "for", longBlind, "verbs", "patch"), 1},
		"Events":         {history.Setup{Replicas: 2}, step(withdrawWrites, "events", "for", longBlind, "verbs", "create"), 0},
		"the lease":      {history.Setup{Replicas: 2}, step(withdrawWrites, "leases", "for", "1m", "verbs", "update"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edit := step(editConfig, "secrets/shop/db", "key", "password", "value", "v7")
			edit.Wait = history.Duration(1e9)
			h := history.History{Form: history.Form, Seed: 1, Setup: tt.setup, Steps: []history.Step{tt.denied, edit}}
			require.NoError(t, Catalogue().Check(h))
			o := runner(t)(h)
			assert.Empty(t, o.Violations, words(h, o.Violations))
			assert.Positive(t, o.Judged["reloads due"])
			for _, what := range []string{"denied reloads judged", "metrics of denied reloads judged", "explanations of denied reloads judged"} {
				assert.Equal(t, tt.judged, min(o.Judged[what], 1), what)
			}
			t.Log(o.Judged)
		})
	}
}
