package workloadstate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

const (
	// The pause after a failure doubles from the shortest to the longest. It is short, because until it is over changes go
	// unseen, and there are few watches.
	shortestPause, longestPause = 200 * time.Millisecond, 10 * time.Second
	// steady is how long a watch must have been at work for the next pause to be the shortest again.
	steady = time.Minute
)

// follower follows the workloads of a kind in one namespace, or in all of them.
type follower struct {
	watch     *Watch
	target    target
	namespace string // empty: all
	shape     *skim.Shape
	log       logr.Logger

	// complaint is the last error that was logged, so that the same is not logged again. Only run's goroutine has it.
	complaint string
}

// run watches until the context ends. A refusal or an outage is logged once and tried again for ever.
func (f *follower) run(ctx context.Context) {
	pause := wait.Backoff{Duration: shortestPause, Cap: longestPause, Steps: 8, Factor: 2, Jitter: 0.5}
	reflector := cache.NewReflectorWithOptions(f, &item{}, &sink{f}, cache.ReflectorOptions{
		Name: "workloadstate", TypeDescription: f.watch.kind.ID(), Backoff: &pause,
	})
	// What the reflector logs on its way is of no interest but for debugging.
	quiet := klog.NewContext(ctx, f.log.V(1))
	_ = pause.DelayWithReset(clock.RealClock{}, steady).Until(ctx, true, true, func(context.Context) (bool, error) {
		if err := reflector.ListAndWatchWithContext(quiet); err != nil && ctx.Err() == nil {
			f.failed(err)
		}
		return false, nil
	})
}

// failed reports an error when it is another one than last time.
func (f *follower) failed(err error) {
	if err.Error() == f.complaint {
		return
	}
	f.complaint = err.Error()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		f.log.Error(err, "Not allowed to watch this workload kind: grant get, list and watch; retrying")
		return
	}
	f.log.Error(err, "Cannot watch this workload kind; retrying")
}

// recovered reports that a listing succeeded after an error was logged.
func (f *follower) recovered() {
	if f.complaint != "" {
		f.complaint = ""
		f.log.Info("Watching this workload kind again")
	}
}

// List is for the reflector's interface; it calls ListWithContext.
func (f *follower) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

// Watch is for the reflector's interface; it calls WatchWithContext.
func (f *follower) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

// ListWithContext serves API servers without streaming lists. The response is read item by item.
func (f *follower) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	body, err := f.target.request(f.namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return f.readList(body)
}

// WatchWithContext opens a watch; the reflector asks for initial events where the server can stream them.
func (f *follower) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	body, err := f.target.request(f.namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
	if err != nil && options.SendInitialEvents != nil && utilnet.IsConnectionRefused(err) {
		// The reflector would retry by itself and not see the end of the context. run retries better.
		return nil, errors.New(err.Error())
	}
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcherWithLogger(f.log.V(1), newDecoder(f, body),
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "WATCH", "ClientWatchDecoding")), nil
}
