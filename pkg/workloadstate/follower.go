package workloadstate

import (
	"context"
	"io"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// follower follows the workloads of a kind in one namespace, or in all of them.
type follower struct {
	of        *Watch
	namespace string // empty: all
	shape     *skim.Shape
	log       logr.Logger
	// listed says that a listing was complete.
	listed bool
	// accepted is how many lookups there were before the last list or watch that was accepted.
	accepted int
	// missing says that a request was answered with 404 since the last watch that was accepted, and beforeMissing is how many lookups there
	// were before the first of them: other namespaces need lookups, too.
	missing       bool
	beforeMissing int
}

// run watches until the context ends. A refusal or an outage is logged once and retried until then.
func (f *follower) run(ctx context.Context) {
	loop := listwatch.Loop[*item]{
		Name: "workloadstate", Kind: f.of.kind.ID(), What: "workloads", Log: f.log,
		List: f.list, Watch: f.watch, Sink: f,
	}
	loop.Run(ctx)
}

// list serves API servers without streaming lists. The response is read item by item. The reflector asks for the first list at any version:
// the watch cache of the API server may answer with a version older than config objects that were there by then. The list is not in pages,
// since the reflector would ask for pages in each later list as well, which the watch cache does not have.
func (f *follower) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion, options.Limit = "", 0
	}
	body, err := f.request(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return f.readList(body)
}

// watch opens a watch.
func (f *follower) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	body, err := f.request(ctx, options)
	if err != nil {
		return nil, err
	}
	return listwatch.Stream(body, f.events(body), f.log.V(1)), nil
}

// request asks for the resource that the kind has now.
func (f *follower) request(ctx context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	to := f.of.target.Load()
	body, err := to.request(f.namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
	switch {
	case err == nil:
		f.accepted, f.missing = f.of.lookups.number(), f.missing && !options.Watch
	case f.of.unservedBy(err, to):
		f.unserved(watchhealth.Watch{Resource: to.resource.String(), Namespace: f.namespace})
	}
	return body, err
}

// unserved does what follows from the lookups after an answer of 404. Where the kind is not installed any more, its workloads are gone: the
// definition can be deleted while no watch is open that would deliver their deletion. This is decided here, since no list can succeed
// meanwhile. A list that is accepted does not prove that a watch is.
func (f *follower) unserved(about watchhealth.Watch) {
	lookups, report := &f.of.lookups, f.of.source.options.Discovered
	if !f.missing {
		f.missing, f.beforeMissing = true, lookups.number()
	}
	if err := lookups.failure(f.beforeMissing); err != nil {
		report(about, err)
	}
	if lookups.show(contradicted, f.beforeMissing) {
		report(about, watchhealth.ErrContradicted)
	}
	if lookups.show(uninstalled, f.accepted) {
		f.of.replace(f.namespace, nil, "")
	}
}

// Put takes a workload that comes or changes.
func (f *follower) Put(i *item) { f.of.put(i.kept, "") }

// Remove takes a workload that is gone.
func (f *follower) Remove(i *item) { f.of.remove(i.Namespace, i.Name) }

// Replace takes a listing. The first one has what was there before.
func (f *follower) Replace(listed []*item, version string) {
	kept := make([]*workload.Kept, len(listed))
	for n, i := range listed {
		kept[n] = i.kept
	}
	if f.listed {
		version = ""
	}
	f.listed = true
	f.of.replace(f.namespace, kept, version)
}
