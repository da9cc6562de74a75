package check

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// plane is a real API server as users reach it.
type plane struct {
	client *http.Client
	url    string
}

var _ act.API = plane{}

func newPlane(config *rest.Config) (plane, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return plane{}, fmt.Errorf("make a client: %w", err)
	}
	return plane{client, config.Host}, nil
}

// Do sends one request.
func (p plane) Do(ctx context.Context, r act.Request) (act.Response, error) {
	return act.Send(ctx, p.client, p.url, r, "application/json")
}

// watched are the resources that must be at rest, and of which a summary is made.
func watched() []world.Resource {
	return []world.Resource{
		world.ConfigMaps, world.Secrets, world.Pods, world.Events, world.Deployments, world.StatefulSets, world.DaemonSets,
		world.ReplicaSets, world.ControllerRevisions, world.CronJobs, world.Jobs,
	}
}

// list returns the objects of a resource in all namespaces.
func (p plane) list(ctx context.Context, r world.Resource, accept string) ([]world.Object, error) {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.APIVersion()
	}
	answer, err := act.Send(ctx, p.client, p.url, act.Request{Method: http.MethodGet, Path: path + "/" + r.Plural}, accept)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Plural, err)
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("list %s: status %d: %s", r.Plural, answer.Status, answer.Body)
	}
	list := world.Object{}
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return nil, fmt.Errorf("decode the list of %s: %w", r.Plural, err)
	}
	return world.Objects(list, "items"), nil
}

// stored is all that is stored at one moment.
type stored map[world.Resource][]world.Object

// List returns the objects of a namespace.
func (s stored) List(r world.Resource, namespace string) []world.Object {
	return slices.DeleteFunc(slices.Clone(s[r]), func(o world.Object) bool { return world.Text(o, "metadata", "namespace") != namespace })
}

// versions are the versions of everything, as one text.
func (s stored) versions() string {
	var b strings.Builder
	for _, r := range watched() {
		for _, o := range s[r] {
			fmt.Fprintln(&b, world.Text(o, "metadata", "uid"), world.Text(o, "metadata", "resourceVersion"))
		}
	}
	return b.String()
}

// read lists one resource after another: what changes meanwhile is seen in some of them only. Canaries are left out.
func (p plane) read(ctx context.Context, accept string) (stored, error) {
	all := stored{}
	for _, r := range watched() {
		objects, err := p.list(ctx, r, accept)
		if err != nil {
			return nil, err
		}
		all[r] = slices.DeleteFunc(objects, func(o world.Object) bool {
			return world.Text(o, "metadata", "namespace") == installation.CanaryNamespace
		})
	}
	return all, nil
}
