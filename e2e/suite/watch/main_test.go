package watch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

var cp *controlplane.ControlPlane

func TestMain(m *testing.M) {
	options := controlplane.Options{Without: []string{controlplane.KWOK, controlplane.Scheduler, controlplane.ControllerManager}}
	os.Exit(controlplane.Main(m, options, func(c *controlplane.ControlPlane) { cp = c }))
}

// patience bounds every wait. The reflector of client-go may back off for a minute when the server was away for long.
const patience = 3 * time.Minute

var (
	ingresses  = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	byName     = []string{"metadata.namespace", "metadata.name"}
)

// await waits until the answer is the wanted one.
func await[T any](t *testing.T, want T, answer func() T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Equal(c, want, answer()) }, patience, 10*time.Millisecond)
}

// awaitEvents waits until OnObject was called with some events and no others, in any order. It is called after the object
// is in the store.
func awaitEvents(t *testing.T, want []string, seen func() []string, why string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.ElementsMatch(c, want, seen(), why) }, patience, 10*time.Millisecond)
}

// line is a connection to the server that can be cut, and then refuses, or that
// can break, and is open for the next request.
type line struct {
	mu       sync.Mutex
	cut      bool
	conns    []*wire
	requests []*http.Request
	watches  int // that the server has answered
}

// wire is one connection. Its reader gets the error by which it broke.
type wire struct {
	net.Conn

	mu   sync.Mutex
	lost error
}

func (w *wire) Read(into []byte) (int, error) {
	n, err := w.Conn.Read(into)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.lost != nil {
		return n, w.lost
	}
	return n, err
}

// Break breaks the connections, as a proxy or a network does.
func (l *line) Break(t *testing.T, reason error) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.conns {
		w.mu.Lock()
		w.lost = reason
		w.mu.Unlock()
	}
	l.close(t)
}

// FieldSelectors are those of the requests that were sent, without repetitions.
func (l *line) FieldSelectors() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, r := range l.requests {
		all = append(all, r.URL.Query().Get("fieldSelector"))
	}
	return slices.Compact(all)
}

// Watches says whether a watch has begun, so that a connection that breaks interrupts it.
func (l *line) Watches() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watches > 0
}

// wrap notes the requests.
func (l *line) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		l.requests = append(l.requests, r)
		l.mu.Unlock()
		response, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") != "" {
			l.mu.Lock()
			l.watches++
			l.mu.Unlock()
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// client reaches the API server by the line.
func (l *line) client(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(l.config())
	require.NoError(t, err)
	return client
}

func (l *line) config() *rest.Config {
	config := cp.Admin()
	config.Dial = l.dial
	config.Wrap(l.wrap)
	return config
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn}
	l.conns = append(l.conns, w)
	return w, nil
}

func (l *line) Cut(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.close(t)
}

func (l *line) close(t *testing.T) {
	t.Helper()
	for _, conn := range l.conns {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			require.NoError(t, err)
		}
	}
	l.conns = nil
}

func (l *line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// starter is what Bulk and Single share.
type starter interface {
	Start(ctx context.Context) error
	Stop()
}

// start runs the watcher until the test ends.
func start(t *testing.T, w starter) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.Start(t.Context()) }()
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, <-ended)
	})
}

func startBulk(t *testing.T, client dynamic.Interface, config watch.Config) *watch.Bulk {
	t.Helper()
	bulk, err := watch.NewBulk(config, client)
	require.NoError(t, err)
	start(t, bulk)
	_, err = bulk.WaitForSync(t.Context())
	require.NoError(t, err)
	return bulk
}

// names of the stored objects.
func names(bulk *watch.Bulk) func() []string {
	return func() []string {
		all := []string{}
		for _, object := range bulk.Store().List() {
			all = append(all, object.GetName())
		}
		return all
	}
}

// events are the calls of OnObject: "+a", "~a", "-a".
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) onObject(before, now *unstructured.Unstructured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case before == nil:
		e.all = append(e.all, "+"+now.GetName())
	case now == nil:
		e.all = append(e.all, "-"+before.GetName())
	default:
		e.all = append(e.all, "~"+now.GetName())
	}
}

func (e *events) read() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// logBook is a logger whose text can be searched.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(line)
}

func (b *logBook) contains(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.buf.String(), text)
}

func (b *logBook) logger() logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.Level(-8)}))
}

func ingress(namespace, name, class string, labels ...string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {namespace: " + namespace + ", name: " + name +
		", labels: {" + strings.Join(labels, ", ") + "}}\n" +
		"spec: {ingressClassName: '" + class + "', defaultBackend: {service: {name: web, port: {number: 80}}}}\n"
}

func configMap(namespace, name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: " + namespace + ", name: " + name + "}\ndata: {key: '" + value + "'}\n"
}
