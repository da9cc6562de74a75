package cli

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// handled is what the flags and the configuration say about the target.
type handled struct {
	kind workload.Kind
	// outside says why the installation does not handle the kind; empty if it does.
	outside string
	// referents are the custom resources of the configuration; nil if it has not been read.
	referents *referent.Schema
	// problem says why the configuration could not be read.
	problem error
}

// handled finds the kind of the target, among those of the flags and of the configuration. A configuration that cannot be
// read is only a problem to report if the kind is known without it.
func (q question) handled(ctx context.Context, config *rest.Config) (h handled, err error) {
	if q.selection.Configuration.IsZero() {
		h.kind, h.outside, err = q.find(q.selection.Kinds)
		return h, err
	}
	found, problem := readConfiguration(ctx, config, q.selection.Configuration)
	h.kind, h.outside, err = q.find(q.selection.Kinds.Override(found.WorkloadKinds...))
	if err != nil {
		return h, errors.Join(problem, err)
	}
	if h.problem = problem; problem == nil {
		h.referents, _ = referent.Compile(nil, found.Referents, q.selection.Keys.Checksum) // what is read is valid
	}
	return h, nil
}

// find returns the kind of the target among those that are handled, or else among the ignored ones, which are outside.
func (q question) find(kinds workload.Kinds) (kind workload.Kind, outside string, err error) {
	if len(kinds.Find(q.target.kind)) > 0 {
		kind, err = q.target.in(kinds)
		return kind, "", err
	}
	kind, err = q.target.in(q.selection.IgnoredKinds.Override(kinds.All()...))
	return kind, "--ignored-workload-types names its kind", err
}

// known is what the reading of annotations knows of custom resources.
func (h handled) known() options.Referents {
	if h.referents == nil {
		return options.Referents{}
	}
	return options.Referents{Workloads: func(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool) {
		owned, labelled = h.referents.Workload(labels, owners)
		return owned, labelled, true
	}}
}

// customObjects are the config objects of a namespace and, read one by one, the custom resources that the labels of a workload
// name: they count if they exist.
type customObjects struct {
	annotation.Objects

	exists    func(namespace string, ref reference.Ref) (bool, error)
	namespace string
	// failed is the last error of exists.
	failed error
}

var _ annotation.Objects = &customObjects{}

// existing reads whether custom resources exist.
func (h handled) existing(ctx context.Context, config *rest.Config) (*customObjects, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &customObjects{exists: func(namespace string, ref reference.Ref) (bool, error) {
		resource, ok := h.referents.Resource(ref.Kind.GroupResource())
		if !ok {
			return false, nil
		}
		var at dynamic.ResourceInterface = client.Resource(resource.GVR)
		if !resource.ClusterScoped {
			at = client.Resource(resource.GVR).Namespace(namespace)
		}
		_, err := at.Get(ctx, ref.Name, metav1.GetOptions{})
		if apianswer.NotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %s, which a label of the workload names: %w", ref, err)
		}
		return true, nil
	}}, nil
}

// Traits of a custom resource are whether it exists. One that cannot be read counts, so that its row says why.
func (o *customObjects) Traits(ref reference.Ref) (annotation.Traits, bool) {
	if !ref.Kind.Custom() {
		return o.Objects.Traits(ref)
	}
	exists, err := o.exists(o.namespace, ref)
	if err != nil {
		o.failed, exists = err, true
	}
	return annotation.Traits{Marked: exists}, exists
}
