package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The acts about deletions with another propagation policy. They have no weight: simulate draws them from a random stream of its own.
const (
	// DeleteForeground deletes a workload after its dependents, as Argo CD prunes.
	DeleteForeground = "delete-foreground"
	// DeleteOrphan deletes a workload and leaves its pods.
	DeleteOrphan = "delete-orphan"
	// DeleteNamespace deletes a namespace with all that is in it.
	DeleteNamespace = "delete-namespace"
)

func deletionActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: DeleteForeground, on: anyWorkload,
			with: []parameter{
				// A pod that stops slowly would hold it as long.
				oneOf("held", "0s", "2s", "8s", "30s"), oneOf("meanwhile", "nothing", "apply"),
				optional("version", omit, isNumber(1, 999), versionParameter().draw), pauseParameter(),
			},
			words: "user deletes {on} in the foreground (a finalizer holds it for {held}, meanwhile: {meanwhile})" +
				"[ and applies version {version} of its manifest {pause} after it is gone]",
			do: deleteForeground,
		},
		{
			// A DaemonSet takes pods of another template for its own where the template has changed as often (pod-template-generation).
			name: DeleteOrphan, on: onWorkload(world.Deployments, world.StatefulSets, world.CronJobs, world.Rollouts),
			with: []parameter{
				oneOf("from", "export", "manifest", "nothing"), optional("version", "1", isNumber(1, 999), versionParameter().draw), pauseParameter(),
			},
			words: "user deletes {on} but not its pods and creates it from its {from} (version {version}) after {pause}",
			do:    deleteOrphan,
		},
		{
			name: DeleteNamespace, on: onNamespace(), with: []parameter{oneOf("held", "0s", "2s", "8s", "30s"), pauseParameter()},
			words: "user deletes {on} (a finalizer in it holds it for {held}) and creates it with all that it had at first after {pause}",
			do:    deleteNamespace,
		},
	}
}

// deleteAs is "kubectl delete --cascade=foreground" or "--cascade=orphan".
func (c client) deleteAs(ctx context.Context, key world.Key, policy string) error {
	body, err := json.Marshal(world.Object{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
	if err != nil {
		return err
	}
	_, err = c.do(ctx, Request{Method: "DELETE", Path: objectPath(key), ContentType: plainJSON, Body: body})
	return err
}

// heldBy is the finalizer of a controller that has to do something before an object may go.
const heldBy = "example.com/held"

func deleteForeground(ctx context.Context, c client, s step) error {
	held := s.pause("held")
	manifest, err := workloadManifest(s.key, firstVersion)
	if s.has("version") {
		manifest, err = workloadManifest(s.key, s.number("version"))
	}
	if err != nil {
		return err
	}
	if held > 0 {
		if err := c.merge(ctx, s.key, "holder", world.Object{"metadata": world.Object{"finalizers": []any{heldBy}}}); err != nil {
			return err
		}
	}
	err = c.deleteAs(ctx, s.key, "Foreground")
	if err == nil {
		err = c.whileHeld(ctx, s, manifest)
	}
	if held > 0 {
		err = errors.Join(err, present(c.merge(ctx, s.key, "holder", metadata("finalizers", nil))))
	}
	if err != nil || !s.has("version") {
		return err
	}
	if err := c.awaitEnd(ctx, s.key); err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	return c.apply(ctx, s.key, manifest)
}

// whileHeld waits while a finalizer holds a workload that is being deleted.
func (c client) whileHeld(ctx context.Context, s step, manifest world.Object) error {
	if err := pause(ctx, s.pause("held")/2); err != nil {
		return err
	}
	if s.text("meanwhile") == "apply" {
		if err := c.apply(ctx, s.key, manifest); err != nil {
			return err
		}
	}
	return pause(ctx, s.pause("held")/2)
}

// present leaves out the error that there is nothing to act on.
func present(err error) error {
	if errors.Is(err, ErrSkipped) {
		return nil
	}
	return err
}

// endLimit is how long a user waits for the end of an object that is being deleted.
const endLimit = time.Minute

// awaitEnd waits until an object is gone, or another one has its name.
func (c client) awaitEnd(ctx context.Context, key world.Key) error {
	for until := time.Now().Add(endLimit); ; {
		live, err := c.get(ctx, key)
		switch {
		case rejectedFor(err, "NotFound"):
			return nil
		case err != nil:
			return err
		case world.Text(live, "metadata", "deletionTimestamp") == "":
			return nil
		case time.Now().After(until):
			return skip("%s does not end", key)
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func deleteOrphan(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	manifest := exported(live)
	if s.text("from") == "manifest" {
		if manifest, err = workloadManifest(s.key, s.number("version")); err == nil {
			manifest, err = withLastApplied(manifest)
		}
	}
	if err != nil {
		return err
	}
	if err := c.deleteAs(ctx, s.key, "Orphan"); err != nil || s.text("from") == "nothing" {
		return err
	}
	if err := c.awaitEnd(ctx, s.key); err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	return c.create(ctx, s.key, "kubectl-create", manifest)
}

// deleteNamespace is "kubectl delete namespace", and "kubectl apply" of all manifests.
func deleteNamespace(ctx context.Context, c client, s step) error {
	if err := c.endNamespace(ctx, s.key, s.pause("held")); err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	err := c.create(ctx, s.key, "kubectl-create", namespaceManifest(s.key.Name))
	if err != nil && !rejectedFor(err, "AlreadyExists") {
		return err
	}
	for _, key := range universe() {
		if key.Namespace != s.key.Name {
			continue
		}
		manifest, err := initial(key)
		if err == nil {
			err = c.apply(ctx, key, manifest)
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	return nil
}

// endNamespace deletes a namespace, in which a finalizer may hold an object for some time, and waits for its end.
func (c client) endNamespace(ctx context.Context, key world.Key, held time.Duration) error {
	holder := world.Key{Resource: world.ConfigMaps, Namespace: key.Name, Name: "holder"}
	if held > 0 {
		err := c.create(ctx, holder, "holder", world.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": world.Object{
			"name": holder.Name, "namespace": key.Name, "finalizers": []any{heldBy},
		}})
		if err != nil && !rejectedFor(err, "AlreadyExists") {
			return err
		}
	}
	err := c.delete(ctx, key)
	if err == nil {
		err = pause(ctx, held)
	}
	if held > 0 {
		err = errors.Join(err, present(c.merge(ctx, holder, "holder", metadata("finalizers", nil))))
	}
	if err != nil {
		return err
	}
	return c.awaitEnd(ctx, key)
}
