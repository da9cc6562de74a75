package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/reload"
	"github.com/pod-reloader/pod-reloader/pkg/workloadstate"
)

// resources reads and writes objects live. A client and a RESTMapper of controller-runtime keep for ever which resource a kind has: Fresh
// makes new ones.
type resources struct {
	config  *rest.Config
	http    *http.Client
	scheme  *apiruntime.Scheme
	current atomic.Pointer[served]
}

var (
	_ reload.API           = (*resources)(nil)
	_ workloadstate.Mapper = (*resources)(nil)
)

// served is what was known to be served at a time.
type served struct {
	mapper meta.RESTMapper
	client client.Client
}

// discoveryLimit is how long an answer about what is served may take: a RESTMapper has no context that could end its request.
const discoveryLimit = 30 * time.Second

// newResources begins with what the manager knows.
func newResources(mgr manager.Manager) (*resources, error) {
	r := &resources{config: mgr.GetConfig(), http: mgr.GetHTTPClient(), scheme: mgr.GetScheme()}
	return r, r.renew(nil, mgr.GetRESTMapper())
}

func (r *resources) renew(before *served, mapper meta.RESTMapper) error {
	c, err := client.New(r.config, client.Options{HTTPClient: r.http, Scheme: r.scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if !r.current.CompareAndSwap(before, &served{mapper, c}) {
		return errors.New("the resource of another kind has changed meanwhile")
	}
	return nil
}

// Fresh makes a RESTMapper that asks the API server. Requests go on as before, also where it finds nothing, until use is called.
func (r *resources) Fresh() (fresh workloadstate.Finder, use func() error, err error) {
	before := r.current.Load()
	limited := *r.http
	limited.Timeout = discoveryLimit
	mapper, err := NewMapper(r.config, &limited)
	return mapper, func() error { return r.renew(before, mapper) }, err
}

// RESTMapping returns the resource of a kind.
func (r *resources) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return r.current.Load().mapper.RESTMapping(gk, versions...)
}

// Get reads an object.
func (r *resources) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return r.current.Load().client.Get(ctx, key, o, opts...)
}

// List reads objects.
func (r *resources) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.current.Load().client.List(ctx, list, opts...)
}

// Create creates an object.
func (r *resources) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return r.current.Load().client.Create(ctx, o, opts...)
}

// Delete deletes an object.
func (r *resources) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return r.current.Load().client.Delete(ctx, o, opts...)
}

// Patch changes an object.
func (r *resources) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return r.current.Load().client.Patch(ctx, o, patch, opts...)
}
