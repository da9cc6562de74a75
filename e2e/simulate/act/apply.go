package act

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const applyManager = "kubectl-client-side-apply"

// apply is "kubectl apply": it creates the object, or sends the strategic merge patch that leads from what was applied
// last, and what is live, to the manifest.
func (c client) apply(ctx context.Context, key world.Key, manifest world.Object) error {
	live, err := c.get(ctx, key)
	if rejectedFor(err, "NotFound") {
		return c.createApplied(ctx, key, manifest)
	}
	if err != nil {
		return err
	}
	modified, err := withLastApplied(manifest)
	if err != nil {
		return err
	}
	last, _ := world.Annotations(live)[corev1.LastAppliedConfigAnnotation].(string)
	return c.mergeThreeWays(ctx, key, applyManager, states{[]byte(last), modified, live})
}

// createApplied creates an object as "kubectl apply" does.
func (c client) createApplied(ctx context.Context, key world.Key, manifest world.Object) error {
	modified, err := withLastApplied(manifest)
	if err != nil {
		return err
	}
	return c.create(ctx, key, applyManager, modified)
}

// withLastApplied returns a copy of the manifest that has its own text as an annotation.
func withLastApplied(manifest world.Object) (world.Object, error) {
	meta := world.Section(manifest, "metadata")
	annotations := without(world.Annotations(manifest), func(key string) bool { return key == corev1.LastAppliedConfigAnnotation })
	text, err := json.Marshal(world.With(manifest, world.With(meta, annotations, "annotations"), "metadata"))
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text) + "\n"
	return world.With(manifest, world.With(meta, annotations, "annotations"), "metadata"), nil
}

// states are what a three-way merge goes by: what was applied last, what is wanted, and what is stored.
type states struct {
	original       []byte
	modified, live world.Object
}

// mergeThreeWays sends the patch from live to modified that removes what only original has; none if there is nothing to do.
func (c client) mergeThreeWays(ctx context.Context, key world.Key, manager string, s states) error {
	target, err := json.Marshal(s.modified)
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	current, err := json.Marshal(s.live)
	if err != nil {
		return fmt.Errorf("encode the live object: %w", err)
	}
	p := change{mediaType: strategicPatch}
	var patch []byte
	if key.Resource == world.Rollouts { // kubectl and Helm have no schema of a custom resource
		p.mediaType = mergePatch
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(s.original, target, current)
	} else {
		patch, err = strategicThreeWay(s.original, target, current, key.Resource)
	}
	if err != nil {
		return fmt.Errorf("merge three ways: %w", err)
	}
	if string(patch) == "{}" {
		return nil
	}
	p.body = patch
	return c.patch(ctx, key, manager, p)
}

func strategicThreeWay(original, target, current []byte, r world.Resource) ([]byte, error) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed(r))
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", r.Plural, err)
	}
	return strategicpatch.CreateThreeWayMergePatch(original, target, current, schema, true)
}

// typed returns the Go type that has the merge keys of a resource.
func typed(r world.Resource) any {
	switch r {
	case world.ConfigMaps:
		return corev1.ConfigMap{}
	case world.Secrets:
		return corev1.Secret{}
	case world.StatefulSets:
		return appsv1.StatefulSet{}
	case world.DaemonSets:
		return appsv1.DaemonSet{}
	case world.CronJobs:
		return batchv1.CronJob{}
	}
	return appsv1.Deployment{}
}
