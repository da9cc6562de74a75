package installation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// canaryConfig are the ConfigMap and the Secret that the workloads of a canary depend on.
const canaryConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: CONFIG, namespace: SPACE}
data: {content: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: CONFIG, namespace: SPACE}
stringData: {content: "1"}
`

// canaryWorkloads are one of each kind. No pod comes of them, and of a paused Deployment no ReplicaSet either.
var canaryWorkloads = map[string]string{
	"Deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: SPACE, annotations: {LIST: CONFIG}}
spec:
  replicas: 0
  paused: true
  selector: {matchLabels: {canary: NAME}}
  template: TEMPLATE
`,
	"StatefulSet": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME, namespace: SPACE, annotations: {LIST: CONFIG}}
spec:
  replicas: 0
  serviceName: NAME
  selector: {matchLabels: {canary: NAME}}
  template: TEMPLATE
`,
	"DaemonSet": `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: NAME, namespace: SPACE, annotations: {LIST: CONFIG}}
spec:
  selector: {matchLabels: {canary: NAME}}
  template: TEMPLATE
`,
	"CronJob": `
apiVersion: batch/v1
kind: CronJob
metadata: {name: NAME, namespace: SPACE, annotations: {LIST: CONFIG}}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate: {spec: {template: TEMPLATE}}
`,
}

const canaryTemplate = `{metadata: {labels: {canary: NAME}}, spec: {nodeSelector: {canary: nowhere}, RESTART` +
	`containers: [{name: c, image: canary, envFrom: [{REFERENCE: {name: CONFIG}}]}]}}`

// canaryWorkload is the manifest of a workload that depends on the ConfigMap of a canary, or on its Secret.
func (i *Installation) canaryWorkload(kind, name, config, list, reference string) string {
	restart := ""
	if kind == "CronJob" {
		restart = "restartPolicy: Never, "
	}
	text := strings.ReplaceAll(canaryWorkloads[kind], "TEMPLATE", strings.ReplaceAll(canaryTemplate, "RESTART", restart))
	return strings.NewReplacer("LIST", i.options.Prefix+list, "REFERENCE", reference, "CONFIG", config, "NAME", name).Replace(text)
}

// canary is one set of objects: the configuration, and the workloads that depend on it.
type canary struct {
	config, workloads []*unstructured.Unstructured
}

// objects are all, in the order in which they are created.
func (c canary) objects() []*unstructured.Unstructured {
	return append(slices.Clone(c.config), c.workloads...)
}

// newCanary has a workload of each of some kinds, which depends on the ConfigMap, and one of the first kind that depends on the Secret, unless
// Secrets are not handled. A reload for a change of one object would take in a change of the other, before the program has seen it.
func (i *Installation) newCanary(kinds []string) (canary, error) {
	name := "canary-" + strconv.FormatInt(i.canaries.Add(1), 10)
	texts := []string{canaryConfig}
	for _, kind := range kinds {
		texts = append(texts, i.canaryWorkload(kind, name, name, "configmaps", "configMapRef"))
	}
	withoutSecrets := func(r *Replica) bool { return slices.Contains(r.Args, "--secrets=false") }
	if !slices.ContainsFunc(i.Replicas(), withoutSecrets) {
		texts = append(texts, i.canaryWorkload(kinds[0], name+"-secret", name, "secrets", "secretRef"))
	}
	text := strings.NewReplacer("CONFIG", name, "SPACE", i.options.Namespace).Replace(strings.Join(texts, "---"))
	objects, err := controlplane.Decode([]byte(text))
	if err != nil {
		return canary{}, err
	}
	return canary{config: objects[:2], workloads: objects[2:]}, nil
}

// Quiet is a barrier: it returns when the loop is through with every event that happened before the call, as far as it is
// about configuration or about workloads of some of the built-in kinds; none of them named means all. It is [Installation.Seen],
// after which other workers may still be busy. The time that they get is a second round, for which one kind is enough.
//
// Reloads that a failure or the refractory gate has put off may still be due, and Events may still be to come. Without gates
// it takes some 100 ms, otherwise twice the settle time more.
func (i *Installation) Quiet(ctx context.Context, kinds ...string) error {
	kinds = canaryKinds(kinds)
	for _, round := range [][]string{kinds, kinds[:1]} {
		if err := i.probe(ctx, round); err != nil {
			return fmt.Errorf("await that the loop is through: %w", err)
		}
	}
	return nil
}

// Seen is a barrier: it returns when the loop has seen every event that happened before the call, with the same restrictions as
// [Installation.Quiet]. It changes a new ConfigMap and a new Secret on which new workloads depend, and waits until all are reloaded.
// Everything that happened before is then in the queue or done, since the watches deliver in order and gates count from the last event.
// Its end is that of ctx where the program reloads nothing.
func (i *Installation) Seen(ctx context.Context, kinds ...string) error {
	if err := i.probe(ctx, canaryKinds(kinds)); err != nil {
		return fmt.Errorf("await that the loop has seen everything: %w", err)
	}
	return nil
}

// canaryKinds are those of some kinds of which there is a canary, or all.
func canaryKinds(kinds []string) []string {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return canaryWorkloads[kind] == "" })
	if len(kinds) == 0 {
		return slices.Sorted(maps.Keys(canaryWorkloads))
	}
	return kinds
}

// probe creates one canary and waits until it is reloaded.
func (i *Installation) probe(ctx context.Context, kinds []string) error {
	c, err := i.newCanary(kinds)
	if err != nil {
		return err
	}
	defer i.remove(context.WithoutCancel(ctx), c)
	for _, object := range c.objects() {
		if err := i.cp.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("create a canary: %w", err)
		}
	}
	is := func(_, now *unstructured.Unstructured) bool { return i.known(now) != "" }
	if err := i.awaitCanary(ctx, "a canary to be known", c, is); err != nil {
		return err
	}
	for _, object := range c.config {
		field := map[string]string{"ConfigMap": "data", "Secret": "stringData"}[object.GetKind()]
		patch := client.RawPatch(types.MergePatchType, []byte(`{"`+field+`":{"content":"2"}}`))
		if err := i.cp.Client().Patch(ctx, object.DeepCopy(), patch); err != nil {
			return fmt.Errorf("change a canary's configuration: %w", err)
		}
	}
	reloaded := func(before, now *unstructured.Unstructured) bool {
		return i.hashOf(now) != "" && i.hashOf(now) != i.hashOf(before)
	}
	return i.awaitCanary(ctx, "a canary to be reloaded", c, reloaded)
}

// fromCache has the API server answer from its cache, which is half the work. What that serves may lag, but does not go back.
var fromCache = &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}

// awaitCanary waits until a condition holds for each workload and keeps the versions for which it did.
func (i *Installation) awaitCanary(
	ctx context.Context, what string, c canary, holds func(before, now *unstructured.Unstructured) bool,
) error {
	for n, object := range c.workloads {
		err := await(ctx, what, func(ctx context.Context) error {
			now := object.DeepCopy()
			if err := i.cp.Client().Get(ctx, client.ObjectKeyFromObject(object), now, fromCache); err != nil {
				return fmt.Errorf("read a canary: %w", err)
			}
			if !holds(object, now) {
				return fmt.Errorf("%s %s is not: %v", now.GetKind(), now.GetName(), now.GetAnnotations())
			}
			c.workloads[n] = now
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// known changes when a workload's configuration becomes known: the hash of its template, or its Record.
func (i *Installation) known(object *unstructured.Unstructured) string {
	return i.hashOf(object) + object.GetAnnotations()[i.options.Prefix+"config-record"]
}

// hashOf is the hash on the pod template, which changes with every reload.
func (i *Installation) hashOf(object *unstructured.Unstructured) string {
	path := append(observe.KindNamed(object.GetKind()).TemplatePath(), "metadata", "annotations")
	annotations, _, _ := unstructured.NestedStringMap(object.Object, path...)
	return annotations[i.options.Prefix+"config-hash"]
}

// remove deletes a canary. One that cannot be deleted does no harm.
func (i *Installation) remove(ctx context.Context, c canary) {
	for _, object := range c.objects() {
		_ = i.cp.Client().Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
}

// awaitWebhook waits until what is created is stamped: the API server has taken in the webhook configuration, and a
// replica answers. It is a dry run and leaves nothing.
func (i *Installation) awaitWebhook(ctx context.Context) error {
	if i.options.WithoutWebhook {
		return nil
	}
	c, err := i.newCanary([]string{"Deployment"})
	if err != nil {
		return err
	}
	return await(ctx, "the webhook to be in effect", func(ctx context.Context) error {
		deployment := c.workloads[0].DeepCopy()
		if err := i.cp.Client().Create(ctx, deployment, client.DryRunAll); err != nil {
			return fmt.Errorf("create a Deployment: %w", err)
		}
		if i.hashOf(deployment) == "" {
			return errors.New("a Deployment was created without a stamp")
		}
		return nil
	})
}
