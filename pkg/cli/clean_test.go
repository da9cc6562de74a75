package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestCleanCountsInWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "3 workloads; changes the pod templates of 2, with 4 pods", summary(3, 2, 4))
	assert.Equal(t, "1 workload; changes the pod templates of 1, with 1 pod", summary(1, 1, 1))
	assert.Equal(t, "1 workload; changes no pod template", summary(1, 0, 0))
	for status, want := range map[int64]string{0: "it has no pods to restart", 1: "restarts 1 pod", 2: "restarts 2 pods"} {
		object := workload.Object{Raw: map[string]any{"status": map[string]any{"replicas": status}}}
		assert.Equal(t, want, leftover{object: object}.effect())
	}
}

func TestCleanSaysWhichPodsRestart(t *testing.T) {
	t.Parallel()
	rolling := func(partition int64) map[string]any {
		return map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": partition}}}
	}
	for want, object := range map[string]workload.Object{
		"restarts 9 of 10 pods: partition 1":        sized(10, rolling(1)),
		"its pods do not restart now: partition 10": sized(10, rolling(10)),
		"its pods do not restart now: partition 11": sized(10, rolling(11)),
		"restarts 10 pods":                          sized(10, rolling(0)),
		"it has no pods to restart":                 sized(0, rolling(0)),
		"its pods do not restart now: paused":       sized(10, map[string]any{"paused": true}),
		"its pods do not restart now: OnDelete":     sized(10, map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}),
	} {
		assert.Equal(t, want, leftover{object: object}.effect())
	}
}

// sized is a workload with a number of pods.
func sized(pods int64, spec map[string]any) workload.Object {
	return workload.Object{Raw: map[string]any{"spec": spec, "status": map[string]any{"replicas": pods}}}
}

// patcher refuses to patch workloads, by name.
type patcher struct {
	client.Client
	refused map[string]error
}

func (p patcher) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return p.refused[object.GetName()]
}

func TestCleanTakesAWorkloadThatWasDeletedForClean(t *testing.T) {
	t.Parallel()
	workloads := schema.GroupResource{Group: "apps", Resource: "deployments"}
	c := &cleaner{client: patcher{refused: map[string]error{
		"deleted":  apierrors.NewNotFound(workloads, "deleted"),
		"no-route": apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", workloads, "no-route", "default backend", 0, true),
	}}}
	var out bytes.Buffer
	f := &cleanFlags{out: &out}
	of := func(name string) leftover {
		return leftover{object: workload.Object{Kind: workload.Deployment(), Raw: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": name},
		}}}
	}
	require.NoError(t, f.clean(t.Context(), c, []leftover{of("deleted")}))
	assert.Equal(t, "deleted meanwhile: deployment/deleted -n shop\n", out.String())
	require.ErrorContains(t, f.clean(t.Context(), c, []leftover{of("no-route")}), "clean deployment/no-route -n shop", "a load balancer's 404 says nothing")
}

// waiting is an input without an end. It calls read when it is read.
type waiting struct {
	read   func()
	closed <-chan struct{}
}

func (w waiting) Read([]byte) (int, error) {
	w.read()
	<-w.closed
	return 0, io.EOF
}

func TestCleanIsInterruptedAtItsQuestion(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	f := &cleanFlags{out: io.Discard, in: waiting{read: interrupt, closed: t.Context().Done()}}
	require.ErrorContains(t, f.confirm(ctx), "nothing was removed", "while it waits")
}

func TestCleanReadsNothingOnceInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		in := strings.NewReader("yes\n")
		require.ErrorContains(t, (&cleanFlags{out: io.Discard, in: in}).confirm(ctx), "nothing was removed")
		synctest.Wait()
		require.Equal(t, len("yes\n"), in.Len())
	})
}

func TestCleanReadsItsAnswer(t *testing.T) {
	t.Parallel()
	require.NoError(t, (&cleanFlags{out: io.Discard, in: strings.NewReader("Yes\n")}).confirm(t.Context()))
	for name, in := range map[string]io.Reader{"no line": strings.NewReader(""), "no input": nil} {
		require.ErrorContains(t, (&cleanFlags{out: io.Discard, in: in}).confirm(t.Context()), "nothing was removed", name)
	}
}

func TestCleanIsInterruptedBetweenWorkloads(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	f := &cleanFlags{out: io.Discard}
	require.EqualError(t, f.clean(ctx, &cleaner{}, make([]leftover, 3)), "interrupted: 3 workloads not cleaned")
}

// stored is one Deployment in an API server. Its webhook may take a request that was stored before for an old one.
type stored struct {
	client.Client
	object map[string]any
	// restores says that the webhook restores the template in any case.
	restores bool
	// excluded says that a patch has set labels.
	excluded bool
	// denied answers JSON patches.
	denied error
}

func (s *stored) uid() string { return s.object["metadata"].(map[string]any)["uid"].(string) }

func (s *stored) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*unstructured.Unstructured).Object = runtime.DeepCopyJSON(s.object)
	return nil
}

func (s *stored) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	if patch.Type() == types.JSONPatchType && s.denied != nil {
		return s.denied
	}
	if !strings.Contains(string(body), s.uid()) && strings.Contains(string(body), `"uid"`) {
		return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, object.GetName(), nil)
	}
	_, requested := s.annotations()[configHash]
	switch {
	case strings.Contains(string(body), "labels"):
		s.excluded = true
	case strings.Contains(string(body), "/spec/template") && !requested && !s.restores:
		delete(s.annotations("spec", "template"), configHash)
	case patch.Type() == types.JSONPatchType, strings.Contains(string(body), configHash):
		delete(s.annotations(), configHash)
	}
	object.(*unstructured.Unstructured).Object = s.object
	return nil
}

const configHash = "pod-reloader.cs.sap.com/config-hash"

func (s *stored) annotations(path ...string) map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(s.object, append(path, "metadata", "annotations")...)
	return found.(map[string]any)
}

// daemonSet is one whose template may have a hash.
func daemonSet(uid string, annotations, ofTemplate map[string]any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "cart", "uid": uid, "generation": int64(1), "annotations": annotations},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": ofTemplate}, "spec": map[string]any{}}},
	}
}

// cleanStored cleans a DaemonSet that was found in another state than the stored one, by default in the same.
func cleanStored(t *testing.T, api *stored, found map[string]any) error {
	t.Helper()
	if found == nil {
		found = runtime.DeepCopyJSON(api.object)
	}
	c := &cleaner{client: api, reader: stamp.Reader{Keys: annotation.DefaultKeys()}}
	o := workload.Object{Kind: workload.DaemonSet(), Raw: found}
	return c.clean(t.Context(), leftover{o, c.reader.Remains(o)}, true)
}

func TestCleanIsNoSuccessWhileTheTemplateHasItsHash(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason     string
		annotation map[string]any
		restores   bool
		found      map[string]any
		want       string
	}{
		"Cleaned":  {reason: "Nothing is in the way.", annotation: map[string]any{}},
		"Request":  {reason: "A request of a clean that was killed is stored.", annotation: map[string]any{configHash: "clean@1"}},
		"Restored": {reason: "It says so.", annotation: map[string]any{}, restores: true, want: "the webhook has restored what was removed"},
		"Stamped meanwhile": {
			reason: "The user was not asked about this restart.", annotation: map[string]any{},
			found: daemonSet("u1", map[string]any{}, map[string]any{}), want: "the pod template has been changed meanwhile",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &stored{restores: test.restores, object: daemonSet("u1", test.annotation, map[string]any{configHash: "x"})}
			err := cleanStored(t, api, test.found)
			if test.want == "" {
				require.NoError(t, err, test.reason)
				assert.NotContains(t, api.annotations("spec", "template"), configHash, test.reason)
			} else {
				require.ErrorContains(t, err, test.want, test.reason)
				assert.Contains(t, api.annotations("spec", "template"), configHash, test.reason)
			}
		})
	}
}

func TestCleanListsWhatItLeavesToAController(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	left := leftover{
		workload.Object{Kind: workload.DaemonSet(), Raw: daemonSet("u1", nil, nil)},
		stamp.Remains{OnWorkload: []string{"a"}, OnControlled: []string{configHash}},
	}
	(&cleanFlags{out: &out}).list([]leftover{left})
	assert.Equal(t, "daemonset/cart -n shop\n  annotations: a\n  pod template, left to its controller: "+configHash+
		"\n1 workload; changes no pod template\n", out.String())
}

func TestCleanDoesNotAskForWhatIsToStay(t *testing.T) {
	t.Parallel()
	labeled := func(value string) map[string]any {
		o := daemonSet("u1", nil, nil)
		o["metadata"].(map[string]any)["labels"] = map[string]any{annotation.DefaultKeys().DisabledLabel: value}
		return o
	}
	onTemplate := stamp.Remains{OnTemplate: []string{configHash}}
	for name, test := range map[string]struct {
		object          map[string]any
		remains         stamp.Remains
		withoutRestarts bool
		want            bool
	}{
		"done, the template stays":   {labeled("true"), onTemplate, true, false},
		"left to a controller":       {labeled("true"), stamp.Remains{OnControlled: []string{configHash}}, false, false},
		"the template":               {labeled("true"), onTemplate, false, true},
		"the label is missing":       {daemonSet("u1", nil, nil), onTemplate, true, true},
		"the label does not exclude": {labeled("false"), onTemplate, true, true},
		"an annotation":              {labeled("true"), stamp.Remains{OnWorkload: []string{"a"}, OnTemplate: []string{configHash}}, true, true},
	} {
		var out bytes.Buffer
		f := &cleanFlags{out: &out, withoutRestarts: test.withoutRestarts}
		left := leftover{workload.Object{Kind: workload.DaemonSet(), Raw: test.object}, test.remains}
		rest := f.undone(&cleaner{reader: stamp.Reader{Keys: annotation.DefaultKeys()}}, []leftover{left})
		assert.Equal(t, test.want, len(rest) == 1, name)
		assert.Equal(t, !test.want, out.String() == "1 workload cleaned before, with pod templates that stay as they are\n", name)
	}
}

func TestCleanLeavesAWorkloadThatWasCreatedAgain(t *testing.T) {
	t.Parallel()
	hash := map[string]any{configHash: "x"}
	api := &stored{object: daemonSet("u2", map[string]any{}, hash)}
	err := cleanStored(t, api, daemonSet("u1", map[string]any{}, hash))
	require.True(t, apianswer.NotFound(err), "%v", err)
	assert.False(t, api.excluded, "the other workload is not excluded")
	assert.Contains(t, api.annotations("spec", "template"), configHash)
}

func TestCleanNamesTheLabelThatItHasSetBeforeItFails(t *testing.T) {
	t.Parallel()
	workloads := schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	for name, test := range map[string]struct {
		denied error
		named  bool
	}{
		"denied":      {apierrors.NewForbidden(workloads, "cart", errors.New("policy")), true},
		"interrupted": {context.Canceled, true},
		"deleted":     {apierrors.NewNotFound(workloads, "cart"), false},
	} {
		api := &stored{denied: test.denied, object: daemonSet("u1", map[string]any{}, map[string]any{configHash: "x"})}
		err := cleanStored(t, api, nil)
		require.ErrorIs(t, err, test.denied, name)
		const label = "the label pod-reloader.cs.sap.com/disabled=true is set: run clean again, or remove the label"
		assert.Equal(t, test.named, strings.Contains(err.Error(), label), "%s: %v", name, err)
	}
}

func TestCleanTakesAWorkloadThatIsNamedTwiceOnce(t *testing.T) {
	t.Parallel()
	api := &stored{object: daemonSet("a", nil, nil)}
	objects, err := (&cleaner{client: api, namespace: "shop"}).get(t.Context(), workload.NewKinds(workload.Builtin()...),
		[]target{{"daemonset", "cart"}, {"ds", "cart"}, {"deployment", "cart"}, {"daemonset.apps", "cart"}, {"daemonset", "api"}})
	require.NoError(t, err)
	assert.Len(t, objects, 3)
}

// The user may have named another version of the kind, or one of the other cluster.
func TestCleanNamesTheKindsThatItLeavesOut(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	c := &cleaner{client: unserving{}, leaveOut: leaveOut(Process{Stderr: &stderr})}
	found, err := c.list(t.Context(), workload.NewKinds(workload.Rollout(), workload.Deployment()), cleaning{labels: labels.Everything()})
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Equal(t, "pod-reloader: warning: the cluster does not serve Rollout.argoproj.io in version v1alpha1: its workloads are left out\n", stderr.String())
}

// unserving is a cluster without custom kinds and workloads.
type unserving struct{ client.Client }

func (unserving) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind().Group == "argoproj.io" {
		return &meta.NoKindMatchError{}
	}
	return nil
}
