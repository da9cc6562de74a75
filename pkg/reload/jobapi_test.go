package reload

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// jobAPI is an API server for Jobs and Secrets. It is immediate: what is deleted without finalizers is gone.
type jobAPI struct {
	client.Client
	objects map[string]*unstructured.Unstructured
	calls   []string
	// uids counts all objects, jobs the Jobs that were created.
	uids, jobs int
	// before and after return the error of a call, instead of its effect and after it.
	before, after func(call string) error
}

func (j *jobAPI) do(call string, effect func() error) error {
	j.calls = append(j.calls, call)
	if j.before != nil {
		if err := j.before(call); err != nil {
			return err
		}
	}
	err := effect()
	if j.after != nil {
		if lost := j.after(call); lost != nil {
			return lost
		}
	}
	return err
}

func keyOfObject(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func resourceOf(kind string) schema.GroupResource {
	return map[string]schema.GroupResource{"Job": {Group: "batch", Resource: "jobs"}, "Secret": {Resource: "secrets"}}[kind]
}

func (j *jobAPI) find(o client.Object) (*unstructured.Unstructured, error) {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if stored := j.objects[keyOfObject(kind, o.GetNamespace(), o.GetName())]; stored != nil {
		return stored, nil
	}
	return nil, apierrors.NewNotFound(resourceOf(kind), o.GetName())
}

func (j *jobAPI) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return j.do("get "+object.GetObjectKind().GroupVersionKind().Kind, func() error {
		stored, err := j.find(object)
		if err == nil {
			object.(*unstructured.Unstructured).Object = stored.DeepCopy().Object
		}
		return err
	})
}

func (j *jobAPI) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	return j.do("list", func() error {
		for _, key := range slices.Sorted(maps.Keys(j.objects)) {
			object := j.objects[key]
			if object.GetKind() == "Secret" && object.GetNamespace() == options.Namespace && options.LabelSelector.Matches(labelSet(object.GetLabels())) {
				items := &list.(*unstructured.UnstructuredList).Items
				*items = append(*items, *object.DeepCopy())
			}
		}
		return nil
	})
}

type labelSet map[string]string

func (l labelSet) Has(label string) bool   { _, ok := l[label]; return ok }
func (l labelSet) Get(label string) string { return l[label] }
func (l labelSet) Lookup(label string) (value string, _ bool) {
	value, ok := l[label]
	return value, ok
}

func (j *jobAPI) Create(_ context.Context, object client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	u := object.(*unstructured.Unstructured)
	call := "create " + u.GetKind()
	if len(options.DryRun) > 0 {
		call = "dry-run " + call
	}
	return j.do(call, func() error {
		if _, err := j.find(u); err == nil {
			return apierrors.NewAlreadyExists(resourceOf(u.GetKind()), u.GetName())
		}
		if len(options.DryRun) > 0 {
			return nil
		}
		j.store(u)
		return nil
	})
}

// store creates an object.
func (j *jobAPI) store(u *unstructured.Unstructured) {
	j.uids++
	if u.GetKind() == "Job" {
		j.jobs++
	}
	u.SetUID(types.UID("uid-" + strconv.Itoa(j.uids)))
	u.SetResourceVersion("1")
	j.objects[keyOfObject(u.GetKind(), u.GetNamespace(), u.GetName())] = u.DeepCopy()
}

func (j *jobAPI) Delete(_ context.Context, object client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return j.do("delete "+kind, func() error {
		stored, err := j.find(object)
		if err != nil {
			return err
		}
		if p := options.Preconditions; p.UID != nil && *p.UID != stored.GetUID() ||
			p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
			return apierrors.NewConflict(resourceOf(kind), object.GetName(), errors.New("precondition failed"))
		}
		if len(stored.GetFinalizers()) > 0 {
			_ = unstructured.SetNestedField(stored.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
			return nil
		}
		delete(j.objects, keyOfObject(kind, object.GetNamespace(), object.GetName()))
		return nil
	})
}

func (j *jobAPI) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return j.do("patch "+object.GetObjectKind().GroupVersionKind().Kind, func() error {
		stored, err := j.find(object)
		if err != nil {
			return err
		}
		body, err := patch.Data(object)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(append([]byte(`{"apiVersion":"v1","kind":"X",`), body[1:]...)); err != nil {
			return err
		}
		annotations := stored.GetAnnotations()
		maps.Copy(annotations, u.GetAnnotations())
		stored.SetAnnotations(annotations)
		object.SetAnnotations(annotations)
		object.SetUID(stored.GetUID())
		return nil
	})
}

// jobScene is an API server with a Job that depends on configmap/app, and what the loop knows of it.
type jobScene struct {
	api  *jobAPI
	out  *reloadtest.Outbox
	now  time.Time
	ring digest.Ring
	app  reference.Ref
	live map[reference.Ref]digest.State
	// seen is what the watch has seen; nil if that is the live state.
	seen map[reference.Ref]digest.State
	// past is Dependencies.Past.
	past func(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error)
	// unread is the error of reads.
	unread error
	opts   Options
	// report is what the watch of Jobs calls.
	report func(before, after workload.Summary)
}

var jobKind = workload.NewKinds(workload.Builtin()...).Find("job")[0]

const jobName = "Job shop/import"

// newJobScene makes a Job that was started with another configuration than the present one.
func newJobScene(t testing.TB, spec, status map[string]any) *jobScene {
	t.Helper()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	reader := stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{
		annotation.SAP{Keys: keys}, annotation.Stakater{Keys: annotation.NewStakaterKeys()},
	}, Objects: func(string) (annotation.Objects, error) { return annotation.Unlisted{}, nil }}
	j := &jobScene{
		api: &jobAPI{objects: map[string]*unstructured.Unstructured{}}, out: &reloadtest.Outbox{}, ring: reloadtest.Ring(t, "a"),
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), app: reference.Ref{Kind: reference.ConfigMap, Name: "app"},
	}
	j.opts = Options{Reader: reader, Webhook: true, Refractory: 5 * time.Second, Now: func() time.Time { return j.now }, Jobs: action.Jobs{
		Follow: true, Store: jobrun.Store{Namespace: "pod-reloader", Installation: "pod-reloader", Keys: keys},
	}}
	j.set("old")
	job := j.job(spec, status)
	req, _ := reader.NewRequest(nil, workload.Object{Kind: jobKind, Raw: job.Object})
	managed := stamp.Choose(req).Apply(req, stamp.Live{States: j.live, Ring: j.ring, Namespace: "shop", Now: j.now}).Managed
	require.NotEmpty(t, managed[stamp.Record])
	require.NoError(t, jobrun.Stamp(job, keys, managed))
	j.api.store(job)
	j.set("new")
	return j
}

// set sets the content of configmap/app.
func (j *jobScene) set(content string) {
	object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
	object.Namespace, object.Name = "shop", "app"
	j.live = map[reference.Ref]digest.State{j.app: digest.StateOf(digest.OfConfigMap(object), "uid", content, j.ring)}
}

func (j *jobScene) job(spec, status map[string]any) *unstructured.Unstructured {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": "main", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
	}}}}
	all := map[string]any{"template": template}
	maps.Copy(all, spec)
	object := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "spec": all,
		"metadata": map[string]any{
			"name": "import", "namespace": "shop", "annotations": map[string]any{"reloader.stakater.com/auto": "true"},
		},
	}
	if status != nil {
		object["status"] = status
	}
	return &unstructured.Unstructured{Object: object}
}

// leader is a process that leads.
func (j *jobScene) leader(t testing.TB) *loop {
	t.Helper()
	l := newLoop(cluster{client: j.api, live: j.api, events: j.out, Dependencies: Dependencies{
		Store: jobStore{scene: j}, Keys: &reloadtest.Keys{Present: j.ring, Fresh: j.ring}, Past: j.past,
		Workloads: func(_ workload.Kind, changed func(before, after workload.Summary)) tracking.Workloads {
			j.report = changed
			return jobWatch{j}
		},
	}}, j.opts)
	l.leads.Begin(j.now.Add(-time.Minute))
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(jobKind)))
	return l
}

// reconcile lets a leader look at the Job.
func (j *jobScene) reconcile(t testing.TB, l *loop) reconcile.Result {
	t.Helper()
	result, err := l.Reconcile(t.Context(), workload.Key{Kind: jobKind.ID(), Namespace: "shop", Name: "import"})
	require.NoError(t, err)
	return result
}

// stored is the Job as it is stored; nil if there is none.
func (j *jobScene) stored() *unstructured.Unstructured { return j.api.objects[jobName] }

// due compares what the pods of the stored Job are known to have with the present configuration.
func (j *jobScene) due(t testing.TB) policy.Verdict {
	t.Helper()
	view, _ := j.opts.Reader.Read(workload.Object{Kind: jobKind, Raw: j.stored().Object})
	return policy.Assess(policy.Input{
		Namespace: "shop", Intent: view.Intent, Required: view.Required, Known: view.Managed.Known(), Current: j.live, Ring: j.ring,
	}).Verdict
}

// notes are the texts of the Events, each once: the API server refuses a second one of the same name.
func (j *jobScene) notes() []string {
	var notes []string
	names := map[string]bool{}
	for _, m := range j.out.Messages {
		if !names[m.Event.Name] {
			notes = append(notes, m.Event.Reason+": "+m.Event.Note)
		}
		names[m.Event.Name] = true
	}
	return notes
}

// writes are the calls that are no reads.
func (j *jobScene) writes() []string {
	return slices.DeleteFunc(slices.Clone(j.api.calls), func(call string) bool {
		return strings.HasPrefix(call, "get ") || call == "list"
	})
}

// jobStore reads the configuration of a scene.
type jobStore struct {
	Store
	scene *jobScene
}

func (s jobStore) OnEvent(func(configstate.Event))   {}
func (s jobStore) WaitForSync(context.Context) error { return nil }
func (s jobStore) Observe(string, []reference.Ref) map[reference.Ref]digest.State {
	if s.scene.seen != nil {
		return maps.Clone(s.scene.seen)
	}
	return maps.Clone(s.scene.live)
}

// Live replaces the digests of what the watch has seen: there are those of one version of an object.
func (s jobStore) Live(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	for ref, state := range s.scene.seen {
		s.scene.seen[ref] = digest.State{Absent: state.Absent, UID: state.UID, ResourceVersion: state.ResourceVersion}
	}
	return maps.Clone(s.scene.live), s.scene.unread
}

func (s jobStore) Current(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return s.Live(ctx, namespace, refs)
}

// jobWatch shows the Job of a scene.
type jobWatch struct{ scene *jobScene }

func (w jobWatch) Run(ctx context.Context) { <-ctx.Done() }

func (w jobWatch) Get(_, _ string) (workload.Summary, bool) {
	job := w.scene.stored()
	if job == nil {
		return workload.Summary{Kind: jobKind}, false
	}
	return reloadtest.Summary(jobKind, job.Object), true
}
