package edge_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// A proxy before the API server accepts watches of Secrets and never answers them: it shows in a metric, an Event and `why`, a change is
// acted on, if late, and other configuration as ever. When the proxy answers again, so is everything else.
func watchThatIsNeverAnswered(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	proxy := &silentProxy{}
	in := installed(t, cp, installation.Options{LongLease: true, Connect: func(config *rest.Config) { proxy.serve(t, config) }})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}})
	s.AwaitKnown(w)

	proxy.silence()
	assertBlindToSecrets(s, w)

	proxy.answer()
	assertSeesSecretsAgain(s, w)
}

// silentProxy relays requests to the API server, and can leave watches of Secrets without an answer.
type silentProxy struct {
	mutex  sync.Mutex
	silent bool
	open   []context.CancelFunc // what ends the watches of Secrets
}

// serve relays requests with the credentials of a configuration until the test ends, and makes the configuration one of the proxy.
func (p *silentProxy) serve(t *testing.T, config *rest.Config) {
	t.Helper()
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	relay := httputil.NewSingleHostReverseProxy(target)
	relay.FlushInterval = -1 // each event of a watch at once
	relay.Transport, err = rest.TransportFor(rest.CopyConfig(config))
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		if relayed := p.admit(r); relayed != nil {
			relay.ServeHTTP(writer, relayed)
		} else {
			<-r.Context().Done()
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	config.Host = "http://" + listener.Addr().String()
}

// admit returns a request as it is to be relayed; nil where it gets no answer.
func (p *silentProxy) admit(r *http.Request) *http.Request {
	if !strings.HasSuffix(r.URL.Path, "/secrets") || r.URL.Query().Get("watch") == "" {
		return r
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.silent {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	p.open = append(p.open, cancel)
	return r.WithContext(ctx)
}

// silence ends all watches of Secrets, and leaves new ones without an answer.
func (p *silentProxy) silence() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.silent = true
	for _, end := range p.open {
		end()
	}
	p.open = nil
}

func (p *silentProxy) answer() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.silent = false
}
