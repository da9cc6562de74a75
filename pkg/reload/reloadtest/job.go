package reloadtest

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// JobAPI is an API server for Jobs, Secrets and ConfigMaps. It is immediate: what is deleted without finalizers is gone.
type JobAPI struct {
	client.Client
	Objects map[string]*unstructured.Unstructured
	Calls   []string
	// Created counts the Jobs that were created.
	Created int
	// Largest is how many objects the largest page of a list has had.
	Largest int
	// Before and After return the error of a call, instead of its effect and after it.
	Before, After func(call string) error

	uids, versions int
}

func (a *JobAPI) do(call string, effect func() error) error {
	a.Calls = append(a.Calls, call)
	if a.Before != nil {
		if err := a.Before(call); err != nil {
			return err
		}
	}
	err := effect()
	if a.After != nil {
		if lost := a.After(call); lost != nil {
			return lost
		}
	}
	return err
}

func keyOfObject(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// Resource is that of Jobs, Secrets or ConfigMaps.
func Resource(kind string) schema.GroupResource {
	return map[string]schema.GroupResource{"Job": {Group: "batch", Resource: "jobs"}, "Secret": {Resource: "secrets"}, "ConfigMap": {Resource: "configmaps"}}[kind]
}

func (a *JobAPI) find(o client.Object) (*unstructured.Unstructured, error) {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if stored := a.Objects[keyOfObject(kind, o.GetNamespace(), o.GetName())]; stored != nil {
		return stored, nil
	}
	return nil, apierrors.NewNotFound(Resource(kind), o.GetName())
}

// Get is that of a client.
func (a *JobAPI) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return a.do("get "+object.GetObjectKind().GroupVersionKind().Kind, func() error {
		stored, err := a.find(object)
		if err != nil {
			return err
		}
		if full, ok := object.(*unstructured.Unstructured); ok {
			full.Object = stored.DeepCopy().Object
		} else {
			object.SetUID(stored.GetUID()) // the metadata
		}
		return nil
	})
}

// List is that of a client.
func (a *JobAPI) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	return a.do("list", func() error {
		var found []unstructured.Unstructured
		for _, key := range slices.Sorted(maps.Keys(a.Objects)) {
			object := a.Objects[key]
			if object.GetKind() == "Secret" && object.GetNamespace() == options.Namespace && options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
				found = append(found, *object.DeepCopy())
			}
		}
		a.Largest = max(a.Largest, Page(list, found, options))
		return nil
	})
}

// Create is that of a client.
func (a *JobAPI) Create(_ context.Context, object client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	u := object.(*unstructured.Unstructured)
	call := "create " + u.GetKind()
	if len(options.DryRun) > 0 {
		call = "dry-run " + call
	}
	return a.do(call, func() error {
		if _, err := a.find(u); err == nil {
			return apierrors.NewAlreadyExists(Resource(u.GetKind()), u.GetName())
		}
		if len(options.DryRun) > 0 {
			return nil
		}
		a.Store(u)
		return nil
	})
}

// Store creates an object.
func (a *JobAPI) Store(u *unstructured.Unstructured) {
	a.uids++
	if u.GetKind() == "Job" {
		a.Created++
	}
	u.SetUID(types.UID("uid-" + strconv.Itoa(a.uids)))
	u.SetResourceVersion("1")
	a.Objects[keyOfObject(u.GetKind(), u.GetNamespace(), u.GetName())] = u.DeepCopy()
}

// Delete is that of a client.
func (a *JobAPI) Delete(_ context.Context, object client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return a.do("delete "+kind, func() error {
		stored, err := a.find(object)
		if err != nil {
			return err
		}
		if p := options.Preconditions; p.UID != nil && *p.UID != stored.GetUID() ||
			p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
			return apierrors.NewConflict(Resource(kind), object.GetName(), errors.New("precondition failed"))
		}
		if len(stored.GetFinalizers()) > 0 {
			_ = unstructured.SetNestedField(stored.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
			return nil
		}
		delete(a.Objects, keyOfObject(kind, object.GetNamespace(), object.GetName()))
		return nil
	})
}

// Patch is that of a client.
func (a *JobAPI) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return a.do("patch "+object.GetObjectKind().GroupVersionKind().Kind, func() error {
		stored, err := a.find(object)
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
		if pin := u.GetResourceVersion(); pin != "" && pin != stored.GetResourceVersion() {
			return apierrors.NewConflict(Resource(stored.GetKind()), stored.GetName(), errors.New("the object has been modified"))
		}
		if _, sent, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields"); sent {
			stored.SetManagedFields(u.GetManagedFields())
		}
		annotations := stored.GetAnnotations()
		maps.Copy(annotations, u.GetAnnotations())
		if !maps.Equal(annotations, stored.GetAnnotations()) { // else nothing is stored
			a.versions++
			stored.SetResourceVersion("1." + strconv.Itoa(a.versions))
		}
		stored.SetAnnotations(annotations)
		object.SetAnnotations(annotations)
		object.SetUID(stored.GetUID())
		return nil
	})
}

// The Job of a fixture.
var (
	JobKind = workload.Job()
	JobKey  = workload.Key{Kind: JobKind.ID(), Namespace: "shop", Name: "import"}
)

// JobName is where the JobAPI has the Job.
const JobName = "Job shop/import"

// RootCAName is where the JobAPI has the ConfigMap that the namespace of the Job has.
const RootCAName = "ConfigMap shop/kube-root-ca.crt"

// NewRootCA gives the namespace of the Job the ConfigMap that each new namespace has.
func (a *JobAPI) NewRootCA() {
	a.Store(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kube-root-ca.crt", "namespace": "shop"},
	}})
}

// RecreationSteps are the writes of a re-creation, in order.
var RecreationSteps = []string{"dry-run create Job", "create Secret", "delete Job", "create Job", "patch Job", "delete Secret"}

// JobFixture is an API server with a Job that depends on configmap/app, and what the loop knows of it.
type JobFixture struct {
	API  *JobAPI
	Out  *Outbox
	Now  time.Time
	Ring digest.Ring
	App  reference.Ref
	// States are those that the API server has.
	States map[reference.Ref]digest.State
	// Seen is what the watch has seen; nil if that is States.
	Seen map[reference.Ref]digest.State
	// Unread is the error of reads.
	Unread error
	Reader stamp.Reader
	// Manifests is where the manifests of Jobs are that are created again.
	Manifests jobrun.Store
}

// NewJobFixture makes a Job that was started with another configuration than the present one.
func NewJobFixture(t testing.TB, spec, status map[string]any) *JobFixture {
	t.Helper()
	keys := annotation.DefaultKeys()
	j := &JobFixture{
		API: &JobAPI{Objects: map[string]*unstructured.Unstructured{}}, Out: &Outbox{}, Ring: digesttest.Ring(t, "a"),
		Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), App: reference.Ref{Kind: reference.ConfigMap, Name: "app"},
		Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{
			annotation.SAP{Keys: keys}, annotation.Stakater{Keys: annotation.NewStakaterKeys()},
		}, Objects: func(string) (annotation.Objects, error) { return annotation.Unlisted{}, nil }},
		Manifests: jobrun.Store{Namespace: "pod-reloader", Installation: "pod-reloader", Keys: keys},
	}
	j.Set("old")
	job := j.Job(spec, status)
	req, _ := j.Reader.NewWrite(nil, workload.Object{Kind: JobKind, Raw: job.Object})
	managed := stamp.Choose(req).Apply(req, stamp.Inputs{States: j.States, Ring: j.Ring, Namespace: "shop", Now: j.Now}).Managed
	require.NotEmpty(t, managed[stamp.Record])
	require.NoError(t, jobrun.Stamp(job, keys, managed))
	j.API.Store(job)
	j.Set("new")
	return j
}

// Set sets the content of configmap/app.
func (j *JobFixture) Set(content string) {
	j.States = map[reference.Ref]digest.State{j.App: j.At(content, content)}
}

// Job returns the Job, with what is added to its spec, and a status.
func (j *JobFixture) Job(spec, status map[string]any) *unstructured.Unstructured {
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

// Stored is the Job as it is stored; nil if there is none.
func (j *JobFixture) Stored() *unstructured.Unstructured { return j.API.Objects[JobName] }

// Due compares what the pods of the stored Job are known to have with the present configuration.
func (j *JobFixture) Due(t testing.TB) policy.Verdict {
	t.Helper()
	view, _ := j.Reader.Read(workload.Object{Kind: JobKind, Raw: j.Stored().Object})
	return policy.Assess(policy.Input{
		Namespace: "shop", Intent: view.Intent, Required: view.Required, Known: view.Known(), Current: statesOf(j.States, view.Intent.Refs()), Ring: j.Ring,
	}).Verdict
}

// Notes are the texts of the Events, each once: the API server refuses a second one of the same name.
func (j *JobFixture) Notes() []string {
	var notes []string
	names := map[string]bool{}
	for _, m := range j.Out.Messages {
		if !names[m.Event.Name] {
			notes = append(notes, m.Event.Reason+": "+m.Event.Note)
		}
		names[m.Event.Name] = true
	}
	return notes
}

// Writes are the calls that are no reads.
func (j *JobFixture) Writes() []string {
	return slices.DeleteFunc(slices.Clone(j.API.Calls), func(call string) bool {
		return strings.HasPrefix(call, "get ") || call == "list"
	})
}

// Summary is what the watch of Jobs shows.
func (j *JobFixture) Summary() (workload.Summary, bool) {
	job := j.Stored()
	if job == nil {
		return workload.Summary{Kind: JobKind}, false
	}
	return Summary(JobKind, job.Object), true
}

// JobStore reads the configuration of a fixture.
type JobStore struct {
	Store
	Fixture *JobFixture
}

// Cached returns what the watch has seen of some objects.
func (s *JobStore) Cached(_ string, refs []reference.Ref) map[reference.Ref]digest.State {
	if s.Fixture.Seen != nil {
		return statesOf(s.Fixture.Seen, refs)
	}
	return statesOf(s.Fixture.States, refs)
}

// statesOf returns the states of some objects. What is not there is absent.
func statesOf(all map[reference.Ref]digest.State, refs []reference.Ref) map[reference.Ref]digest.State {
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		state, exists := all[ref]
		state.Absent = state.Absent || !exists
		states[ref] = state
	}
	return states
}

// ReadLive reads some objects. It replaces the digests of what the watch has seen: there are those of one version of an object.
func (s *JobStore) ReadLive(_ context.Context, _ string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	for ref, state := range s.Fixture.Seen {
		s.Fixture.Seen[ref] = digest.State{Absent: state.Absent, UID: state.UID, ResourceVersion: state.ResourceVersion}
	}
	return statesOf(s.Fixture.States, refs), s.Fixture.Unread
}

// ReadIfChanged is ReadLive.
func (s *JobStore) ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return s.ReadLive(ctx, namespace, refs)
}

// Metadata sets a field of the metadata of the stored Job.
func (j *JobFixture) Metadata(field string, value any) {
	_ = unstructured.SetNestedField(j.Stored().Object, value, "metadata", field)
}

// Annotate sets an annotation of the stored Job.
func (j *JobFixture) Annotate(key, value string) {
	_ = unstructured.SetNestedField(j.Stored().Object, value, "metadata", "annotations", key)
}

// At is configmap/app with a content, as it was written at a version.
func (j *JobFixture) At(content, version string) digest.State {
	object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
	object.Namespace, object.Name = "shop", "app"
	return digest.StateOf(digest.OfConfigMap(object), "uid", version, j.Ring)
}
