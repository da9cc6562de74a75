package world_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestFieldsOfObjects(t *testing.T) {
	t.Parallel()
	o := world.Object{
		"kind":     "Deployment",
		"metadata": world.Object{"name": "cart", "labels": world.Object{"app": "cart"}, "annotations": world.Object{"a": "1"}},
		"spec":     world.Object{"replicas": int64(2), "template": nil},
	}
	assert.Equal(t, "Deployment", world.Text(o, "kind"))
	assert.Equal(t, "cart", world.Text(o, "metadata", "name"))
	assert.Empty(t, world.Text(o, "spec", "replicas"), "a number is no text")
	assert.Empty(t, world.Text(o, "kind", "name"), "a text has no fields")
	assert.Equal(t, int64(2), world.Field(o, "spec", "replicas"))
	assert.Nil(t, world.Field(nil, "spec"), "nothing has no fields")
	assert.Equal(t, world.Object{"app": "cart"}, world.Labels(o))
	assert.Equal(t, world.Object{"a": "1"}, world.Annotations(o))
	assert.Nil(t, world.Section(o, "spec", "template", "spec"), "null has no fields")
	assert.Equal(t, o, world.Section(o), "without a path it is the object itself")
}

func TestWithSharesAllButThePath(t *testing.T) {
	t.Parallel()
	o := world.Object{"metadata": world.Object{"name": "cart"}, "spec": world.Object{}}
	changed := world.With(o, "1", "metadata", "labels", "a")
	assert.Equal(t, world.Object{"name": "cart", "labels": world.Object{"a": "1"}}, changed["metadata"])
	assert.Equal(t, world.Object{"name": "cart"}, o["metadata"], "what is stored does not change")
	assert.True(t, world.Same(world.Section(o, "spec"), world.Section(changed, "spec")), "the labels are no part of the spec")
	assert.False(t, world.Same(nil, nil), "absent parts are not the same")
	assert.Equal(t, world.Object{"a": "1"}, world.With(nil, "1", "a"))
}

func TestPathsOfPodTemplates(t *testing.T) {
	t.Parallel()
	for resource, want := range map[world.Resource]int{
		world.Deployments: 2, world.StatefulSets: 2, world.DaemonSets: 2, world.Rollouts: 2, world.CronJobs: 4, world.Jobs: 2, world.Pods: 0,
	} {
		assert.Len(t, world.PodPath(resource.Plural), want, "the pod template of %s", resource.Plural)
	}
	assert.Nil(t, world.TemplatePath(world.Jobs.Plural), "the template of a Job never changes")
}
