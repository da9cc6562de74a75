package refresh

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

const (
	// failurePoll is how often it is looked why the first sync has not come yet.
	failurePoll = time.Second
	// readEvery is how often the ConfigMap is read until then. The watch pauses for up to a minute between its attempts.
	readEvery = 10 * time.Second
	// readLimit bounds one read.
	readLimit = 5 * time.Second
)

// configMap is the Source of a configuration in a ConfigMap.
type configMap struct {
	options SourceOptions
	single  *watch.Single

	mu sync.Mutex // one Offer at a time
	// synced is true once the watch has delivered; what was read before is not offered any more.
	synced bool

	// The goroutine of explain alone uses the others. version is that of the object that was read last, read is true once
	// there was an answer; later failures are not reported any more. refusal is the text of the last one that was.
	version string
	read    bool
	refusal string
}

func newConfigMap(options SourceOptions) (*configMap, error) {
	c := &configMap{options: options}
	var err error
	c.single, err = watch.NewSingle(watch.SingleConfig{
		GVR:            configMaps,
		Namespace:      options.Location.Namespace,
		Name:           options.Location.Name,
		OnChange:       c.changed,
		OnSyncComplete: c.changed,
		Logger:         options.Log,
	}, options.Client)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Start watches the ConfigMap until the context ends.
func (c *configMap) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { c.explain(ctx) })
	defer running.Wait()
	return c.single.Start(ctx)
}

// changed is called with the ConfigMap as it is now, nil if there is none.
func (c *configMap) changed(_ context.Context, object *unstructured.Unstructured) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.synced = true
	c.options.Offer(contentOf(c.options.Location, object))
	return nil
}

// explain makes up for a watch that fails or hangs at its beginning. It reads the ConfigMap, which may be permitted where list and
// watch are not. Where that is denied as well, it offers that a permission is missing: the start does not wait for the configuration then.
// An API server that is down is waited for, and the watcher reports it.
func (c *configMap) explain(ctx context.Context) {
	ticker := time.NewTicker(failurePoll)
	defer ticker.Stop()
	next := time.Now().Add(readEvery)
	for first := true; !c.single.IsSynced(); {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, err := c.single.LastWatchError()
		if now := time.Now(); first && err != nil || !now.Before(next) {
			first, next = false, now.Add(readEvery)
			c.readOnce(ctx)
		}
		if !c.read && denied(err) && err.Error() != c.refusal {
			c.refusal = err.Error()
			c.offer(Content{Missing: unreadable(c.options.Location, err), Regarding: regarding(c.options.Location, nil)})
		}
	}
}

// readOnce offers what a read finds, if it is new.
func (c *configMap) readOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	object, err := get(ctx, c.options.Location, c.options.Client)
	switch {
	case apianswer.NotFound(err):
		object = nil
	case err != nil:
		return
	}
	version := ""
	if object != nil {
		version = string(object.GetUID()) + "/" + object.GetResourceVersion()
	}
	if c.read && version == c.version {
		return
	}
	c.read, c.version = true, version
	c.offer(contentOf(c.options.Location, object))
}

// offer offers what the watch has not delivered; nothing once it has.
func (c *configMap) offer(content Content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		c.options.Offer(content)
	}
}

func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

func unreadable(location configuration.Location, err error) error {
	advice := ""
	if apierrors.IsForbidden(err) {
		advice = ", grant get, list and watch of it"
	}
	return fmt.Errorf("the ConfigMap %s/%s cannot be read%s: %w", location.Namespace, location.Name, advice, err)
}

// getConfigMap reads a ConfigMap once.
func getConfigMap(ctx context.Context, location configuration.Location, client dynamic.Interface) Content {
	object, err := get(ctx, location, client)
	switch {
	case apianswer.NotFound(err):
		return contentOf(location, nil)
	case err != nil:
		return Content{Missing: unreadable(location, err)}
	default:
		return contentOf(location, object)
	}
}

func get(ctx context.Context, location configuration.Location, client dynamic.Interface) (*unstructured.Unstructured, error) {
	return client.Resource(configMaps).Namespace(location.Namespace).Get(ctx, location.Name, metav1.GetOptions{})
}

// contentOf returns what a ConfigMap holds; nil if there is none.
func contentOf(location configuration.Location, object *unstructured.Unstructured) Content {
	content := Content{Regarding: regarding(location, object)}
	if object == nil {
		content.Missing = fmt.Errorf("there is no ConfigMap %s/%s: create it with the key %s, or correct --config",
			location.Namespace, location.Name, configuration.DataKey)
		return content
	}
	text, found, err := unstructured.NestedString(object.Object, "data", configuration.DataKey)
	if err != nil || !found {
		content.Faulty = field.Required(field.NewPath("data").Key(configuration.DataKey), "the ConfigMap must have this key with the configuration as a string")
		return content
	}
	content.Text = []byte(text)
	return content
}

// regarding names a ConfigMap for Events, whether it exists or not.
func regarding(location configuration.Location, object *unstructured.Unstructured) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: location.Namespace, Name: location.Name}
	if object != nil {
		ref.UID, ref.ResourceVersion = object.GetUID(), object.GetResourceVersion()
	}
	return ref
}
