package act

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func undoActs() []act {
	return []act{{
		name: "undo", weight: 8,
		on: mostlyAfter(onWorkload(world.Deployments, world.StatefulSets, world.DaemonSets, world.Rollouts),
			"release", "release-broken", "config-and-release", "apply-workload"),
		with:  []parameter{number("back", 1, 9, "1", "1", "1", "2", "3")},
		words: "user rolls {on} back by {back} revisions with kubectl rollout undo",
		do:    undo,
	}}
}

// undo is "kubectl rollout undo".
func undo(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	switch s.key.Resource {
	case world.Deployments:
		return undoDeployment(ctx, c, s, live)
	case world.Rollouts:
		return undoRollout(ctx, c, s, live)
	}
	return undoSet(ctx, c, s, live)
}

const revisionAnnotation = "deployment.kubernetes.io/revision"

// kept are the annotations that kubectl takes from the Deployment, not from the ReplicaSet
// (polymorphichelpers.annotationsToSkip).
func kept(key string) bool {
	switch key {
	case corev1.LastAppliedConfigAnnotation, revisionAnnotation, "deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", appsv1.DeprecatedRollbackTo:
		return true
	}
	return false
}

// undoDeployment brings back the template and the annotations of an earlier ReplicaSet, by a JSON patch.
func undoDeployment(ctx context.Context, c client, s step, live world.Object) error {
	if isPaused(live) {
		return skip("%s is paused", s.key)
	}
	old, template, err := earlierTemplate(ctx, c, s, live)
	if err != nil {
		return err
	}
	annotations := without(world.Annotations(old), kept)
	maps.Copy(annotations, without(world.Annotations(live), func(key string) bool { return !kept(key) }))
	return c.patch(ctx, s.key, "kubectl-rollout", change{jsonPatch, []any{
		world.Object{"op": "replace", "path": "/spec/template", "value": template},
		world.Object{"op": "replace", "path": "/metadata/annotations", "value": annotations},
	}})
}

// earlierTemplate returns an earlier ReplicaSet, and its template as the workload had it.
func earlierTemplate(ctx context.Context, c client, s step, live world.Object) (old, template world.Object, err error) {
	old, err = c.earlier(ctx, s, live, world.ReplicaSets)
	if err != nil {
		return nil, nil, err
	}
	template = withoutHashLabel(world.Section(old, "spec", "template"))
	if reflect.DeepEqual(template, withoutHashLabel(world.Section(live, "spec", "template"))) {
		return nil, nil, skip("%s has the template of that revision already", s.key)
	}
	return old, template, nil
}

func withoutHashLabel(template world.Object) world.Object {
	meta := world.Section(template, "metadata")
	labels := without(world.Section(meta, "labels"), func(key string) bool { return key == appsv1.DefaultDeploymentUniqueLabelKey })
	return world.With(template, world.With(meta, labels, "labels"), "metadata")
}

// undoSet brings back the template of an earlier ControllerRevision, whose data is a strategic merge patch.
func undoSet(ctx context.Context, c client, s step, live world.Object) error {
	old, err := c.earlier(ctx, s, live, world.ControllerRevisions)
	if err != nil {
		return err
	}
	data := world.Section(old, "data")
	template := without(world.Section(data, "spec", "template"), func(field string) bool { return field == "$patch" })
	if reflect.DeepEqual(template, world.Section(live, "spec", "template")) {
		return skip("%s has the template of that revision already", s.key)
	}
	return c.patch(ctx, s.key, "kubectl-rollout", change{strategicPatch, data})
}

// earlier returns the ReplicaSet or ControllerRevision of the revision that is s.back before the newest.
func (c client) earlier(ctx context.Context, s step, live world.Object, r world.Resource) (world.Object, error) {
	all, err := c.list(ctx, r, s.key.Namespace, selectorOf(live))
	if err != nil {
		return nil, fmt.Errorf("list the revisions: %w", err)
	}
	uid, _ := world.Section(live, "metadata")["uid"].(string)
	history := slices.DeleteFunc(all, func(o world.Object) bool { return !ownedBy(o, uid) || revisionOf(o) <= 0 })
	slices.SortFunc(history, func(a, b world.Object) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	i := len(history) - 1 - s.number("back")
	if i < 0 {
		return nil, skip("%s has %d revisions", s.key, len(history))
	}
	return history[i], nil
}

// revisionOf is the revision of a ReplicaSet or ControllerRevision; 0 if it has none.
func revisionOf(object world.Object) int64 {
	switch n := object["revision"].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	text, _ := world.Annotations(object)[revisionAnnotation].(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func ownedBy(object world.Object, uid string) bool {
	return world.Text(world.Controller(object), "uid") == uid
}

// selectorOf writes a workload's label selector as a query has it.
func selectorOf(workload world.Object) string {
	labels := world.Section(workload, "spec", "selector", "matchLabels")
	terms := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, fmt.Sprintf("%s=%v", name, labels[name]))
	}
	return strings.Join(terms, ",")
}
