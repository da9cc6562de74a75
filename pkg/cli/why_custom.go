package cli

import (
	"context"
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

// configured is what the flags and the configuration of the installation say about its workloads.
type configured struct {
	kinds workload.Kinds
	// referents are the custom resources of the configuration; nil if it has not been read.
	referents *referent.Schema
	// problem says why the configuration could not be read.
	problem error
}

// configured reads the configuration. One that cannot be read is a problem to report, unless the kind of the target is not known without it.
func (q question) configured(ctx context.Context, config *rest.Config) configured {
	c := configured{kinds: q.selection.Kinds}
	if q.selection.Configuration.IsZero() {
		return c
	}
	found, problem := readConfiguration(ctx, config, q.selection.Configuration)
	c.kinds = c.kinds.Override(found.WorkloadKinds...)
	if c.problem = problem; problem == nil {
		c.referents, _ = referent.Compile(nil, found.Referents, q.selection.Keys.Checksum) // what is read is valid
	}
	return c
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
func (c configured) known() options.Referents {
	if c.referents == nil {
		return options.Referents{}
	}
	return options.Referents{Workloads: func(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool) {
		owned, labelled = c.referents.Workload(labels, owners)
		return owned, labelled, true
	}}
}

// customObjects are the config objects of a namespace and, read one by one, the custom resources that the labels of a workload
// name: they count if they exist.
type customObjects struct {
	annotation.Objects

	exists    func(objectKey) (bool, error)
	namespace string
	// failed is the last error of exists.
	failed error
}

var _ annotation.Objects = &customObjects{}

// reader returns what reads whether a custom resource exists.
func (c configured) reader(ctx context.Context, config *rest.Config) (func(objectKey) (bool, error), error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(o objectKey) (bool, error) {
		resource, ok := c.referents.Resource(o.ref.Kind.GroupResource())
		if !ok {
			return false, nil
		}
		var at dynamic.ResourceInterface = client.Resource(resource.GVR)
		if !resource.ClusterScoped {
			at = client.Resource(resource.GVR).Namespace(o.namespace)
		}
		_, err := at.Get(ctx, o.ref.Name, metav1.GetOptions{})
		if apianswer.NotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %s, which a label of the workload names: %w", o.ref, err)
		}
		return true, nil
	}, nil
}

// Traits of a custom resource are whether it exists. One that cannot be read counts, so that its row says why.
func (o *customObjects) Traits(ref reference.Ref) (annotation.Traits, bool) {
	if !ref.Kind.Custom() {
		return o.Objects.Traits(ref)
	}
	exists, err := o.exists(objectKey{o.namespace, ref})
	if err != nil {
		o.failed, exists = err, true
	}
	return annotation.Traits{Marked: exists}, exists
}
