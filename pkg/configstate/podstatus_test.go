package configstate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// podStatuses serves SecretProviderClassPodStatuses as the API server serves custom resources: as JSON.
type podStatuses struct {
	mu      sync.Mutex
	version int
	objects map[string]map[string]any
	watches []chan map[string]any
	lists   int
	// past are the objects by version.
	past []map[string]map[string]any
	// cut is after how many bytes a list ends; 0 means never.
	cut int
}

func (p *podStatuses) cutting(after int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = after
}

// end ends the watches.
func (p *podStatuses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watches {
		close(w)
	}
	p.watches = nil
}

// put writes the status of a pod that mounts the class vault, as the driver does.
func (p *podStatuses) put(namespace, name, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	generation, kind := 1, "ADDED"
	if old, ok := p.objects[namespace+"/"+name]; ok {
		generation, kind = old["metadata"].(map[string]any)["generation"].(int)+1, "MODIFIED"
	}
	object := map[string]any{
		"apiVersion": "secrets-store.csi.x-k8s.io/v1", "kind": "SecretProviderClassPodStatus",
		"metadata": map[string]any{
			"namespace": namespace, "name": name, "uid": "uid-" + name, "resourceVersion": strconv.Itoa(p.version), "generation": generation,
		},
		"status": map[string]any{
			"podName": name, "secretProviderClassName": "vault", "mounted": true,
			"objects": []any{map[string]any{"id": "secret/password", "version": version}},
		},
	}
	if p.objects == nil {
		p.objects = map[string]map[string]any{}
	}
	p.past = append(p.past, maps.Clone(p.objects))
	p.objects[namespace+"/"+name] = object
	p.sendLocked(kind, object)
}

// remove deletes a status, as the garbage collector does after its pod.
func (p *podStatuses) remove(namespace, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	object := p.objects[namespace+"/"+name]
	delete(p.objects, namespace+"/"+name)
	p.sendLocked("DELETED", object)
}

func (p *podStatuses) sendLocked(kind string, object any) {
	for _, w := range p.watches {
		w <- map[string]any{"type": kind, "object": object}
	}
}

func (p *podStatuses) serve(w http.ResponseWriter, r *http.Request, namespace string) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		p.watch(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	items := []any{}
	objects := p.objects
	if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
		at, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
		if err != nil || at >= len(p.past) {
			http.Error(w, "no such version", http.StatusBadRequest)
			return
		}
		objects = p.past[at]
	}
	for _, object := range objects {
		if namespace == "" || object["metadata"].(map[string]any)["namespace"] == namespace {
			items = append(items, object)
		}
	}
	body, _ := json.Marshal(map[string]any{
		"kind": "SecretProviderClassPodStatusList", "metadata": map[string]any{"resourceVersion": strconv.Itoa(p.version)}, "items": items,
	})
	if p.cut > 0 {
		body = body[:p.cut]
	}
	_, _ = w.Write(body)
}

func (p *podStatuses) watch(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	events := make(chan map[string]any, 100)
	p.watches = append(p.watches, events)
	encoder, flush := json.NewEncoder(w), http.NewResponseController(w)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, name := range slices.Sorted(maps.Keys(p.objects)) {
			_ = encoder.Encode(map[string]any{"type": "ADDED", "object": p.objects[name]})
		}
		_ = encoder.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"kind": "SecretProviderClassPodStatus", "apiVersion": "secrets-store.csi.x-k8s.io/v1",
			"metadata": map[string]any{"resourceVersion": strconv.Itoa(p.version), "annotations": map[string]any{"k8s.io/initial-events-end": "true"}},
		}})
	}
	p.mu.Unlock()
	_ = flush.Flush()
	for {
		select {
		case event, open := <-events:
			if !open {
				return
			}
			_ = encoder.Encode(event)
			_ = flush.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func vault() reference.Ref {
	return reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}
}

func withClasses(o *configstate.Options) { o.SecretProviderClasses = true }

func TestContentOfSecretProviderClass(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.podStatuses.put("shop", "web-0", "1")
	f := newFixture(t, s, withClasses).start(t)
	assert.Equal(t, configstate.Event{Namespace: "shop", Ref: vault(), Type: configstate.Modified, Initial: true}, f.next(t))
	first := f.observe(t, "shop")
	assert.True(t, first.Mounted, "the pod was started with it")
	assert.Equal(t, "1", first.ResourceVersion)
	assert.Len(t, first.Entries, 1, "nothing needs to be read for it")
	assert.True(t, f.observe(t, "pay").Absent, "no pod there mounts it")

	s.podStatuses.put("shop", "web-1", "2")
	s.podStatuses.put("shop", "web-0", "2")
	assert.Equal(t, configstate.Event{Namespace: "shop", Ref: vault(), Type: configstate.Modified}, f.next(t),
		"the new pod changes nothing, the rotation does")
	rotated := f.observe(t, "shop")
	assert.False(t, rotated.Mounted, "the driver has rotated the content since the pods mounted it")
	assert.Equal(t, "3", rotated.ResourceVersion)
	assert.NotEqual(t, first.Entries, rotated.Entries)

	live, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
	require.NoError(t, err)
	assert.Equal(t, rotated, live[vault()], "the webhook reads what the loop has seen")
	s.podStatuses.remove("shop", "web-0")
	s.podStatuses.remove("shop", "web-1")
	assert.Equal(t, configstate.Modified, f.next(t).Type)
	assert.Equal(t, configstate.Modified, f.next(t).Type)
	assert.True(t, f.observe(t, "shop").Absent, "no pod status of it is left")
	assert.Empty(t, f.events)
}

func TestSecretProviderClassAtAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, withClasses).start(t)
	var want []digest.State
	for _, version := range []string{"1", "2", "3"} {
		s.podStatuses.put("shop", "web-0", version)
		f.next(t)
		want = append(want, f.observe(t, "shop"))
	}
	for i, at := range []string{"1", "2"} {
		got, err := f.At(t.Context(), "shop", vault(), at)
		require.NoError(t, err)
		assert.Equal(t, want[i], got)
	}
	got, err := f.At(t.Context(), "shop", vault(), "0")
	require.NoError(t, err)
	assert.Equal(t, digest.State{Absent: true}, got, "no pod had mounted it")
	_, err = f.At(t.Context(), "shop", vault(), "9")
	assert.ErrorContains(t, err, "read secretproviderclass/vault in namespace shop")
}

// observe returns what is known of the class vault.
func (f *fixture) observe(t *testing.T, namespace string) digest.State {
	t.Helper()
	state, ok := f.Cached(namespace, []reference.Ref{vault()})[vault()]
	require.True(t, ok, "the store knows each object that is asked for")
	return state
}

func TestSecretProviderClassesAreNotFollowedByDefault(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.podStatuses.put("shop", "web-0", "1")
	f := newFixture(t, s, nil).start(t)
	assert.Empty(t, f.Cached("shop", []reference.Ref{vault()}))
	for _, request := range s.seen() {
		assert.NotContains(t, request, "secretprovider")
	}
	assert.Empty(t, s.podStatuses.watches)
	assert.Zero(t, s.podStatuses.lists)
}

// The driver may be installed later, and removed again: the rest goes on at once.
func TestClusterWithoutSecretsStoreDriver(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(configMap("shop", "app", "x"))
	s.refusing("/apis/", http.StatusNotFound)
	f := newFixture(t, s, withClasses).start(t)
	assert.True(t, f.observe(t, "shop").Absent, "no kind, no pod status: a workload that mounts a class is reloaded for other objects")
	assert.True(t, f.Listed("shop"), "patterns of other kinds work")
	live, err := f.ReadLive(deadline(t), "shop", []reference.Ref{cm("app"), vault()})
	require.NoError(t, err, "the webhook stamps such a workload")
	assert.True(t, live[vault()].Absent, "there is no kind of pod statuses")
	assert.False(t, live[cm("app")].Absent, "the ConfigMap exists")

	s.podStatuses.put("shop", "web-0", "1")
	s.refusing("/apis/", 0)
	assert.Equal(t, vault(), f.nextOf(t).Ref)
	assert.False(t, f.observe(t, "shop").Absent, "a pod has mounted it")
	s.refusing("/apis/", http.StatusNotFound)
	s.podStatuses.end()
	assert.Equal(t, vault(), f.nextOf(t).Ref, "its kinds are gone, and the statuses with them")
	assert.True(t, f.observe(t, "shop").Absent, "the kind of pod statuses is gone")
}

func TestMissingPermissionToPodStatuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(configMap("shop", "app", "x"))
	s.refusing("/apis/", http.StatusForbidden)
	f := newFixture(t, s, withClasses).start(t)
	assert.Len(t, f.Cached("shop", []reference.Ref{cm("app"), vault()}), 1, "nothing is known of the class")
	assert.True(t, f.Listed("shop"), "patterns of other kinds work")
	_, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
	require.Error(t, err, "no answer is not the absence of statuses")
	s.podStatuses.put("shop", "web-0", "1")
	s.refusing("/apis/", 0)
	assert.Equal(t, vault(), f.nextOf(t).Ref)
}

// The webhook's list of a watched namespace must not look like one of its watch.
func TestListOfPodStatusesBelongsToNoWatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.podStatuses.put("shop", "web-0", "1")
	monitor := &watchhealth.Monitor{}
	f := newFixture(t, s, func(o *configstate.Options) {
		withClasses(o)
		o.Namespaces = []string{"shop"}
		o.HTTPClient = &http.Client{Transport: monitor.Wrap(http.DefaultTransport)}
	}).start(t)
	for range 2 {
		_, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
		require.NoError(t, err)
	}
	assert.False(t, monitor.Failing("secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io", "shop"), "its watch is open")
}

// A body that ends early must not look like fewer statuses.
func TestListOfPodStatusesIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for pod := range 1_000 {
		s.podStatuses.put("shop", fmt.Sprint("web-", pod), "1")
	}
	f := newFixture(t, s, withClasses).start(t)
	assert.False(t, f.observe(t, "shop").Absent, "the list is read to its end")
	live, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
	require.NoError(t, err)
	assert.Equal(t, f.observe(t, "shop"), live[vault()])
	s.podStatuses.cutting(10_000)
	_, err = f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
	require.Error(t, err)
}

// Another tenant's class of the same name has statuses of its own.
func TestLiveStatusesAreThoseOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.podStatuses.put("shop", "web-0", "1")
	f := newFixture(t, s, withClasses).start(t)
	before, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
	require.NoError(t, err)
	s.podStatuses.put("pay", "api-0", "1")
	s.podStatuses.put("pay", "api-0", "2") // a rotated status counts rather than others
	after, err := f.ReadLive(deadline(t), "shop", []reference.Ref{vault()})
	require.NoError(t, err)
	assert.Equal(t, before, after)
	other, err := f.ReadLive(deadline(t), "pay", []reference.Ref{vault()})
	require.NoError(t, err)
	assert.False(t, other[vault()].Absent, "a pod there has mounted it")
}

// nextOf waits for the next event of a SecretProviderClass.
func (f *fixture) nextOf(t *testing.T) configstate.Event {
	t.Helper()
	for {
		if e := f.next(t); e.Ref.Kind == reference.SecretProviderClass {
			return e
		}
	}
}

func TestRecheckOfSecretProviderClass(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, withClasses)
	s.podStatuses.put("shop", "web-0", "1")
	require.NoError(t, f.Recheck(deadline(t), "shop", vault()))
	assert.Equal(t, vault(), f.next(t).Ref)
	require.NoError(t, f.Recheck(deadline(t), "shop", vault()))
	s.podStatuses.remove("shop", "web-0")
	require.NoError(t, f.Recheck(deadline(t), "shop", vault()))
	assert.Equal(t, vault(), f.next(t).Ref)
	assert.Empty(t, f.events, "equal statuses are no event")
}
