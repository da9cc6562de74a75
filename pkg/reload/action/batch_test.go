package action

import (
	"context"
	"errors"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// reloadList is the annotation that lists the ConfigMaps for which Reloader runs a CronJob.
const reloadList = "configmap.reloader.stakater.com/reload"

// batch is an API server with one CronJob, which keeps the Jobs that are made.
type batch struct {
	client.Client
	uid string
	// labels and annotations are those of the CronJob; by default it asks to be run for configmap/app.
	labels, annotations map[string]string
	// reload is its last-reload.
	reload  string
	spec    map[string]any
	status  map[string]any
	refused error
	// tried is the error of a dry run.
	tried error
	// unlisted is the error of a list.
	unlisted error
	jobs     map[string]int
	active   []unstructured.Unstructured
	// largest is how many Jobs the largest page of a list has had, lists how many pages were listed.
	largest, lists int
	deleted        []string
	// undeleted is the error of a deletion.
	undeleted error
	// purges says that a patch is stored, and a reload request in it purged.
	purges bool
}

func (b *batch) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	u := object.(*unstructured.Unstructured)
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	u.Object["metadata"].(map[string]any)["uid"] = b.uid
	u.SetLabels(b.labels)
	annotations := map[string]string{reloadList: "app"}
	if b.annotations != nil {
		annotations = maps.Clone(b.annotations)
	}
	if b.reload != "" {
		annotations[annotation.DefaultPrefix+"last-reload"] = b.reload
	}
	u.SetAnnotations(annotations)
	spec := map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	maps.Copy(spec, b.spec)
	u.Object["spec"], u.Object["status"] = spec, b.status
	return nil
}

func (b *batch) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	b.lists++
	b.largest = max(b.largest, reloadtest.Page(list, b.active, o))
	return b.unlisted
}

func (b *batch) Create(_ context.Context, object client.Object, opts ...client.CreateOption) error {
	var o client.CreateOptions
	switch o.ApplyOptions(opts); {
	case len(o.DryRun) > 0 && b.tried != nil:
		return b.tried
	case b.refused != nil:
		return b.refused
	case len(o.DryRun) > 0 && b.jobs[object.GetName()] == 0:
		return nil
	}
	b.jobs[object.GetName()]++
	if b.jobs[object.GetName()] > 1 {
		return apierrors.NewAlreadyExists(schema.GroupResource{Group: "batch", Resource: "jobs"}, object.GetName())
	}
	return nil
}

func (b *batch) Delete(_ context.Context, object client.Object, opts ...client.DeleteOption) error {
	var o client.DeleteOptions
	o.ApplyOptions(opts)
	b.deleted = append(b.deleted, object.GetName()+" "+string(*o.Preconditions.UID))
	return b.undeleted
}

func (b *batch) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if b.purges {
		object.SetUID(types.UID(b.uid))
		return nil
	}
	return errors.New("away")
}

// dueCronJob is one with a changed ConfigMap.
func dueCronJob(atOnce bool) (gather.Subject, policy.Verdict) {
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	s := gather.Subject{Key: workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}}
	for _, kind := range workload.Builtin() {
		if kind.Schedules() {
			s.Object = reloadtest.Summary(kind, map[string]any{"metadata": map[string]any{"uid": "u1", "name": "backup"}})
		}
	}
	s.View.Intent.Tracked = map[reference.Ref]annotation.Trigger{app: {AtOnce: atOnce}}
	return s, policy.Verdict{Changes: []policy.Change{{Ref: app, Type: policy.Modified}}}
}

// contentOf is the run with a content all of which runs the CronJob.
func contentOf(hash string) cronrun.Run { return cronrun.Run{Hash: hash, Content: hash} }
