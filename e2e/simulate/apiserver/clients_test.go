package apiserver_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// patience bounds what real clients, in real time, may take.
const patience = 2 * time.Minute

// listen serves a Server over TCP and returns the way to it.
func listen(t *testing.T, s *apiserver.Server) *rest.Config {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	t.Cleanup(s.Stop) // first: it ends the watches that Close waits for
	return &rest.Config{Host: h.URL, QPS: -1}
}

func TestTypedClient(t *testing.T) {
	t.Parallel()
	for name, contentType := range map[string]string{"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, tracked)
			config := listen(t, s)
			config.ContentType = contentType
			c, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			ctx := t.Context()
			d, err := c.AppsV1().Deployments("shop").Create(ctx, deployment(), metav1.CreateOptions{})
			require.NoError(t, err)
			d.Spec.Paused = true
			updated, err := c.AppsV1().Deployments("shop").Update(ctx, d, metav1.UpdateOptions{})
			require.NoError(t, err)
			assert.EqualValues(t, 2, updated.Generation)
			_, err = c.AppsV1().Deployments("shop").Update(ctx, d, metav1.UpdateOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			updated.Status.Replicas = 3
			updated, err = c.AppsV1().Deployments("shop").UpdateStatus(ctx, updated, metav1.UpdateOptions{})
			require.NoError(t, err)
			assert.EqualValues(t, 3, updated.Status.Replicas)
			applied, err := c.AppsV1().Deployments("shop").Apply(ctx, appsapply.Deployment("cart", "shop").WithLabels(map[string]string{"a": "b"}), metav1.ApplyOptions{FieldManager: "me"})
			require.NoError(t, err)
			assert.Equal(t, "b", applied.Labels["a"])
			list, err := c.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			assert.Len(t, list.Items, 1)
			_, err = c.AppsV1().Deployments("shop").Get(ctx, "none", metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			require.NoError(t, c.AppsV1().Deployments("shop").Delete(ctx, "cart", *metav1.NewPreconditionDeleteOptions(string(d.UID))))
			groups, err := c.Discovery().ServerPreferredResources()
			require.NoError(t, err)
			assert.Len(t, groups, 7)
		})
	}
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "cart"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cart"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "cart:1"}}},
			},
		},
	}
}

func TestInformersFollow(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]bool{"streaming": false, "listing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, func(o *apiserver.Options) { o.NoStreamingLists = without })
			set(t, s, "a", "1")
			c, err := dynamic.NewForConfig(listen(t, s))
			require.NoError(t, err)
			factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
			informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
			seen := make(chan string, 100)
			_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { seen <- "add " + o.(*unstructured.Unstructured).GetName() },
				UpdateFunc: func(_, o any) { seen <- "update " + o.(*unstructured.Unstructured).GetLabels()["l"] },
				DeleteFunc: func(o any) {
					key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(o) // it may be a tombstone
					seen <- "delete " + key
				},
			})
			require.NoError(t, err)
			factory.Start(t.Context().Done())
			t.Cleanup(factory.Shutdown)
			expect(t, seen, "add a")
			set(t, s, "a", "2")
			expect(t, seen, "update 2")
			for _, w := range s.Watches() {
				w.Break()
			}
			set(t, s, "b", "3")
			expect(t, seen, "add b")
			for _, w := range s.Watches() {
				w.Expire()
			}
			s.Remove(worldKey("configmaps", "b"))
			expect(t, seen, "delete shop/b")
			s.Stop()
		})
	}
}

func expect(t *testing.T, seen <-chan string, want string) {
	t.Helper()
	select {
	case got := <-seen:
		require.Equal(t, want, got)
	case <-time.After(patience):
		require.Fail(t, "nothing came", want)
	}
}

func TestMetadataClient(t *testing.T) {
	t.Parallel()
	s := server(t)
	set(t, s, "a", "1")
	c, err := metadata.NewForConfig(listen(t, s))
	require.NoError(t, err)
	resource := c.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop")
	m, err := resource.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", m.Labels["l"])
	m, err = resource.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	assert.Equal(t, "y", m.Annotations["x"])
	list, err := resource.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	w, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer w.Stop()
	set(t, s, "a", "2")
	e := <-w.ResultChan()
	m, ok := e.Object.(*metav1.PartialObjectMetadata)
	require.True(t, ok, "%T", e.Object)
	assert.Equal(t, "2", m.Labels["l"])
}

func TestControllerRuntimeClient(t *testing.T) {
	t.Parallel()
	s := server(t)
	c, err := client.New(listen(t, s), client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	d := deployment()
	d.Namespace = "shop"
	require.NoError(t, c.Create(t.Context(), d))
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	meta.Namespace, meta.Name = "shop", "cart"
	require.NoError(t, c.Patch(t.Context(), meta, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))))
	assert.EqualValues(t, 2, meta.Generation)
	assert.Equal(t, "b", meta.Annotations["a"])
	list := &eventsv1.EventList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace("shop"), client.MatchingFields{"regarding.name": "cart"}))
}

func TestConfigStateSyncs(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]bool{"streaming": false, "listing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, func(o *apiserver.Options) { o.NoStreamingLists = without })
			app := worldKey("configmaps", "app")
			_, err := s.Store(app, world.Object{"data": map[string]any{"a": "1"}})
			require.NoError(t, err)
			ring := digesttest.Ring(t, "1")
			store, err := configstate.New(configstate.Options{
				Config: listen(t, s), Ring: func() digest.Ring { return ring }, Log: logr.Discard(),
			})
			require.NoError(t, err)
			changes := make(chan string, 10)
			store.OnEvent(func(e configstate.Event) { changes <- string(e.Type) + " " + e.Ref.String() })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() { _ = store.Start(ctx) }()
			require.NoError(t, store.WaitForSync(ctx))
			expect(t, changes, "Added configmap/app")
			ref := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
			before, err := store.ReadLive(ctx, "shop", []reference.Ref{ref, {Kind: reference.Secret, Name: "none"}})
			require.NoError(t, err)
			require.False(t, before[ref].Absent, "the ConfigMap exists")
			assert.True(t, before[reference.Ref{Kind: reference.Secret, Name: "none"}].Absent, "the Secret does not exist")
			_, err = s.Store(app, world.Object{"data": map[string]any{"a": "2"}})
			require.NoError(t, err)
			expect(t, changes, "Modified configmap/app")
			after, err := store.ReadLive(ctx, "shop", []reference.Ref{ref})
			require.NoError(t, err)
			assert.NotEqual(t, before[ref].Entries, after[ref].Entries)
			s.Stop()
		})
	}
}

func TestLeaderElectionAndEvents(t *testing.T) {
	t.Parallel()
	s := server(t)
	c, err := kubernetes.NewForConfig(listen(t, s))
	require.NoError(t, err)
	led := make(chan string, 2)
	elect := func(ctx context.Context, name string) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "shop", Name: "leader"}, Client: c.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led <- name }, OnStoppedLeading: func() {},
			},
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	go elect(ctx, "one")
	expect(t, led, "one")
	go elect(t.Context(), "two")
	cancel()
	expect(t, led, "two")

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.EventsV1()})
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "pod-reloader")
	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for range 2 {
		recorder.Eventf(about, nil, corev1.EventTypeNormal, "Reloaded", "Reload", "why")
	}
	require.Eventually(t, func() bool {
		all := s.List(world.Events, "shop")
		return len(all) == 1 && field(world.Meta(all[0]), "series", "count") != nil
	}, patience, 10*time.Millisecond)
}
