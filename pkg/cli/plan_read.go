package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// planReader reads what a plan compares.
type planReader struct {
	client client.Reader
	// leaveOut is called with a kind that the cluster does not serve.
	leaveOut func(workload.Kind)
}

func newPlanReader(ctx context.Context, p Process, config *rest.Config) (planReader, error) {
	c, err := newClient(ctx, config, corev1.AddToScheme, appsv1.AddToScheme)
	return planReader{c, leaveOut(p)}, err
}

func (r planReader) deployment(ctx context.Context, name types.NamespacedName) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	return deployment, r.client.Get(ctx, name, deployment)
}

// read adds the workloads and the config objects of some namespaces, or of all.
func (r planReader) read(ctx context.Context, in *plan.Input, namespaces []string) error {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	in.Objects = map[string]map[reference.Ref]annotation.Traits{}
	for _, namespace := range namespaces {
		if err := r.workloads(ctx, in, namespace); err != nil {
			return err
		}
		for _, kind := range in.Reloader.Dialect.Kinds() {
			if !relevant(in, kind) {
				continue
			}
			if err := r.objects(ctx, in, kind, namespace); err != nil {
				return err
			}
		}
	}
	return r.namespaces(ctx, in)
}

// relevant reports whether a program looks at config objects of a kind. Those that Reloader's annotations do not select may still be in a
// list of SAP's.
func relevant(in *plan.Input, kind reference.Kind) bool {
	if slices.Contains(in.Reloader.Dialect.HandledKinds(), kind) {
		return true
	}
	return slices.ContainsFunc(in.Workloads, func(o workload.Object) bool {
		intent, _ := annotation.Parse(annotation.Source{Workload: o.Annotations()}, in.Here.Dialects...)
		return slices.ContainsFunc(intent.Refs(), func(ref reference.Ref) bool { return ref.Kind == kind })
	})
}

// workloads adds those of all kinds that either program handles and the cluster has. Jobs that a CronJob has made count like others, as in Reloader.
func (r planReader) workloads(ctx context.Context, in *plan.Input, namespace string) error {
	for _, kind := range in.Reloader.Kinds.Override(in.Here.Kinds.All()...).All() {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersionKind)
		err := pages(ctx, r.client, page, func() {
			for _, u := range page.Items {
				in.Workloads = append(in.Workloads, reduced(kind, u))
			}
		}, client.InNamespace(namespace))
		switch {
		case meta.IsNoMatchError(err):
			r.leaveOut(kind)
		case err != nil:
			return fmt.Errorf("list %s: %w", kind.ID(), err)
		}
	}
	return nil
}

// reduced returns a workload without the large parts that no comparison needs: all of the cluster are kept. That a Job has finished is in
// its status.
func reduced(kind workload.Kind, u unstructured.Unstructured) workload.Object {
	u.SetManagedFields(nil)
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if !kind.CreateOnly {
		unstructured.RemoveNestedField(u.Object, "status")
	}
	return workload.Object{Kind: kind, Raw: u.Object}
}

// objects adds what the metadata of the config objects of a kind says.
func (r planReader) objects(ctx context.Context, in *plan.Input, kind reference.Kind, namespace string) error {
	gvk, _ := kind.GroupVersionKind()
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(gvk)
	err := pages(ctx, r.client, page, func() {
		for _, object := range page.Items {
			if in.Objects[object.Namespace] == nil {
				in.Objects[object.Namespace] = map[reference.Ref]annotation.Traits{}
			}
			traits := in.Reloader.Dialect.Traits(kind, object.Labels, object.Annotations)
			in.Objects[object.Namespace][reference.Ref{Kind: kind, Name: object.Name}] = traits
		}
	}, client.InNamespace(namespace))
	if err != nil && !withoutDriver(kind, err) {
		return fmt.Errorf("list the metadata of %s: %w", kind.Resource(), err)
	}
	return nil
}

// withoutDriver reports whether the objects of a kind cannot be listed since the Secrets Store CSI driver is not installed: there are none.
func withoutDriver(kind reference.Kind, err error) bool {
	return kind == reference.SecretProviderClass && meta.IsNoMatchError(err)
}

// namespaces adds the labels of namespaces, where they matter.
func (r planReader) namespaces(ctx context.Context, in *plan.Input) error {
	if !(scope.Scope{NamespaceSelector: in.Here.Scope.NamespaceSelector}).SelectsNamespaces() {
		return nil
	}
	in.NamespaceLabels = map[string]map[string]string{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := pages(ctx, r.client, page, func() {
		for _, namespace := range page.Items {
			in.NamespaceLabels[namespace.Name] = namespace.Labels
		}
	})
	if err != nil {
		return fmt.Errorf("list the Namespaces for --namespace-selector: %w", err)
	}
	return nil
}

// pages lists page by page, of pageSize unless the options have another limit. Where the use of the pages before has taken so long that the next
// one has expired, the API server names one of a later state.
func pages(ctx context.Context, c client.Reader, page client.ObjectList, use func(), opts ...client.ListOption) error {
	for {
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(pageSize), client.Continue(page.GetContinue())}, opts...)...)
		if later := laterPage(err); later != "" {
			page.SetContinue(later)
			continue
		}
		if err != nil {
			return err
		}
		use()
		if page.GetContinue() == "" {
			return nil
		}
	}
}

// laterPage returns the page in place of one that has expired; empty if there is none.
func laterPage(err error) string {
	if status := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}
