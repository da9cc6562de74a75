package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// writeLimit is how long a write may take. A validating webhook may take up to 30 s, but a namespace has few slots for writes. Two calls
// of our own webhook without an answer must take less: the API server stores the write after them, for the loop to stamp directly.
const writeLimit = 10 * time.Second

// MaxWrites is how many writes may be in flight in total. There is one worker for each, besides those of --workers: a write that hangs
// occupies none of those.
const MaxWrites = inflight.DefaultTotal + inflight.DefaultOverdue

// errNoAnswer is a write or a read that was given up. The write may have been stored all the same.
var errNoAnswer = errors.New(
	"no answer within 10s: an admission webhook in this namespace, a conversion webhook of this kind, or the API server, hangs")

// writer writes workloads: a bounded number at a time, and no write for ever. It is safe for concurrent use.
type writer struct {
	client  Client
	slots   *inflight.Limit[workload.Key]
	backoff state.Backoff
}

func newWriter(o Options) writer {
	slots := inflight.New(inflight.Options{}, func(key workload.Key) { o.Queue.Add(queue.Slot, key) })
	registerWrites(o.Metrics, slots)
	return writer{client: o.Client, slots: slots, backoff: o.Backoff}
}

// MayWrite reports whether the workload has a slot for its writes. If not, it is queued again when it has one.
func (w writer) MayWrite(s gather.Subject, class inflight.Class) bool {
	if w.backoff.Failing(s.Key) {
		class = inflight.Retry
	}
	return w.slots.Enter(s.Key.Namespace, s.Key, class)
}

// ReleaseSlot gives back the slot of a workload, if it has one.
func (w writer) ReleaseSlot(key workload.Key) { w.slots.Leave(key) }

// write sends a write of a workload that has a slot, and gives it up after a while.
func (w writer) write(ctx context.Context, s gather.Subject, send func(context.Context) error) error {
	start := time.Now()
	err := withWriteTimeout(ctx, send)
	w.slots.Observe(s.Key.Namespace, time.Since(start))
	return err
}

// withWriteTimeout sends a request, and gives it up after a while.
func withWriteTimeout(ctx context.Context, send func(context.Context) error) error {
	limited, cancel := context.WithTimeout(watchhealth.Retried(ctx), writeLimit)
	defer cancel()
	err := send(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) && !errors.Is(err, largeread.ErrWaiting) {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return err
}

// timeoutReader gives up a read like a write: a conversion webhook can hang as well. Then the namespace counts as one whose writes hang;
// a read that is answered says nothing of them. A large object waits for its turn: it may be decoded while few others are in memory.
type timeoutReader struct {
	client.Reader

	slots *inflight.Limit[workload.Key]
}

func (r timeoutReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := withWriteTimeout(ctx, func(ctx context.Context) error { return r.Reader.Get(largeread.Admit(ctx), key, o, opts...) })
	if errors.Is(err, errNoAnswer) {
		r.slots.Observe(key.Namespace, writeLimit)
	}
	return err
}

// fieldOwner names the loop in managedFields.
const fieldOwner = client.FieldOwner("pod-reloader")

// patch sends a patch of a workload that has a slot for its writes, and returns the metadata of the answer.
func (w writer) patch(ctx context.Context, s gather.Subject, patch client.Patch) (*metav1.PartialObjectMetadata, error) {
	answer := &metav1.PartialObjectMetadata{}
	answer.SetGroupVersionKind(s.Object.Kind.GroupVersionKind)
	answer.SetNamespace(s.Key.Namespace)
	answer.SetName(s.Key.Name)
	return answer, w.write(ctx, s, func(ctx context.Context) error { return w.client.Patch(ctx, answer, patch, fieldOwner) })
}

// operate is patch with the operations of a JSON patch.
func (w writer) operate(ctx context.Context, s gather.Subject, operations ...jsonpatch.Operation) (*metav1.PartialObjectMetadata, error) {
	body, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return w.patch(ctx, s, client.RawPatch(types.JSONPatchType, body))
}

// merge is patch with a merge patch.
func (w writer) merge(ctx context.Context, s gather.Subject, change map[string]any) (*metav1.PartialObjectMetadata, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return w.patch(ctx, s, client.RawPatch(types.MergePatchType, body))
}

// patchAnnotations changes annotations of a workload as the loop has read it; null removes one.
func (w writer) patchAnnotations(ctx context.Context, s gather.Subject, annotations map[string]any) (*metav1.PartialObjectMetadata, error) {
	return w.merge(ctx, s, map[string]any{"metadata": map[string]any{
		"resourceVersion": s.Object.ResourceVersion(), "annotations": annotations,
	}})
}

// create creates an object for a workload that has a slot for its writes.
func (w writer) create(ctx context.Context, s gather.Subject, o client.Object, opts ...client.CreateOption) error {
	return w.write(ctx, s, func(ctx context.Context) error { return w.client.Create(ctx, o, append(opts, fieldOwner)...) })
}

// delete deletes an object for a workload that has a slot for its writes.
func (w writer) delete(ctx context.Context, s gather.Subject, o client.Object, opts ...client.DeleteOption) error {
	return w.write(ctx, s, func(ctx context.Context) error { return w.client.Delete(ctx, o, opts...) })
}

// deleteJob deletes a Job with its pods, in the namespace of a workload that has a slot for its writes.
func (w writer) deleteJob(ctx context.Context, s gather.Subject, name string, opts ...client.DeleteOption) error {
	job := workload.Job().NewObject()
	job.SetNamespace(s.Key.Namespace)
	job.SetName(name)
	return w.delete(ctx, s, job, append(opts, client.PropagationPolicy(metav1.DeletePropagationBackground))...)
}

// registerWrites registers the metrics of the writes.
func registerWrites(reg prometheus.Registerer, writes *inflight.Limit[workload.Key]) {
	auto := promauto.With(reg)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_writes_in_flight",
		Help: "Workloads with a slot for their writes: at most 64, and 128 more that have hung for a while; at most 8 in a namespace.",
	}, func() float64 { return float64(writes.InFlight()) })
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_writes_waiting",
		Help: "Workloads that wait for a slot for their writes, because their namespace or the program has reached its limit.",
	}, func() float64 { return float64(writes.Waiting()) })
}
