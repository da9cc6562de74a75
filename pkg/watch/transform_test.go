package watch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestTransformRunsOnceForEveryState(t *testing.T) {
	t.Parallel()
	for reason, server := range map[string]faults{
		"although client-go handles the objects of a streamed list twice": {},
		"where the server does not stream lists":                          {noStreamList: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				calls := 0 // one at a time
				s := newServer(t, object("a", with("secret", "spec", "password")))
				s.Fault(server)
				bulk := startBulk(t, s, watch.Config{
					IgnoreFields: []string{"spec.password"},
					Transform: func(u *unstructured.Unstructured) {
						calls++
						password, _, err := unstructured.NestedString(u.Object, "spec", "password")
						require.NoError(t, err)
						require.NoError(t, unstructured.SetNestedField(u.Object, int64(len(password)), "spec", "length"))
					},
				})
				assert.Equal(t, 1, calls)
				spec := bulk.Store().Object("default", "a").Object["spec"]
				assert.Equal(t, map[string]any{"length": int64(6)}, spec, "it ran before the fields were removed")
				s.Update(object("a", with("secrets", "spec", "password")))
				synctest.Wait()
				assert.Equal(t, 2, calls)
				assert.Equal(t, map[string]any{"length": int64(7)}, bulk.Store().Object("default", "a").Object["spec"])
			})
		})
	}
}

func TestStartReturnsAfterTheLastTransform(t *testing.T) {
	t.Parallel()
	for reason, server := range map[string]faults{
		"streamed list": {}, "where the server does not stream lists": {noStreamList: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				const long = time.Hour
				transformed := 0
				s := newServer(t, object("a"), object("b"))
				s.Fault(server)
				bulk := newBulk(t, s, watch.Config{Transform: func(*unstructured.Unstructured) {
					<-time.After(long)
					transformed++
				}})
				ended := make(chan error)
				began := time.Now()
				go func() { ended <- bulk.Start(t.Context()) }()
				synctest.Wait()
				bulk.Stop()
				require.NoError(t, <-ended)
				assert.Equal(t, 1, transformed)
				assert.Equal(t, long, time.Since(began))
				pass(2 * long)
				assert.Equal(t, 1, transformed, "nothing runs any more")
			})
		})
	}
}

// scripted is a client with one object, whose first streams may be given.
type scripted struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface

	streams chan kubewatch.Interface
	current atomic.Pointer[kubewatch.FakeWatcher]
}

func (s *scripted) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}

func (s *scripted) Namespace(string) dynamic.ResourceInterface { return s }
func (*scripted) IsWatchListSemanticsUnSupported() bool        { return true }

func (s *scripted) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*object("a")}}
	list.SetResourceVersion("1")
	return list, nil
}

func (s *scripted) Watch(context.Context, metav1.ListOptions) (kubewatch.Interface, error) {
	select {
	case stream := <-s.streams:
		return stream, nil
	default:
		stream := kubewatch.NewFake()
		s.current.Store(stream)
		return stream, nil
	}
}

func TestTransformsDoNotOverlap(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		// A server that goes on after it has said that the version is too old:
		// the informer lists again while the stream is still being read.
		events := make(chan kubewatch.Event, 2)
		expired := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
		events <- kubewatch.Event{Type: kubewatch.Error, Object: expired}
		events <- kubewatch.Event{Type: kubewatch.Modified, Object: object("a")}
		s := &scripted{streams: make(chan kubewatch.Interface, 1)}
		s.streams <- kubewatch.NewProxyWatcher(events)
		running, calls := 0, 0
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName, Transform: func(*unstructured.Unstructured) {
			running++
			assert.Equal(t, 1, running)
			<-time.After(time.Hour)
			running--
			calls++
		}}, s)
		require.NoError(t, err)
		start(t, bulk)
		pass(6 * time.Hour)
		assert.Equal(t, 3, calls, "the first list, the event, the second list")
	})
}
