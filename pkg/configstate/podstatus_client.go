package configstate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// podStatus is what counts of a SecretProviderClassPodStatus. The API server sends custom resources in JSON only. It has the names
// and versions of secrets, and no secret.
type podStatus struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	reduced podstatus.Status
}

// UnmarshalJSON keeps what counts. metadata.generation is 1 until the status is changed, which has no subresource.
func (p *podStatus) UnmarshalJSON(data []byte) error {
	var sent struct {
		metav1.ObjectMeta `json:"metadata"`

		Status struct {
			Class   string `json:"secretProviderClassName"`
			Objects []struct {
				ID      string `json:"id"`
				Version string `json:"version"`
			} `json:"objects"`
		} `json:"status"`
	}
	if err := json.Unmarshal(data, &sent); err != nil {
		return err
	}
	p.Namespace, p.Name, p.UID, p.ResourceVersion = sent.Namespace, sent.Name, sent.UID, sent.ResourceVersion
	if end, ok := sent.Annotations[metav1.InitialEventsAnnotationKey]; ok {
		p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end}
	}
	objects := make(map[string]string, len(sent.Status.Objects))
	for _, object := range sent.Status.Objects {
		objects[object.ID] = object.Version
	}
	p.reduced = podstatus.Status{
		Name: p.Name, UID: string(p.UID), ResourceVersion: p.ResourceVersion, Class: sent.Status.Class, Rotated: sent.Generation > 1,
		Objects: digestIfLarge(objects),
	}
	return nil
}

// maxObjects is how many bytes of ids and versions are kept of one status. The driver writes some hundred, but an
// author with the permission to write statuses can write a megabyte into each.
const maxObjects = 16 << 10

// digestIfLarge returns objects, or their digest where they are large.
func digestIfLarge(objects map[string]string) map[string]string {
	size := 0
	for id, version := range objects {
		size += len(id) + len(version)
	}
	if size <= maxObjects {
		return objects
	}
	encoded, err := json.Marshal(objects)
	if err != nil {
		return objects // a map of texts can always be encoded
	}
	return map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(encoded))}
}

// DeepCopyObject makes it a runtime.Object. What is read is not changed: the copy shares the maps.
func (p *podStatus) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// podStatusList is a list of them.
type podStatusList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []podStatus
}

// DeepCopyObject makes it a runtime.Object.
func (l *podStatusList) DeepCopyObject() runtime.Object {
	c := *l
	return &c
}

// readPodStatusList reads a list item by item: the response, with the managed fields of each, can be much larger than what is kept.
func readPodStatusList(from io.Reader) (*podStatusList, error) {
	list := &podStatusList{}
	err := skim.ReadList(from, &list.ListMeta, func(text []byte) error {
		var item podStatus
		if err := json.Unmarshal(text, &item); err != nil {
			return err
		}
		list.Items = append(list.Items, item)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a list of pod statuses: %w", err)
	}
	return list, nil
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
	body, err := stream(ctx, c.podStatuses(namespace).VersionedParams(&options, metav1.ParameterCodec))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return readPodStatusList(body)
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
func (s podStatusSink) Put(p *podStatus) { s.statuses.put(s.watcher, p.Namespace, p.reduced) }

// Remove takes a status that is gone.
func (s podStatusSink) Remove(p *podStatus) { s.statuses.remove(s.watcher, p.Namespace, p.Name) }

// Replace takes a listing.
func (s podStatusSink) Replace(listed []*podStatus, _ string) {
	all := newPodStatuses()
	for _, p := range listed {
		all.put(p.Namespace, p.reduced)
	}
	s.statuses.list(s.watcher, all)
}

// readPodStatuses reads the pod statuses of a namespace as they are stored now, or as they were at a resourceVersion of the storage,
// which the API server keeps for some minutes. A cluster without the Secrets Store CSI driver has
// none, and no such kind. Its 404 is the same as that of a proxy, which does little harm here: a class without content triggers
// nothing, and what is recorded of it stays until the next stamp.
func (c *client) readPodStatuses(ctx context.Context, namespace, at string) (podStatuses, error) {
	options := metav1.ListOptions{ResourceVersion: at}
	if at != "" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	// In a namespace that is watched, it would count as a list of the watch.
	list, err := c.listPodStatuses(watchhealth.Unwatched(ctx), namespace, options)
	if apierrors.IsNotFound(err) {
		return newPodStatuses(), nil
	}
	if err != nil {
		return podStatuses{}, err
	}
	if list.Continue != "" {
		return podStatuses{}, errors.New("the list of pod statuses is not complete")
	}
	read := newPodStatuses()
	for i := range list.Items {
		read.put(namespace, list.Items[i].reduced)
	}
	return read, nil
}
