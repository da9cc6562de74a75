package workloadstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/skim"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// silence is how long a watch may send nothing. The API server sends a bookmark about every minute; a connection that is
// silent for longer is given up and opened anew from where it was, which costs one request.
const silence = 150 * time.Second

// decoder turns the bytes of a watch into events.
type decoder struct {
	*follower

	body    io.ReadCloser
	reader  *skim.Reader
	frame   *skim.Shape
	close   sync.Once
	silence *time.Timer
	silent  atomic.Bool
}

func newDecoder(f *follower, body io.ReadCloser) *decoder {
	d := &decoder{
		follower: f, body: body, reader: skim.NewReader(body),
		frame: &skim.Shape{Members: map[string]*skim.Shape{"type": nil, "object": f.shape}},
	}
	d.silence = time.AfterFunc(silence, d.giveUp)
	return d
}

// Decode waits for the next event.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	text, err := d.reader.Next()
	if err != nil && d.silent.Load() {
		return "", nil, io.EOF // go on with a new watch from here
	}
	if err != nil {
		return "", nil, plain(err)
	}
	d.silence.Reset(silence)
	return d.event(text)
}

func (d *decoder) event(text []byte) (watch.EventType, runtime.Object, error) {
	value, err := skim.Decode(text, d.frame)
	if err != nil {
		return "", nil, fmt.Errorf("read a watch event: %w", err)
	}
	frame, _ := value.(map[string]any)
	kind, _ := frame["type"].(string)
	raw, ok := frame["object"].(map[string]any)
	switch {
	case !ok:
		return "", nil, errors.New("read a watch event: it has no object")
	case watch.EventType(kind) == watch.Error:
		var failure struct{ Object metav1.Status }
		if err := json.Unmarshal(text, &failure); err != nil {
			return "", nil, fmt.Errorf("read the status that ends a watch: %w", err)
		}
		return watch.Error, &failure.Object, nil
	case watch.EventType(kind) == watch.Bookmark:
		return watch.Bookmark, d.bookmark(raw), nil
	default:
		return watch.EventType(kind), d.item(raw), nil
	}
}

// bookmark has the version up to which the watch has come.
func (d *decoder) bookmark(raw map[string]any) *item {
	o := workload.Object{Kind: d.watch.kind, Raw: raw}
	return &item{ObjectMeta: metav1.ObjectMeta{ResourceVersion: o.ResourceVersion(), Annotations: o.Annotations()}}
}

func (f *follower) item(raw map[string]any) *item {
	o := workload.Object{Kind: f.watch.kind, Raw: raw}
	kept := o.Keep(f.watch.source.options.Keep)
	s := workload.Summary{Kept: kept}
	return &item{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Name(), ResourceVersion: s.ResourceVersion()},
		kept:       kept,
	}
}

// readList reads a list item by item.
func (f *follower) readList(body io.Reader) (*items, error) {
	list := &items{}
	r := skim.NewReader(body)
	found := false
	err := r.Object(func(key string) error {
		switch key {
		case "metadata":
			text, err := r.Next()
			if err != nil {
				return err
			}
			return json.Unmarshal(text, &list.ListMeta)
		case "items":
			found = true
			return r.List(func(text []byte) error { return f.readItem(list, text) })
		default:
			_, err := r.Next()
			return err
		}
	})
	if err == nil && !found {
		err = errors.New("the response is no list")
	}
	if err != nil {
		return nil, fmt.Errorf("read a list of workloads: %w", err)
	}
	// The connection can be used again only when its end has been seen.
	_, err = io.Copy(io.Discard, body)
	return list, err
}

func (f *follower) readItem(list *items, text []byte) error {
	value, err := skim.Decode(text, f.shape)
	if err != nil {
		return err
	}
	raw, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("an item is %T instead of an object", value)
	}
	list.Items = append(list.Items, f.item(raw))
	return nil
}

// plain unwraps the two errors that StreamWatcher takes for the ordinary end of a watch.
func plain(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return end
		}
	}
	return err
}

// Close ends the watch; a Decode that waits returns.
func (d *decoder) Close() {
	d.close.Do(func() {
		d.silence.Stop()
		_ = d.body.Close()
	})
}

// giveUp ends a watch that has been silent for too long.
func (d *decoder) giveUp() {
	d.silent.Store(true)
	d.Close()
}
