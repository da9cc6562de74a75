package app

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	certutil "k8s.io/client-go/util/cert"

	"github.com/pod-reloader/pod-reloader/pkg/serve"
)

// observed is what the program's own gauges report.
type observed struct {
	version string
	// synced reports whether the loop sees the cluster.
	synced func() bool
	// keyed reports whether a digest key is loaded.
	keyed func() bool
	// waiting counts the live reads that wait for others to end.
	waiting func() int
	// certificate is nil without a webhook.
	certificate serve.Certificate
}

// register adds the program's own metrics to a registry.
func (o observed) register(registry prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("pod_reloader_cache_synced", "1 once all ConfigMaps and Secrets have been listed, or their list was refused or has failed for a minute; else 0.",
		func() float64 { return boolean(o.synced()) })
	gauge("pod_reloader_digest_key_loaded", "1 if a digest key is loaded, else 0: then nothing is reloaded or stamped.",
		func() float64 { return boolean(o.keyed()) })
	gauge("pod_reloader_waiting_reads", "Reads of ConfigMaps and Secrets that wait for a slot; namespaces share the slots fairly.",
		func() float64 { return float64(o.waiting()) })
	if o.certificate != nil {
		gauge("pod_reloader_certificate_expiry_timestamp_seconds", "End of validity of the webhook's certificate, in seconds since 1970; 0 if there is none.", func() float64 {
			if end := o.certificate.NotAfter(); !end.IsZero() {
				return float64(end.Unix())
			}
			return 0
		})
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pod_reloader_build_info", Help: "Always 1; the labels are the versions of pod-reloader and Go.",
		ConstLabels: prometheus.Labels{"version": o.version, "goversion": runtime.Version()},
	})
	info.Set(1)
	registry.MustRegister(info)
}

// boolean is the value of a gauge that is 1 or 0.
func boolean(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// metricsHandler serves a registry together with that of controller-runtime.
func metricsHandler(gatherer prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{
		// A compressor keeps almost a megabyte, which is more than the text has.
		DisableCompression: true,
	})
}

// metricsMux serves metrics at /metrics. All other paths are those of the probes: the manifests of Reloader probe the port of
// the metrics.
func metricsMux(metrics, probes http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	mux.Handle("/", probes)
	return mux
}

// selfSigned is the certificate of secure metrics in direct mode, where there is no other.
func selfSigned() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	certPEM, keyPEM, err := certutil.GenerateSelfSignedCertKey("pod-reloader", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the metrics: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil
}
