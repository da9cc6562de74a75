package act

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// bareVersion is the version whose manifest has no annotation of the pod template. It is the latest that is drawn, so that versions come back.
const bareVersion = 7

// brokenImage is one that never starts.
const brokenImage = "example.com/broken:1"

func versionParameter() parameter {
	return number("version", 1, 999, "1", "2", "3", "4", "5", "6", strconv.Itoa(bareVersion))
}

func releaseActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: "release", weight: 18, on: anyWorkload, with: []parameter{versionParameter()},
			words: "user sets the image of {on} to version {version}",
			do: func(ctx context.Context, c client, s step) error {
				return c.setVersion(ctx, s.key, s.number("version"))
			},
		},
		{
			name: "release-broken", weight: 4, on: onWorkload(world.Deployments, world.StatefulSets, world.DaemonSets, world.Rollouts),
			words: "user sets the image of {on} to one that cannot start",
			do:    func(ctx context.Context, c client, s step) error { return c.setImage(ctx, s.key, brokenImage) },
		},
		{
			name: "config-and-release", weight: 9, on: anyWorkload,
			with: []parameter{
				required("config", isConfigRef, drawConfigOf), required("key", isDataKey, pick("greeting", "level", "password", "added")),
				valueParameter(), versionParameter(), duration("gap", "0s", "20ms", "100ms", "300ms", "800ms"),
			},
			words: "user sets key {key|q} of {config} to {value|q} and, {gap} later, the image of {on} to version {version}",
			do:    configAndRelease,
		},
	}
}

// setImage is "kubectl set image".
func (c client) setImage(ctx context.Context, key world.Key, image string) error {
	container, err := containerName(key)
	if err != nil {
		return err
	}
	return c.setInContainer(ctx, key, container, world.Object{"image": image})
}

func (c client) setVersion(ctx context.Context, key world.Key, version int) error {
	p, err := planOf(key)
	if err != nil {
		return err
	}
	return c.setImage(ctx, key, p.image(version))
}

// containerName is the container's name, which a copy has from its original.
func containerName(key world.Key) (string, error) {
	p, err := planOf(key)
	return p.name, err
}

// setInContainer changes fields of one container, as kubectl does.
func (c client) setInContainer(ctx context.Context, key world.Key, container string, fields world.Object) error {
	if key.Resource == world.Rollouts {
		return c.editRollout(ctx, key, container, fields)
	}
	return c.patch(ctx, key, "kubectl-set", change{strategicPatch, containerPatch(key.Resource, container, fields)})
}

// containerPatch is the patch that kubectl makes of a change to one container.
func containerPatch(r world.Resource, name string, fields world.Object) world.Object {
	fields["name"] = name
	return inTemplate(r, world.Object{"spec": world.Object{
		"$setElementOrder/containers": []any{world.Object{"name": name}},
		"containers":                  []any{fields},
	}})
}

func isConfigRef(value string) error {
	_, err := parseConfig(value, configResources())
	return err
}

// drawConfigOf draws a config object that the workload uses.
func drawConfigOf(r *rand.Rand, on world.Key) string {
	p, err := planOf(on)
	if err != nil {
		return LateConfig
	}
	all := append(append([]source{}, p.envFrom...), p.volumes...)
	s := all[r.IntN(len(all))]
	return world.Key{Resource: s.resource, Namespace: on.Namespace, Name: s.name}.String()
}

// configAndRelease goes on where the config object is missing.
func configAndRelease(ctx context.Context, c client, s step) error {
	config, err := parseConfig(s.text("config"), configResources())
	if err != nil {
		return err
	}
	edited := c.setValue(ctx, config, "patch", map[string]string{s.text("key"): s.text("value")})
	if edited != nil && !errors.Is(edited, ErrSkipped) {
		return fmt.Errorf("edit %s: %w", config, edited)
	}
	if err := pause(ctx, s.pause("gap")); err != nil {
		return err
	}
	return c.setVersion(ctx, s.key, s.number("version"))
}

// isEnvValue accepts a value of an environment variable.
func isEnvValue(value string) error {
	if strings.ContainsRune(value, 0) {
		return errors.New("has a NUL")
	}
	return isText(value)
}
