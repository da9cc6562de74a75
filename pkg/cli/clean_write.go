package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	conflict "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// cleaner finds what is left on workloads, and removes it.
type cleaner struct {
	client    client.Client
	config    *rest.Config
	namespace string // empty for all
	reader    stamp.Reader
	// leaveOut is called with a kind that the cluster does not serve, where all kinds are listed.
	leaveOut func(workload.Kind)
}

// leftover is a workload with what is left on it.
type leftover struct {
	object  workload.Object
	remains stamp.Remains
}

// String names the workload.
func (l leftover) String() string {
	return fmt.Sprintf("%s/%s -n %s", strings.ToLower(l.object.Kind.Kind), l.object.Name(), l.object.Namespace())
}

// pods returns how many pods the status of the workload counts.
func (l leftover) pods() int {
	status, _ := l.object.Raw["status"].(map[string]any)
	for _, field := range []string{"replicas", "currentNumberScheduled"} {
		if n, ok := status[field].(int64); ok {
			return int(n)
		}
	}
	return 0
}

// effect says what a new template does to the pods.
func (l leftover) effect() string {
	pods := l.pods()
	replaced := l.object.Replaced(pods)
	switch pending := l.object.Pending(); {
	case pending == "" && pods == 0:
		return "it has no pods to restart"
	case pending == "":
		return "restarts " + reference.Count(pods, "pod")
	case replaced == 0:
		return "its pods do not restart now: " + pending
	default:
		return fmt.Sprintf("restarts %d of %s: %s", replaced, reference.Count(pods, "pod"), pending)
	}
}

// find returns the workloads on which something is left, in a fixed order.
func (c *cleaner) find(ctx context.Context, asked cleaning) ([]leftover, error) {
	kinds, err := c.kinds(ctx, asked)
	if err != nil {
		return nil, err
	}
	if len(asked.targets) == 0 {
		return c.list(ctx, kinds, asked)
	}
	objects, err := c.get(ctx, kinds, asked.targets)
	return c.leftovers(objects), err
}

// leftovers returns those of some workloads on which something is left.
func (c *cleaner) leftovers(objects []workload.Object) []leftover {
	var found []leftover
	for _, o := range objects {
		if remains := c.reader.Remains(o); !remains.Empty() {
			found = append(found, leftover{o, remains})
		}
	}
	return found
}

// kinds returns those of the flags and of the configuration.
func (c *cleaner) kinds(ctx context.Context, asked cleaning) (workload.Kinds, error) {
	if asked.selection.Configuration.IsZero() {
		return asked.selection.Kinds, nil
	}
	found, err := readConfiguration(ctx, c.config, asked.selection.Configuration)
	return asked.selection.Kinds.Override(found.WorkloadKinds...), err
}

func (c *cleaner) get(ctx context.Context, kinds workload.Kinds, targets []target) ([]workload.Object, error) {
	var objects []workload.Object
	for _, t := range targets {
		kind, err := t.in(kinds)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(objects, func(o workload.Object) bool { return o.Kind.ID() == kind.ID() && o.Name() == t.name }) {
			continue // it is named twice
		}
		name := types.NamespacedName{Namespace: c.namespace, Name: t.name}
		o, err := c.read(ctx, kind, name)
		if err = missing(kind, name, err); err != nil {
			return nil, fmt.Errorf("read %s/%s: %w", t.kind, t.name, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func (c *cleaner) read(ctx context.Context, kind workload.Kind, name types.NamespacedName) (workload.Object, error) {
	u := kind.NewObject()
	err := c.client.Get(ctx, name, u)
	return workload.Object{Kind: kind, Raw: u.Object}, err
}

// pageSize is how many workloads one request lists.
const pageSize = 500

// list returns what is left on the workloads of all kinds that the cluster has. Of a page, no other workload is kept.
func (c *cleaner) list(ctx context.Context, kinds workload.Kinds, asked cleaning) ([]leftover, error) {
	var found []leftover
	listed := 0
	for _, kind := range kinds.All() {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersionKind)
		err := pages(ctx, c.client, page, func() {
			var objects []workload.Object
			listed += len(page.Items)
			for _, u := range page.Items {
				u.SetManagedFields(nil)
				objects = append(objects, workload.Object{Kind: kind, Raw: u.Object})
			}
			found = append(found, c.leftovers(objects)...)
		}, client.InNamespace(c.namespace), client.MatchingLabelsSelector{Selector: asked.labels})
		switch {
		case meta.IsNoMatchError(err):
			c.leaveOut(kind)
		case err != nil:
			return nil, fmt.Errorf("list %s: %w", kind.ID(), err)
		}
	}
	if listed == 0 {
		return nil, requireNamespace(ctx, c.client, c.namespace)
	}
	return found, nil
}

// clean excludes a workload, and then removes what is left on it. It removes from the pod template only if something was found there: the
// user has not agreed to another restart.
func (c *cleaner) clean(ctx context.Context, left leftover, restart bool) error {
	if err := c.exclude(ctx, left.object); err != nil {
		return err
	}
	agreed := restart && len(left.remains.OnTemplate) > 0
	var answer workload.Object
	changed := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }
	err := conflict.OnError(conflict.DefaultRetry, changed, func() error {
		o, err := c.reread(ctx, left.object)
		if err == nil {
			answer, err = c.remove(ctx, o, agreed)
		}
		return err
	})
	if err == nil {
		err = c.purge(ctx, answer, restart, agreed)
	}
	if err != nil && !apianswer.NotFound(err) {
		err = fmt.Errorf("%w; the label %s=true is set: run clean again, or remove the label", err, c.reader.Keys.DisabledLabel)
	}
	return err
}

// exclude sets the label, except on another workload that has the name by now: the UID of an object is immutable.
func (c *cleaner) exclude(ctx context.Context, o workload.Object) error {
	_, err := c.patch(ctx, o, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"uid": o.UID(), "labels": map[string]string{c.reader.Keys.DisabledLabel: "true"}},
	})
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		if _, gone := c.reread(ctx, o); apianswer.NotFound(gone) {
			return gone
		}
	}
	if err != nil {
		return fmt.Errorf("set the label %s: %w", c.reader.Keys.DisabledLabel, err)
	}
	return nil
}

// excludes says that a workload has the label already.
func (c *cleaner) excludes(o workload.Object) bool {
	return o.Labels()[c.reader.Keys.DisabledLabel] == "true"
}

// reread reads a workload again. Another one of its name is not found.
func (c *cleaner) reread(ctx context.Context, o workload.Object) (workload.Object, error) {
	now, err := c.read(ctx, o.Kind, types.NamespacedName{Namespace: o.Namespace(), Name: o.Name()})
	if err == nil && now.UID() != o.UID() {
		err = apierrors.NewNotFound(schema.GroupResource{Group: o.Kind.Group, Resource: o.Kind.Kind}, o.Name())
	}
	return now, err
}

// remove sends the patch for one version of a workload. Another version is a conflict. A request that is stored goes first: the webhook
// would take the same one for an old one, and restore what is removed.
func (c *cleaner) remove(ctx context.Context, o workload.Object, restart bool) (workload.Object, error) {
	o, err := c.withoutRequest(ctx, o)
	if err != nil {
		return o, err
	}
	version := jsonpatch.NewOperation("test", "/metadata/resourceVersion", o.ResourceVersion())
	return c.patch(ctx, o, types.JSONPatchType, append([]jsonpatch.Operation{version}, c.reader.Clean(o, restart)...))
}

// purge removes the request where no webhook has done so, and makes sure that one has not restored the rest.
func (c *cleaner) purge(ctx context.Context, answer workload.Object, restart, agreed bool) error {
	answer, err := c.withoutRequest(ctx, answer)
	if err != nil {
		return err
	}
	switch remains := c.reader.Remains(answer); {
	case len(remains.OnWorkload) > 0 || agreed && len(remains.OnTemplate) > 0:
		return errors.New("the webhook has restored what was removed: upgrade pod-reloader if that happens again")
	case restart && len(remains.OnTemplate) > 0:
		return errors.New("the pod template has been changed meanwhile, and removing that restarts the pods")
	default:
		return nil
	}
}

// withoutRequest removes a stored request, and returns the workload as it is then.
func (c *cleaner) withoutRequest(ctx context.Context, o workload.Object) (workload.Object, error) {
	if _, stored := o.Annotations()[c.reader.Keys.ConfigHash]; !stored {
		return o, nil
	}
	return c.patch(ctx, o, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{c.reader.Keys.ConfigHash: nil}},
	})
}

func (c *cleaner) patch(ctx context.Context, o workload.Object, kind types.PatchType, patch any) (workload.Object, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return workload.Object{}, err
	}
	answer := o.Kind.NewObject()
	answer.SetNamespace(o.Namespace())
	answer.SetName(o.Name())
	err = c.client.Patch(ctx, answer, client.RawPatch(kind, body), client.FieldOwner("pod-reloader-clean"))
	return workload.Object{Kind: o.Kind, Raw: answer.Object}, err
}
