package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const (
	// eventsAtOnce is how many Events one request lists.
	eventsAtOnce = 20
	// maxReasons is how many Warnings are kept of a workload, one for each reason.
	maxReasons = 50
	// jobsAtOnce is how many Jobs one request lists.
	jobsAtOnce = 25
)

// installationState is what the installation has, and what bears on all its workloads.
type installationState struct {
	ring digest.Ring
	// keySecret is where the ring is from, noKey why there is none.
	keySecret, noKey string
	failingWatch     *explain.Warning
	lease            *explain.Lease
	// unread says what cannot be read.
	unread []error
}

func (f *whyFlags) readInstalled(ctx context.Context, c client.Reader, lease types.NamespacedName) (in installationState) {
	var noRing, noEvents, noLease error
	in.ring, noRing = f.ring(ctx, c)
	in.keySecret, in.noKey = f.own+"/"+f.key, f.noKey(noRing)
	in.failingWatch, noEvents = watchFailure(ctx, c, f.own)
	in.lease, noLease = leaseOf(ctx, c, lease)
	in.unread = append(slices.Clone(f.unknown), noRing, noEvents, noLease)
	return in
}

// leaseOf reads the lease of the installation; nil if there is none, or no permission to read it, as where one replica runs without
// an election.
func leaseOf(ctx context.Context, c client.Reader, name types.NamespacedName) (*explain.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, name, lease)
	if apianswer.NotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil //nolint:nilnil // absent is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether a replica leads, since the lease cannot be read: %w", err)
	}
	renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	valid := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return &explain.Lease{Name: name.String(), Renewed: renewed, Ends: renewed.Add(valid)}, nil
}

// outside says why the installation does not handle a workload; it is empty if it does. The error says that the
// namespace's labels cannot be read: then the answer leaves them aside.
func (e *explainer) outside(o workload.Object) (string, error) {
	s := e.selection.Scope
	if !s.SelectsNamespaces() {
		return s.Outside(o.Namespace(), nil, o.Labels()), nil
	}
	of, err := e.labelsOf(o.Namespace())
	if err != nil {
		s.NamespaceSelector = labels.Everything()
		err = fmt.Errorf("cannot check --namespace-selector: %w", err)
	}
	return s.Outside(o.Namespace(), of, o.Labels()), err
}

// namespaceLabels lists those of one namespace. They are not got: to list is the permission that an installation with --namespace-selector
// has itself.
func namespaceLabels(ctx context.Context, c client.Reader, name string) (map[string]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := c.List(ctx, list, client.MatchingFields{"metadata.name": name}); err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return list.Items[0].Labels, nil
}

// eventsOf are the Warning Events of a namespace, or of one workload in it.
type eventsOf struct {
	namespace string
	// workload is a UID; empty for all.
	workload types.UID
}

// eventsOf returns which Events are listed for a workload. API servers look at all Events of the namespace for each request.
func (e *explainer) eventsOf(o workload.Object) eventsOf {
	if e.flags.all {
		return eventsOf{namespace: o.Namespace()}
	}
	return eventsOf{o.Namespace(), types.UID(o.UID())}
}

// warnings are the Warning Events that pod-reloader has sent about workloads, by their UID, the newest of each reason. Without the permission
// to list them a Report has less to say, so that is no error of the command.
func warnings(ctx context.Context, c client.Reader, of eventsOf) (map[types.UID][]explain.Warning, error) {
	found := map[types.UID][]explain.Warning{}
	fields := client.MatchingFields{"type": corev1.EventTypeWarning, "reportingController": event.Controller}
	if of.workload != "" {
		fields["regarding.uid"] = string(of.workload)
	}
	err := eachPage(ctx, c, func(page []eventsv1.Event) {
		for _, e := range page {
			uid := types.UID(strings.Clone(string(e.Regarding.UID)))
			found[uid] = newest(append(found[uid], warningOf(e)))
		}
	}, client.InNamespace(of.namespace), fields)
	if err != nil {
		return nil, fmt.Errorf("cannot show failed attempts, since the Events cannot be listed: %w", err)
	}
	return found, nil
}

// eachPage calls use with each page of Events. The command can run inside of a replica, and Events of core/v1 without eventTime can be of
// more than 1 MiB.
func eachPage(ctx context.Context, c client.Reader, use func([]eventsv1.Event), options ...client.ListOption) error {
	for next := ""; ; {
		page := &eventsv1.EventList{}
		if err := c.List(ctx, page, append(slices.Clone(options), client.Limit(eventsAtOnce), client.Continue(next))...); err != nil {
			return err
		}
		use(page.Items)
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// newest returns the last Warning of each reason, newest first, and not too many of them.
func newest(found []explain.Warning) []explain.Warning {
	slices.SortStableFunc(found, func(a, b explain.Warning) int { return b.Time.Compare(a.Time) })
	reasons := map[string]bool{}
	found = slices.DeleteFunc(found, func(w explain.Warning) bool {
		known := reasons[w.Reason]
		reasons[w.Reason] = true
		return known
	})
	return found[:min(len(found), maxReasons)]
}

// warningOf copies the texts: they may be parts of a larger one.
func warningOf(e eventsv1.Event) explain.Warning {
	return explain.Warning{Time: event.TimeOf(e), Reason: strings.Clone(event.Note(e.Reason)), Message: strings.Clone(event.Note(e.Note))}
}

// watchFailure is what the installations have reported of their watches, on their Deployments, the youngest of several; nil if all work as far as is
// known.
func watchFailure(ctx context.Context, c client.Reader, namespace string) (*explain.Warning, error) {
	last := map[string]eventsv1.Event{}
	err := eachPage(ctx, c, func(page []eventsv1.Event) {
		last = event.Last(append(slices.Collect(maps.Values(last)), page...), watchhealth.EventFailing, watchhealth.EventRecovered)
	}, client.InNamespace(namespace), client.MatchingFields{
		"regarding.kind": "Deployment", "reportingController": event.Controller,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot show failing watches, since the Events in the installation's namespace cannot be listed: %w", err)
	}
	var youngest *explain.Warning
	for _, e := range last {
		if w := warningOf(e); w.Reason == watchhealth.EventFailing && (youngest == nil || youngest.Time.Before(w.Time)) {
			youngest = &w
		}
	}
	return youngest, nil
}

// jobsOf are the Jobs of a CronJob, where its run may wait for one of them.
func (e *explainer) jobsOf(in explain.Input) (found []cronrun.Job, err error) {
	if !explain.RunMayWait(in) {
		return nil, nil
	}
	all, err := e.jobs(in.Object.Namespace())
	of := cronrun.CronJob{Object: in.Object}
	for _, job := range all {
		if of.Owns(job) {
			found = append(found, job)
		}
	}
	return found, err
}

// jobs are those of a namespace that belong to another object.
func jobs(ctx context.Context, c client.Reader, namespace, hashAnnotation string) (found []cronrun.Job, err error) {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("JobList"))
	err = pages(ctx, c, page, func() {
		for _, raw := range page.Items {
			if job := cronrun.JobOf(raw, hashAnnotation); job.IsOwned() {
				found = append(found, job)
			}
		}
	}, client.InNamespace(namespace), client.Limit(jobsAtOnce))
	if err != nil {
		return nil, fmt.Errorf("cannot show whether the run for the last reload waits, since the Jobs cannot be listed: %w", err)
	}
	return found, nil
}
