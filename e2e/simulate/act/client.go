package act

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The media types of bodies.
const (
	plainJSON      = "application/json"
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// client speaks to the API server in objects.
type client struct{ api API }

// send makes one request and returns the object of the answer.
func (c client) send(ctx context.Context, r Request) (world.Object, error) {
	body, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	object := world.Object{}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("decode the answer to %s %s: %w", r.Method, r.Path, err)
	}
	return object, nil
}

// do makes one request and returns the body of the answer. What a write has stored is not decoded: few acts look at it.
func (c client) do(ctx context.Context, r Request) ([]byte, error) {
	answer, err := c.api.Do(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	if answer.Status >= 200 && answer.Status <= 299 {
		return answer.Body, nil
	}
	var status struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer.Body, &status) // a proxy may answer in another form
	return nil, &RejectedError{r.Method, r.Path, answer.Status, status.Reason, status.Message}
}

func (c client) get(ctx context.Context, key world.Key) (world.Object, error) {
	return c.send(ctx, Request{Method: http.MethodGet, Path: objectPath(key)})
}

// list returns the objects of a resource in a namespace, filtered on the server by a label selector.
func (c client) list(ctx context.Context, r world.Resource, namespace, selector string) ([]world.Object, error) {
	path := collectionPath(r, namespace) + "?" + url.Values{"labelSelector": {selector}}.Encode()
	list, err := c.send(ctx, Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, err
	}
	return world.Objects(list, "items"), nil
}

func (c client) create(ctx context.Context, key world.Key, manager string, object world.Object) error {
	return c.write(ctx, http.MethodPost, collectionPath(key.Resource, key.Namespace)+query(manager), object)
}

func (c client) put(ctx context.Context, key world.Key, manager string, object world.Object) error {
	return c.write(ctx, http.MethodPut, objectPath(key)+query(manager), object)
}

func (c client) write(ctx context.Context, method, path string, object world.Object) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode the object of %s %s: %w", method, path, err)
	}
	_, err = c.do(ctx, Request{Method: method, Path: path, ContentType: plainJSON, Body: body})
	return err
}

// unlessThere skips an act whose object exists already.
func unlessThere(key world.Key, err error) error {
	if rejectedFor(err, "AlreadyExists") {
		return skip("%s exists", key)
	}
	return err
}

// change is the body of a PATCH.
type change struct {
	mediaType string
	body      any
}

func (c client) patch(ctx context.Context, key world.Key, manager string, p change) error {
	body, raw := p.body.([]byte)
	if !raw {
		var err error
		if body, err = json.Marshal(p.body); err != nil {
			return fmt.Errorf("encode patch of %s: %w", key, err)
		}
	}
	path := objectPath(key) + query(manager)
	_, err := c.do(ctx, Request{Method: http.MethodPatch, Path: path, ContentType: p.mediaType, Body: body})
	return err
}

// merge sends a JSON merge patch.
func (c client) merge(ctx context.Context, key world.Key, manager string, body world.Object) error {
	return c.patch(ctx, key, manager, change{mergePatch, body})
}

// delete removes an object and lets its dependents go in the background, as kubectl does.
func (c client) delete(ctx context.Context, key world.Key) error {
	return c.deleteAs(ctx, key, "Background")
}

const (
	// conflictTries and conflictPause are those of client-go's retry.DefaultRetry.
	conflictTries = 5
	conflictPause = 10 * time.Millisecond
)

// update reads an object, changes it and writes it back, again after a conflict.
func (c client) update(ctx context.Context, key world.Key, manager string, edit func(world.Object) error) error {
	for try := 1; ; try++ {
		object, err := c.get(ctx, key)
		if err != nil {
			return err
		}
		if err := edit(object); err != nil {
			return err
		}
		err = c.put(ctx, key, manager, object)
		if !rejectedFor(err, "Conflict") || try == conflictTries {
			return err
		}
		if err := pause(ctx, conflictPause); err != nil {
			return err
		}
	}
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
