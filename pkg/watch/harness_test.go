package watch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

var (
	ingresses = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	byName    = []string{"metadata.namespace", "metadata.name"}
)

// bubble is the T of a test in fake time.
type bubble struct{ *testing.T }

// inBubble runs a test in fake time.
func inBubble(t *testing.T, run func(t bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(bubble{t}) })
}

// scenario runs the test of one scenario of the specification.
func scenario(t *testing.T, title string, run func(t bubble)) {
	t.Helper()
	t.Run(title, func(t *testing.T) {
		t.Parallel()
		inBubble(t, run)
	})
}

// pass lets fake time pass; everything that is due until then happens.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// object makes an Ingress: "name" or "namespace/name", with changes applied.
func object(name string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}}
	namespace, rest, found := strings.Cut(name, "/")
	if !found {
		namespace, rest = "default", name
	}
	u.SetNamespace(namespace)
	u.SetName(rest)
	u.SetUID(types.UID("uid-of-" + name))
	for _, change := range changes {
		change(u)
	}
	return u
}

func with(value any, path ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func class(name string) func(*unstructured.Unstructured) {
	return with(name, "spec", "ingressClassName")
}

func generation(n int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetGeneration(n) }
}

func uid(id string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetUID(types.UID(id)) }
}

func labelled(pairs map[string]string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetLabels(maps.Clone(pairs)) }
}

// names of objects, in their order.
func names(objects []*unstructured.Unstructured) []string {
	all := []string{}
	for _, u := range objects {
		all = append(all, u.GetName())
	}
	return all
}

// journal is what callbacks were called with, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, fmt.Sprintf(format, args...))
}

// read returns what has been written and begins again.
func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	read := append([]string{}, j.entries...)
	j.entries = nil
	return read
}

func (j *journal) onChange(_ context.Context, _ watch.Reader, stats watch.ChangeStats) error {
	j.add("change %s initial=%t", stats, stats.IsInitialSync)
	return nil
}

func (j *journal) onSync(_ context.Context, store watch.Reader, count int) error {
	j.add("synced %d of %d", count, store.Len())
	return nil
}

func (j *journal) onObject(before, now *unstructured.Unstructured) {
	j.add("%s → %s", show(before), show(now))
}

func show(u *unstructured.Unstructured) string {
	if u == nil {
		return "none"
	}
	return u.GetName() + "@" + u.GetResourceVersion()
}

// starter is what Bulk and Single share.
type starter interface {
	Start(ctx context.Context) error
	Stop()
}

// start runs the watcher until the test ends. Before that, time passes, in
// which the mutation detector looks for objects that were changed.
func start(t testing.TB, w starter) {
	t.Helper()
	startIn(t.Context(), t, w)
}

// startIn is start with a context of the test's own.
func startIn(ctx context.Context, t testing.TB, w starter) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	t.Cleanup(func() {
		pass(2 * time.Second)
		w.Stop()
		assert.NoError(t, <-ended)
	})
	synctest.Wait()
}

func newBulk(t testing.TB, s *apiServer, config watch.Config) *watch.Bulk {
	t.Helper()
	if config.GVR.Empty() {
		config.GVR = ingresses
	}
	if config.IndexBy == nil {
		config.IndexBy = byName
	}
	bulk, err := watch.NewBulk(config, s.client(t))
	require.NoError(t, err)
	return bulk
}

func startBulk(t testing.TB, s *apiServer, config watch.Config) *watch.Bulk {
	t.Helper()
	bulk := newBulk(t, s, config)
	start(t, bulk)
	return bulk
}

// logBook is a logger whose lines can be read.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(line)
}

func (b *logBook) logger() logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.Level(-8)}))
}

// lines are those with that level and text.
func (b *logBook) lines(t testing.TB, level, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for _, entry := range b.all(t) {
		if entry["level"] == level && strings.Contains(fmt.Sprint(entry["msg"]), message) {
			found = append(found, entry)
		}
	}
	return found
}

// all are the lines of every level.
func (b *logBook) all(t testing.TB) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(b.buf.String()) {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		found = append(found, entry)
	}
	return found
}
