package workloadstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/skim"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// events returns what reads the next event of the body of a watch.
func (f *follower) events(body io.Reader) func() (watch.EventType, runtime.Object, error) {
	reader := skim.NewReader(body)
	frame := &skim.Shape{Members: map[string]*skim.Shape{"type": nil, "object": f.shape}}
	return func() (watch.EventType, runtime.Object, error) {
		text, err := reader.Next()
		if err != nil {
			return "", nil, err
		}
		return f.event(text, frame)
	}
}

func (f *follower) event(text []byte, shape *skim.Shape) (watch.EventType, runtime.Object, error) {
	value, err := skim.Decode(text, shape)
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
		return watch.Bookmark, f.bookmark(raw), nil
	default:
		return watch.EventType(kind), f.item(raw), nil
	}
}

// bookmark has the version up to which the watch has come.
func (f *follower) bookmark(raw map[string]any) *item {
	o := workload.Object{Kind: f.of.kind, Raw: raw}
	return &item{ObjectMeta: metav1.ObjectMeta{ResourceVersion: o.ResourceVersion(), Annotations: o.Annotations()}}
}

func (f *follower) item(raw map[string]any) *item {
	o := workload.Object{Kind: f.of.kind, Raw: raw}
	kept := o.Keep(f.of.source.options.Keep)
	s := workload.Summary{Kept: kept}
	return &item{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Name(), ResourceVersion: s.ResourceVersion()},
		kept:       kept,
	}
}

// readList reads a list item by item.
func (f *follower) readList(body io.Reader) (*items, error) {
	list := &items{}
	err := skim.ReadList(body, &list.ListMeta, func(text []byte) error { return f.readItem(list, text) })
	if err != nil {
		return nil, fmt.Errorf("read a list of workloads: %w", err)
	}
	return list, nil
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
