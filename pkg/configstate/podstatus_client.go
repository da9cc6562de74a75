package configstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// podStatus is a SecretProviderClassPodStatus as the API server sends it, which has JSON only for custom resources. It has
// the names and versions of secrets, and no secret.
type podStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Class   string `json:"secretProviderClassName"`
		Objects []struct {
			ID      string `json:"id"`
			Version string `json:"version"`
		} `json:"objects"`
	} `json:"status"`
}

// DeepCopyObject makes it a runtime.Object. What is read is not changed: the copy shares the lists.
func (p *podStatus) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// reduced returns what counts. metadata.generation is 1 until the status is changed, which has no subresource.
func (p *podStatus) reduced() podstatus.Status {
	s := podstatus.Status{
		Name: p.Name, UID: string(p.UID), ResourceVersion: p.ResourceVersion, Class: p.Status.Class, Rotated: p.Generation > 1,
		Objects: make(map[string]string, len(p.Status.Objects)),
	}
	for _, object := range p.Status.Objects {
		s.Objects[object.ID] = object.Version
	}
	return s
}

// podStatusList is a list of them.
type podStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []podStatus `json:"items"`
}

// DeepCopyObject makes it a runtime.Object.
func (l *podStatusList) DeepCopyObject() runtime.Object {
	c := *l
	return &c
}

// podStatuses starts a request for the pod statuses of a namespace; the empty one is all of them.
func (c *client) podStatuses(namespace string) *rest.Request {
	resource := reference.PodStatuses()
	return c.rest.Get().
		AbsPath("apis", resource.Group, resource.Version).
		NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).
		SetHeader("Accept", runtime.ContentTypeJSON)
}

// listPodStatuses reads the pod statuses of a namespace, or all of them.
func (c *client) listPodStatuses(ctx context.Context, namespace string, options metav1.ListOptions) (*podStatusList, error) {
	c.payload.add(reference.SecretProviderClass)
	body, err := stream(ctx, c.podStatuses(namespace).VersionedParams(&options, metav1.ParameterCodec))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	list := &podStatusList{}
	if err := json.NewDecoder(body).Decode(list); err != nil {
		return nil, fmt.Errorf("read a list of pod statuses: %w", err)
	}
	// The connection can be used again only when its end has been seen.
	_, err = io.Copy(io.Discard, body)
	return list, err
}

// runPodStatuses is run for the watch of pod statuses.
func (w *watcher) runPodStatuses(ctx context.Context) {
	loop := listwatch.Loop[*podStatus]{
		Name: "configstate", Kind: reference.PodStatuses().Resource, What: "the statuses of SecretProviderClasses", Log: w.log,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return w.client.listPodStatuses(ctx, w.namespace, options)
		},
		Watch: w.watchPodStatuses, Sink: podStatusSink{w}, Failed: w.failed,
	}
	loop.Run(ctx)
}

// watchPodStatuses opens a watch.
func (w *watcher) watchPodStatuses(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	body, err := w.client.podStatuses(w.namespace).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(body)
	return listwatch.Stream(body, func() (watch.EventType, runtime.Object, error) {
		var event struct {
			Type   watch.EventType
			Object json.RawMessage
		}
		if err := decoder.Decode(&event); err != nil {
			return "", nil, err
		}
		var object runtime.Object = &podStatus{}
		if event.Type == watch.Error {
			object = &metav1.Status{}
		}
		return event.Type, object, json.Unmarshal(event.Object, object)
	}, w.log.V(1)), nil
}

// podStatusSink takes what the watch of pod statuses delivers.
type podStatusSink struct{ *watcher }

var _ listwatch.Sink[*podStatus] = podStatusSink{}

// Put takes a status that comes or changes.
func (s podStatusSink) Put(p *podStatus) { s.store.putPodStatus(s.watcher, p.Namespace, p.reduced()) }

// Remove takes a status that is gone.
func (s podStatusSink) Remove(p *podStatus) { s.store.removePodStatus(s.watcher, p.Namespace, p.Name) }

// Replace takes a listing.
func (s podStatusSink) Replace(listed []*podStatus) {
	all := newPodStatuses()
	for _, p := range listed {
		all.put(p.Namespace, p.reduced())
	}
	s.store.listedPodStatuses(s.watcher, all)
}

// readPodStatuses reads the pod statuses of a namespace as they are stored now.
func (c *client) readPodStatuses(ctx context.Context, namespace string) (podStatuses, error) {
	list, err := c.listPodStatuses(ctx, namespace, metav1.ListOptions{})
	if err != nil {
		return podStatuses{}, err
	}
	if list.Continue != "" {
		return podStatuses{}, errors.New("the list of pod statuses is not complete")
	}
	read := newPodStatuses()
	for i := range list.Items {
		read.put(namespace, list.Items[i].reduced())
	}
	return read, nil
}
