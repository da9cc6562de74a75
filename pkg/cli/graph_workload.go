package cli

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// roots returns the custom resources that are asked for, in place of a workload those that it runs with.
func (f *graphFlags) roots(ctx context.Context, config *rest.Config, s options.Selection, c chained, objects []string) ([]string, error) {
	var roots []string
	for _, object := range objects {
		kind, _, _ := strings.Cut(object, "/")
		if len(c.kinds.Find(kind)) == 0 {
			roots = append(roots, object) // an unknown kind is reported with the resources that are known
			continue
		}
		found, err := f.ofWorkload(ctx, config, s, c, object)
		if err != nil {
			return nil, err
		}
		roots = append(roots, found...)
	}
	return roots, nil
}

// ofWorkload returns the custom resources that one workload runs with.
func (f *graphFlags) ofWorkload(ctx context.Context, config *rest.Config, s options.Selection, c chained, name string) ([]string, error) {
	target, err := newTarget([]string{name})
	if err != nil {
		return nil, err
	}
	kind, err := target.in(c.kinds)
	if err != nil {
		return nil, err
	}
	reader, err := newClient(ctx, config)
	if err != nil {
		return nil, err
	}
	object, err := readWorkload(ctx, reader, kind, types.NamespacedName{Namespace: f.cluster.namespace, Name: target.name})
	if err != nil {
		return nil, err
	}
	known := options.Referents{Workloads: c.Workload}
	view, _ := stamp.Reader{
		Keys: s.Keys, Dialects: s.Dialects(known)[:1], // the first dialect has all about custom resources
		Objects: func(namespace string) (annotation.Objects, error) { return chainObjects{c, namespace}, nil },
	}.Read(object)
	var roots []string
	for _, ref := range view.Intent.Refs() {
		if ref.Kind.Custom() {
			roots = append(roots, ref.String())
		}
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s runs with no custom resource: no annotation names one, and the rules in workloads: of the configuration find none", name)
	}
	return roots, nil
}

// chainObjects knows which custom resources exist.
type chainObjects struct {
	chain     chained
	namespace string
}

func (o chainObjects) Traits(ref reference.Ref) (annotation.Traits, bool) {
	exists := o.chain.Exists(o.namespace, ref)
	return annotation.Traits{Marked: exists}, exists
}

func (chainObjects) Matching(reference.Kind, []*pattern.Pattern) []string { return nil }

// Err is nil: all are looked at.
func (chainObjects) Err() error { return nil }
