package check

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// What is awaited on a control plane comes: in the model, all is at rest before each step.
func TestNothingIsUnfinishedAtRest(t *testing.T) {
	t.Parallel()
	for name, h := range histories(1, 3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := inTime(h)
			simulate.Run(t, h, simulate.Options{
				StartBlocked: true,
				BeforeStep: func(step int, _ error, api simulate.Reader) {
					all := stored{}
					for _, r := range watched() {
						for _, namespace := range tenants {
							all[r] = append(all[r], api.List(r, namespace)...)
						}
					}
					assert.NoError(t, all.unfinished(), "before step %d", step+1)
				},
			})
		})
	}
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	object := func(kind, name, owner string, fields world.Object) world.Object {
		o := world.Object{"metadata": world.Object{"namespace": "shop", "name": name, "uid": name}}
		if owner != "" {
			o["metadata"] = world.Object{"namespace": "shop", "name": name, "uid": name, "ownerReferences": []any{
				world.Object{"controller": true, "kind": kind, "name": owner, "uid": owner},
			}}
		}
		maps.Copy(o, fields)
		return o
	}
	pods := func(image string) world.Object {
		return world.Object{"spec": world.Object{"containers": []any{world.Object{"image": image}}}}
	}
	deployment := func(image string, updated int64) world.Object {
		return object("", "web", "", world.Object{
			"spec": world.Object{"replicas": int64(2), "template": pods(image)}, "status": world.Object{"replicas": int64(2), "updatedReplicas": updated},
		})
	}
	job := func(image string, active int64, suspended bool) world.Object {
		return object("", "import", "", world.Object{
			"spec": world.Object{"suspend": suspended, "template": pods(image)}, "status": world.Object{"active": active},
		})
	}
	set := object("Deployment", "web-1", "web", world.Object{
		"spec": world.Object{"replicas": int64(2)}, "status": world.Object{"replicas": int64(1)},
	})
	for name, c := range map[string]struct {
		all  stored
		want string
	}{
		"a rollout that is done":               {stored{world.Deployments: {deployment("app:1", 2)}}, ""},
		"a rollout":                            {stored{world.Deployments: {deployment("app:1", 1)}}, "updatedReplicas of deployments/shop/web are 1, not 2"},
		"a rollout that cannot end":            {stored{world.Deployments: {deployment("broken:1", 1)}}, ""},
		"a ReplicaSet that lacks a pod":        {stored{world.Deployments: {deployment("app:1", 2)}, world.ReplicaSets: {set}}, "replicasets/shop/web-1 has 1 pods, not 2"},
		"a ReplicaSet that is to be collected": {stored{world.ReplicaSets: {set}}, "replicasets/shop/web-1 was not deleted with deployments/shop/web"},
		"a Job that will finish":               {stored{world.Jobs: {job("app:1", 1, false)}}, "jobs/shop/import has not come to rest"},
		"a Job that never finishes":            {stored{world.Jobs: {job("broken:1", 1, false)}}, ""},
		"a suspended Job":                      {stored{world.Jobs: {job("app:1", 0, true)}}, ""},
		"a suspended Job whose pod is left":    {stored{world.Jobs: {job("app:1", 1, true)}}, "jobs/shop/import has not come to rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.all.unfinished()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			assert.EqualError(t, err, c.want)
		})
	}
}
