package workloadstate

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Options say what a Source watches and how it reaches it.
type Options struct {
	// Config and HTTPClient lead to the API server.
	Config     *rest.Config
	HTTPClient *http.Client
	// Mapper knows the resources of kinds.
	Mapper Mapper
	// Namespaces are those to watch. None means all of them.
	Namespaces []string
	// Discovered is called for a namespace with how the attempt to find the resource of a kind has ended: until it is found for the first
	// time, when it is found as another one, and for each request that is answered with 404. nil calls nothing.
	Discovered func(about watchhealth.Watch, err error)
	// Keep says which labels and annotations are kept.
	Keep workload.Keep
	// Log gets a line when a watch fails in a new way and when it works again.
	Log logr.Logger
}

// Finder finds the resources of kinds; a meta.RESTMapper does.
type Finder interface {
	RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// Mapper knows the resources of kinds.
type Mapper interface {
	Finder
	// Fresh returns a Finder that knows nothing yet and asks the API server. Once use is called, all requests go to what it has found. use
	// fails if that of another Finder was called meanwhile.
	Fresh() (fresh Finder, use func() error, err error)
}

// Source makes watches of workloads.
type Source struct {
	options Options
}

// New makes a Source. It does no I/O.
func New(o Options) *Source {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{""}
	}
	if o.Discovered == nil {
		o.Discovered = func(watchhealth.Watch, error) {}
	}
	return &Source{options: o}
}

// target is what the requests of a watch are for.
type target struct {
	rest       rest.Interface
	resource   schema.GroupResource
	namespaces []string
}

// discovered reports how an attempt to find the resource of a kind ended.
func (s *Source) discovered(of target, err error) {
	for _, namespace := range of.namespaces {
		s.options.Discovered(watchhealth.Watch{Resource: of.resource.String(), Namespace: namespace}, err)
	}
}

// resolve finds the resource of a kind.
func (s *Source) resolve(finder Finder, kind workload.Kind) (target, error) {
	mapping, err := finder.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return target{}, err
	}
	codecs := metainternalversionscheme.Codecs.WithoutConversion() // of the Status of a refusal; nothing else is decoded
	client, err := listwatch.NewClient(s.options.Config, s.options.HTTPClient, kind.GroupVersion(), codecs, runtime.ContentTypeJSON)
	if err != nil {
		return target{}, fmt.Errorf("make a client for %s: %w", kind.ID(), err)
	}
	t := target{rest: client, resource: mapping.Resource.GroupResource(), namespaces: slices.Clone(s.options.Namespaces)}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.namespaces = []string{""}
	}
	return t, nil
}

func (t target) request(namespace string) *rest.Request {
	return t.rest.Get().
		NamespaceIfScoped(namespace, namespace != "").
		Resource(t.resource.Resource)
}
