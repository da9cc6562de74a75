package act

import (
	"context"
	"math/rand/v2"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The acts that make config objects come and go.
const (
	DeleteConfig          = "delete-config"
	CreateConfig          = "create-config"
	RecreateConfigChanged = "recreate-config-changed"
)

func pauseParameter() parameter {
	return duration("pause", "0s", "0s", "100ms", "500ms", "2s", "8s", "30s")
}

func configLifeActs() []act {
	anyConfig := onConfig(configResources()...)
	return []act{
		{
			name: "recreate-config", weight: 6, on: anyConfig, with: []parameter{pauseParameter()},
			words: "user deletes {on} and creates it with equal content after {pause}",
			do: func(ctx context.Context, c client, s step) error {
				return c.recreate(ctx, s, func(world.Object) {})
			},
		},
		{
			name: RecreateConfigChanged, weight: 5, on: anyConfig,
			with:  []parameter{keyParameter(), valueParameter(), pauseParameter()},
			words: "user deletes {on} and creates it with key {key|q} set to {value|q} after {pause}",
			do: func(ctx context.Context, c client, s step) error {
				return c.recreate(ctx, s, func(object world.Object) {
					data, _ := object["data"].(world.Object)
					object["data"] = with(data, s.text("key"), encodeValue(s.key.Resource, s.text("value")))
				})
			},
		},
		{
			name: DeleteConfig, weight: 6, on: anyConfig,
			words: "user deletes {on}",
			do:    func(ctx context.Context, c client, s step) error { return c.delete(ctx, s.key) },
		},
		{
			name: CreateConfig, weight: 6, on: onAbsentConfig(),
			with: []parameter{optional("key", "added", isDataKey, drawDataKey), optional("value", omit, isText, drawCreatedValue)},
			// Without a value the object has the content that Setup gives it.
			words: "user creates {on}[ with key {key|q} set to {value|q}]",
			do:    createConfig,
		},
	}
}

func drawCreatedValue(r *rand.Rand, _ world.Key) string {
	return []string{omit, omit, "v0", "v1"}[r.IntN(4)]
}

func createConfig(ctx context.Context, c client, s step) error {
	var set map[string]string
	if s.has("value") {
		set = map[string]string{s.text("key"): s.text("value")}
	}
	object, err := configManifest(s.key, set)
	if err != nil {
		return err
	}
	return unlessThere(s.key, c.create(ctx, s.key, "kubectl-create", object))
}

// recreate deletes an object and creates it again, from what it was and after the step's pause.
func (c client) recreate(ctx context.Context, s step, edit func(world.Object)) error {
	object, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	object = exported(object)
	edit(object)
	if err := c.delete(ctx, s.key); err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	return c.create(ctx, s.key, "kubectl-create", object)
}

// exported returns what a user keeps of an object that was read: not what the server alone sets.
func exported(object world.Object) world.Object {
	kept := world.Object{}
	for field, value := range object {
		if field != "status" && field != "metadata" {
			kept[field] = value
		}
	}
	old, _ := object["metadata"].(world.Object)
	fresh := world.Object{}
	for _, field := range []string{"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"} {
		if value, there := old[field]; there {
			fresh[field] = value
		}
	}
	kept["metadata"] = fresh
	return kept
}
