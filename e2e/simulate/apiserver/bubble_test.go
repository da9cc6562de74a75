package apiserver_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/memnet"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// serve puts a Server on a network in memory and returns clients of it, by the name of their host.
func serve(t *testing.T, s *apiserver.Server) func(host string) kubernetes.Interface {
	t.Helper()
	network := memnet.New()
	l, err := network.Listen("apiserver", ":80")
	require.NoError(t, err)
	h := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		_ = h.Close()
	})
	return func(host string) kubernetes.Interface {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return network.Dial(ctx, host, address)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		c, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://apiserver:80", QPS: -1}, &http.Client{Transport: transport})
		require.NoError(t, err)
		return c
	}
}

func TestInformerInFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		set(t, s, "a", "1")
		clients := serve(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(clients("one"), 0)
		lister := factory.Core().V1().ConfigMaps().Lister()
		factory.Start(ctx.Done())
		synctest.Wait()
		list := func() []string {
			synctest.Wait()
			var out []string
			all, err := lister.ConfigMaps("shop").List(labels.Everything())
			require.NoError(t, err)
			for _, c := range all {
				out = append(out, c.Name+c.Labels["l"])
			}
			return out
		}
		assert.Equal(t, []string{"a1"}, list())
		set(t, s, "a", "2")
		assert.Equal(t, []string{"a2"}, list())
		require.Len(t, s.Watches(), 1)
		s.Watches()[0].Hold()
		set(t, s, "a", "3")
		assert.Equal(t, []string{"a2"}, list(), "held back")
		s.Watches()[0].Break()
		sleep(time.Minute)
		assert.Equal(t, []string{"a3"}, list(), "a new watch")
		sleep(3 * time.Hour)
		set(t, s, "a", "4")
		assert.Equal(t, []string{"a4"}, list(), "watches end and are opened again")
		cancel()
		factory.Shutdown()
	})
}

func TestLeaderElectionInFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		clients := serve(t, s)
		leader := ""
		run := func(ctx context.Context, name string) {
			lock := &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "shop", Name: "leader"}, Client: clients(name).CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			}
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leader = name }, OnStoppedLeading: func() {}},
			})
		}
		first, stop := context.WithCancel(t.Context())
		second, stopAll := context.WithCancel(t.Context())
		go run(first, "one")
		synctest.Wait()
		go run(second, "two")
		sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "one", leader)
		stop()
		sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, "two", leader)
		stopAll()
		synctest.Wait()
		require.Len(t, s.List(world.Leases, "shop"), 1)
	})
}

func TestConcurrentWritesAreSerialized(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t)
		clients := serve(t, s)
		_, err := clients("one").CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		for range 20 {
			go func() { merge(t, s, configMaps+"/app", `{"metadata":{"annotations":{"a":"b"}}}`) }()
			go func() { get(t, s, configMaps) }()
			go func() { merge(t, s, configMaps+"/app", `{"metadata":{"annotations":{"a":"c"}}}`) }()
		}
		synctest.Wait()
	})
}
