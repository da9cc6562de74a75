package act

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func manifestActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: "apply-workload", weight: 9, on: anyWorkload,
			with:  append([]parameter{versionParameter()}, listParameters(6)...),
			words: "user applies version {version} of the manifest of {on}[, configmaps {configmaps|q}][, secrets {secrets|q}]",
			do: func(ctx context.Context, c client, s step) error {
				manifest, err := s.manifest()
				if err != nil {
					return err
				}
				return c.apply(ctx, s.key, manifest)
			},
		},
		{
			name: "replace-workload", weight: 7, on: anyWorkload,
			with: []parameter{
				optional("version", sameVersion, isVersionOrSame, drawVersionOrSame), oneOf("pinned", "false", "true"),
			},
			words: "user replaces {on} by a manifest without managed annotations (version: {version}, resourceVersion given: {pinned})",
			do:    replaceWorkload,
		},
		{
			name: "ssa-workload", weightSSA: 8, on: onWorkload(builtinResources()...),
			with:  append([]parameter{versionParameter(), oneOf("force", "true", "false")}, listParameters(8)...),
			words: "Argo CD applies version {version} of {on} on the server (force: {force})[, configmaps {configmaps|q}][, secrets {secrets|q}]",
			do: func(ctx context.Context, c client, s step) error {
				manifest, err := s.manifest()
				if err != nil {
					return err
				}
				return c.applyOnServer(ctx, s.key, "argocd", s.flag("force"), manifest)
			},
		},
	}
}

// listParameters are other lists in a manifest; by default it has those of the universe.
func listParameters(chance int) []parameter {
	return []parameter{
		optional("configmaps", omit, isText, seldom(chance, drawConfigMapList)),
		optional("secrets", omit, isText, seldom(chance, drawSecretList)),
	}
}

// manifest is that of the step's workload, version and lists.
func (s step) manifest() (world.Object, error) {
	manifest, err := workloadManifest(s.key, s.number("version"))
	if err != nil {
		return nil, err
	}
	annotations := world.Annotations(manifest)
	if s.has("configmaps") {
		annotations[listOfConfigMaps] = s.text("configmaps")
	}
	if s.has("secrets") {
		annotations[listOfSecrets] = s.text("secrets")
	}
	return manifest, nil
}

// sameVersion means a manifest that is kept equal to what is live, but knows no managed annotations.
const sameVersion = "same"

func isVersionOrSame(value string) error {
	if value == sameVersion {
		return nil
	}
	return isNumber(1, 999)(value)
}

func drawVersionOrSame(r *rand.Rand, on world.Key) string {
	if r.IntN(2) == 0 {
		return omit
	}
	return versionParameter().draw(r, on)
}

func replaceWorkload(ctx context.Context, c client, s step) error {
	return c.replace(ctx, s, isManaged, func(world.Object) {})
}

// replace sends a PUT of the user's manifest, in which annotations that drop selects are missing.
func (c client) replace(ctx context.Context, s step, drop func(string) bool, edit func(world.Object)) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	manifest := clean(s.key.Resource, exported(live), func(key string) bool { return drop(key) || isOfServer(key) })
	if version := s.text("version"); version != sameVersion {
		if manifest, err = workloadManifest(s.key, s.number("version")); err != nil {
			return err
		}
		manifest = clean(s.key.Resource, manifest, drop)
	}
	edit(manifest)
	if s.flag("pinned") || s.key.Resource == world.Rollouts { // kubectl fills it in where the API wants one
		world.Section(manifest, "metadata")["resourceVersion"] = world.Section(live, "metadata")["resourceVersion"]
	}
	return c.put(ctx, s.key, "kubectl-replace", manifest)
}

// injected begins the annotations that other webhooks add to workloads.
const injected = "injector.example.com/"

// isOfServer reports whether an annotation is one that controllers, other webhooks or kubectl add to what a user writes.
func isOfServer(key string) bool {
	return strings.HasPrefix(key, injected) || strings.HasPrefix(key, "deployment.kubernetes.io/") || key == corev1.LastAppliedConfigAnnotation
}

// clean returns a copy of a workload without some annotations, on itself and on its template.
func clean(r world.Resource, workload world.Object, drop func(string) bool) world.Object {
	workload = cleanAt(workload, drop, "metadata")
	return cleanAt(workload, drop, append(world.PodPath(r.Plural), "metadata")...)
}

func cleanAt(object world.Object, drop func(string) bool, path ...string) world.Object {
	if len(path) == 0 {
		annotations, there := object["annotations"].(world.Object)
		if !there {
			return object
		}
		return world.With(object, without(annotations, drop), "annotations")
	}
	child, there := object[path[0]].(world.Object)
	if !there {
		return object
	}
	return world.With(object, cleanAt(child, drop, path[1:]...), path[0])
}

// applyOnServer is server-side apply.
func (c client) applyOnServer(ctx context.Context, key world.Key, manager string, force bool, manifest world.Object) error {
	body, err := json.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	path := objectPath(key) + query(manager)
	if force {
		path += "&force=true"
	}
	_, err = c.do(ctx, Request{Method: "PATCH", Path: path, ContentType: applyPatch, Body: body})
	return err
}
