package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
)

// Client writes and lists Events by the API group events.k8s.io.
type Client struct {
	events typed.EventsV1Interface
}

var _ Writer = &Client{}

// NewClient returns a Client.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	events, err := typed.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for Events: %w", err)
	}
	return &Client{events}, nil
}

// List lists Events; an empty namespace stands for all.
func (c *Client) List(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error) {
	return c.events.Events(namespace).List(ctx, o)
}

// Create creates an Event.
func (c *Client) Create(ctx context.Context, event *eventsv1.Event) error {
	_, err := c.events.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

// Count counts an Event on the one of its name that exists, as client-go's recorder does, unless an attempt whose answer was lost has
// created or counted it.
func (c *Client) Count(ctx context.Context, event *eventsv1.Event) error {
	stored, err := c.stored(ctx, event)
	if err != nil {
		return err
	}
	last, count := stored.EventTime, int32(2)
	if series := stored.Series; series != nil {
		last, count = series.LastObservedTime, series.Count+1
	}
	if last.UnixMicro() == event.EventTime.UnixMicro() { // what is stored has whole microseconds
		return nil
	}
	body, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(event.EventTime.Time)}})
	if err != nil {
		return fmt.Errorf("count an Event: %w", err)
	}
	_, err = c.events.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if apianswer.NotFound(err) {
		return justDeleted(event)
	}
	return err
}

// Reporter returns the reporting instance of the Event of this name that exists.
func (c *Client) Reporter(ctx context.Context, event *eventsv1.Event) (string, error) {
	stored, err := c.stored(ctx, event)
	if err != nil {
		return "", err
	}
	return stored.ReportingInstance, nil
}

// stored returns the Event of this name that exists; a conflict if it has gone meanwhile. It is listed since the program has no
// permission to get Events.
func (c *Client) stored(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	list, err := c.List(ctx, event.Namespace, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", event.Name).String(), Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, justDeleted(event)
	}
	return &list.Items[0], nil
}

// justDeleted is the conflict about an Event that was not created because it existed, and has gone since. Only a NotFound of a creation
// says that the namespace is gone.
func justDeleted(event *eventsv1.Event) error {
	return apierrors.NewConflict(eventsv1.Resource("events"), event.Name, fmt.Errorf("the Event was just deleted"))
}
