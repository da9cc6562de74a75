package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// workloadsAtOnce is how many workloads one request lists, and how many are kept: the command can run inside of a replica.
const workloadsAtOnce = 50

// overview explains all workloads that ask for reloads. leaveOut is called with a kind that the cluster does not serve.
func (e *explainer) overview(ctx context.Context, leaveOut func(workload.Kind)) (explain.Overview, error) {
	o := explain.Overview{Workloads: []explain.Report{}, AllNamespaces: e.flags.allNamespaces}
	for _, namespace := range e.namespaces() {
		for _, kind := range e.configured.kinds.All() {
			switch err := e.add(ctx, &o, kind, namespace); {
			case meta.IsNoMatchError(err):
				leaveOut(kind)
			case apierrors.IsForbidden(err):
				o.Problems = append(o.Problems, err.Error())
			case err != nil:
				return o, err
			}
		}
	}
	slices.SortStableFunc(o.Workloads, func(a, b explain.Report) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if len(o.Workloads)+o.NotAsked+len(o.Problems) == 0 {
		if err := requireNamespace(ctx, e.client, e.flags.cluster.namespace); err != nil {
			return o, err
		}
	}
	o.FailingWatch = e.installed().failingWatch.At(e.now)
	for _, err := range e.common() {
		if err != nil {
			o.Problems = append(o.Problems, err.Error())
		}
	}
	return o, nil
}

// namespaces are those whose workloads are listed; an empty name means all. Where the installation handles some namespaces, its account may list
// only in those.
func (e *explainer) namespaces() []string {
	if named := e.selection.Scope.Namespaces; e.flags.allNamespaces && len(named) > 0 {
		return named
	}
	return []string{e.flags.cluster.namespace}
}

// add adds the workloads of a kind. A Job that another object controls is left out: that one restarts.
func (e *explainer) add(ctx context.Context, o *explain.Overview, kind workload.Kind, namespace string) error {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(kind.GroupVersionKind)
	var failed error
	err := pages(ctx, e.client, page, func() {
		e.forget()
		for _, u := range page.Items {
			object := workload.Object{Kind: kind, Raw: u.Object}
			if failed != nil || kind.CreateOnly && object.Controlled() {
				continue
			}
			in, unread := e.input(object)
			if !in.View.Intent.Asked && len(in.Problems) == 0 {
				o.NotAsked++
				continue
			}
			var report explain.Report
			report, failed = e.explain(ctx, in, unread)
			o.Workloads = append(o.Workloads, report)
		}
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: e.labels}, client.Limit(workloadsAtOnce))
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.ID(), err)
	}
	return failed
}
