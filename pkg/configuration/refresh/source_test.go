package refresh_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
)

// start follows a location until the test ends, and returns what is offered.
func start(t *testing.T, options refresh.SourceOptions) chan refresh.Content {
	t.Helper()
	offered := make(chan refresh.Content, 100)
	options.Offer = func(c refresh.Content) { offered <- c }
	options.Log = logr.Discard()
	source, err := refresh.NewSource(options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(t, source.Start(ctx))
	}()
	t.Cleanup(func() { stop(); <-done })
	return offered
}

// Every way of replacing a file is seen, and nothing is offered that is not new.
func TestFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "config.yaml")
		pod := &corev1.ObjectReference{Kind: "Pod", Name: "p"}
		offered := start(t, refresh.SourceOptions{Location: configuration.Location{Path: path}, Pod: pod})
		first := <-offered
		require.ErrorContains(t, first.Missing, "there is no file "+path)
		assert.Equal(t, pod, first.Regarding)

		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		write("config.yaml", "one")
		assert.Equal(t, "one", string((<-offered).Text), "it is created")
		write("config.yaml", "two")
		assert.Equal(t, "two", string((<-offered).Text), "it is written in place")
		write("next", "three")
		require.NoError(t, os.Rename(filepath.Join(dir, "next"), path))
		assert.Equal(t, "three", string((<-offered).Text), "it is replaced")

		// As the kubelet does: config.yaml → ..data/config.yaml, ..data → a directory, swapped by a rename.
		for _, version := range []string{"v1", "v2"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
			write(version+"/config.yaml", version)
			require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
			require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
			if version == "v1" {
				require.NoError(t, os.Remove(path))
				require.NoError(t, os.Symlink("..data/config.yaml", path))
			}
			assert.Equal(t, version, string((<-offered).Text), "a symbolic link is swapped")
		}

		require.NoError(t, os.Remove(path))
		require.ErrorContains(t, (<-offered).Missing, "there is no file", "it is deleted")
		write("config.yaml", "")
		require.NoError(t, (<-offered).Missing, "it is created, and empty")
		write("config.yaml", strings.Repeat("#", 2*configuration.MaxSize))
		assert.Len(t, (<-offered).Text, configuration.MaxSize+1, "one byte more than can be, so that it is refused")
		require.NoError(t, os.Remove(path))
		require.ErrorContains(t, (<-offered).Missing, "there is no file")
		require.NoError(t, os.Mkdir(path, 0o700))
		require.ErrorContains(t, (<-offered).Missing, "read the configuration", "it is no file")
		<-time.After(time.Minute)
		assert.Empty(t, offered, "each content is offered once")
	})
}

// A file that is still being written is not read as half of a configuration.
func TestFileThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte("all"), 0o600))
		offered := start(t, refresh.SourceOptions{Location: configuration.Location{Path: path}})
		assert.Equal(t, "all", string((<-offered).Text))
		<-time.After(25 * time.Millisecond) // no read is at the time of a write
		for n := range 40 {
			require.NoError(t, os.WriteFile(path, []byte("whole"[:n%5]), 0o600))
			<-time.After(50 * time.Millisecond)
		}
		require.NoError(t, os.WriteFile(path, []byte("whole"), 0o600))
		assert.Equal(t, "whole", string((<-offered).Text))
	})
}

func configMap(version string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{"namespace": "ops", "name": "config", "uid": "u1", "resourceVersion": version},
	}}
}

var (
	inOps = configuration.Location{Namespace: "ops", Name: "config"}
	gvr   = corev1.SchemeGroupVersion.WithResource("configmaps")
)

func newClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	return fake.NewSimpleDynamicClient(scheme, objects...)
}

func TestConfigMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient()
		resource := client.Resource(gvr).Namespace("ops")
		offered := start(t, refresh.SourceOptions{Location: inOps, Client: client})
		first := <-offered
		require.ErrorContains(t, first.Missing, "there is no ConfigMap ops/config: create it with the key config.yaml, or correct --config")
		assert.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ops", Name: "config"}, first.Regarding)

		_, err := resource.Create(t.Context(), configMap("1", map[string]any{"config.yaml": "one"}), metav1.CreateOptions{})
		require.NoError(t, err)
		created := <-offered
		assert.Equal(t, "one", string(created.Text))
		assert.Equal(t, "1", created.Regarding.ResourceVersion)
		assert.EqualValues(t, "u1", created.Regarding.UID)

		_, err = resource.Update(t.Context(), configMap("2", map[string]any{"config.yml": "one"}), metav1.UpdateOptions{})
		require.NoError(t, err)
		require.ErrorContains(t, (<-offered).Faulty, "data[config.yaml]: Required value")

		_, err = resource.Update(t.Context(), configMap("3", map[string]any{"config.yaml": "two"}), metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "two", string((<-offered).Text))
		require.NoError(t, resource.Delete(t.Context(), "config", metav1.DeleteOptions{}))
		require.ErrorContains(t, (<-offered).Missing, "there is no ConfigMap")
		<-time.After(5 * time.Minute)
		synctest.Wait()
		assert.Empty(t, offered, "a resync is no change")
	})
}

// Without the permission to watch the configuration, the start does not wait for it; it is applied once the permission is given.
func TestConfigMapThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(configMap("1", map[string]any{"config.yaml": "one"}))
		var away, allowed atomic.Bool
		away.Store(true)
		client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if away.Load() {
				return true, nil, errors.New("connection refused")
			}
			if !allowed.Load() {
				return true, nil, apierrors.NewForbidden(gvr.GroupResource(), "", errors.New("no permission"))
			}
			return false, nil, nil
		})
		offered := start(t, refresh.SourceOptions{Location: inOps, Client: client})
		<-time.After(30 * time.Second)
		assert.Empty(t, offered, "an API server that is away is waited for")
		away.Store(false)
		denied := <-offered
		require.ErrorContains(t, denied.Missing, "the ConfigMap ops/config cannot be read, grant get, list and watch of it")
		require.ErrorContains(t, denied.Missing, "no permission")
		allowed.Store(true)
		var last refresh.Content
		for last.Text == nil {
			last = <-offered
		}
		assert.Equal(t, "one", string(last.Text))
	})
}

// No permission helps.
func TestConfigMapWhoseReadHasNoValidCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient()
		client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewUnauthorized("the token has expired")
		})
		offered := start(t, refresh.SourceOptions{Location: inOps, Client: client})
		refused := <-offered
		require.ErrorContains(t, refused.Missing, "the ConfigMap ops/config cannot be read: ")
		require.ErrorContains(t, refused.Missing, "the token has expired")
	})
}

// The watch pauses for up to a minute between its attempts, and list and watch may not be permitted at all.
func TestConfigMapIsReadWhileItsWatchFails(t *testing.T) {
	t.Parallel()
	forbidden := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(gvr.GroupResource(), "", errors.New("no permission"))
	}
	fails := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("given up") }
	refusals := map[string]int{"list refused": 1, "list fails": 0}
	for name, list := range map[string]clienttesting.ReactionFunc{"list refused": forbidden, "list fails": fails} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(configMap("1", map[string]any{"config.yaml": "one"}))
				var readable, watchable atomic.Bool
				var reads atomic.Int32
				client.PrependReactor("list", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if watchable.Load() {
						return false, nil, nil
					}
					return list(a)
				})
				client.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
					reads.Add(1)
					if readable.Load() {
						return false, nil, nil
					}
					return forbidden(a)
				})
				offered := start(t, refresh.SourceOptions{Location: inOps, Client: client})
				<-time.After(5 * time.Minute)
				synctest.Wait()
				assert.InDelta(t, 30, reads.Load(), 3, "one in ten seconds")
				for range refusals[name] {
					require.ErrorContains(t, (<-offered).Missing, "no permission")
				}
				require.Empty(t, offered, "one refusal is said once")

				readable.Store(true)
				<-time.After(10 * time.Second)
				assert.Equal(t, []string{"one"}, texts(offered), "read within 10 s")
				_, err := client.Resource(gvr).Namespace("ops").Update(t.Context(), configMap("2", map[string]any{"config.yaml": "two"}), metav1.UpdateOptions{})
				require.NoError(t, err)
				<-time.After(time.Minute)
				assert.Equal(t, []string{"two"}, texts(offered), "each version once, and no refusal of the watch")

				watchable.Store(true)
				<-time.After(5 * time.Minute)
				assert.Equal(t, []string{"two"}, texts(offered), "what the watch delivers first")
			})
		})
	}
}

// texts takes what was offered.
func texts(offered chan refresh.Content) []string {
	var taken []string
	for synctest.Wait(); len(offered) > 0; {
		taken = append(taken, string((<-offered).Text))
	}
	return taken
}

func TestRead(t *testing.T) {
	t.Parallel()
	client := newClient(configMap("1", map[string]any{"config.yaml": string(withKinds("a.io/v1/A=spec.t"))}))
	got, err := refresh.Read(t.Context(), inOps, client)
	require.NoError(t, err)
	assert.Len(t, got.WorkloadKinds, 1)
	_, err = refresh.Read(t.Context(), configuration.Location{Namespace: "ops", Name: "other"}, client)
	require.ErrorContains(t, err, "the configuration in configmap:ops/other: there is no ConfigMap ops/other")

	unprivileged := newClient()
	unprivileged.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", gvr.GroupResource(), "config", "default backend", 0, true)
	})
	_, err = refresh.Read(t.Context(), inOps, unprivileged)
	require.ErrorContains(t, err, "cannot be read", "a load balancer's 404 does not mean that the ConfigMap is absent")

	path := filepath.Join(t.TempDir(), "config.yaml")
	_, err = refresh.Read(t.Context(), configuration.Location{Path: path}, nil)
	require.ErrorContains(t, err, "there is no file")
	require.NoError(t, os.WriteFile(path, withKinds("a.io/v1/A=status"), 0o600))
	_, err = refresh.Read(t.Context(), configuration.Location{Path: path}, nil)
	require.ErrorContains(t, err, "workloadKinds[0].template")
	require.NoError(t, os.WriteFile(path, withKinds("a.io/v1/A=spec.t"), 0o600))
	got, err = refresh.Read(t.Context(), configuration.Location{Path: path}, nil)
	require.NoError(t, err)
	assert.Len(t, got.WorkloadKinds, 1)
}

// transport answers requests as a test says.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The watch fails at once, and each read hangs.
func TestReadsOfAConfigMapThatHangAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts, ends []time.Duration
		client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "https://api"}, &http.Client{
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(r.URL.Path, "/configmaps/config") {
					return nil, errors.New("connection refused")
				}
				starts = append(starts, time.Since(began))
				<-r.Context().Done()
				ends = append(ends, time.Since(began))
				return nil, r.Context().Err()
			}),
		})
		require.NoError(t, err)
		offered := start(t, refresh.SourceOptions{Location: inOps, Client: client})
		<-time.After(30 * time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Second, 11 * time.Second, 21 * time.Second}, starts, "the first one when the watch has failed")
		assert.Equal(t, []time.Duration{6 * time.Second, 16 * time.Second, 26 * time.Second}, ends)
		assert.Empty(t, offered)
	})
}
