package app

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Host is what the program takes from the machine it runs on. The zero value is the machine itself. The simulator gives
// each replica a Host of its own, so that several replicas run in one process, on a network in memory and in fake time.
type Host struct {
	// Config leads to the API server; nil means RESTConfig.
	Config *rest.Config
	// Listen binds the address of the server for probes or metrics; nil means net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// Serve serves admission on an address until the context ends; nil means a server with its certificate in files,
	// which needs sockets and a file system.
	Serve func(ctx context.Context, address string, handler http.Handler) error
	// Random is where a new digest key comes from; nil means crypto/rand.
	Random io.Reader
	// Registry takes the metrics of this replica; nil means a new one, which is served together with those of
	// controller-runtime and of the Go runtime. They are counted for the process, so a Registry given here is served alone.
	Registry *prometheus.Registry
	// Now is the clock of what is written down: the times of reloads. nil means time.Now. Waiting goes by the machine's clock.
	Now func() time.Time
	// SetLogger sets the loggers of the libraries, which are global to the process; nil means all of them.
	SetLogger func(logr.Logger)
}

// complete replaces what is not set by the machine's own.
func (h Host) complete() Host {
	if h.Listen == nil {
		h.Listen = net.Listen
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.SetLogger == nil {
		h.SetLogger = setLogger
	}
	return h
}

func setLogger(to logr.Logger) {
	crlog.SetLogger(to)
	klog.SetLogger(to.WithName("client-go"))
	log.SetFlags(0)
	log.SetOutput(newHTTPErrorLog(to))
}

// metrics returns where metrics are registered and what is served of them.
func (h Host) metrics() (*prometheus.Registry, prometheus.Gatherer) {
	if h.Registry != nil {
		return h.Registry, h.Registry
	}
	registry := prometheus.NewRegistry()
	return registry, prometheus.Gatherers{registry, metrics.Registry}
}

// restConfig returns the way to the API server; the caller may change it.
func (h Host) restConfig(kubeconfig, version string) (*rest.Config, error) {
	if h.Config != nil {
		return rest.CopyConfig(h.Config), nil
	}
	return RESTConfig(kubeconfig, version)
}
